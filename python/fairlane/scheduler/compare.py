"""The same jobs under several allocators, as a table; and what Yang et al. 2016 expect of it (section V)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import polars as pl

from fairlane.placement import Communication, FabricView, Strategy
from fairlane.results.text import percent
from fairlane.scheduler.easy import Schedule, replay
from fairlane.scheduler.metrics import ScheduleMetrics, metrics_of
from fairlane.scheduler.slowdown.forecast import Forecast
from fairlane.scheduler.swf import LoggedJob

__all__ = ["AWARE", "BLIND", "CLAIM", "CONTIGUOUS", "Comparison", "compare_allocators", "pattern_aware_findings"]

CLAIM = (
    "yang.pattern-aware",
    "Yang et al. 2016, V",
    "pattern-aware allocation keeps jobs as fast as contiguous allocation and utilisation as high as non-contiguous "
    "allocation",
)
"""The claim's name, where it stands, and what it says."""
CONTIGUOUS, BLIND, AWARE = "box", "linear", "pattern"
"""The allocators that the claim is about: contiguous only; any free hosts, blind to patterns; by pattern."""
MOST_SLOWDOWN = 1.05
"""Mean slowdown by pattern over that of contiguous allocation that the claim allows at most."""
LEAST_UTILISATION = 0.98
"""Utilisation by pattern over that of non-contiguous allocation that the claim wants at least."""


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


def pattern_aware_findings(found: Comparison) -> list[tuple[str, bool]]:
    """The claim that pattern-aware allocation is as fast as contiguous and as full as non-contiguous allocation.

    Needs the allocators ``CONTIGUOUS``, ``BLIND`` and ``AWARE``: what was measured, in words with its band, and
    whether it is within.
    """
    aware, contiguous, blind = (found.metrics[name] for name in (AWARE, CONTIGUOUS, BLIND))
    slower = aware.mean_slowdown / contiguous.mean_slowdown
    fuller = aware.utilisation / blind.utilisation
    return [
        (
            f"mean slowdown {aware.mean_slowdown:.3f}, contiguous {contiguous.mean_slowdown:.3f}: "
            f"{slower:.3f} times that, at most {MOST_SLOWDOWN}",
            slower <= MOST_SLOWDOWN,
        ),
        (
            f"utilisation {percent(aware.utilisation)}, non-contiguous {percent(blind.utilisation)}: "
            f"{fuller:.3f} times that, at least {LEAST_UTILISATION}",
            fuller >= LEAST_UTILISATION,
        ),
    ]
