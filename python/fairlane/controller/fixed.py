"""A table of service levels that was decided beforehand, by hand or by another controller's search."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field
from typing_extensions import override

from fairlane.controller.base import MOST_WEIGHT, Controller, Settings, Work
from fairlane.errors import Problem

__all__ = ["Fixed"]

Level = Annotated[int, Field(ge=0, le=15)]


class Fixed(Controller):
    """Sets the levels and weights of a table, once and for all."""

    levels: dict[str, dict[int, Level]] = Field(default_factory=dict, description="service level by job and rank")
    weights: list[Annotated[int, Field(ge=1, le=MOST_WEIGHT)]] = Field(
        default_factory=list, description="packets a turn of each level from 0; levels not listed have 1"
    )

    @override
    def problems(self, jobs: Mapping[str, int | None]) -> Iterator[Problem]:
        """Jobs and ranks that there are not, levels and weights beyond its own."""
        if len(self.weights) > self.service_levels:
            allowed = f"{self.service_levels} at most, or more service_levels"
            yield Problem("weights", f"has {len(self.weights)} of them", self.weights, allowed)
        for job, levels in self.levels.items():
            if job not in jobs:
                yield Problem.unknown(f"levels.{job}", "job", job, list(jobs))
                continue
            for rank, level in levels.items():
                ranks = jobs[job]
                if ranks is not None and not 0 <= rank < ranks:
                    yield Problem(f"levels.{job}", f"has no rank {rank}", allowed=f"0 to {ranks - 1}")
                if level >= self.service_levels:
                    allowed = f"0 to {self.service_levels - 1}, or more in service_levels"
                    yield Problem(f"levels.{job}.{rank}", "a service level that it does not use", level, allowed)

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        """The whole table: what it says of jobs that are not there yet holds once they are."""
        del jobs
        return Settings(self.levels, (*self.weights, *[1] * (self.service_levels - len(self.weights))))

    @override
    def rearrange(self, jobs: Mapping[str, int]) -> Settings:
        """The same."""
        return self.start(jobs)

    @override
    def observe(self, work: Work) -> Settings:
        """The same."""
        del work
        return self.start({})
