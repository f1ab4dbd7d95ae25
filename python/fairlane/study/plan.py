"""What a study has to compute: a cell for each point, and the tasks that cells share.

A cell is everything about one point, placement and seed: the default run, each job isolated, and a run per treatment,
all with the same programs on the same hosts. Compute times are found first, on the default scenario, and hold for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fairlane.errors import BuildError, Problem, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.scenario import Resolved, Scenario
from fairlane.scenario.resolve import decide
from fairlane.study.pinned import Pinned, pin
from fairlane.study.study import Point, Study
from fairlane.study.treatments import Treatment
from fairlane.study.treatments.overrides import Overrides
from fairlane.tasks.task import Task

if TYPE_CHECKING:
    from fairlane.tasks.executor import Executor

__all__ = ["DEFAULT", "ISOLATED", "Cell", "CellRun", "Plan", "plan"]

CALIBRATE = "fairlane.study.work:calibrate"
FIXED = ("name", "seed", "duration")
FIXED_OF_JOBS = ("name", "count", "ranks", "workload", "trace", "start", "stop", "stream")
"""What treated and default runs have in common, or they could not be compared."""


DEFAULT, ISOLATED = "default", "isolated"
"""What runs without a treatment are called where treated ones have its name."""


@dataclass(frozen=True)
class CellRun:
    """A run of a cell."""

    baseline: str
    """What its default and isolated runs are like."""
    treatment: str
    """The treatment's name, ``default`` or ``isolated``."""
    job: str | None
    """The job that is isolated; None of other runs."""
    task: Task
    """What it is computed by; other runs may have the same."""
    kind: Treatment
    """How its answer is read."""


@dataclass
class Cell:
    """One point with its runs."""

    point: Point
    pinned: Pinned
    treated: Mapping[str, Pinned]
    workloads: Sequence[str]
    """The workload of each job."""
    ranks: Sequence[int]
    """How many ranks each job has."""
    iterates: Sequence[bool]
    """Whether each job has iterations that runs can be compared by."""
    memory: float = 0.0
    """Bytes of memory that a simulation of it takes, about."""
    allowed: int | None = None
    """Bytes of memory that its scenario allows, if it says so."""
    runs: list[CellRun] = field(default_factory=list)
    """For each baseline the default run and the isolated ones that are no part of it; then the treated runs."""

    @cached_property
    def calibrations(self) -> list[Task | None]:
        """What finds each job's compute time; None where it is known."""
        unknown = [_uncalibrated(job) for job in self.pinned.data["jobs"]]
        always = self.pinned.without_start_and_stop()
        return [
            always.isolated(at).task(CALIBRATE, f"compute time of {always.names[at]}") if wanted else None
            for at, wanted in enumerate(unknown)
        ]

    def decide(self, compute: Sequence[int | None], treatments: Mapping[str, Treatment]) -> None:
        """Makes the runs, with these compute times."""
        self.runs.clear()
        default = self.pinned.with_compute_times(compute)
        kinds: dict[str, Treatment] = {}
        for kind in treatments.values() or (Overrides(),):
            kinds.setdefault(kind.baseline, kind)
        for name, kind in kinds.items():
            alone = {job: kind.isolated(default, number) for number, job in enumerate(self.pinned.names)}
            self.runs.append(CellRun(name, DEFAULT, None, kind.default(default), kind))
            self.runs += [CellRun(name, ISOLATED, job, task, kind) for job, task in alone.items() if task]
        for name, kind in treatments.items():
            treated = kind.treated(self.treated[name].with_compute_times(compute), name)
            self.runs.append(CellRun(kind.baseline, name, None, treated, kind))

    def tasks(self) -> list[Task]:
        """What its runs are computed by."""
        return [run.task for run in self.runs]

    def of(self, treatment: str, baseline: str | None = None) -> list[CellRun]:
        """Its runs with a treatment, or without: of one baseline or of all."""
        return [run for run in self.runs if run.treatment == treatment and baseline in (None, run.baseline)]

    def described(self) -> dict[str, Any]:
        """Its scenario as it was worked out, and the answers that are its runs."""
        runs = [
            {"baseline": run.baseline, "treatment": run.treatment, "job": run.job, "answer": run.task.digest}
            for run in self.runs
        ]
        return {"point": str(self.point), "scenario": self.pinned.data, "runs": runs}


