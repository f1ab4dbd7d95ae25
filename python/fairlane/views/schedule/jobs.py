"""Jobs by allocator: distributions of waits and slowdowns, means by size, and what the machine does over time.

A job that is chosen on a page is marked in all of them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import altair
import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.core.wording import duration, listed, percent, plural, significant
from fairlane.learn.scheduler.compare import BOUND_S
from fairlane.results.schedule import ScheduleResults
from fairlane.views.charts import Axis, Kind, Layer, chosen_rows, colour, layers, linked, with_tooltip
from fairlane.views.model import Chart, together
from fairlane.views.tables import Column, Write, fixed, naming

POINTS, BINS = 200, 300
"""Points of a distribution; intervals of a schedule, over each of which values are means."""
HOUR_S = 3600.0
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536)
"""Least numbers of hosts of the classes of sizes."""
_CLASSES = [str(low) if high == low + 1 else f"{low} to {high - 1}" for low, high in pairwise(SIZES)]
_CLASSES.append(f"{SIZES[-1]} and more")
_CHOSEN = ("gantt", "job")
"""Place of the rows of a chosen job: the chart whose CSV has them, and their column."""
_DASHES = [[1, 0], [6, 3], [2, 3], [8, 3, 2, 3]]
"""Of lines, by the comparison that they are of."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Measure:
    """A measure of a job."""

    title: str
    kind: Kind
    form: Write
    least: float
    """Begin of the axis of distributions if there are smaller values; 0 for all of them."""
    base: float
    """Begin of bars."""
    note: str


_BOUNDED = f"(Wait + time that a job ran) over the run time of the log, of which at least {BOUND_S} s count."
MEASURES: Mapping[str, _Measure] = {
    "wait": _Measure("Wait", "duration", duration, 1.0, 0.0, "Waits below 1 s are at the left end."),
    "bounded_slowdown": _Measure("Bounded slowdown", "number", significant, 1.0, 1.0, _BOUNDED),
    "slowdown": _Measure(
        "Run slowdown", "number", fixed(3), 0.0, 1.0, "Time that a job ran over the run time of the log."
    ),
}
_LOADS: Mapping[str, tuple[str, str, Kind, Write]] = {
    "utilisation": ("Utilisation over time", "Allocated hosts", "share", percent),
    "waiting": ("Waiting jobs over time", "Waiting jobs", "number", significant),
    "wanted": ("Hosts that waiting jobs request", "Hosts", "number", significant),
}
"""Titles of charts and axes, and how values are written."""


def jobs_of(schedules: Mapping[str, ScheduleResults]) -> pl.DataFrame:
    """The jobs of all schedules, with wait, s, bounded slowdown, and the class of their ``size``."""
    jobs = together(schedules, "schedules", lambda schedule: schedule.placed)
    runs = pl.max_horizontal(pl.col("run"), pl.lit(float(BOUND_S)))
    classes = pl.Series(SIZES[1:]).search_sorted(jobs["hosts"], side="right")
    return jobs.with_columns(
        wait=pl.col("start") - pl.col("submit"),
        bounded_slowdown=((pl.col("end") - pl.col("submit")) / runs).clip(lower_bound=1.0),
        size=pl.Series(_CLASSES, dtype=pl.Enum(_CLASSES)).gather(classes),
    )


def greatest(rows: pl.DataFrame, key: str) -> dict[str, Any]:
    """The first row with the greatest value."""
    return rows.sort(key, descending=True, maintain_order=True).row(0, named=True)


def machine_over_time(schedules: Mapping[str, ScheduleResults], used: str, fragmented: str) -> Iterator[Chart]:
    """A chart of allocated hosts, and of jobs and hosts that wait; ``used`` and ``fragmented`` are sentences."""
    rows = together(schedules, "schedules", load_of)
    waits, asked = (greatest(rows, key) for key in ("waiting", "wanted"))
    most = f"At most {significant(waits['waiting'])} jobs wait on average over an interval, under {waits['allocator']}."
    hosts = f"They request at most {significant(asked['wanted'])} hosts, under {asked['allocator']}."
    sentences = {"utilisation": f"{used} {fragmented}", "waiting": most, "wanted": hosts}
    hours = Axis.of(rows["until_h"], "Time [h]", scale="linear")
    for key, (title, label, kind, form) in _LOADS.items():
        of = rows.select("schedules", "allocator", "until_h", key)
        columns = [Column("until", "until_h", lambda value: f"{value:,.1f} h"), Column(label.lower(), key, form)]
        axis = Axis.of([0.0, *([1.0] if kind == "share" else []), *rows[key]], label, kind, scale="linear")
        lines = _lines(of, columns, hours.x("until_h"), axis.y(key), interpolate="step-before", strokeWidth=1.4)
        # From its submission, or its start, to its end.
        begin = "start_s" if key == "utilisation" else "submit_s"
        end = "end_s" if key == "utilisation" else "start_s"
        job = chosen_rows().transform_calculate(begin=f"datum.{begin} / {HOUR_S}", end=f"datum.{end} / {HOUR_S}")
        band = job.mark_rect(style="shade", opacity=0.06).encode(x=hours.x("begin"), x2="end:Q")
        note = f"Means over {BINS} intervals of the schedule."
        spec = linked(layers(240, band, *lines), rows=_CHOSEN)
        yield Chart(key, title, spec, sentences[key], note, frame=of, picture="load", wide=key == "utilisation")


