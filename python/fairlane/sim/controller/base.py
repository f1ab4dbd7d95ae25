"""The base of controllers, their input and their output.

A controller gets ``Work``, measurements that are available on a real system, and returns ``Settings``: service levels
of ranks and weights of service levels. It sees neither the network nor the baseline run. A controller with a model of
the system makes it of the scenario that ``prepare`` gets before the first period.

Progress of processes, with the position within an iteration: from counts of marks and times of the last ones.

A mark says that an iteration is complete. Between two marks the position is estimated: an iteration takes as long as
those between the last marks of two readings, and the position stays below the next mark until it comes. Differences of
positions have no noise of an integer count, and add up to the iterations completed.

Steering: which settings hold in a period, and what the controller learns of it, simulated or real.

A controller is asked with the measurements of jobs that were present throughout a period with the settings that it
gave for them. Simulations (``loop``) and the agent (``fairlane.cluster.agent``) both go through here.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy
from numpy.typing import NDArray
from pydantic import ConfigDict, Field, PrivateAttr

from fairlane.core.errors import Problem
from fairlane.core.units import Duration
from fairlane.inputs.registry import Named

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario


WHOLE = 0.99
"""Share of a period for which a job must run to count as running throughout: simulations end slightly late."""
MOST_WEIGHT = 65535
"""The maximum weight of a service level, in packets per round."""
RankLevels = Mapping[str, Mapping[int, int]]
"""Service level by job and rank."""


@dataclass(frozen=True)
class JobWork:
    """The measurements of one job in a period."""

    iterations: tuple[int, ...]
    """Iterations completed, by rank."""
    compute: tuple[float, ...]
    """Compute time, s, by rank."""
    waiting: tuple[float, ...]
    """Time in MPI calls, s, by rank."""
    progress: int | None = None
    """Increase of the iterations completed by all ranks since the run began, if the period is part of a run. It may
    differ from ``work``, because another rank may be the slowest in each period."""
    seconds: float | None = None
    """Time that the job ran in the period, s; None for the whole period."""
    advance: tuple[float, ...] | None = None
    """Iterations by rank with parts of iterations, estimated (``Positions``); None where they are not known."""

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.iterations)

    @property
    def work(self) -> int:
        """Iterations of the slowest rank in the period: the job's work."""
        return min(self.iterations)

    @property
    def done(self) -> int:
        """The job's work; the sum over periods is that of the whole run."""
        return self.work if self.progress is None else self.progress

    @property
    def fractional(self) -> float:
        """Its work with the part of an iteration that its slowest rank has done; ``work`` where that is not known."""
        return self.work if self.advance is None else min(self.advance)

    def over(self, other: "JobWork | None", *, part: bool = False) -> float | None:
        """Its work over the other's, minus 1; None if the other did nothing.

        The part of the last iteration counts, but not in a ``part`` of a longer run, where the next period has it. If
        they ran for different times, their rates are compared; in a ``part`` that is None, as there may be one
        iteration or none in what is left of a period when one of them ends.
        """
        if other is None:
            return None
        own, others = (self.done, other.done) if part else (self.fractional, other.fractional)
        if not (others and other.done):
            return None
        ratio = own / others
        if self.seconds and other.seconds and self.seconds != other.seconds:
            if part:
                return None
            ratio *= other.seconds / self.seconds
        return ratio - 1


@dataclass(frozen=True)
class Work:
    """The measurements of all jobs in a period."""

    seconds: float
    """Length of the period, s."""
    jobs: Mapping[str, JobWork]
    """The jobs that ran, by name."""

    def throughout(self) -> "Work":
        """The measurements of jobs that ran for the whole period: the input of a controller."""
        whole = WHOLE * self.seconds
        there = {name: job for name, job in self.jobs.items() if job.seconds is None or job.seconds >= whole}
        return replace(self, jobs=there)


