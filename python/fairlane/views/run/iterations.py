"""Times of iterations: their distribution by job, and their course."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import altair
import numpy as np
import polars as pl

from fairlane.core.tables import PS
from fairlane.core.wording import plural, seconds
from fairlane.results.run import Run
from fairlane.results.views import distribution, iteration_times
from fairlane.views.charts import Axis, Layer, chart, choice, course, described, drawing, picked, whiskers
from fairlane.views.model import Chart, sentences_of, together
from fairlane.views.rows import TAILS, Rows, boxes, dots, strips
from fairlane.views.run.series import BY_JOB, CHOSEN, JOB, MOST_LINES, WORKLOAD, Series, chosen
from fairlane.views.style import has_tail
from fairlane.views.tables import Column, Row, Table, columns, count, with_interval

PICTURES = {"iterations": "times of iterations: distribution by job, and their course"}
"""Its pictures, and what they show."""
MOST_POINTS = 160
"""Points of a job's line; of more iterations, each point is the mean of some successive ones."""
DASHES = ((1, 0), (6, 3), (2, 2))
"""Of the lines of jobs that have the same colour."""


def charts(series: Series) -> Iterator[Chart]:
    """The distribution where the iterations of ranks were kept, and the course of iterations."""
    yield from _distributions(series)
    yield from _course(series)


def _kept(series: Series) -> dict[str, Run]:
    """The runs that have the iterations of ranks."""
    return series.having(lambda run: run.iterations is not None and run.iterations["time_s"].count())


def _times(run: Run) -> pl.DataFrame:
    assert run.iterations is not None, "invariant: they were kept"
    return run.iterations.drop_nulls("time_s")


def tables(series: Series) -> Iterator[Table]:
    """One row per job whose iterations were kept: quantiles out to 99%, the slowest, and how many are far out."""
    if not (kept := _kept(series)):
        return
    rows = together(kept, "run", lambda run: distribution(_times(run))).to_dicts()
    times = {"q1": "1%", "q25": "25%", "q50": "median", "q75": "75%", "q99": "99%", "max": "slowest"}
    shown = [*series.run_column, Column("job", "name", left=True), Column("iterations", "count", str)]
    shown += [*columns(seconds, **times), Column("over 3 x\nmedian", "outliers", str)]
    far = sum(row["outliers"] for row in rows)
    sentence = f"{plural(far, 'iteration')} of {sum(row['count'] for row in rows):,} over 3 times the median."
    yield Table(shown, rows, "Time per iteration, over all ranks", sentence=sentence)


def _distributions(series: Series) -> Iterator[Chart]:
    if not (kept := _kept(series)):
        return
    every = together(kept, "run", lambda run: distribution(_times(run)))
    places = series.places(every["name"].to_list())
    groups, means = [], []
    for of in every.iter_rows(named=True):
        name, job, number = of["run"], of["name"], series.number(of["run"])
        row = series.row(name, job, count=of["count"], max=of["max"], over=of["outliers"])
        groups.append((row, _times(kept[name]).filter(name=job)["time_s"].to_numpy(), job, number))
        mean = pl.col("^seconds_per_iteration(_low|_high)?$").name.replace("seconds_per_iteration", "mean")
        (mean_of,) = kept[name].jobs.filter(name=job).select(mean).to_dicts()
        means += [] if mean_of["mean"] is None else [places.place(series.row(name, job, **mean_of), job, number)]
    boxed, beyond = strips(groups, places, TAILS, field="time", reach=0.3, beyond=True)
    yield Chart(
        "iteration-times",
        "Distribution of the time per iteration",
        drawing(places.height, _boxed(series, boxed, beyond, means, places), zoom=("x",)),
        sentences_of(kept, _slowest),
        "Boxes, over all ranks: quartiles and median; whiskers: 1% and 99%; dots: iterations beyond. Diamonds: mean "
        f"time per iteration of the job (of its last rank), with its 95% interval.{series.below()}",
        picked(boxed, "run job low q1 median q3 high max count"),
        picture="iterations",
    )


