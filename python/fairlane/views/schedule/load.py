"""The machine over time: hosts that jobs have, and jobs and hosts that wait, by allocator."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.results.schedule import ScheduleResults
from fairlane.views.charts import Axis, Kind, Layer, chart, described, layers
from fairlane.views.model import Chart
from fairlane.views.schedule.allocators import by_allocator
from fairlane.views.tables import Column, Write
from fairlane.wording import percent, significant

BINS = 300
"""Intervals of a schedule; values are means over each."""
HOUR_S = 3600.0
Floats = npt.NDArray[np.float64]
_MEASURES: Mapping[str, tuple[str, str, Kind, Write]] = {
    "utilisation": ("Utilisation over time", "Allocated hosts", "share", percent),
    "waiting": ("Waiting jobs over time", "Waiting jobs", "number", significant),
    "wanted": ("Hosts that waiting jobs request", "Hosts", "number", significant),
}
"""Titles of charts and axes, and how values are written."""


def machine_over_time(schedules: Mapping[str, ScheduleResults], used: str, fragmented: str) -> Iterator[Chart]:
    """A chart of each measure."""
    several = len(schedules) > 1
    rows = [{"schedules": name, **row} for name, one in schedules.items() for row in load_of(one)]
    waits = max(rows, key=lambda row: row["waiting"])
    most = f"At most {significant(waits['waiting'])} jobs wait on average over an interval, under {waits['allocator']}."
    asked = max(rows, key=lambda row: row["wanted"])
    hosts = f"They request at most {significant(asked['wanted'])} hosts, under {asked['allocator']}."
    sentences = {"utilisation": f"{used} {fragmented}", "waiting": most, "wanted": hosts}
    for key, (title, label, kind, form) in _MEASURES.items():
        words = [*([Column("schedules", "schedules")] if several else []), Column("allocator", "allocator")]
        words += [Column("until", "hours", lambda hours: f"{hours:,.1f} h"), Column(label.lower(), key, form)]
        axis = Axis.of(
            [0.0, *(1.0 for _ in [0] if kind == "share"), *(row[key] for row in rows)], label, kind, scale="linear"
        )
        yield Chart(
            key,
            title,
            layers(240, *_layers(schedules, rows, key, axis, words)),
            sentences[key],
            f"Means over {BINS} intervals of the schedule.",
            [
                {"schedules": row["schedules"], "allocator": row["allocator"], "until_h": row["hours"], key: row[key]}
                for row in rows
            ],
            picture="load",
            wide=key == "utilisation",
        )


def _layers(
    schedules: Mapping[str, ScheduleResults], rows: list[dict[str, Any]], key: str, axis: Axis, words: list[Column]
) -> Iterator[Layer]:
    kept = [{name: row[name] for name in ("schedules", "allocator", "hours", key)} for row in rows]
    told, tooltip = described(kept, words)
    hours = Axis.of((row["hours"] for row in rows), "Time [h]", scale="linear")
    names = list(dict.fromkeys(row["allocator"] for row in rows))
    base = chart(told).encode(x=hours.x("hours"), y=axis.y(key))
    yield base.mark_line(interpolate="step-before", strokeWidth=1.4, clip=True).encode(**by_allocator(schedules, names))
    yield base.mark_point(opacity=0, clip=True).encode(tooltip=tooltip)


def load_of(one: ScheduleResults) -> Iterator[dict[str, Any]]:
    """By allocator and interval: its end, h; share of allocated hosts; waiting jobs, and hosts that they ask for."""
    begin, end = float(one.placed["submit"].to_numpy().min()), float(one.placed["end"].to_numpy().max())
    edges = np.linspace(begin, end, BINS + 1)
    for name in one.allocators["allocator"]:
        of = one.placed.filter(allocator=name)
        hosts, unit = of["hosts"].to_numpy().astype(float), np.ones(of.height)
        used = _mean(of, "start", "end", hosts, edges) / one.meta.hosts
        waiting, wanted = (_mean(of, "submit", "start", weight, edges) for weight in (unit, hosts))
        for row in zip(edges[1:] / HOUR_S, used, waiting, wanted, strict=True):
            values = [float(f"{value:.5g}") for value in row]
            yield {"allocator": name, **dict(zip(("hours", *_MEASURES), values, strict=True))}


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
