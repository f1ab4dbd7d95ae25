"""The throughput change of each job against its isolated run, W."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import altair
import numpy as np
import polars as pl

from fairlane.results.culprit import none_slowed, slowed_down
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.notes import few, stops, sufficient
from fairlane.views.charts import Axis, Layer, chart, described, layers, rule, whiskers
from fairlane.views.model import Chart, sentences_of
from fairlane.views.rows import Rows, bars, box_numbers, boxes, dots, spread
from fairlane.views.run.series import JOB, WORKLOAD, Series, chosen, highlighted
from fairlane.views.tables import Column, Row, with_change
from fairlane.wording import listed, percent, plural

MOST_BARS = 48
"""With more jobs than this, a row is a workload and a dot is a job."""
_W = Column("W", with_change("w"))
_ROOM = 0.12
"""Room for numbers at the end of bars, as a share of the axis."""


def title(compared: pl.DataFrame) -> str:
    """How many of the jobs with enough iterations are slowed down, and which one most."""
    jobs = compared.filter(pl.col("ten_iterations_ps").is_null())
    slowed = slowed_down(jobs)
    if slowed.is_empty():
        few_of_all = f"Fewer than {FEW_ITERATIONS} iterations: too few to tell how much jobs are slowed down"
        return none_slowed(compared) or few_of_all
    worst = slowed.row(0, named=True)
    change = percent(worst["w"], signed=True)
    verb = "is" if slowed.height == 1 else "are"
    of = plural(jobs.height, "job")
    of = of if jobs.height == compared.height else f"the {of} with enough iterations"
    return f"{slowed.height} of {of} {verb} slowed down, {worst['name']} most: {change}"


def notes(jobs: pl.DataFrame) -> Iterator[str]:
    """Which jobs have no W, and which have one over few iterations."""
    missing = jobs.filter(pl.col("w").is_null() & pl.col("isolated_iterations").is_not_null())
    if missing.height:
        time = sufficient(missing)
        longer = f"; {FEW_ITERATIONS} take at least {time}{stops(missing)}" if time else ""
        yield f"Not shown, no iteration completed: {listed(missing['name'].to_list())}{longer}."
    hardly = few(jobs)
    if hardly.height:
        fewer = f"fewer than {FEW_ITERATIONS} iterations in {plural(hardly.height, 'job')}"
        yield f"Dashed: {fewer}; {FEW_ITERATIONS} take about {sufficient(hardly)}{stops(hardly)}."


def charts(series: Series) -> Iterator[Chart]:
    """W by job, if any job can be compared with its isolated run."""
    rows = [
        series.row(name, job["name"], few=job["ten_iterations_ps"] is not None)
        | {key: job[key] for key in ("w", "w_low", "w_high")}
        for name, _, job in series.jobs()
        if job["w"] is not None
    ]
    if not rows:
        return
    values = [row[key] for row in rows for key in ("w", "w_low", "w_high") if row[key] is not None]
    axis = Axis.of([0.0, *values], "Throughput change against the isolated run (W)", "change", scale="linear")
    jobs = list({row["job"] for row in rows})
    is_bars = len(jobs) <= MOST_BARS
    compared = {name: run for name, run in series.runs.items() if run.jobs["w"].count()}
    about = [line for run in compared.values() for line in notes(run.jobs)]
    marks = (
        "Whiskers: 95% intervals over iterations." if is_bars else "A dot is a job; boxes: quartiles, median, range."
    )
    places = series.places(jobs) if is_bars else _by_workload(series)
    drawn = _bars(series, rows, axis, places) if is_bars else _dots(series, rows, axis, places)
    yield Chart(
        "slowdown",
        "Throughput change against the isolated run (W)",
        layers(places.height, *drawn, zoom=("x",)),
        sentences_of(compared, lambda run: title(run.jobs.drop_nulls("w"))),
        " ".join([marks + series.below(), *about]),
        [{key: row[key] for key in ("run", "job", "workload", "w", "w_low", "w_high", "few")} for row in rows],
    )


def _bars(series: Series, rows: Sequence[Row], axis: Axis, places: Rows) -> Iterator[Layer]:
    span = _ROOM * (axis.high - axis.low)
    gain = any(row["w"] > 0 for row in rows)
    axis = replace(axis, low=axis.low - span, high=axis.high + (span if gain else 0))
    ends = [
        {
            "zero": 0.0,
            "end": max(row["w"], row["w_high"] or row["w"])
            if row["w"] > 0
            else min(row["w"], row["w_low"] or row["w"]),
            "number": percent(row["w"], signed=True),
        }
        for row in rows
    ]
    placed = [
        places.place({**row, **end}, row["job"], series.number(row["run"])) for row, end in zip(rows, ends, strict=True)
    ]
    told, tooltip = described(placed, [*series.run_column, JOB, WORKLOAD, _W, Column("few iterations", "few")])
    colour = series.colour(rows, named=True)
    for is_few in (False, True):
        some = [row for row in told if row["few"] == is_few]
        if not some:
            continue
        bar = bars(
            some,
            axis,
            places,
            "zero",
            "w",
            color=colour,
            tooltip=tooltip,
            opacity=highlighted(most=0.5 if is_few else 1),
        )
        yield bar.add_params(chosen()) if is_few or all(not row["few"] for row in told) else bar
        if is_few:
            edge = chart(some).mark_rect(style="ink", filled=False, strokeDash=[3, 3])
            yield edge.encode(x=axis.x("zero"), x2="w:Q", y=places.y("top"), y2="bottom:Q")
    base = chart(told)
    yield whiskers(base, axis, "w_low", "w_high", vertical=False, style="ink", y=places.y("at"))
    yield rule(0.0, axis, vertical=True)
    yield from ends_of(base, axis, places, "w")


def ends_of(base: altair.Chart, axis: Axis, places: Rows, of: str) -> Iterator[Layer]:
    """The ``number`` of each row beyond the ``end`` of its bar, whose value is the field ``of``."""
    for side, mark in (
        (f"datum.{of} > 0", {"align": "left", "dx": 6}),
        (f"datum.{of} <= 0", {"align": "right", "dx": -6}),
    ):
        look: dict[str, Any] = {"style": "text", "fontSize": 11, **mark}
        text = base.transform_filter(side).mark_text(**look)
        yield text.encode(x=axis.x("end"), y=places.y("at"), text="number:N")


def _by_workload(series: Series) -> Rows:
    """A row for each workload, for many jobs."""
    names = list(dict.fromkeys(series.workloads.values()))
    counts = [list(series.workloads.values()).count(name) for name in names]
    return Rows(
        names, len(series.runs), [[name, plural(count, "job")] for name, count in zip(names, counts, strict=True)]
    )


def _dots(series: Series, rows: Sequence[Row], axis: Axis, places: Rows) -> Iterator[Layer]:
    placed, drawn = [], []
    for (run, workload), group in _grouped(rows).items():
        number = series.number(run)
        offsets = spread(len(group), 0.8 * places.reach)
        placed += [
            {**places.place(row, workload, number), "at": places.at(workload, number) + off}
            for row, off in zip(group, offsets, strict=True)
        ]
        numbers = box_numbers(np.asarray([row["w"] for row in group]), (0, 100))
        drawn.append(places.place({**group[0], **numbers}, workload, number))
    yield boxes(drawn, axis, places, color=series.colour(rows, named=True))
    told, tooltip = described(placed, [*series.run_column, JOB, WORKLOAD, _W, Column("few iterations", "few")])
    yield rule(0.0, axis, vertical=True)
    yield dots(
        told, axis, places, "w", color=series.colour(rows, named=True), tooltip=tooltip, opacity=highlighted(0.1, 0.8)
    ).add_params(chosen())


def _grouped(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["run"], row["workload"]), []).append(row)
    return found
