"""Jobs as bars over time and hosts, by allocator.

Hosts stand in the order of their numbers, on a grid along Hilbert's curve, as in the picture of ``fairlane schedule``;
a job has a bar for each run of hosts that follow each other in that order.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.fabric import Fabric
from fairlane.placement.grid import host_order, sides_of
from fairlane.plot.gantt import WINDOW_H
from fairlane.results.schedule import ScheduleResults, hosts_of_text
from fairlane.slurm.hostlist import ranges_of
from fairlane.views.packing import pack, smallest

MOST_BARS = 150_000
"""Bars in a page, of all allocators; of more, those of jobs that begin first within each allocator."""
HOUR_S = 3600.0


def jobs_of(found: ScheduleResults) -> dict[str, Any]:
    """By allocator: the jobs, their bars, and how many jobs are left out; and the patterns, order and first window."""
    fabric = Fabric.build(dict(found.meta.fabric))
    grid = sides_of(fabric) is not None
    place = np.argsort(host_order(fabric, "hilbert" if grid else "number"))
    patterns = found.placed["pattern"].drop_nulls().unique().sort().to_list()
    names = found.allocators["allocator"].to_list()
    return {
        "patterns": patterns,
        "curve": grid,
        "window_h": _busiest(found.placed.filter(allocator=names[0])),
        "by_allocator": [
            _of(found.placed.filter(allocator=name), place, patterns, MOST_BARS // len(names)) for name in names
        ],
    }


def _of(rows: pl.DataFrame, place: npt.NDArray[np.int64], patterns: list[str], most: int) -> dict[str, Any]:
    rows = rows.sort("start", "job")
    bars: list[tuple[int, int, int]] = []
    kept = 0
    for at, text in enumerate(rows["host_numbers"]):
        if len(bars) >= most:
            break
        bars += [(at, first, last + 1) for first, last in ranges_of(sorted(place[hosts_of_text(text)].tolist()))]
        kept = at + 1
    shown = rows.head(kept)
    job, low, high = np.array(bars, np.int64).reshape(-1, 3).T
    numbers = {name: pack(shown[name], "f32") for name in ("submit", "start", "end", "run", "slowdown", "lost")}
    pattern = shown["pattern"].replace_strict({name: at for at, name in enumerate(patterns)}, default=255)
    return {
        "job": pack(shown["job"], "u32"),
        "hosts": pack(shown["hosts"], "u32"),
        "pattern": pack(pattern, "u8") if patterns else None,
        **numbers,
        "bar_job": pack(job, "u32"),
        "bar_low": pack(low, smallest(len(place) + 1)),
        "bar_high": pack(high, smallest(len(place) + 1)),
        "left_out": rows.height - kept,
    }


def _busiest(rows: pl.DataFrame) -> list[float]:
    """The hours that are shown first: those in which most hosts are busy; all of a shorter schedule."""
    if rows.is_empty():
        return [0.0, 1.0]
    begin, end = float(rows["submit"].to_numpy().min()), float(rows["end"].to_numpy().max())
    if end - begin <= WINDOW_H * HOUR_S:
        return [begin / HOUR_S, end / HOUR_S]
    edges = np.arange(begin, end - WINDOW_H * HOUR_S, HOUR_S)
    busy = np.zeros(len(edges))
    for first, last, hosts in rows.select("start", "end", "hosts").iter_rows():
        busy += np.maximum(np.minimum(last, edges + WINDOW_H * HOUR_S) - np.maximum(first, edges), 0.0) * hosts
    best = float(edges[int(busy.argmax())])
    return [best / HOUR_S, best / HOUR_S + WINDOW_H]
