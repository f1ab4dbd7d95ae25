"""Waits and slowdowns of jobs by allocator: their distributions, and means by the size of jobs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair
import numpy as np
import polars as pl

from fairlane.results.schedule import ScheduleResults
from fairlane.scheduler.compare import BOUND_S
from fairlane.views.charts import Axis, Kind, Layer, chart, colour, described, layers
from fairlane.views.model import Chart
from fairlane.views.schedule.allocators import FADED, by_allocator, faded, paler
from fairlane.views.tables import Column, Write, fixed
from fairlane.wording import duration, percent, plural, significant

POINTS = 200
"""Points of a distribution."""
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536)
"""Least numbers of hosts of the classes of sizes."""


@dataclass(frozen=True)
class _Measure:
    """A measure of a job."""

    title: str
    value: pl.Expr
    kind: Kind
    form: Write
    least: float
    """Where the axis of distributions begins if there are smaller values; 0 for all of them."""
    base: float
    """Where bars begin."""
    note: str


MEASURES: Mapping[str, _Measure] = {
    "wait": _Measure(
        "Wait",
        pl.col("start") - pl.col("submit"),
        "duration",
        duration,
        1.0,
        0.0,
        "Waits below 1 s are at the left end.",
    ),
    "bounded_slowdown": _Measure(
        "Bounded slowdown",
        ((pl.col("end") - pl.col("submit")) / pl.max_horizontal(pl.col("run"), pl.lit(float(BOUND_S)))).clip(
            lower_bound=1.0
        ),
        "number",
        significant,
        1.0,
        1.0,
        f"(Wait + time that a job ran) over the run time of the log, of which at least {BOUND_S} s count.",
    ),
    "slowdown": _Measure(
        "Run slowdown",
        pl.col("slowdown"),
        "number",
        fixed(3),
        0.0,
        1.0,
        "Time that a job ran over the run time of the log.",
    ),
}
_VALUES = {name: one.value for name, one in MEASURES.items()}


def distributions(schedules: Mapping[str, ScheduleResults], *, stretched: bool) -> Iterator[Chart]:
    """The share of jobs above each value; of run slowdowns where there are some."""
    for key in [*MEASURES] if stretched else [*MEASURES][:-1]:
        one = MEASURES[key]
        rows = [{"schedules": name, **row} for name, of in schedules.items() for row in above(of, key)]
        sentence = "; ".join(_quantiles(of, key) for of in schedules.values())
        yield Chart(
            key,
            f"{one.title}s",
            layers(240, *_distribution(schedules, rows, one)),
            f"{sentence}.",
            one.note,
            rows,
            picture="distributions",
        )


def above(of: ScheduleResults, measure: str) -> Iterator[dict[str, Any]]:
    """By allocator: values of a measure, and the share of jobs above each."""
    shares = 1 - np.concatenate([np.linspace(0, 0.99, POINTS - 20, endpoint=False), np.linspace(0.99, 1, 20)])
    table = of.placed.select("allocator", **_VALUES)
    for name in of.allocators["allocator"]:
        values = table.filter(allocator=name)[measure].to_numpy()
        quantiles = np.quantile(values, 1 - shares, method="higher") if len(values) else np.array([])
        steps = {float(f"{value:.5g}"): float(f"{share:.4g}") for value, share in zip(quantiles, shares, strict=False)}
        yield from ({"allocator": name, "value": value, "above": share} for value, share in steps.items())


def _distribution(
    schedules: Mapping[str, ScheduleResults], rows: Sequence[Mapping[str, Any]], one: _Measure
) -> Iterator[Layer]:
    which = [Column("schedules", "schedules")] if len(schedules) > 1 else []
    words = [
        *which,
        Column("allocator", "allocator"),
        Column(one.title.lower(), "value", one.form),
        Column("jobs above", "above", percent),
    ]
    told, tooltip = described(rows, words)
    told = [{**row, "value": max(row["value"], one.least)} for row in told]
    axis = Axis.of((row["value"] for row in told), one.title, one.kind, scale="log")
    share = Axis.of([0.0, 1.0], "Share of jobs above", "share", scale="linear")
    names = list(dict.fromkeys(row["allocator"] for row in rows))
    base = chart(told).encode(x=axis.x("value"), y=share.y("above"))
    yield base.mark_line(clip=True).encode(**by_allocator(schedules, names))
    yield base.mark_point(opacity=0, clip=True).encode(tooltip=tooltip)


def _quantiles(of: ScheduleResults, key: str) -> str:
    measure = MEASURES[key]
    form = duration if key == "wait" else significant
    table = of.placed.select("allocator", value=measure.value).group_by("allocator", maintain_order=True)
    ordered = table.agg(half=pl.col("value").median(), tail=pl.col("value").quantile(0.9)).sort(
        "half", "tail", "allocator"
    )
    name, half, tail = ordered.row(0)
    words = f"{name}: median {measure.title.lower()} {form(half)}, 90th percentile {form(tail)}"
    name, half, tail = ordered.row(-1)
    return words if ordered.height == 1 else f"{words}; {name}: {form(half)} and {form(tail)}"


def sizes(schedules: Mapping[str, ScheduleResults], *, stretched: bool) -> Iterator[Chart]:
    """The mean of each measure by the size of jobs."""
    rows = [{"schedules": name, **row} for name, of in schedules.items() for row in by_size(of)]
    waits = pl.concat([of.placed for of in schedules.values()]).group_by("hosts").agg(wait=_VALUES["wait"].mean())
    hosts, wait = waits.sort("wait", "hosts").row(-1)
    longest = f"Jobs of {plural(hosts, 'host')} wait longest, {duration(wait)} on average over allocators."
    for key in [*MEASURES] if stretched else [*MEASURES][:-1]:
        one = MEASURES[key]
        worst = max(rows, key=lambda row: row[key])
        of = f"jobs of {worst['size']} hosts under {worst['allocator']}"
        most = f"The greatest mean {one.title.lower()}: {one.form(worst[key])} of {of}."
        yield Chart(
            f"{key}_by_size",
            f"Mean {one.title.lower()} by size of jobs",
            layers(240, *_bars(rows, key, one), zoom=("y",)),
            longest if key == "wait" else most,
            f"Classes of the number of hosts of a job.{paler(list(schedules))}",
            rows,
            picture="sizes",
        )


def by_size(of: ScheduleResults) -> list[dict[str, Any]]:
    """A row for each allocator and class of sizes: number of jobs, and the mean of each measure."""
    starts = pl.Series(SIZES)
    least = pl.col("hosts").map_batches(
        lambda hosts: starts.gather(starts.search_sorted(hosts, side="right") - 1), return_dtype=pl.Int64
    )
    table = of.placed.select("allocator", least.alias("least"), **_VALUES)
    means = (
        table.group_by("allocator", "least")
        .agg(pl.len().alias("jobs"), pl.col(*MEASURES).mean())
        .sort("allocator", "least")
    )
    return [{"size": _class(row["least"]), **row} for row in means.iter_rows(named=True)]


def _class(least: int) -> str:
    following = next((one for one in SIZES if one > least), None)
    if following == least + 1:
        return str(least)
    return f"{least} and more" if following is None else f"{least} to {following - 1}"


def _bars(rows: Sequence[Mapping[str, Any]], key: str, one: _Measure) -> Iterator[Layer]:
    which = list(dict.fromkeys(row["schedules"] for row in rows))
    names = list(dict.fromkeys(row["allocator"] for row in rows))
    words = [Column("schedules", "schedules")] if len(which) > 1 else []
    words += [Column("allocator", "allocator"), Column("hosts", "size"), Column("jobs", "jobs")]
    told, tooltip = described(rows, [*words, Column(f"mean {one.title.lower()}", key, one.form)])
    told = [{**row, "series": f"{row['allocator']} {row['schedules']}", "base": one.base} for row in told]
    strengths = faded(which)
    told = [{**row, "strength": strengths[row["schedules"]]} for row in told]
    classes = [_class(least) for least in SIZES]
    axis = Axis.of(
        [one.base, *(row[key] for row in rows)],
        f"Mean {one.title.lower()}",
        one.kind,
        scale="linear",
        zero=one.base == 0,
    )
    order = [f"{name} {of}" for name in names for of in which]
    x = altair.X("size:N", sort=classes, title="Hosts of a job", axis=altair.Axis(labelAngle=0, labelOverlap=True))
    base = chart(told).encode(x=x, xOffset=altair.XOffset("series:N", sort=order), y=axis.y(key), y2="base:Q")
    yield base.mark_bar(clip=True).encode(color=colour("allocator", names), opacity=FADED, tooltip=tooltip)
