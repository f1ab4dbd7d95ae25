"""The machine over time: hosts that jobs have, and jobs and hosts that wait, by allocator."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.results.schedule import ScheduleResults

BINS = 300
"""Intervals of a schedule; values are means over each."""
DIGITS = 5
Floats = npt.NDArray[np.float64]


def load_of(found: ScheduleResults) -> list[dict[str, Any]]:
    """By allocator: ends of intervals, s; share of allocated hosts; waiting jobs, and hosts that they ask for."""
    if found.placed.is_empty():
        return []
    begin, end = float(found.placed["submit"].to_numpy().min()), float(found.placed["end"].to_numpy().max())
    edges = np.linspace(begin, end, BINS + 1)
    rows = []
    for name in found.allocators["allocator"]:
        of = found.placed.filter(allocator=name)
        hosts, one = of["hosts"].to_numpy().astype(float), np.ones(of.height)
        rows.append(
            {
                "allocator": name,
                "at_s": _rounded(edges[1:]),
                "utilisation": _rounded(_mean(of, "start", "end", hosts, edges) / found.meta.hosts),
                "waiting": _rounded(_mean(of, "submit", "start", one, edges)),
                "wanted": _rounded(_mean(of, "submit", "start", hosts, edges)),
            }
        )
    return rows


def _mean(rows: pl.DataFrame, first: str, last: str, weight: Floats, edges: Floats) -> Floats:
    """The mean of the weights of jobs between two of their times, over each interval."""
    times = np.concatenate([rows[first].to_numpy(), rows[last].to_numpy()])
    steps = np.concatenate([weight, -weight])
    order = np.argsort(times, kind="stable")
    at, level = times[order], np.cumsum(steps[order])
    # The integral of the level up to each time, and from it the one up to each edge.
    integral = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(at))])
    index = np.searchsorted(at, edges, side="right") - 1
    inside = np.maximum(index, 0)
    to_edge = np.where(index < 0, 0.0, integral[inside] + level[inside] * (edges - at[inside]))
    mean: Floats = np.diff(to_edge) / np.diff(edges)
    return mean


def _rounded(values: Floats) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]
