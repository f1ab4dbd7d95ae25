"""Jobs as bars over time and hosts, a panel for each allocator.

Hosts stand in the order of their numbers, on a grid along Hilbert's curve: so what is compact in the fabric is compact
in the chart. A job has a bar for each run of hosts that follow each other in that order. All panels are one chart, so
that they move together; their hosts are at different heights of its axis.

A page has bars of the whole log. They are filtered by the hours that are shown before they are drawn, and those that
are too thin to be seen then are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import floor
from typing import Any

import altair
import numpy as np
import numpy.typing as npt
import polars as pl
from altair import ExprRef
from pydantic_core import to_json

from fairlane.core.wording import duration, percent, plural
from fairlane.inputs.hosts import ranges_of
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement.grid import host_order, sides_of
from fairlane.results.schedule import ScheduleResults, hosts_of_text
from fairlane.views.charts import NUMBERS, Layer, chart, layers, linked, moved
from fairlane.views.model import Chart

Hours = tuple[float, float]
"""Range of hours."""
HOUR_S = 3600.0
WINDOW_H = 48.0
"""Hours that are shown at first of a longer schedule."""
MOST_BARS = 160_000
"""Bars of a chart; of more, the jobs that run longest have theirs."""
PANEL, GAP = 200, 50
"""Heights of a panel and of what is above it, pixels."""
_BEGIN, _SPAN, _CLASSES, _JOB, _MOVED = "gantt_begin", "gantt_span", "gantt_colours", "gantt_job", "gantt_moved"
"""Parameters: the first hour, how many hours, what colours mean, the job that stands out, hours by dragging."""
_THIN = 2600
"""Bars that are shorter than the hours that are shown by this factor are not drawn: half a pixel on a wide page."""
_SHADES = [1.0, 0.78, 0.58]
"""Opacities of jobs by turns, which tell neighbours apart."""
_SIZES = {"1 to 7 hosts": 1, "8 to 31 hosts": 8, "32 to 127 hosts": 32, "128 hosts and more": 128}
_SLOWDOWNS = {"up to 1.01": 0.0, "to 1.05": 1.01, "to 1.2": 1.05, "to 1.5": 1.2, "above 1.5": 1.5}
_RISING = ["7", "5", "0", "1", "2"]
"""Colours of slowdowns by their places in the palette: grey, blues, orange, red."""
_FACTS = {"hosts": "hosts", "pattern_": "pattern", "submitted": "submitted after", "waited": "waited", "ran": "ran"}
_STRETCHED = {"log": "in the log", "slower": "run slowdown", "lost_": "lost to neighbours"}


@dataclass(frozen=True)
class _Panel:
    """The schedule under an allocator."""

    label: str
    title: str
    offset: int
    """Its begin on the axis of hosts; the first one is on top."""
    hosts: int
    place: npt.NDArray[np.int64]
    """The place of each host on the axis."""


def jobs_over_time(
    schedules: Mapping[str, ScheduleResults], jobs: pl.DataFrame, sentence: str, window: tuple[float, float] | None
) -> Chart:
    """The chart of ``jobs_of`` schedules; ``window`` are the instants between which it is shown at first, s."""
    panels = _panels(schedules)
    order = {of: at for at, of in enumerate(panels)}
    number = pl.struct("schedules", "allocator").map_elements(lambda of: order[tuple(of.values())], pl.Int64)
    jobs = jobs.with_columns(panel=number).sort("panel", "start", "job", maintain_order=True).with_row_index("id")
    of_panels = [*panels.values()]
    bars, shortest = _bars(of_panels, jobs)
    left = jobs.height - bars["id"].n_unique()
    whole = float(jobs["submit"].to_numpy().min()) / HOUR_S, float(jobs["end"].to_numpy().max()) / HOUR_S
    first = (window[0] / HOUR_S, window[1] / HOUR_S) if window else _busiest(jobs.filter(panel=0))
    grid = any((panel.place != np.arange(panel.hosts)).any() for panel in of_panels)
    note = [
        "A bar is a job on hosts that follow each other; what is free is empty.",
        *(["Hosts stand along Hilbert's curve through the grid."] if grid else []),
        f"Hours {first[0]:.0f} to {first[1]:.0f}; figures are of the whole schedule.",
        *([f"{plural(left, 'job')} of at most {duration(shortest)} are left out."] if left else []),
    ]
    drawn = layers(len(panels) * (PANEL + GAP), *_layers(of_panels, jobs, bars, first, whole), zoom=())
    linked_jobs = linked(drawn, {f"{_JOB}_job": None})
    times = {f"{name}_s": name for name in ("submit", "start", "end", "run", "lost")}
    named = "schedules", "allocator", "job", "hosts", "pattern", "slowdown", "wait", "bounded_slowdown", "size"
    rows = jobs.select(*named, **times)
    return Chart("gantt", "Jobs over time", linked_jobs, sentence, " ".join(note), frame=rows, wide=True)


def _panels(schedules: Mapping[str, ScheduleResults]) -> dict[tuple[str, str], _Panel]:
    """The panel of each schedule and allocator."""
    panels = {}
    below = sum(schedule.allocators.height for schedule in schedules.values())
    for name, schedule in schedules.items():
        fabric = Fabric.build(dict(schedule.meta.fabric))
        place = np.argsort(host_order(fabric, "number" if sides_of(fabric) is None else "hilbert"))
        stretched = bool((schedule.allocators["mean_slowdown"] != 1).any())
        for row in schedule.allocators.iter_rows(named=True):
            below -= 1
            label = f"{name}: {row['allocator']}" if len(schedules) > 1 else row["allocator"]
            slower = f", mean slowdown {row['mean_slowdown']:.3f}" if stretched else ""
            lost = f", {percent(row['interference'])} lost to neighbours" if row["mean_slowdown"] != 1 else ""
            title = f"{label}: utilisation {percent(row['utilisation'])}{slower}{lost}"
            panels[name, row["allocator"]] = _Panel(label, title, below * (PANEL + GAP), schedule.meta.hosts, place)
    return panels


def _busiest(jobs: pl.DataFrame) -> tuple[float, float]:
    """The hours in which most hosts are busy; all of a shorter schedule."""
    begin, end = float(jobs["submit"].to_numpy().min()), float(jobs["end"].to_numpy().max())
    if end - begin <= WINDOW_H * HOUR_S:
        return begin / HOUR_S, end / HOUR_S
    edges = np.arange(begin, end - (WINDOW_H - 1) * HOUR_S, HOUR_S)
    busy = np.zeros(len(edges))
    for first, last, hosts in jobs.select("start", "end", "hosts").iter_rows():
        busy += np.maximum(np.minimum(last, edges + WINDOW_H * HOUR_S) - np.maximum(first, edges), 0.0) * hosts
    best = float(edges[int(busy.argmax())]) / HOUR_S
    return best, best + WINDOW_H


def _bars(panels: Sequence[_Panel], jobs: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """A row for each bar and, if some are left out, the longest time of their jobs, s.

    Begin and end are in hours, ``low`` and ``high`` on the axis.
    """

    @cache
    def runs(at: int, text: str) -> list[tuple[float, float]]:
        panel = panels[at]
        ranges = ranges_of(sorted(panel.place[hosts_of_text(text)].tolist()))
        ends = ([panel.offset + PANEL / panel.hosts * place for place in (first, last + 1)] for first, last in ranges)
        return [(round(low, 2), round(high, 2)) for low, high in ends]

    pieces = [runs(at, text) for at, text in jobs.select("panel", "host_numbers").iter_rows()]
    ran = jobs.select("id", "job", "start", "end", lasts=pl.col("end") - pl.col("start"), piece=pl.Series(pieces))
    ran = ran.sort("lasts", descending=True, maintain_order=True)
    kept = pl.col("piece").list.len().cum_sum() <= MOST_BARS
    left = ran.filter(~kept)["lasts"]
    bars = (
        ran.filter(kept)
        .sort("id")
        .explode("piece")
        .select(
            "id",
            pl.col("piece").list.get(0).alias("low"),
            pl.col("piece").list.get(1).alias("high"),
            pl.col("job").cast(pl.String),
            (pl.col("start") / HOUR_S).round(4).alias("begin"),
            (pl.col("end") / HOUR_S).round(4),
        )
    )
    return bars, float(left[0]) if left.len() else 0.0


def _described(panels: Sequence[_Panel], jobs: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, list[str]]]:
    """Return the texts of each job, its classes by the meanings of colours, and the names of the classes."""
    patterns = jobs["pattern"].drop_nulls().unique().sort().to_list()
    ran = jobs["end"] - jobs["start"]
    times = {"submitted": jobs["submit"], "waited": jobs["wait"], "ran": ran, "log": jobs["run"], "lost_": jobs["lost"]}
    slower = np.searchsorted(list(_SLOWDOWNS.values()), jobs["slowdown"].to_numpy(), side="left") - 1
    bars = jobs.select(
        "id",
        label=pl.col("panel").replace_strict({at: panel.label for at, panel in enumerate(panels)}),
        top=pl.col("panel").replace_strict({at: panel.offset + PANEL for at, panel in enumerate(panels)}),
        shade=(pl.col("job") % len(_SHADES)).replace_strict(dict(enumerate(_SHADES))),
        pattern_="pattern",
        pattern=pl.col("pattern").replace_strict({name: at for at, name in enumerate(patterns)}, return_dtype=pl.Int64),
        size=pl.Series(np.searchsorted([*_SIZES.values()], jobs["hosts"].to_numpy(), side="right") - 1),
        slowdown=pl.Series(np.array(_RISING)[np.maximum(slower, 0)]),
        hosts="hosts",
        slower=pl.col("slowdown").map_elements(lambda value: f"{value:.3f}", pl.String),
        **{name: pl.Series(map(duration, values), dtype=pl.String) for name, values in times.items()},
    )
    known = {"pattern": bool(patterns), "size": True, "slowdown": bool((jobs["slowdown"] != 1).any())}
    classes = {"pattern": patterns, "size": [*_SIZES], "slowdown": [*_SLOWDOWNS]}
    return bars, {name: names for name, names in classes.items() if known[name]}


def _csv(table: pl.DataFrame) -> altair.InlineData:
    """A table as text, a fraction of the size of objects; what is looked up remains text, and so must its key."""
    parse = {name: "number" if kind == pl.Float64 else "string" for name, kind in table.schema.items()}
    return altair.InlineData(values=table.write_csv(), format=altair.CsvDataFormat(type="csv", parse=parse))


def _layers(
    panels: Sequence[_Panel], jobs: pl.DataFrame, bars: pl.DataFrame, window: Hours, whole: Hours
) -> Iterator[Layer]:
    described, classes = _described(panels, jobs.filter(pl.col("id").is_in(bars["id"].implode())))
    stretched = "slowdown" in classes
    facts = {key: title for key, title in _FACTS.items() if key != "pattern_" or "pattern" in classes}
    facts |= _STRETCHED if stretched else {}
    low, high, x = _shown(whole)
    chosen = altair.selection_point(
        name=_JOB,
        fields=["job"],
        on="click",
        clear="dblclick",
        empty=False,
        bind=altair.binding(input="search", name="Find job", placeholder="number"),
    )
    of = altair.binding_select(options=[*classes], name="Colours by")
    ticks = {
        panel.offset + PANEL * part // 4: f"{round(panel.hosts * part / 4):,}" for panel in panels for part in range(5)
    }
    axis = altair.Axis(title="Host", values=[*ticks], labelExpr=f"({to_json(ticks).decode()})[datum.value]")
    scale = altair.Scale(domain=[0, len(panels) * (PANEL + GAP)], nice=False)
    told = altair.LookupData(_csv(described), "id", [name for name in described.columns if name != "id"])
    every = altair.Chart(_csv(bars))
    extent: dict[str, Any] = {"x": x, "y": altair.Y("low:Q", axis=axis, scale=scale), "y2": "high:Q"}
    shown = (
        every.transform_filter(
            f"datum.end > {low} && datum.begin < {high} && (datum.end - datum.begin) * {_THIN} > {high} - {low}"
        )
        .transform_lookup("id", told)
        .transform_calculate(kind=f"datum[{_CLASSES}]", shade="toNumber(datum.shade)")
        .encode(x2="end:Q", **extent)
    )
    titles = [
        altair.Tooltip(f"{key}:N", title=title) for key, title in {"job": "job", "label": "allocator", **facts}.items()
    ]
    drawn = shown.mark_rect(style="edged", clip=True).encode(
        color=_colour(classes),
        opacity=altair.Opacity("shade:Q", scale=None),
        tooltip=titles,
    )
    first = next(iter(classes))
    yield drawn.add_params(
        chosen, moved(("x",), _MOVED), altair.param(_CLASSES, value=first, bind=of), *_parameters(window, whole)
    )
    outlined = every.transform_filter(chosen).encode(**extent)
    yield outlined.mark_rect(style="ink", filled=False, strokeWidth=2.5, clip=True).encode(x2="end:Q")
    yield outlined.mark_rule(style="ink", strokeWidth=2.5, clip=True)
    heads = chart([{"top": panel.offset + PANEL, "text": panel.title} for panel in panels])
    look: dict[str, Any] = {"style": "text", "align": "left", "baseline": "bottom", "limit": ExprRef("width")}
    place: dict[str, Any] = {"x": altair.value(0), "y": altair.Y("top:Q", axis=axis, scale=scale)}
    yield heads.mark_text(dy=-6, fontWeight="bold", **look).encode(text="text:N", **place)
    expression = " + ', ' + ".join(f"'{title} ' + datum.{key}" for key, title in {"job": "job", **facts}.items())
    text = every.transform_filter(chosen).transform_aggregate(groupby=["id", "job"]).transform_lookup("id", told)
    yield (
        text.transform_calculate(text=expression, top="toNumber(datum.top)")
        .mark_text(dy=-23, **look)
        .encode(text="text:N", **place)
    )


def _colour(classes: Mapping[str, Sequence[str]]) -> altair.Color:
    """The colour of a job's class: its place in the palette, whatever colours mean."""
    places = {of: _RISING if of == "slowdown" else [*map(str, range(len(names)))] for of, names in classes.items()}
    labels = {of: dict(zip(places[of], names, strict=True)) for of, names in classes.items()}
    legend = altair.Legend(
        title=None,
        values=ExprRef(f"({to_json(places).decode()})[{_CLASSES}]"),
        labelExpr=f"({to_json(labels).decode()})[{_CLASSES}][datum.value]",
    )
    domain = [str(at) for at in range(max(8, *map(len, places.values())))]
    return altair.Color("kind:N", scale=altair.Scale(domain=domain), legend=legend)


