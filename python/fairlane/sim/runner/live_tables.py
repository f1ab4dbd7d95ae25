"""Measurements of a simulation so far, in the form of a run's live state: jobs, interference, busiest links.

W is the plain ratio of the times to the last iteration that both runs have completed. The warm-up that results leave
out, and intervals, are for the end: they would load the libraries of statistics while the simulations run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fairlane.core.bridge import RawTable
from fairlane.core.drive import Engine
from fairlane.core.tables import PS
from fairlane.model.fabric.graph import columns
from fairlane.results.live import BusyLinks, Jobs, Matrix
from fairlane.results.tables import Links

Floats = NDArray[np.float64]

MOST_CELLS = 4000
"""Cells of the matrix; of more, those with the greatest delay."""
MOST_POINTS, FEWEST_POINTS, MOST_LINE = 4000, 4, 60
"""Points of the times per iteration: of all jobs together, and of one job at least and at most."""
BUSIEST = 12
"""Number of links."""


@dataclass(frozen=True)
class Snapshot:
    """Measurements of a simulation up to an instant, in the engine's own columns."""

    now: int
    """The instant, ps."""
    iterations: Sequence[int]
    """By job, those of its slowest rank."""
    marks: RawTable
    interference: RawTable
    ports: RawTable

    @classmethod
    def of(cls, engine: Engine, *, network: bool) -> Self:
        """Read the measurements so far; with ``network`` also interference and ports."""
        iterations = [min(ranks, default=0) for ranks in engine.progress()]
        network_tables = (engine.table(name) if network else {} for name in ("interference", "ports"))
        return cls(engine.now, iterations, engine.table("job_marks"), *network_tables)


@dataclass(frozen=True)
class _Times:
    """Times at which a job completed its iterations ``stride``, ``2 stride`` ..., ps from its start."""

    stride: int
    at: Floats
    elapsed: Floats | None = None
    """Times that their timed parts took, ps; None without such parts."""

    def change_against(self, isolated: "_Times") -> float | None:
        """The change of throughput over all iterations that both have completed; None without any."""
        stride = max(self.stride, isolated.stride)  # both are powers of two
        last = min(of.stride * len(of.at) for of in (self, isolated)) // stride * stride
        if not last:
            return None
        here, there = (float(of.at[last // of.stride - 1]) for of in (self, isolated))
        return there / here - 1 if here and there else None

    @property
    def per_iteration(self) -> float | None:
        """The mean time from one completed iteration to the next, or of their timed parts if they have some, s."""
        if self.elapsed is not None:
            return float(self.elapsed.mean()) * PS
        count = len(self.at) - 1
        return float(self.at[-1] - self.at[0]) * PS / (count * self.stride) if count > 0 else None


def _times(marks: RawTable, starts: Sequence[int]) -> dict[int, _Times]:
    """By job of one simulation."""
    raw = columns(marks)
    if not len(raw["job"]):
        return {}
    order = np.argsort(raw["job"], kind="stable")
    jobs, first = np.unique(raw["job"][order], return_index=True)
    parts = np.split(order, first[1:])
    return {
        int(job): _Times(
            int(raw["iteration"][rows[0]]),
            raw["time"][rows].astype(np.float64) - starts[int(job)],
            raw["elapsed"][rows].astype(np.float64) if raw["timed"][rows].any() else None,
        )
        for job, rows in zip(jobs, parts, strict=True)
    }


def jobs_so_far(starts: Sequence[int], known: Jobs, together: Snapshot, alone: Mapping[int, Snapshot]) -> Jobs:
    """Iterations, the time per iteration and W of jobs that begin at ``starts``, ps; ``alone`` are isolated runs."""
    here = _times(together.marks, starts)
    there = {job: _times(one.marks, [starts[job]]).get(0) for job, one in alone.items()}
    pairs = [(here.get(job), there.get(job)) for job in range(len(starts))]
    most = max(FEWEST_POINTS, min(MOST_LINE, MOST_POINTS // max(1, len(starts))))
    lines = [_line(own, start, most) if own else ((), ()) for (own, _), start in zip(pairs, starts, strict=True)]
    return known.model_copy(
        update={
            "iterations": tuple(together.iterations),
            "seconds_per_iteration": tuple(_short(own.per_iteration) if own else None for own, _ in pairs),
            "w": tuple(_short(own.change_against(other)) if own and other else None for own, other in pairs),
            "at_s": tuple(at for at, _ in lines),
            "time_s": tuple(each for _, each in lines),
        }
    )


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _line(job: _Times, start: int, most: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the times of completed iterations, and the mean time of each since the one before; without the first."""
    count = len(job.at)
    if count < 2:
        return (), ()
    kept = np.unique(np.linspace(0, count - 1, min(count, most + 1)).astype(int))
    at = (job.at[kept] + start) * PS
    each = np.diff(at) / (np.diff(kept) * job.stride) if job.elapsed is None else job.elapsed[kept[1:]] * PS
    return _rounded(at[1:]), _rounded(each)


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in values)


def matrix_so_far(snapshot: Snapshot) -> Matrix:
    """The interference matrix."""
    raw = columns(snapshot.interference)
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


def busiest(links: Links, snapshot: Snapshot) -> BusyLinks:
    """The links with the highest utilisation."""
    raw = columns(snapshot.ports)
    numbers, first = np.unique(raw["link"], return_index=True)
    active, stalled = (raw[name][first] / max(snapshot.now, 1) for name in ("port_active", "port_stalled"))
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
