"""How long iterations take: their distribution by job, and their course."""

from collections.abc import Iterator, Sequence
from typing import Any

import altair
import numpy as np
import polars as pl

from fairlane.engine.tables import PS
from fairlane.results.run import Run
from fairlane.results.views import distribution, iteration_times
from fairlane.views.charts import Axis, Layer, chart, choice, described, layers, whiskers
from fairlane.views.model import Chart, sentences_of
from fairlane.views.rows import Rows, box_numbers, boxes, dots, spread, thinned
from fairlane.views.run.series import CHOSEN, JOB, MOST_LINES, WORKLOAD, Series, chosen
from fairlane.views.scales import has_tail
from fairlane.views.tables import Column, Row, count, with_interval
from fairlane.wording import plural, seconds

MOST_POINTS = 160
"""Points of a job's line; of more iterations, each point is the mean of some successive ones."""
DASHES = ((1, 0), (6, 3), (2, 2))
"""Of the lines of jobs that have the same colour."""
_TIMES = ("seconds_per_iteration", "seconds_per_iteration_low", "seconds_per_iteration_high")


def charts(series: Series) -> Iterator[Chart]:
    """The distribution where the iterations of ranks were kept, and the course of iterations."""
    yield from _distributions(series)
    yield from _course(series)


def _distributions(series: Series) -> Iterator[Chart]:
    kept = {
        name: run
        for name, run in series.runs.items()
        if run.iterations is not None and run.iterations["time_s"].count()
    }
    if not kept:
        return
    boxed, beyond, means = [], [], []
    jobs = [name for run in kept.values() for name in distribution(run.iterations)["name"]]  # type: ignore[arg-type]
    places = series.places(jobs)
    for name, run in kept.items():
        for row in distribution(run.iterations).iter_rows(named=True):  # type: ignore[arg-type]
            number, job = series.number(name), row["name"]
            times = run.iterations.filter(name=job)["time_s"].drop_nulls().to_numpy()  # type: ignore[union-attr]
            numbers = box_numbers(times)
            made = series.row(name, job, **numbers, count=row["count"], max=row["max"], over=row["outliers"])
            boxed.append(places.place(made, job, number))
            far = thinned(times[(times < numbers["low"]) | (times > numbers["high"])])
            shift = spread(far.size, 0.3 * places.reach)
            at = places.at(job, number)
            beyond += [
                series.row(name, job, time=float(time), at=at + off) for time, off in zip(far, shift, strict=True)
            ]
            mean = run.jobs.filter(name=job).select(*_TIMES).row(0)
            if mean[0] is not None:
                values = dict(zip(("mean", "mean_low", "mean_high"), mean, strict=True))
                means.append(places.place(series.row(name, job, **values), job, number))
    yield Chart(
        "iteration-times",
        "Distribution of the time per iteration",
        layers(places.height, *_boxed(series, boxed, beyond, means, places), zoom=("x",)),
        sentences_of(kept, _slowest),
        "Boxes, over all ranks: quartiles and median; whiskers: 1% and 99%; dots: iterations beyond. Diamonds: mean "
        f"time per iteration of the job (of its last rank), with its 95% interval.{series.below()}",
        [
            {key: row[key] for key in ("run", "job", "low", "q1", "median", "q3", "high", "max", "count")}
            for row in boxed
        ],
        picture="iterations",
    )


def _slowest(run: Run) -> str:
    table = distribution(run.iterations)  # type: ignore[arg-type]
    worst = table.with_columns(ratio=table["max"] / table["q50"]).sort("ratio", "name").row(-1, named=True)
    return f"{worst['name']}: median {seconds(worst['q50'])}, the slowest iteration {worst['ratio']:.1f} times that"


def _boxed(
    series: Series, boxed: Sequence[Row], beyond: Sequence[Row], means: Sequence[Row], places: Rows
) -> Iterator[Layer]:
    ends = [row[key] for row in boxed for key in ("low", "high", "max")] + [row["time"] for row in beyond]
    heavy = any(has_tail(row["median"], row["max"]) for row in boxed)
    axis = Axis.of(
        (value for value in ends if value > 0), "Time per iteration", "time", scale="log" if heavy else "auto"
    )
    columns = [
        *series.run_column,
        JOB,
        WORKLOAD,
        *(Column(heading, key, seconds) for key, heading in _QUANTILES.items()),
        Column("iterations", "count", count),
        Column("over 3 x median", "over", count),
    ]
    told, tooltip = described(boxed, columns)
    colour = series.colour(boxed, named=True)
    yield boxes(told, axis, places, color=colour, tooltip=tooltip)
    if beyond:
        far, words = described(beyond, [*series.run_column, JOB, Column("time", "time", seconds)])
        yield dots(far, axis, places, "time", color=colour, tooltip=words)
    if means:
        said, words = described(means, [*series.run_column, JOB, Column("mean", with_interval("mean", seconds))])
        base = chart(said)
        yield whiskers(base, axis, "mean_low", "mean_high", vertical=False, style="ink", y=places.y("at"))
        place = base.encode(x=axis.x("mean"), y=places.y("at"))
        yield place.mark_point(style="paper", shape="diamond", size=60)
        yield place.mark_point(style="ink", shape="diamond", filled=False, size=60, strokeWidth=1.2).encode(
            tooltip=words
        )


