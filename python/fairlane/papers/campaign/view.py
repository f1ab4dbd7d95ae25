"""The comparison of a campaign with a prediction: ratio against ratio, cells, bars and all registrations."""

from collections.abc import Iterator, Mapping, Sequence
from math import log

import altair
import polars as pl

from fairlane.core.errors import ScenarioError
from fairlane.core.wording import data_size, percent, plural, seconds
from fairlane.papers.campaign.cells import KEYS
from fairlane.papers.campaign.comparing import FALSE_ALARM, FAR, MISS, RIGHT, Comparison, compared
from fairlane.papers.campaign.registry import Registration
from fairlane.papers.campaign.robustness import Mapped
from fairlane.views.charts import Axis, Layer, chart, colour, described, layers, legend_of
from fairlane.views.model import Chart, View
from fairlane.views.robustness import indices, shares
from fairlane.views.tables import Column, Row, Table, fixed, with_interval, with_ratio

VERDICTS = (RIGHT, FAR, MISS, FALSE_ALARM)
CELL = (
    Column("victim, aggressor", lambda row: f"{row['victim']}, {row['aggressor']}"),
    Column("nodes", "nodes"),
    Column("size", "msg_bytes", data_size),
)
"""Columns that tell cells apart."""
_SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down")
_APART = 0.09
"""The logarithm of the ratio between points that are both named."""
_RATIOS = (
    Column("ratio of means\nmeasured", "measured_mean_ratio", fixed(2)),
    Column("\npredicted", with_ratio("predicted_mean_ratio", fixed(2))),
    Column("verdict", "verdict", left=True),
)


def view(comparison: Comparison) -> View:
    """Measured cells against a registered prediction."""
    campaign = comparison.cells.campaign
    meta = comparison.registration.meta
    counts = {name: int((comparison.table["verdict"] == name).sum()) for name in VERDICTS}
    cells = plural(sum(counts.values()), "co-run cell")
    return View(
        title=f"{campaign.title}: measured and predicted",
        headline=f"{campaign.title}: {counts[RIGHT]} of {cells} are as predicted",
        facts=[f"Prediction {comparison.registration.name}, {plural(comparison.table.height, 'cell')}"],
        parts=[
            *_charts(comparison),
            _wrong(comparison, counts),
            _cells(comparison),
            _bars(comparison),
            _registrations(comparison),
        ],
        remarks=[f"Measured figures: {'; '.join(campaign.sources)}."],
        provenance={
            comparison.registration.name: {
                **{name: meta[name] for name in ("registered", "fairlane", "model")},
                "parameters": ", ".join(f"{name} = {value}" for name, value in meta["parameters"].items()),
            }
        },
    )


def fitted(title: str, rows: Sequence[Row], values: Mapping[str, str], error: float) -> View:
    """Isolated cells as measured and simulated, and the fitted values."""
    times = [Column(name, name, seconds) for name in ("measured", "simulated")]
    shown = [Column("cell", "cell"), *times, Column("ratio", "ratio", fixed(2))]
    said = f"{plural(len(rows), 'isolated cell')}."
    return View(
        title=f"{title}: fit",
        headline=f"{title}: mean error of isolated runs {percent(error)}",
        facts=[f"{name} = {value}" for name, value in values.items()],
        parts=[Table(shown, rows, "Isolated runs: medians", sentence=said)],
    )


def predicted(title: str, cells: pl.DataFrame) -> View:
    """Predicted times of cells."""
    shown = [
        *CELL,
        *(Column(name, with_interval(f"{name}_s", seconds)) for name in ("median", "mean", "p99")),
        Column("iterations", "iterations"),
    ]
    said = f"{plural(cells.height, 'cell')}."
    return View(
        title=f"{title}: prediction",
        headline=f"{title}: {plural(cells.height, 'cell')} predicted",
        facts=[],
        parts=[Table(shown, cells.to_dicts(), "Predicted time of an iteration", sentence=said, data=cells)],
    )


