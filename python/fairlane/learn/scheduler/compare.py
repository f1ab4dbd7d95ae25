"""The same jobs under several allocators: metrics of the schedules, and a criterion for pattern-aware allocation.

Machine of the jobs of a log: the fabric, patterns of communication, allocators, and a model of slowdowns.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy
import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import percent
from fairlane.inputs.files import read_bytes
from fairlane.inputs.hosts import compress
from fairlane.inputs.problems import refusing
from fairlane.learn.scheduler.easy import refusals, replay
from fairlane.learn.scheduler.log import LoggedJob, PatternMix, Schedule
from fairlane.learn.scheduler.slowdown.forecast import Forecast, Verification
from fairlane.learn.scheduler.slowdown.model import load_model
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement import ALLOCATORS, Communication, FabricView, PlacementPolicy
from fairlane.model.placement.grid import sides_of
from fairlane.results.schedule import SCHEDULE, ScheduleMeta, ScheduleResults, hosts_as_text
from fairlane.results.schemas import types
from fairlane.results.study import StudyResults


@dataclass(frozen=True)
class Machine:
    """Fabric of the jobs of a log, their patterns, and a model of slowdowns."""

    fabric: Fabric
    spec: dict[str, Any]
    """The fabric as the simulator takes it."""
    patterns: Callable[[int], Communication] | None
    """The communication of a job by its number."""
    forecast: Forecast | None
    """The slowdowns of a model."""

    @classmethod
    def of_fabric(cls, fabric: str | None, assignments: Sequence[str], mix: Path | None, seed: int) -> Self:
        """A topology by name or a fabric by file, and the patterns of a file. Raises ``ScenarioError``."""
        if fabric is None and not assignments:
            allowed = 'as --set "sides=[8,4,4]", or --slowdown'
            raise ScenarioError(Problem("--fabric", "missing: what the jobs run on", allowed=allowed))
        if fabric is not None and Path(fabric).is_file():
            table = read_wiring(fabric).table()
        elif fabric is not None and Path(fabric).suffix:
            allowed = "a file of a fabric, or the name of a topology"
            raise ScenarioError(Problem("--fabric", "there is no such file", fabric, allowed))
        else:
            table = {"topology": fabric or "torus"}
        spec = FabricTable.read(table, assignments).spec
        patterns = PatternMix.from_file(mix) if mix else None
        return cls(Fabric.build(spec), spec, (lambda number: patterns.of(number, seed)) if patterns else None, None)

    @classmethod
    def of_model(cls, model: str, seed: int) -> Self:
        """The fabric and the patterns of a model of slowdowns. Raises ``ScenarioError``."""
        forecast = Forecast(load_model(model), seed)
        return cls(forecast.fabric, forecast.model.table.spec, forecast.communication, forecast)

    @property
    def kind_of(self) -> Callable[[int], str] | None:
        """The pattern of a job by its number."""
        patterns = self.patterns
        return (lambda number: patterns(number).kind) if patterns else None

    def usual(self, *, claim: bool) -> list[str]:
        """The allocators if none is named: contiguous, any free hosts, and by pattern if these are known."""
        contiguous = "domain" if sides_of(self.fabric) is None else "box"
        return [contiguous, "linear", *(["pattern"] if claim or self.patterns else [])]

    def allocators(self, texts: Sequence[str]) -> dict[str, PlacementPolicy]:
        """The allocators ``NAME[:KEY=VALUE]...`` by what the user calls them. Raises ``ScenarioError``."""
        by_text = {}
        for text in texts:
            first, *rest = text.split(":")
            extra = 1 if first.endswith(".py") else 0  # file.py:ClassName
            name = ":".join([first, *rest[:extra]])
            with refusing("allocator"):
                kind = ALLOCATORS.find(name)
            with refusing(f"allocator.{name}"):
                by_text[text] = kind.read({}, rest[extra:])
                by_text[text].check(self.fabric, [1])
        return by_text

    def refused(self, jobs: Sequence[LoggedJob], allocator: PlacementPolicy, seed: int, log: Path) -> list[Problem]:
        """The jobs of a log that get no hosts by an allocator even on the empty machine."""
        reason = f"gets no hosts even on the empty machine: it wants {allocator.wanted()}"
        return [
            Problem("processors", f"job {job.number} {reason}", job.hosts).at(str(log), job.line)
            for job in refusals(jobs, self.fabric, allocator, seed=seed, communication=self.patterns)
        ]


CONTIGUOUS, BLIND, AWARE = "box", "linear", "pattern"
"""The allocators of the criterion: contiguous only; any free hosts; by the job's pattern."""
MAX_SLOWDOWN = 1.05
"""Largest mean slowdown by pattern, over that of contiguous allocation."""
MIN_UTILISATION = 0.98
"""Smallest utilisation by pattern, over that of non-contiguous allocation."""


