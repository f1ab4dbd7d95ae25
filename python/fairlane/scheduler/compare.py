"""The same jobs under several allocators, as a table; and a criterion for pattern-aware allocation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import polars as pl

from fairlane.placement import Communication, FabricView, Strategy
from fairlane.results.text import percent
from fairlane.scheduler.easy import Schedule, replay
from fairlane.scheduler.metrics import ScheduleMetrics, metrics_of
from fairlane.scheduler.slowdown.forecast import Forecast
from fairlane.scheduler.swf import LoggedJob

__all__ = ["AWARE", "BLIND", "CONTIGUOUS", "Comparison", "compare_allocators", "pattern_aware_findings"]

CONTIGUOUS, BLIND, AWARE = "box", "linear", "pattern"
"""The allocators of the criterion: contiguous only; any free hosts; by the job's pattern."""
MAX_SLOWDOWN = 1.05
"""Largest mean slowdown by pattern, over that of contiguous allocation."""
MIN_UTILISATION = 0.98
"""Smallest utilisation by pattern, over that of non-contiguous allocation."""


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
    progress: Callable[[str, int], None] = lambda _name, _done: None,
) -> Comparison:
    """Replays the jobs once with every allocator.

    Args:
        jobs: What comes, in the order of submission.
        fabric: The machine; that of the forecast if there is one.
        allocators: Strategies of placement by name.
        seed: Seed of random choices.
        communication: The pattern of a job by its number, for allocators that ask; by default the forecast's.
        forecast: How hosts and neighbours slow jobs down; without it run times are those of the log.
        progress: Called with the allocator's name and how many of its jobs have ended.
    """
    known = communication or (forecast.communication if forecast else None)
    schedules = {}
    for name, one in allocators.items():
        done = partial(progress, name)
        schedules[name] = replay(jobs, fabric, one, seed=seed, communication=known, forecast=forecast, progress=done)
    return Comparison(schedules, {name: metrics_of(one, fabric.hosts) for name, one in schedules.items()})


def pattern_aware_findings(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, bool]]:
    """Whether pattern-aware allocation is as fast as contiguous, and as full as non-contiguous allocation.

    Of each allocator ``mean_slowdown`` and ``utilisation``, as in ``ScheduleMetrics``; two findings in words, each with
    its verdict. The criterion is that of X. Yang et al., "Watch out for the bully!", SC 2016, section V.
    """
    aware, contiguous = (rows[name]["mean_slowdown"] for name in (AWARE, CONTIGUOUS))
    ratio = aware / contiguous
    words = f"mean slowdown {aware:.3f}, contiguous {contiguous:.3f}: {ratio:.3f} times that (<= {MAX_SLOWDOWN})"
    yield words, ratio <= MAX_SLOWDOWN
    aware, blind = (rows[name]["utilisation"] for name in (AWARE, BLIND))
    ratio = aware / blind
    full = f"utilisation {percent(aware)}, non-contiguous {percent(blind)}"
    yield f"{full}: {ratio:.3f} times that (>= {MIN_UTILISATION})", ratio >= MIN_UTILISATION