def _colour(rows: pl.DataFrame) -> altair.Color:
    return colour("allocator", rows["allocator"].unique(maintain_order=True).to_list())


def _lines(rows: pl.DataFrame, columns: Sequence[Column], x: altair.X, y: altair.Y, **look: Any) -> Iterator[Layer]:
    """Lines with a colour for each allocator, and dashes for each comparison (``schedules``)."""
    which = rows["schedules"].unique(maintain_order=True).to_list()
    base, tooltip = with_tooltip(
        rows.to_dicts(), [*naming(which, "schedules"), Column("allocator", "allocator"), *columns]
    )
    legend = altair.Legend(title=None) if len(which) > 1 else None
    scale = altair.Scale(domain=which, range=[_DASHES[at % len(_DASHES)] for at in range(len(which))])
    base = base.encode(x=x, y=y)
    dash = altair.StrokeDash("schedules:N", scale=scale, legend=legend)
    yield base.mark_line(clip=True, **look).encode(color=_colour(rows), strokeDash=dash)
    yield base.mark_point(opacity=0, clip=True).encode(tooltip=tooltip)


def load_of(schedule: ScheduleResults) -> pl.DataFrame:
    """By allocator and interval: its end, h; share of allocated hosts; waiting jobs, and hosts that they ask for."""
    begin, end = float(schedule.placed["submit"].to_numpy().min()), float(schedule.placed["end"].to_numpy().max())
    edges = np.linspace(begin, end, BINS + 1)
    every = []
    for name in schedule.allocators["allocator"]:
        of = schedule.placed.filter(allocator=name)
        hosts, unit = of["hosts"].to_numpy().astype(float), np.ones(of.height)
        loads = {
            "until_h": edges[1:] / HOUR_S,
            "utilisation": _mean(of, "start", "end", hosts, edges) / schedule.meta.hosts,
            "waiting": _mean(of, "submit", "start", unit, edges),
            "wanted": _mean(of, "submit", "start", hosts, edges),
        }
        every.append(pl.DataFrame({"allocator": name, **loads}))
    return pl.concat(every).with_columns(pl.col(pl.Float64).round_sig_figs(5))


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


def distributions(jobs: pl.DataFrame, measures: Sequence[str]) -> Iterator[Chart]:
    """The share of jobs above each value of each of ``MEASURES``."""
    for key in measures:
        measure = MEASURES[key]
        rows = above(jobs, key)
        axis = Axis.of(rows["value"].clip(measure.least), measure.title, measure.kind, scale="log")
        share = Axis.of([0.0, 1.0], "Share of jobs above", "share", scale="linear")
        columns = [Column(measure.title.lower(), "value", measure.form), Column("jobs above", "above", percent)]
        shown = rows.with_columns(shown=pl.col("value").clip(measure.least))
        lines = _lines(shown, columns, axis.x("shown"), share.y("above"))
        job = chosen_rows().transform_calculate(shown=f"max(datum.{key}, {measure.least})")
        rule = job.mark_rule(strokeWidth=1.6).encode(x=axis.x("shown"), color=_colour(rows))
        sentence = "; ".join(_quantiles(of, key) for _, of in jobs.group_by("schedules", maintain_order=True))
        spec = linked(layers(240, rule, *lines), rows=_CHOSEN)
        yield Chart(key, f"{measure.title}s", spec, f"{sentence}.", measure.note, frame=rows, picture="distributions")


def above(jobs: pl.DataFrame, measure: str) -> pl.DataFrame:
    """By allocator: values of a measure, and the share of jobs above each."""
    shares = 1 - np.concatenate([np.linspace(0, 0.99, POINTS - 20, endpoint=False), np.linspace(0.99, 1, 20)])
    every = [
        of.select("schedules", "allocator").head(1).join(_quantiles_at(of[measure], shares), how="cross")
        for _, of in jobs.group_by("schedules", "allocator", maintain_order=True)
    ]
    return pl.concat(every)