@dataclass
class Plan:
    """All cells of a study."""

    study: Study
    cells: list[Cell]

    @property
    def memory(self) -> float:
        """Bytes of memory that the largest simulation takes, about."""
        return max((cell.memory for cell in self.cells), default=0.0)

    @property
    def allowed(self) -> int:
        """Bytes of memory that its scenarios allow, 0 if none says so."""
        return max((cell.allowed or 0 for cell in self.cells), default=0)

    def calibrations(self) -> Iterator[Task]:
        """What finds the compute times, which all runs of a point share."""
        return (task for cell in self.cells for task in cell.calibrations if task)

    def calibrate(self, executor: Executor) -> None:
        """Makes the tasks of the cells whose compute times are known now; the others have none."""
        for cell in self.cells:
            known = {task.digest: answer for task in cell.calibrations if task and (answer := executor.answer(task))}
            if all(task is None or task.digest in known for task in cell.calibrations):
                compute = [None if task is None else known[task.digest]["compute"][0] for task in cell.calibrations]
                cell.decide(compute, self.study.treatments)


def plan(study: Study) -> Plan:
    """Judges every scenario of the study, and says what there is to compute.

    Raises ``ScenarioError`` with everything that is wrong, before anything runs.
    """
    if study.table.measure is not None:
        words = "is for studies that belong to a paper: fairlane reproduce FOLDER runs them"
        raise ScenarioError(study.error(Problem("measure", words)))
    problems: dict[str, Problem] = {}
    cells = []
    for point in study.points():
        try:
            cells.append(_cell(study, point))
        except ScenarioError as error:
            problems.update({str(problem): problem for problem in error.problems})
    if problems:
        raise ScenarioError(problems.values())
    return Plan(study, cells)


def _cell(study: Study, point: Point) -> Cell:
    scenario = study.scenario(point)
    if not study.treatments:
        wrong = list(Overrides().check(scenario))
        if wrong:
            raise scenario.error(Problems(*wrong))
    decided = _decided(scenario)
    pinned = pin(scenario, decided, study.folder, str(point))
    treated: dict[str, Pinned] = {}
    problems: list[Problem] = []
    for name, treatment in study.treatments.items():
        try:
            other = study.scenario(point, name)
            wrong = list(_located(study, name, other, treatment.check(other)))
            problems += wrong
            fitted = other if wrong else treatment.fitted(other)
            outcome = pin(fitted, _decided(fitted), study.folder, str(point))
        except ScenarioError as error:
            problems += error.problems
            continue
        problems += [study.error(problem) for problem in _incomparable(name, pinned, outcome)]
        treated[name] = outcome
    if problems:
        raise ScenarioError(problems)
    jobs = decided.jobs
    lists = [job.workload for job in jobs], [job.ranks for job in jobs], [job.iterates for job in jobs]
    memory = decided.estimate.memory if decided.estimate else 0.0
    return Cell(point, pinned, treated, *lists, memory, scenario.memory)


def _located(study: Study, name: str, scenario: Scenario, problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems with their places in the study file, or in the scenario's."""
    for problem in problems:
        if problem.key.partition("[")[0] == "jobs":
            yield from scenario.error(Problems(problem)).problems
        else:
            yield study.error(problem.under(f"treatments.{name}"))


def _decided(scenario: Scenario) -> Resolved:
    try:
        return decide(scenario)
    except Problems as problems:
        raise scenario.error(problems) from None
    except BuildError as error:
        raise scenario.error(Problems(Problem(error.path or "", str(error)))) from None


def _incomparable(name: str, default: Pinned, treated: Pinned) -> Iterator[Problem]:
    """What a treatment may not change."""
    where = f"treatments.{name}.set"
    for key in FIXED:
        if default.data[key] != treated.data[key]:
            yield Problem(where, f"changes {key}: then nothing can be compared", treated.data[key])
    for at, (job, other) in enumerate(zip(default.data["jobs"], treated.data["jobs"], strict=False)):
        for key in FIXED_OF_JOBS:
            if job.get(key) != other.get(key):
                yield Problem(where, f"changes {key} of job {at}: then nothing can be compared")
    if len(default.names) != len(treated.names):
        yield Problem(where, "changes the number of jobs: then nothing can be compared")


def _uncalibrated(job: Mapping[str, Any]) -> bool:
    return "workload" in job and "compute" not in job["workload"]
