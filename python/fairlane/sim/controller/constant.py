"""Controllers that decide once: nothing, a table, or a service level for each job. Baselines for the others."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.sim.controller.base import MOST_WEIGHT, Controller, Settings, Work, problems_of

Level = Annotated[int, Field(ge=0, le=15)]
Weight = Annotated[int, Field(ge=1, le=MOST_WEIGHT)]


class Constant(Controller):
    """The same settings for the same jobs, whatever they do."""

    @property
    @override
    def moves_levels(self) -> bool:
        return False

    @abstractmethod
    def settings(self, jobs: Mapping[str, int]) -> Settings:
        """The settings while these jobs are present, each with its number of ranks."""

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        return self.settings(jobs)

    @override
    def rearrange(self, jobs: Mapping[str, int]) -> Settings:
        return self.settings(jobs)

    @override
    def observe(self, work: Work) -> Settings:
        return self.settings({name: job.ranks for name, job in work.jobs.items()})


class NoControl(Constant):
    """Leaves everything as the scenario has it."""

    needs_weights: ClassVar[bool] = False

    @override
    def settings(self, jobs: Mapping[str, int]) -> Settings:
        return Settings()


class Isolate(Constant):
    """Gives each job a service level of its own, with a weight for its share of bandwidth.

    Jobs beyond the number of service levels share them round-robin. So jobs contend only at arbiters; Savoie 2018 finds
    that this gains little.
    """

    weights: dict[str, Weight] = Field(default_factory=dict, description="packets per round, by job; default: 1")

    @override
    def problems(self, jobs: Mapping[str, int | None]) -> Iterator[Problem]:
        unknown = [job for job in self.weights if job not in jobs]
        yield from (Problem.unknown(f"weights.{job}", "job", job, list(jobs)) for job in unknown)

    @override
    def settings(self, jobs: Mapping[str, int]) -> Settings:
        """A level for each job, in their order; of jobs that share a level, the maximum weight counts."""
        levels: dict[str, dict[int, int]] = {}
        weights = [1] * self.service_levels
        for number, (job, ranks) in enumerate(jobs.items()):
            level = number % self.service_levels
            levels[job] = dict.fromkeys(range(ranks), level)
            weights[level] = max(weights[level], self.weights.get(job, 1))
        return Settings(levels, tuple(weights))


class Fixed(Constant):
    """Sets the levels and weights of a table."""

    levels: dict[str, dict[int, Level]] = Field(default_factory=dict, description="service level by job and rank")
    weights: list[Weight] = Field(
        default_factory=list, description="packets per round of each level from 0; levels not listed have 1"
    )
    classes: dict[str, Level] = Field(default_factory=dict, description="service level by traffic class")

    @override
    def problems(self, jobs: Mapping[str, int | None]) -> Iterator[Problem]:
        given = Settings(self.levels, tuple(self.weights), self.classes)
        return problems_of(given, self.service_levels, jobs, ", or more in service_levels", classes=None)

    @override
    def settings(self, jobs: Mapping[str, int]) -> Settings:
        """The whole table; entries of jobs that have not started yet apply once they have."""
        weights = (*self.weights, *[1] * (self.service_levels - len(self.weights)))
        return Settings(self.levels, weights, self.classes)
