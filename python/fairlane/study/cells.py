"""The points of a study with their runs.

Runs that are compared are the default run, each job isolated, and a run per treatment, all with the same programs on
the same hosts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fairlane.model.scenario.resolved import ResolvedJob
from fairlane.study.setting import Point
from fairlane.study.tasks.task import Task
from fairlane.study.treatments import Treatment
from fairlane.study.treatments.base import Overrides

CALIBRATE = "fairlane.study.pinned:calibrate"
DEFAULT, ISOLATED = "default", "isolated"
"""Name of untreated runs in the column of treatments."""
TASK_S = 0.01
"""Processor time of a simulation besides what its scenario's size takes, s, as measured with `examples/quickstart.toml`
at durations of 6 and 60 ms."""


@dataclass(frozen=True)
class CellRun:
    """A run of a cell: its treatment by name, or ``default`` or ``isolated``, and the job that is isolated, if one is.

    ``baseline`` says what its default and isolated runs are like; ``task`` computes it, also for other runs, and
    ``kind`` reads the answer. ``own`` is the treatment whose own isolated runs these are; without ``job`` the task is a
    default run that has all of them.
    """

    baseline: str
    treatment: str
    job: str | None
    task: Task
    kind: Treatment = field(default_factory=Overrides)
    own: str | None = None


@dataclass
class Cell:
    """A point with its runs, whether these are compared or measured.

    Of a study that compares, ``decide`` makes the runs: for each baseline the default run and the isolated ones that
    are no part of it; then the treated runs.
    """

    point: Point
    pinned: Task
    """The scenario of the default run."""
    memory: float
    """Estimated bytes of memory of the largest simulation."""
    seconds: float | None
    """Estimated processor time of the default run, s; None where that is not known."""
    allowed: int
    """Memory limit of the scenario; 0 if it has none."""
    treated: Mapping[str, Task] = field(default_factory=dict)
    """The scenario of each treatment."""
    jobs: Sequence[ResolvedJob] = ()
    """The jobs of a point whose runs are compared."""
    runs: list[CellRun] = field(default_factory=list)
    worked_out: str = ""
    """Digest of the scenario with all decisions made, where the tasks leave some open."""
    set_up: float = 0.0
    """Estimated processor time of the default run before it begins, s."""
    hop: float = 0.0
    """Estimated processor time of a packet-hop, s."""
    duration: str | None = None
    """Duration of the scenario if the cell's runs are shorter."""

    @property
    def identity(self) -> tuple[str, ...]:
        """Digests of its simulations: equal for points with the same ones."""
        return (self.worked_out,) if self.worked_out else tuple(run.task.digest for run in self.runs)

    def seconds_of(self, task: Task) -> float | None:
        """The estimated processor time of a task, s, in proportion to the cost of the default run."""
        return self.seconds and self.seconds * task.cost / self.pinned.cost

    def described(self) -> dict[str, Any]:
        """The scenario, and the answers that are its runs."""
        runs = [
            {"baseline": run.baseline, "treatment": run.treatment, "job": run.job, "answer": run.task.digest}
            for run in self.runs
        ]
        return {"point": str(self.point), "scenario": self.pinned.scenario, "runs": runs}

    @cached_property
    def calibrations(self) -> Mapping[str, Task]:
        """The task that calibrates a job's compute time, by job, where it is not known."""
        jobs = self.pinned.scenario["jobs"] if self.jobs else ()
        # Calibrated for a job that starts at the beginning and never ends, and as if runs were not shortened.
        endless = [{key: value for key, value in job.items() if key not in ("start", "stop")} for job in jobs]
        always = self.pinned.changed(jobs=endless, **({"duration": self.duration} if self.duration else {}))
        return {
            job["name"]: always.isolated(at).of(CALIBRATE, f"compute time of {job['name']}")
            for at, job in enumerate(jobs)
            if "workload" in job and "compute" not in job["workload"]
        }

    def decide(self, compute: Sequence[int | None], treatments: Mapping[str, Treatment]) -> None:
        """Makes the runs, with these compute times."""
        self.runs.clear()
        default = self.pinned.with_compute_times(compute)
        kinds: dict[str, Treatment] = {}
        for kind in treatments.values() or (Overrides(),):
            kinds.setdefault(kind.baseline, kind)
        for name, kind in kinds.items():
            self.runs.append(CellRun(name, DEFAULT, None, kind.default(default), kind))
            self.runs += self._isolated(kind, default)
        for name, kind in treatments.items():
            treated = self.treated[name].with_compute_times(compute)
            self.runs.append(CellRun(kind.baseline, name, None, kind.treated(treated, name), kind))
            if kind.own_isolation:
                isolated = self._isolated(kind, treated, name)
                with_all = CellRun(kind.baseline, ISOLATED, None, kind.default(treated), kind, name)
                self.runs += isolated or [with_all]

    def _isolated(self, kind: Treatment, pinned: Task, own: str | None = None) -> list[CellRun]:
        """The isolated runs of a kind of treatment; none where they are part of its default run."""
        tasks = {job: kind.isolated(pinned, number) for number, job in enumerate(self.pinned.names)}
        return [CellRun(kind.baseline, ISOLATED, job, task, kind, own) for job, task in tasks.items() if task]

    def set_up_of(self, task: Task) -> float:
        """The estimated processor time of a task before its simulation begins, s."""
        return TASK_S + self.set_up * task.cost / self.pinned.cost

    def of(self, treatment: str, baseline: str | None = None, own: str | None = None) -> list[CellRun]:
        """Its runs with a treatment, or without: of one baseline or of all; isolated ones of a treatment's own."""
        return [
            run
            for run in self.runs
            if run.treatment == treatment and baseline in (None, run.baseline) and run.own == own
        ]
