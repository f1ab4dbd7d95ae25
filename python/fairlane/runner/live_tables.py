"""What a simulation has measured so far, in the form of a run's live state: jobs, interference, busiest links."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairlane.engine import RawTable
from fairlane.engine.tables import PS, Work
from fairlane.fabric import columns
from fairlane.results.live import BusyLinks, Jobs, Matrix
from fairlane.results.milestones import Milestones, common, milestones
from fairlane.results.tables import Links

if TYPE_CHECKING:
    from fairlane.scenario import Resolved

MOST_CELLS = 4000
"""Cells of the matrix; of more, those with the greatest delay."""
MOST_POINTS, FEWEST_POINTS, MOST_LINE = 4000, 4, 60
"""Points of the times per iteration: of all jobs together, and of one job at least and at most."""
BUSIEST = 12
"""How many links."""


def jobs_so_far(scenario: "Resolved", known: Jobs, together: Work, alone: Mapping[int, Work]) -> Jobs:
    """Iterations, the time per iteration and W; ``alone`` has what isolated runs have done so far, by job."""
    starts = [job.start for job in scenario.jobs]
    here = milestones(together, starts)
    there = {job: milestones(work, [starts[job]]).get(0) for job, work in alone.items()}
    numbers = range(len(starts))
    pairs = [(here.get(job), there.get(job)) for job in numbers]
    compared = [common(own, other) if own and other else None for own, other in pairs]
    estimates = [found.estimate if found else None for found in compared]
    paces = [own.pace if own else None for own, _ in pairs]
    most = max(FEWEST_POINTS, min(MOST_LINE, MOST_POINTS // max(1, len(starts))))
    lines = [_line(own, most) if own else ((), ()) for own, _ in pairs]
    return known.model_copy(
        update={
            "iterations": tuple(own.iterations if own else 0 for own, _ in pairs),
            "seconds_per_iteration": tuple(pace and _short(pace.value) for pace in paces),
            "w": tuple(one and _short(one.value) for one in estimates),
            "w_low": tuple(one and _short(one.low) for one in estimates),
            "w_high": tuple(one and _short(one.high) for one in estimates),
            "at_s": tuple(at for at, _ in lines),
            "time_s": tuple(each for _, each in lines),
        }
    )


def _short(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.5g}")


def _line(job: Milestones, most: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """When iterations were completed, and the mean time of each since the one before; without the first."""
    count = len(job.times)
    if count < 2:
        return (), ()
    kept = np.unique(np.linspace(0, count - 1, min(count, most + 1)).astype(int))
    at = (np.asarray(job.times, np.float64)[kept] + job.start) * PS
    each = np.diff(at) / (np.diff(kept) * job.stride)
    return _rounded(at[1:]), _rounded(each)


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in values)


def matrix_so_far(interference: RawTable) -> Matrix:
    """The interference matrix."""
    raw = columns(interference)
    delay = raw["waiting"].astype(np.float64)
    order = np.argsort(-delay, kind="stable")[:MOST_CELLS]
    kept = order[delay[order] > 0]
    total = float(delay.sum())
    return Matrix(
        victim=tuple(raw["delayed"][kept].tolist()),
        aggressor=tuple(raw["delaying"][kept].tolist()),
        queueing_s=_rounded(delay[kept] * PS),
        kept=float(delay[kept].sum()) / total if total else 1.0,
    )


def busiest(links: Links, ports: RawTable, now: int) -> BusyLinks:
    """The links with the highest utilisation up to an instant, ps."""
    raw = columns(ports)
    numbers, first = np.unique(raw["link"], return_index=True)
    active, stalled = (raw[name][first] / max(now, 1) for name in ("port_active", "port_stalled"))
    order = np.argsort(-active, kind="stable")[:BUSIEST]
    chosen = [at for at in order if active[at] > 0]
    if not chosen:
        return BusyLinks()
    names = links.table["link_name"]
    return BusyLinks(
        name=tuple(str(names[int(numbers[at])]) for at in chosen),
        active_share=_rounded(active[chosen]),
        stalled_share=_rounded(stalled[chosen]),
    )