_QUANTILES = {"low": "1%", "q1": "25%", "median": "median", "q3": "75%", "high": "99%", "max": "slowest"}


def _course(series: Series) -> Iterator[Chart]:
    rows = [row for name, run in series.runs.items() for row in _points(series, name, run)]
    if not rows:
        return
    at = Axis.of((row["at_s"] for row in rows), "Time after the start", "time", scale="linear")
    time = Axis.of((row["time"] for row in rows if row["time"] > 0), "Time per iteration", "time")
    jobs = list(dict.fromkeys(row["job"] for row in rows))
    shown = f" Of {len(jobs)} jobs the first {MOST_LINES}, or those that are chosen." if len(jobs) > MOST_LINES else ""
    told, tooltip = described(
        rows,
        [
            *series.run_column,
            JOB,
            WORKLOAD,
            Column("iteration", "iteration", count),
            Column("completed", "at_s", seconds),
            Column("time", "time", seconds),
        ],
    )
    base = chart(told)
    colour = series.colour(rows)
    dash = altair.StrokeDash(
        "dash:N", scale=altair.Scale(domain=[0, 1, 2], range=[list(dash) for dash in DASHES]), legend=None
    )
    parameters = [chosen()]
    if series.several:
        selected, wanted = choice("course", "Job", _by_range(rows, jobs))
        base, dashes = base.transform_filter(wanted), {}
        parameters = [selected]
    else:
        base, dashes = base.transform_filter(f"length(chosen) ? {CHOSEN} : datum.first"), {"strokeDash": dash}
    encoding: dict[str, Any] = {"x": at.x("at_s"), "y": time.y("time"), "detail": ["run:N", "job:N"]}
    line = base.mark_line(strokeWidth=1.6).encode(**encoding, color=colour, **dashes)
    points = base.mark_point(size=24 if len(rows) < 1000 else 12, opacity=0.9).encode(
        **encoding, color=colour, tooltip=tooltip
    )
    known = {name: run for name, run in series.runs.items() if any(row["run"] == name for row in rows)}
    yield Chart(
        "iterations",
        "Time per iteration",
        layers(280, line, points.add_params(*parameters)),
        sentences_of(known, _varies),
        f"When a job completed an iteration, and how long it took; without the first one.{shown}"
        + ("" if series.several else " Dashes: jobs of the same colour."),
        [{key: row[key] for key in ("run", "job", "iteration", "at_s", "time")} for row in rows],
        picture="iterations",
    )


def _by_range(rows: Sequence[Row], jobs: Sequence[str]) -> list[str]:
    """The jobs, those whose times vary most first."""
    times: dict[str, list[float]] = {job: [] for job in jobs}
    for row in rows:
        times[row["job"]].append(row["time"])
    return sorted(jobs, key=lambda job: -max(times[job]) / max(min(times[job]), 1e-30))


def _points(series: Series, name: str, run: Run) -> Iterator[dict[str, Any]]:
    """By job: when iterations were completed, and the time per iteration up to each. The first one is left out."""
    alike: dict[str, int] = {}
    present = 0
    for job in series.workloads:
        rows = run.completions.filter(pl.col("name") == job).sort("iteration")
        if rows.height > MOST_POINTS + 1:
            rows = rows[np.unique(np.linspace(0, rows.height - 1, MOST_POINTS + 1).astype(int))]
        shown = iteration_times(rows).drop_nulls("time_s")
        if shown.is_empty():
            continue
        row = series.row(name, job, of=job, first=present < MOST_LINES)
        number = alike.get(row["series"], 0)
        alike[row["series"]] = number + 1
        present += 1
        for iteration, at, time in shown.select("iteration", "at_ps", "time_s").iter_rows():
            values = {"iteration": iteration, "at_s": float(f"{at * PS:.6g}"), "time": float(f"{time:.5g}")}
            yield {**row, "dash": number % len(DASHES), **values}


def _varies(run: Run) -> str:
    spread_ = (
        iteration_times(run.completions)
        .drop_nulls("time_s")
        .group_by("name")
        .agg(low=pl.col("time_s").min(), high=pl.col("time_s").max())
        .sort(pl.col("high") / pl.col("low"), "name")
    )
    most = spread_.row(-1, named=True)
    low, high = seconds(most["low"]), seconds(most["high"])
    return (
        f"{plural(spread_.height, 'job')}: the time per iteration of {most['name']} varies most, from {low} to {high}"
    )
