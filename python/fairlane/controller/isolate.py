"""A service level for each job, so that jobs meet only at arbiters (Savoie 2018 finds that this gains little)."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field
from typing_extensions import override

from fairlane.controller.base import MOST_WEIGHT, Controller, Settings, Work
from fairlane.errors import Problem

__all__ = ["Isolate"]


class Isolate(Controller):
    """Gives each job a service level of its own, with a weight for its share of bandwidth.

    Jobs beyond the number of service levels share them in turn.
    """

    weights: dict[str, Annotated[int, Field(ge=1, le=MOST_WEIGHT)]] = Field(
        default_factory=dict, description="packets a turn, by job; 1 for a job that is not named"
    )

    @override
    def problems(self, jobs: Mapping[str, int | None]) -> Iterator[Problem]:
        """Jobs that there are not."""
        for job in self.weights:
            if job not in jobs:
                yield Problem.unknown(f"weights.{job}", "job", job, list(jobs))

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        """A level for each job, in their order; of jobs that share a level, the greatest weight counts."""
        levels: dict[str, dict[int, int]] = {}
        weights = [1] * self.service_levels
        for number, (job, ranks) in enumerate(jobs.items()):
            level = number % self.service_levels
            levels[job] = dict.fromkeys(range(ranks), level)
            weights[level] = max(weights[level], self.weights.get(job, 1))
        return Settings(levels, tuple(weights))

    @override
    def rearrange(self, jobs: Mapping[str, int]) -> Settings:
        """The same for these."""
        return self.start(jobs)

    @override
    def observe(self, work: Work) -> Settings:
        """The same for the jobs that there are now."""
        return self.start({name: job.ranks for name, job in work.jobs.items()})
