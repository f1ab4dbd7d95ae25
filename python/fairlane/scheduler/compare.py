"""The same jobs under several allocators, as a table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import polars as pl

from fairlane.placement import Communication, FabricView, Strategy
from fairlane.scheduler.easy import Schedule, replay
from fairlane.scheduler.metrics import ScheduleMetrics, metrics_of
from fairlane.scheduler.slowdown.forecast import Forecast
from fairlane.scheduler.swf import LoggedJob

__all__ = ["Comparison", "compare_allocators"]


@dataclass(frozen=True)
class Comparison:
    """Several schedules of the same jobs."""

    schedules: Mapping[str, Schedule]
    """By allocator."""
    metrics: Mapping[str, ScheduleMetrics]
    """By allocator."""

    @property
    def table(self) -> pl.DataFrame:
        """A row for each allocator: ``allocator``, and the fields of ``ScheduleMetrics``."""
        return pl.DataFrame([{"allocator": name, **asdict(row)} for name, row in self.metrics.items()])


def compare_allocators(
    jobs: Sequence[LoggedJob],
    fabric: FabricView,
    allocators: Mapping[str, Strategy],
    *,
    seed: int = 1,
    communication: Callable[[int], Communication] | None = None,
    forecast: Forecast | None = None,
    told: Callable[[str, int], None] | None = None,
) -> Comparison:
    """Replays the jobs once with every allocator.

    Args:
        jobs: What comes, in the order of submission.
        fabric: The machine; that of the forecast if there is one.
        allocators: Strategies of placement by name.
        seed: Seed of random choices.
        communication: The pattern of a job by its number, for allocators that ask; by default the forecast's.
        forecast: How hosts and neighbours slow jobs down; without it run times are those of the log.
        told: Hears the allocator's name and how many of its jobs have ended, from time to time.
    """
    known = communication or (forecast.communication if forecast else None)
    schedules = {}
    for name, one in allocators.items():
        hears = partial(told, name) if told else None
        schedules[name] = replay(jobs, fabric, one, seed=seed, communication=known, forecast=forecast, told=hears)
    return Comparison(schedules, {name: metrics_of(one, fabric.hosts) for name, one in schedules.items()})
