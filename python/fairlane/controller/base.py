"""What a controller gets to see, what it may set, and what every controller is.

A controller sees ``Work``: what a deployed system could know. It answers with ``Settings``: the service levels of
ranks and the weights of service levels. It never sees the network, nor the run that it is compared with.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pydantic import ConfigDict, Field

from fairlane.errors import Problem
from fairlane.inputs.registry import Named

__all__ = ["MOST_WEIGHT", "Controller", "JobWork", "RankLevels", "Settings", "Work", "problems_of"]

WHOLE = 0.99
"""A job was there for the whole period if for so much of it: simulations end a little after their time."""
MOST_WEIGHT = 65535
"""Packets a turn that a service level has at most."""
RankLevels = Mapping[str, Mapping[int, int]]
"""Service level by job and rank."""


@dataclass(frozen=True)
class JobWork:
    """What one job did in a period."""

    iterations: tuple[int, ...]
    """Iterations that each rank marked."""
    compute: tuple[float, ...]
    """Seconds that each rank computed."""
    waiting: tuple[float, ...]
    """Seconds that each rank spent in MPI calls."""
    progress: int | None = None
    """By how many iterations the job as a whole got further, where the period is part of a longer run: what its slowest
    rank has done so far is not the sum of what was least in each period."""
    seconds: float | None = None
    """How long the job was there; None for the whole period."""

    @property
    def ranks(self) -> int:
        """How many ranks it has."""
        return len(self.iterations)

    @property
    def work(self) -> int:
        """Iterations of the slowest rank: the job's work."""
        return min(self.iterations)

    @property
    def done(self) -> int:
        """The job's work, such that that of periods adds up."""
        return self.work if self.progress is None else self.progress

    def over(self, other: "JobWork | None", *, part: bool = False) -> float | None:
        """Its work over the other's, of rates if they were not there for as long, minus 1; None if that did nothing.

        Of a ``part`` of a longer run None as well where they were not there for as long: in what is left of a period
        when one of them comes to its end there may be an iteration or none.
        """
        if other is None or not other.done:
            return None
        ratio = self.done / other.done
        if self.seconds and other.seconds and self.seconds != other.seconds:
            if part:
                return None
            ratio *= other.seconds / self.seconds
        return ratio - 1


@dataclass(frozen=True)
class Work:
    """What all jobs did in a period."""

    seconds: float
    """How long the period was."""
    jobs: Mapping[str, JobWork]
    """The jobs that ran, by name."""

    def throughout(self) -> "Work":
        """The same of the jobs that were there for the whole period: what a controller gets to see."""
        whole = WHOLE * self.seconds
        there = {name: job for name, job in self.jobs.items() if job.seconds is None or job.seconds >= whole}
        return replace(self, jobs=there)


@dataclass(frozen=True)
class Settings:
    """What the fabric is told for the next period."""

    levels: RankLevels = field(default_factory=dict)
    """Service levels of ranks that get one of their own, by job and rank; the others have the default level."""
    weights: tuple[int, ...] = ()
    """Packets a turn of each service level, from level 0; empty leaves the scenario's arbiter as it is."""

    @property
    def key(self) -> tuple[object, ...]:
        """The same for settings that mean the same."""
        ranks = sorted((job, rank, level) for job, levels in self.levels.items() for rank, level in levels.items())
        return (tuple(ranks), tuple(self.weights))


def problems_of(
    settings: Settings, service_levels: int, jobs: Mapping[str, int | None], remedy: str = ""
) -> Iterator[Problem]:
    """What of settings cannot be: jobs, ranks, levels or weights that there are not.

    ``jobs`` has all that there ever are, and their ranks if known; ``remedy`` says what would help.
    """
    if len(settings.weights) > service_levels:
        yield Problem("weights", f"has {len(settings.weights)} of them", allowed=f"{service_levels} at most{remedy}")
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

    The fields of a subclass are its parameters. Its object lives as long as the run and may remember whatever it
    likes. ``state`` and ``accepted`` are for those who watch.
    """

    model_config = ConfigDict(frozen=False)

    needs_weights: ClassVar[bool] = True
    """Whether it sets weights, so that the fabric's arbiter must have some."""
    gives_levels: ClassVar[bool] = False
    """Whether it takes level 0 for everybody's and gives out the others, so that the scenario must use none of them."""

    service_levels: int = Field(
        default=16, ge=2, le=16, description="how many service levels it may use, the default included"
    )

    def problems(self, jobs: Mapping[str, int | None]) -> Iterator[Problem]:
        """What of its parameters does not fit these jobs, each with its ranks where they are known."""
        del jobs
        yield from ()

    def start(self, jobs: Mapping[str, int]) -> Settings:
        """The settings of the first period, before any work is known; ``jobs`` has the number of ranks of each."""
        del jobs
        return Settings()

    def rearrange(self, jobs: Mapping[str, int]) -> Settings:
        """The settings of the first period with jobs whose work it has not seen yet; everyone on the default level."""
        del jobs
        return Settings()

    @abstractmethod
    def observe(self, work: Work) -> Settings:
        """The settings of the next period, after a period in which this was done."""

    @property
    def state(self) -> str:
        """What it is doing, in a word."""
        return "SET"

    @property
    def accepted(self) -> bool:
        """Whether what it saw last made it adopt a new configuration."""
        return False