def _slowest(run: Run) -> str:
    table = distribution(_times(run))
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
    who = [*series.run_column, JOB]
    quantiles = {"low": "1%", "q1": "25%", "median": "median", "q3": "75%", "high": "99%", "max": "slowest"}
    numbers = columns(count, count="iterations", over="over 3 x median")
    told, tooltip = described(boxed, [*who, WORKLOAD, *columns(seconds, **quantiles), *numbers])
    colour = series.colour(boxed, named=True)
    yield boxes(told, axis, places, color=colour, tooltip=tooltip)
    if beyond:
        far, hints = described(beyond, [*who, Column("time", "time", seconds)])
        yield dots(far, axis, places, "time", color=colour, tooltip=hints)
    if means:
        said, hints = described(means, [*who, Column("mean", with_interval("mean", seconds))])
        base = chart(said)
        yield whiskers(base, axis, "mean_low", "mean_high", vertical=False, y=places.y("at"))
        place = base.encode(x=axis.x("mean"), y=places.y("at"))
        yield place.mark_point(style="paper", shape="diamond", size=60)
        hollow = place.mark_point(style="ink", shape="diamond", filled=False, size=60, strokeWidth=1.2)
        yield hollow.encode(tooltip=hints)


def _course(series: Series) -> Iterator[Chart]:
    rows = [row for name, run in series.runs.items() for row in _points(series, name, run)]
    if not rows:
        return
    jobs = list(dict.fromkeys(row["job"] for row in rows))
    shown = f" Of {len(jobs)} jobs the first {MOST_LINES}, or those that are chosen." if len(jobs) > MOST_LINES else ""
    known = {name: run for name, run in series.runs.items() if any(row["run"] == name for row in rows)}
    yield Chart(
        "iterations",
        "Time per iteration",
        drawing(280, _lines(series, rows, jobs)),
        sentences_of(known, _varies),
        f"When a job completed an iteration, and how long it took; without the first one.{shown}"
        + ("" if series.several else " Dashes: jobs of the same colour."),
        picked(rows, "run job iteration at_s time"),
        picture="iterations",
    )


def _lines(series: Series, rows: Sequence[Row], jobs: Sequence[str]) -> Iterator[Layer]:
    at = Axis.over(rows, "at_s", "Time after the start", "time", scale="linear")
    time = Axis.of((row["time"] for row in rows if row["time"] > 0), "Time per iteration", "time")
    told = [*series.run_column, JOB, WORKLOAD, Column("iteration", "iteration", count)]
    told += columns(seconds, at_s="completed", time="time")
    point = {"size": 24 if len(rows) < 1000 else 12, "opacity": 0.9}
    channels: dict[str, Any] = {"x": at.x("at_s"), "y": time.y("time"), "color": series.colour(rows)}
    line, points = course(rows, told, {"strokeWidth": 1.6}, point, detail=BY_JOB, **channels)
    if series.several:
        parameter, wanted = choice("course", "Job", _by_range(rows, jobs))
    else:
        parameter, wanted = chosen(), f"length(chosen) ? {CHOSEN} : datum.first"
        scale = altair.Scale(domain=[0, 1, 2], range=[list(dash) for dash in DASHES])
        line = line.encode(strokeDash=altair.StrokeDash("dash:N", scale=scale, legend=None))
    yield line.transform_filter(wanted)
    yield points.transform_filter(wanted).add_params(parameter)


def _by_range(rows: Sequence[Row], jobs: Sequence[str]) -> list[str]:
    """The jobs, those whose times vary most first."""
    times: Mapping[str, list[float]] = {job: [] for job in jobs}
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
    times = iteration_times(run.completions).drop_nulls("time_s").group_by("name")
    jobs = times.agg(low=pl.col("time_s").min(), high=pl.col("time_s").max())
    most = jobs.sort(pl.col("high") / pl.col("low"), "name").row(-1, named=True)
    range_ = f"from {seconds(most['low'])} to {seconds(most['high'])}"
    return f"{plural(jobs.height, 'job')}: the time per iteration of {most['name']} varies most, {range_}"