def mapped(title: str, robustness: Mapped) -> View:
    """Of each cell the share of points at which it is predicted, and what decides."""
    deciding: dict[object, list[Row]] = {}
    for row in robustness.indices.filter("beyond_chance").sort("index", descending=True).iter_rows(named=True):
        deciding.setdefault(row["claim"], []).append(row)
    rows = [
        {**row, "by": ", ".join(f"{of['parameter']} ({of['index']:.2f})" for of in deciding.get(row["claim"], []))}
        for row in robustness.cells.iter_rows(named=True)
    ]
    shown = [
        Column("cell: measured ratio", "says"),
        Column("predicted at", "share", percent, note="predicted at: share of the points"),
        Column("decided by", "by", left=True, wrap=True),
    ]
    of = ("a cell", "is predicted", "the logarithm of the predicted ratio")
    charts = [shares({"": robustness.cells}, of), *indices(robustness.cells, robustness.indices, of)] if rows else []
    points = plural(robustness.points.height - 1, "point")
    always = sum(row["share"] == 1 for row in rows)
    said = f"{always} of {plural(len(rows), 'cell')} are predicted at all points."
    return View(
        title=f"{title}: what decides",
        headline=f"{title}: {said.removesuffix('.')}",
        facts=[f"{points}; the number after a cell is its measured ratio of means to the isolated run"],
        parts=[*charts, Table(shown, rows, "Cells over the ranges of unknown parameters", sentence=said)],
        remarks=[
            *(f"{plural(count, 'further point')} cannot be: {reason}" for reason, count in robustness.excluded.items()),
            *(f"Left out: {reason}" for reason in robustness.failed),
        ],
    )


def _cells(comparison: Comparison) -> Table:
    times = [
        Column(f"{name}\n{of}" if of == "measured" else f"\n{of}", f"{of}_{name}_s", seconds)
        for name in ("median", "mean", "p99")
        for of in ("measured", "predicted")
    ]
    title = f"Measured, and predicted by {comparison.registration.name}"
    sentence = f"Time of an iteration, that of the slowest rank, of {plural(comparison.table.height, 'cell')}."
    rows = comparison.table.to_dicts()
    return Table([*CELL, *times, *_RATIOS], rows, title, sentence=sentence, data=comparison.table)


def _wrong(comparison: Comparison, counts: dict[str, int]) -> Table:
    judging = comparison.cells.campaign.judging
    rows = comparison.table.filter(pl.col("verdict") != RIGHT).to_dicts()
    counted = f"{plural(counts[MISS], 'miss', 'misses')}, {plural(counts[FALSE_ALARM], 'false alarm')}, "
    note = (
        f"A miss: a ratio above {judging.slow_above:g} was measured, at most {judging.calm_at_most:g} predicted. "
        f"A false alarm: at most {judging.calm_below:g} measured, more than {judging.calm_at_most:g} predicted. "
        f"Far: slowed down, but not within a factor of {judging.factor:g}."
    )
    sentence = f"{counted}{counts[FAR]} by another factor."
    return Table([*CELL, *_RATIOS], rows, "Cells that were predicted wrong", note, sentence=sentence, only_page=True)


def _bars(comparison: Comparison) -> Table:
    reached = {True: "yes", False: "no", None: None}
    rows = [
        {"cells": name, "what": bar.what, "text": bar.text, "holds": reached[bar.holds]}
        for name, of in comparison.parts.items()
        for bar in of
    ]
    judged = [bar.holds for bar in comparison.parts["judged"] if bar.holds is not None]
    sentence = f"{sum(judged)} of {plural(len(judged), 'bar')} are reached on the cells that are judged."
    shown = [
        Column("cells", "cells"),
        Column("reached", "holds", left=True),
        Column("criterion", "what", left=True, wrap=True),
        Column("found", "text", left=True, wrap=True),
    ]
    return Table(shown, rows, "Bars", sentence=sentence)


def _registrations(comparison: Comparison) -> Table:
    rows = [
        {**registration.meta, "bars": _reached(comparison, registration)} for registration in comparison.registrations
    ]
    shown = [
        *(Column(name, name, left=name != "number") for name in ("number", "label", "registered", "fairlane")),
        Column("cells", "count"),
        *(Column(name, name, left=True, wrap=True) for name in ("note", "bars")),
    ]
    sentence = f"{plural(len(rows), 'prediction')} registered before the comparison, and their bars."
    return Table(shown, rows, "Registered predictions", sentence=sentence, only_page=True)