@dataclass(frozen=True)
class Settings:
    """The output of a controller: settings of the next period."""

    levels: RankLevels = field(default_factory=dict)
    """Service level by job and rank; all other ranks have the default level."""
    weights: tuple[int, ...] = ()
    """Weight of each service level, in packets per round, from level 0; empty for the scenario's weights."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """Service level by traffic class of the scenario; all others have the scenario's."""

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for equivalent settings."""
        ranks = sorted((job, rank, level) for job, levels in self.levels.items() for rank, level in levels.items())
        return (tuple(ranks), tuple(self.weights), tuple(sorted(self.classes.items())))


def _of_classes(
    settings: Settings, service_levels: int, classes: Collection[str] | None, remedy: str
) -> Iterator[Problem]:
    """Problems of levels of traffic classes."""
    for name, level in settings.classes.items():
        if classes is not None and name not in classes:
            yield Problem.unknown(f"classes.{name}", "traffic class", name, list(classes))
        elif not 0 <= level < service_levels:
            yield Problem(f"classes.{name}", "out of range", level, f"0 to {service_levels - 1}{remedy}")


def problems_of(
    settings: Settings,
    service_levels: int,
    jobs: Mapping[str, int | None],
    remedy: str = "",
    classes: Collection[str] | None = (),
) -> Iterator[Problem]:
    """Problems of settings: unknown jobs, ranks, traffic classes, levels or weights.

    ``jobs`` has all jobs of the run, and their ranks if known; ``classes`` all traffic classes, or None if they are not
    known; ``remedy`` is appended to messages.
    """
    yield from _of_classes(settings, service_levels, classes, remedy)
    if len(settings.weights) > service_levels:
        allowed = f"{service_levels} at most{remedy}"
        yield Problem("weights", f"has {len(settings.weights)} of them", list(settings.weights), allowed)
    for level, weight in enumerate(settings.weights):
        if not 1 <= weight <= MOST_WEIGHT:
            yield Problem(f"weights[{level}]", "out of range", weight, f"1 to {MOST_WEIGHT}")
    for job, levels in settings.levels.items():
        if job not in jobs:
            yield Problem.unknown(f"levels.{job}", "job", job, list(jobs))
            continue
        ranks = jobs[job]
        for rank, level in levels.items():
            if ranks is not None and not 0 <= rank < ranks:
                yield Problem(f"levels.{job}", f"has no rank {rank}", allowed=f"0 to {ranks - 1}")
            if not 0 <= level < service_levels:
                yield Problem(f"levels.{job}.{rank}", "out of range", level, f"0 to {service_levels - 1}{remedy}")


class Controller(Named):
    """Decides service levels and weights from the work of each period.

    The fields of a subclass are its parameters. Its object lives as long as the run and may keep state.
    ``state`` and ``accepted`` are for display.
    """

    model_config = ConfigDict(frozen=False)

    needs_weights: ClassVar[bool] = True
    """Whether it sets weights, which needs an arbiter with weights."""
    gives_levels: ClassVar[bool] = False
    """Whether it assigns the levels above 0, so that the scenario must not use them."""
    needs_model: ClassVar[bool] = False
    """Whether it needs a scenario of what it controls, so that it cannot control real jobs."""
    real_defaults: ClassVar[Mapping[str, Any]] = {}
    """Values of parameters that are not given, where they differ between real jobs and simulations."""

    service_levels: int = Field(
        default=16, ge=2, le=16, description="number of service levels that it may use, including the default level"
    )

    cost: Duration = Field(
        default=0,
        ge=0,
        description="simulated: time of a period until its settings are in effect, for reading, deciding and changing",
    )

    _state: str = PrivateAttr("SET")
    _accepted: bool = PrivateAttr(False)

    def problems(self, jobs: Mapping[str, int | None]) -> Iterator[Problem]:
        """Problems of its parameters with these jobs, each with its ranks if known."""
        del jobs
        yield from ()

    def for_real_jobs(self) -> Self:
        """Return it with ``real_defaults`` for the parameters that are not given."""
        others = {key: value for key, value in self.real_defaults.items() if key not in self.model_fields_set}
        return self.model_copy(update=others, deep=True)

    @property
    def moves_levels(self) -> bool:
        """Whether it changes the levels of processes while they run, and not only weights of levels."""
        return True

    @property
    def needs_mpi_times(self) -> bool:
        """Whether it needs times of computation and in MPI calls: marks of real programs do not have them."""
        return False

    def prepare(self, scenario: "Scenario") -> None:
        """Called before ``start``, and when the scenario changes: what a controller with a model makes it of."""
        del scenario

    def start(self, jobs: Mapping[str, int]) -> Settings:
        """The settings of the first period, before any work is known; ``jobs`` has the number of ranks of each."""
        del jobs
        return Settings()

    def rearrange(self, jobs: Mapping[str, int]) -> Settings:
        """The settings of a period with jobs that it has not measured; by default all ranks have the default level."""
        del jobs
        return Settings()

    @abstractmethod
    def observe(self, work: Work) -> Settings:
        """The settings of the next period, given the measurements of the last one."""

    @property
    def state(self) -> str:
        """Its state, in a word: what the coming period is for."""
        return str(self._state)

    @property
    def accepted(self) -> bool:
        """Whether it adopted a new configuration after the last measurements."""
        return self._accepted


Numbers = NDArray[numpy.float64]


@dataclass(frozen=True)
class Positions:
    """The positions of some processes when their counts were read."""

    marks: Numbers
    """Iterations completed."""
    marked: Numbers
    """Time of the last mark; before the first, when counting began."""
    pace: Numbers
    """Time per iteration between the last marks that were read; not a number until it is known."""
    at: Numbers
    """Iterations completed, with the estimated part of the current one."""
    now: Numbers
    """Time of the reading."""

    @classmethod
    def begin(cls, marks: Numbers, since: Numbers, now: Numbers | None = None) -> Self:
        """Positions of processes that have made their last mark, or begun, at ``since``: ``now`` by default."""
        return cls(numpy.floor(marks), since, numpy.full(len(marks), numpy.nan), marks, since if now is None else now)

    def then(self, marks: Numbers, marked: Numbers, now: Numbers) -> Self:
        """The positions at a later reading, ``now``.

        ``marks`` are iterations completed, with the part of the current one where a program reports it; ``marked``
        counts where another iteration is complete.
        """
        whole = numpy.floor(marks)
        more = whole > self.marks
        last = numpy.where(more, marked, self.marked)
        pace = self.pace.copy()
        pace[more] = (last - self.marked)[more] / (whole - self.marks)[more]
        part = numpy.zeros(len(marks))
        known = pace > 0
        part[known] = numpy.clip((now - last)[known] / pace[known], 0, 1)
        return type(self)(whole, last, pace, numpy.maximum.reduce([whole + part, marks, self.at]), now)

    def advance(self, before: Self) -> Numbers:
        """Iterations since an earlier reading.

        Where no pace was known then, the part that was done of an iteration is estimated by the present pace: without
        it, the first period after any beginning would seem up to an iteration better than it was.
        """
        begun = before.at.copy()
        late = numpy.isnan(before.pace) & (self.pace > 0)
        part = numpy.clip((before.now - before.marked)[late] / self.pace[late], 0, 1)
        begun[late] = numpy.maximum(begun[late], before.marks[late] + part)
        return self.at - begun


class Steering:
    """A controller, period by period: ``begin``, then ``end`` with what was measured.

    Args:
        controller: Decides.
        jobs: The number of ranks of each job that is present before the first period.
    """

    def __init__(self, controller: Controller, jobs: Mapping[str, int]) -> None:
        self.controller = controller
        self._settings = controller.start(jobs)
        self._known: Collection[str] = jobs.keys()
        self._others = False

    def begin(self, present: Mapping[str, int]) -> Settings:
        """The settings of the period that begins with these jobs, each with its number of ranks."""
        self._others = bool(present.keys() - self._known)
        return self.controller.rearrange(present) if self._others else self._settings

    def end(self, work: Work) -> bool:
        """Lets the controller learn of the period; whether it has adopted a new configuration."""
        seen = work.throughout()
        # Its settings were not in force if other jobs were present for a while: they have not been tried yet.
        if not seen.jobs or (self._others and seen.jobs.keys() == self._known):
            return False
        self._settings, self._known = self.controller.observe(seen), seen.jobs.keys()
        return self.controller.accepted