BOUND_S = 10
"""Run times below this count as this in the bounded slowdown (Feitelson et al. 1997)."""


@dataclass(frozen=True)
class ScheduleMetrics:
    """Metrics of a schedule; ``jobs`` counts those that ran, and waiting times are in s."""

    jobs: int
    refused: int
    """Jobs that the allocator refuses even on the empty machine."""
    makespan: float
    """Seconds from the first submission to the last end."""
    utilisation: float
    """Share of the hosts' time over the makespan in which they were allocated."""
    mean_wait: float
    median_wait: float
    mean_bounded_slowdown: float
    """Mean of (wait + time that it ran) / run time of the log, run times below 10 s counted as 10 s; 1 at least."""
    useful: float
    """Share of the hosts' time that the jobs would have taken at their best: run times of the log."""
    mean_slowdown: float
    """Mean of the time that a job ran over the log's run time."""
    weighted_slowdown: float
    """The same, jobs weighted with their hosts' time: all that they ran over all of the log's."""
    interference: float
    """Share of the jobs' hosts' time that they lost to neighbours."""
    fragmentation: float
    """Share of the hosts' time in which enough of them for the head of the queue were free, but in the wrong shape."""


def metrics_of(schedule: Schedule, hosts: int) -> ScheduleMetrics:
    """The metrics of a schedule on a machine with this number of hosts."""
    placed = schedule.jobs
    if not placed:
        return ScheduleMetrics(0, len(schedule.refused), 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    makespan = max(job.end for job in placed) - min(job.job.submit for job in placed)
    waits = [job.wait for job in placed]
    slowdowns = [max(1.0, (job.wait + job.ran) / max(job.job.run, BOUND_S)) for job in placed]
    busy = sum(job.ran * len(job.hosts) for job in placed)
    work = sum(job.job.run * len(job.hosts) for job in placed)
    return ScheduleMetrics(
        jobs=len(placed),
        refused=len(schedule.refused),
        makespan=makespan,
        utilisation=busy / (makespan * hosts),
        mean_wait=float(numpy.mean(waits)),
        median_wait=float(numpy.median(waits)),
        mean_bounded_slowdown=float(numpy.mean(slowdowns)),
        useful=work / (makespan * hosts),
        mean_slowdown=float(numpy.mean([job.slowdown for job in placed])),
        weighted_slowdown=busy / work,
        interference=sum(job.lost * len(job.hosts) for job in placed) / busy,
        fragmentation=schedule.fragmented / (makespan * hosts),
    )


@dataclass(frozen=True)
class Comparison:
    """Several schedules of the same jobs and their metrics, by allocator."""

    schedules: Mapping[str, Schedule]
    metrics: Mapping[str, ScheduleMetrics]

    @property
    def table(self) -> pl.DataFrame:
        """A row for each allocator: ``allocator``, and the fields of ``ScheduleMetrics``."""
        return pl.DataFrame([{"allocator": name, **asdict(row)} for name, row in self.metrics.items()])

    def placements(self, names: Sequence[str]) -> pl.DataFrame:
        """A row for each allocator and job, for other programs; ``names`` are those of the hosts.

        Columns are ``allocator``, ``job``, ``submit``, ``start`` and ``end`` (s), ``slowdown``, ``lost`` (s, to
        neighbours), ``hosts``, and ``node_list`` as Slurm's ``--nodelist`` takes it.
        """
        return pl.DataFrame(
            {
                "allocator": allocator,
                "job": placed.job.number,
                "submit": placed.job.submit,
                "start": round(float(placed.start), 3),
                "end": round(float(placed.end), 3),
                "slowdown": round(placed.slowdown, 6),
                "lost": round(placed.lost, 3),
                "hosts": len(placed.hosts),
                "node_list": compress(names[host] for host in placed.hosts),
            }
            for allocator, schedule in self.schedules.items()
            for placed in schedule.jobs
        )


def compare_allocators(
    jobs: Sequence[LoggedJob],
    fabric: FabricView,
    allocators: Mapping[str, PlacementPolicy],
    *,
    seed: int = 1,
    communication: Callable[[int], Communication] | None = None,
    forecast: Forecast | None = None,
    progress: Callable[[str, int], None] = lambda _name, _done: None,
) -> Comparison:
    """Replays the jobs, which are in the order of submission, once with every allocator, on the forecast's fabric.

    The other arguments are those of ``replay``; ``communication`` is by default the forecast's, and ``progress`` gets
    the allocator's name, too.
    """
    known = communication or (forecast.communication if forecast else None)
    schedules = {}
    for name, allocator in allocators.items():
        done = partial(progress, name)
        schedules[name] = replay(
            jobs, fabric, allocator, seed=seed, communication=known, forecast=forecast, progress=done
        )
    return Comparison(schedules, {name: metrics_of(allocator, fabric.hosts) for name, allocator in schedules.items()})


def pattern_aware_findings(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Whether pattern-aware allocation is as fast as contiguous, and as full as non-contiguous allocation.

    Of each allocator ``mean_slowdown`` and ``utilisation``, as in ``ScheduleMetrics``; two findings, each with its
    verdict. The criterion is that of X. Yang et al., "Watch out for the bully!", SC 2016, section V.
    """
    aware, contiguous = (rows[name]["mean_slowdown"] for name in (AWARE, CONTIGUOUS))
    ratio = aware / contiguous
    finding = f"mean slowdown {aware:.3f}, contiguous {contiguous:.3f}: {ratio:.3f} times that (<= {MAX_SLOWDOWN})"
    yield finding, ratio <= MAX_SLOWDOWN
    aware, blind = (rows[name]["utilisation"] for name in (AWARE, BLIND))
    ratio = aware / blind
    full = f"utilisation {percent(aware)}, non-contiguous {percent(blind)}"
    yield f"{full}: {ratio:.3f} times that (>= {MIN_UTILISATION})", ratio >= MIN_UTILISATION


def results_of(
    comparison: Comparison,
    log: Path,
    kind_of: Callable[[int], str] | None,
    checked: Mapping[str, Verification],
    notes: Sequence[str] = (),
    **facts: Any,
) -> ScheduleResults:
    """The results of a comparison, in memory.

    Args:
        comparison: The schedules and their metrics.
        log: The file of the job log.
        kind_of: The pattern of a job by its number, if that is known.
        checked: Errors of the model of slowdowns by allocator.
        notes: Sentences that readers should know.
        facts: ``hosts``, ``fabric`` (its specification), ``load``, ``seed`` and ``model``.
    """
    rows = [
        {
            "allocator": allocator,
            "job": row.job.number,
            "pattern": kind_of(row.job.number) if kind_of else None,
            "submit": float(row.job.submit),
            "run": float(row.job.run),
            "start": round(float(row.start), 3),
            "end": round(float(row.end), 3),
            "slowdown": round(row.slowdown, 6),
            "lost": round(row.lost, 3),
            "hosts": len(row.hosts),
            "host_numbers": hosts_as_text(row.hosts),
        }
        for allocator, schedule in comparison.schedules.items()
        for row in schedule.jobs
    ]
    schemas = {name: types(columns) for name, columns in SCHEDULE.items()}
    placed = pl.DataFrame(rows, schema=schemas["placed"], infer_schema_length=None)
    allocators = comparison.table.select(*schemas["allocators"]).cast(pl.Schema(schemas["allocators"]))
    meta = ScheduleMeta(
        version=version("fairlane"),
        log=log.name,
        log_sha256=sha256(read_bytes(log)).hexdigest(),
        digest=StudyResults.digest_of({"allocators": allocators, "placed": placed}),
        verified=[_verified(name, row) for name, row in checked.items()],
        notes=list(notes),
        **facts,
    )
    return ScheduleResults(meta, allocators, placed)


def _verified(name: str, verification: Verification) -> dict[str, Any]:
    error = {} if verification.error is None else verification.error.model_dump()
    return {"allocator": name, "snapshots": verification.snapshots, **error}