def _reached(comparison: Comparison, registration: Registration) -> str:
    """The bars of a registration, if it has some of the same cells."""
    compared_keys = {tuple(row) for row in comparison.table.select(KEYS).iter_rows()}
    wanted = [cell for cell in comparison.cells.all if cell.key in compared_keys & registration.keys]
    try:
        bars = compared(comparison.cells, wanted, registration.number).parts["judged"]
    except ScenarioError:
        return ""
    return "; ".join(f"{bar.what}: {bar.text}" for bar in bars if bar.found is not None)


def _charts(comparison: Comparison) -> Iterator[Chart]:
    """The judged cells, and those on which variants were chosen: ratios of means, on logarithmic axes."""
    factor = comparison.cells.campaign.judging.factor
    panels = {name: _co_run(comparison.judged(nodes)) for name, nodes in comparison.nodes.items()}
    every = _co_run(comparison.table)
    pairs = [" beside ".join(pair) for pair in every.select("victim", "aggressor").unique(maintain_order=True).rows()]
    if not every.height:
        return
    ratios = [*every["measured_mean_ratio"], *every["predicted_mean_ratio"]]
    ends = [0.8, *ratios, 1.5 * max(ratios, default=1.0)]  # room for names at the right
    measured, predicted = (Axis.of(ends, f"{of} ratio", scale="log") for of in ("Measured", "Predicted"))
    for at, (name, rows) in enumerate(panels.items()):
        if not rows.height:
            continue
        right = int((rows["verdict"] == RIGHT).sum())
        yield Chart(
            f"ratios{at or ''}",
            f"Cells that were {name}",
            layers(440, *_panel(rows.to_dicts(), pairs, measured, predicted, factor)),
            f"{right} of {plural(rows.height, 'cell')} ({percent(right / rows.height)}) are as predicted.",
            "A point is a cell: a victim of one message size beside an aggressor, the mean time of an iteration over "
            "that of the isolated run; size and nodes where it is not as predicted. "
            f"Band: within a factor of {factor:g}.",
            rows.to_dicts(),
            picture="ratios",
        )


def _co_run(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter(pl.col("verdict").is_not_null())


def _panel(
    rows: Sequence[Row], pairs: Sequence[str], measured: Axis, predicted: Axis, factor: float
) -> Iterator[Layer]:
    ends = [{"x": x, "y": x, "low": x / factor, "high": x * factor} for x in (measured.low, measured.high)]
    band = chart(ends).encode(x=measured.x("x"))
    yield band.mark_area(style="shade", clip=True).encode(y=predicted.y("low"), y2="high:Q")
    yield band.mark_line(style="muted", clip=True).encode(y=predicted.y("y"))
    told, tooltip = described(rows, [*CELL, *_RATIOS])
    points = [{**row, "pair": f"{row['victim']} beside {row['aggressor']}"} for row in told]
    x, y = measured.x("measured_mean_ratio"), predicted.y("predicted_mean_ratio")
    named = [{**row, "name": f"{data_size(row['msg_bytes'])}, {row['nodes']}"} for row in _apart(rows)]
    yield chart(named).mark_text(style="text", align="left", dx=6, dy=-6, fontSize=10).encode(x=x, y=y, text="name:N")
    scale = altair.Scale(domain=list(pairs), range=[_SHAPES[at % len(_SHAPES)] for at in range(len(pairs))])
    shape = altair.Shape("pair:N", scale=scale, legend=legend_of(pairs, "bottom"))
    yield chart(points).mark_point().encode(x=x, y=y, color=colour("verdict", VERDICTS), shape=shape, tooltip=tooltip)


def _apart(rows: Sequence[Row]) -> list[Row]:
    """The cells that are not as predicted and whose names do not overlap."""
    named: list[Row] = []
    for row in rows:
        at = row["measured_mean_ratio"], row["predicted_mean_ratio"]
        places = [(other["measured_mean_ratio"], other["predicted_mean_ratio"]) for other in named]
        if row["verdict"] == RIGHT or any(
            abs(log(at[1] / y)) < _APART and abs(log(at[0] / x)) < 4 * _APART for x, y in places
        ):
            continue
        named.append(row)
    return named