def _shown(whole: Hours) -> tuple[str, str, altair.X]:
    """The hours that are shown, as expressions: those chosen, or those that were dragged there; and their axis."""
    all_ = f"{_SPAN} >= {whole[1] - whole[0]}"
    chosen = f"{all_} ? {whole[0]} : {_BEGIN}", f"{all_} ? {whole[1]} : {_BEGIN} + {_SPAN}"
    low, high = (f"({_MOVED}.begin ? {_MOVED}.begin[{at}] : {expression})" for at, expression in enumerate(chosen))
    domain = [ExprRef(expression) for expression in chosen]
    axis = altair.Axis(title="Time [h]", format=NUMBERS, grid=False, labelOverlap=True)
    return low, high, altair.X("begin:Q", axis=axis, scale=altair.Scale(domain=domain, nice=False, zero=False))


def _parameters(window: Hours, whole: Hours) -> Iterator[altair.Parameter]:
    first, span, longest = window[0], window[1] - window[0], whole[1] - whole[0]
    slider = altair.binding_range(min=floor(whole[0]), max=floor(whole[1]), step=1, name="From hour")
    yield altair.param(_BEGIN, value=first, bind=slider)
    spans = {hours: f"{hours:.3g} hours" for hours in sorted({4.0, 12.0, 48.0, 168.0, span}) if hours < longest}
    spans[max(span, longest)] = "the whole schedule"
    select = altair.binding_select(options=[*spans], labels=[*spans.values()], name="Show")
    yield altair.param(_SPAN, value=span, bind=select)