def _quantiles_at(values: pl.Series, shares: Floats) -> pl.DataFrame:
    quantiles = np.quantile(values.to_numpy(), 1 - shares, method="higher")
    table = pl.DataFrame({"value": quantiles, "above": shares})
    rounded = table.select(pl.col("value").round_sig_figs(5), pl.col("above").round_sig_figs(4))
    return rounded.unique("value", keep="last", maintain_order=True)


def _quantiles(jobs: pl.DataFrame, key: str) -> str:
    title, form = MEASURES[key].title.lower(), duration if key == "wait" else significant
    by_allocator = jobs.group_by("allocator", maintain_order=True)
    ordered = by_allocator.agg(half=pl.col(key).median(), tail=pl.col(key).quantile(0.9))
    ordered = ordered.sort("half", "tail", "allocator")
    name, half, tail = ordered.row(0)
    quantiles = f"{name}: median {title} {form(half)}, 90th percentile {form(tail)}"
    name, half, tail = ordered.row(-1)
    return quantiles if ordered.height == 1 else f"{quantiles}; {name}: {form(half)} and {form(tail)}"


def sizes(jobs: pl.DataFrame, measures: Sequence[str]) -> Iterator[Chart]:
    """The mean of each of ``MEASURES`` by the size of jobs."""
    rows = by_size(jobs)
    waits = jobs.group_by("hosts").agg(pl.col("wait").mean()).sort("wait", "hosts")
    hosts, wait = waits.row(-1)
    longest = f"Jobs of {plural(hosts, 'host')} wait longest, {duration(wait)} on average over allocators."
    for key in measures:
        title, form = f"Mean {MEASURES[key].title.lower()}", MEASURES[key].form
        worst = greatest(rows, key)
        most = f"{form(worst[key])} of jobs of {worst['size']} hosts under {worst['allocator']}"
        which = rows["schedules"].unique(maintain_order=True).to_list()
        yield Chart(
            f"{key}_by_size",
            f"{title} by size of jobs",
            linked(layers(240, *_bars(rows, which, key), zoom=("y",)), rows=_CHOSEN),
            longest if key == "wait" else f"The greatest {title[0].lower()}{title[1:]}: {most}.",
            f"Classes of the number of hosts of a job.{paler(which)}",
            frame=rows,
            picture="sizes",
        )


def by_size(jobs: pl.DataFrame) -> pl.DataFrame:
    """A row for each allocator and class of sizes: number of jobs, and the mean of each measure."""
    classes = jobs.group_by("schedules", "allocator", "size", maintain_order=True)
    least = pl.col("size").cast(pl.String).replace_strict(dict(zip(_CLASSES, SIZES, strict=True))).alias("least")
    means = classes.agg(pl.len().alias("jobs"), pl.col(*MEASURES).mean()).with_columns(least)
    return means.sort(pl.col("schedules").rle_id(), "allocator", "size")


def _bars(rows: pl.DataFrame, which: Sequence[str], key: str) -> Iterator[Layer]:
    measure = MEASURES[key]
    title = f"Mean {measure.title.lower()}"
    names = rows["allocator"].unique(maintain_order=True)
    columns = [*naming(which, "schedules"), Column("allocator", "allocator"), Column("hosts", "size")]
    columns += [Column("jobs", "jobs"), Column(title.lower(), key, measure.form)]
    series = pl.format("{} {}", "allocator", "schedules")
    base, tooltip = with_tooltip(rows.with_columns(series=series, base=measure.base).to_dicts(), columns)
    axis = Axis.of([measure.base, *rows[key]], title, measure.kind, scale="linear", zero=measure.base == 0)
    order = [f"{name} {of}" for name in names for of in which]
    look = altair.Axis(labelAngle=0, labelOverlap=True)
    x = altair.X("size:N", sort=_CLASSES, title="Hosts of a job", axis=look)
    coloured = {"color": _colour(rows), "opacity": faded(which)}
    place: dict[str, Any] = {"x": x, "xOffset": altair.XOffset("series:N", sort=order)}
    yield base.mark_bar(clip=True).encode(y=axis.y(key), y2="base:Q", tooltip=tooltip, **place, **coloured)
    job = chosen_rows().transform_calculate(series="datum.allocator + ' ' + datum.schedules")
    yield job.mark_point(style="ink", shape="diamond", size=70, clip=True).encode(y=axis.y(key), **place)


def faded(which: Sequence[str]) -> altair.Opacity:
    """The opacity of the bars of each of several comparisons."""
    strengths = [1 - 0.7 * at / max(1, len(which) - 1) for at in range(len(which))]
    return altair.Opacity("schedules:O", scale=altair.Scale(domain=[*which], range=strengths), legend=None)


def paler(which: Sequence[str]) -> str:
    """Explain the opacities."""
    return f" From strong to pale: {listed(which)}." if len(which) > 1 else ""
