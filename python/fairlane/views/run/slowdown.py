"""Slowdowns of jobs: W against isolated runs, changes between two runs, and the table of jobs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any

import altair
import numpy as np
import polars as pl

from fairlane.core.errors import ScenarioError
from fairlane.core.wording import listed, percent, plural, seconds, with_half_width
from fairlane.results.culprit import NOTICEABLE, none_slowed, slowed_down
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.notes import few, stops, sufficient
from fairlane.results.run import Run
from fairlane.results.views import spread_of_iterations
from fairlane.study.comparison import compare, summary
from fairlane.views.charts import Axis, Layer, chart, described, drawing, picked, rule, whiskers
from fairlane.views.model import Chart, sentences_of, together
from fairlane.views.rows import EXTREMES, Rows, bars, box_numbers, boxes, dots, spread
from fairlane.views.run.series import JOB, WORKLOAD, Series, chosen, highlighted
from fairlane.views.tables import Bad, Column, Faint, Good, Row, Table, change, columns, with_change, with_interval

PICTURES = {
    "slowdown": "throughput change of each job against its isolated run",
    "comparison": "changes of each job between two runs",
}
"""Its pictures, and what they show."""
MOST_BARS = 48
"""With more jobs than this, a row is a workload and a dot is a job."""
MOST_CHANGED = 60
"""Jobs that have a bar of their change between two runs: those that changed most."""
ABOUT_W = (
    "W: throughput change against the isolated run, the same job alone on its hosts. ±: 95% interval over iterations."
)
_W = Column("W", with_change("w"))
_ROOM = 0.12
"""Room for numbers at the end of bars, as a share of the axis."""


def title(compared: pl.DataFrame) -> str:
    """Say how many of the jobs with enough iterations are slowed down, and which one most."""
    jobs = compared.filter(pl.col("ten_iterations_ps").is_null())
    slowed = slowed_down(jobs)
    if slowed.is_empty():
        few_of_all = f"Fewer than {FEW_ITERATIONS} iterations: too few to tell how much jobs are slowed down"
        return none_slowed(compared) or few_of_all
    worst = slowed.row(0, named=True)
    verb = "is" if slowed.height == 1 else "are"
    of = plural(jobs.height, "job")
    of = of if jobs.height == compared.height else f"the {of} with enough iterations"
    return f"{slowed.height} of {of} {verb} slowed down, {worst['name']} most: {change(worst['w'])}"


def notes(jobs: pl.DataFrame) -> Iterator[str]:
    """Name jobs that have no W, and those that have one over few iterations."""
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
    """The changes between two runs, and W."""
    yield from _comparison(series)
    yield from _slowdowns(series)


def _slowdowns(series: Series) -> Iterator[Chart]:
    """W by job, if any job can be compared with its isolated run."""
    rows = [
        series.row(name, job["name"], few=job["ten_iterations_ps"] is not None)
        | {key: job[key] for key in ("w", "w_low", "w_high")}
        for name, _, job in series.jobs()
        if job["w"] is not None
    ]
    if not rows:
        return
    axis = Axis.over(rows, "w w_low w_high", "Throughput change against the isolated run (W)", "change", also=[0.0])
    jobs = list({row["job"] for row in rows})
    compared = series.having(lambda run: run.jobs["w"].count())
    told = [*series.run_column, JOB, WORKLOAD, _W, Column("few iterations", "few")]
    colour = series.colour(rows, named=True)
    if len(jobs) <= MOST_BARS:
        places, marks = series.places(jobs), "Whiskers: 95% intervals over iterations."
        placed = [places.place(row, row["job"], series.number(row["run"])) for row in rows]
        made = change_bars(placed, axis, places, "w", told, lambda row: row["few"], dashed=True, color=colour)
    else:
        places, marks = _by_workload(series), "A dot is a job; boxes: quartiles, median, range."
        made = _dots(series, rows, axis, places, told, color=colour)
    yield Chart(
        "slowdown",
        "Throughput change against the isolated run (W)",
        drawing(places.height, made, zoom=("x",)),
        sentences_of(compared, lambda run: title(run.jobs.drop_nulls("w"))),
        " ".join([marks + series.below(), *(line for run in compared.values() for line in notes(run.jobs))]),
        picked(rows, "run job workload w w_low w_high few"),
    )


def change_bars(
    rows: Sequence[Row],
    axis: Axis,
    places: Rows,
    field: str,
    columns: Sequence[Column],
    pale: Callable[[Row], bool],
    *,
    dashed: bool = False,
    **encoding: Any,
) -> Iterator[Layer]:
    """Bars of a relative change from zero, with its interval and its number at the end.

    Those of some rows are ``pale``, with a ``dashed`` edge if wanted.
    """
    room = _ROOM * (axis.high - axis.low)
    gains = [row[field] > 0 for row in rows]
    axis = replace(axis, low=axis.low - room * (not all(gains)), high=axis.high + room * any(gains))
    ends = [
        max(row[field], row[f"{field}_high"] or row[field])
        if row[field] > 0
        else min(row[field], row[f"{field}_low"] or row[field])
        for row in rows
    ]
    texts = [
        {**row, "zero": 0.0, "end": end, "number": change(row[field])} for row, end in zip(rows, ends, strict=True)
    ]
    told, tooltip = described(texts, columns)
    kinds = {False: [row for row in told if not pale(row)], True: [row for row in told if pale(row)]}
    for is_pale, some in kinds.items():
        if not some:
            continue
        opacity = highlighted(most=0.5 if is_pale else 1.0)
        bar = bars(some, axis, places, "zero", field, tooltip=tooltip, opacity=opacity, **encoding)
        yield bar.add_params(chosen()) if is_pale or not kinds[True] else bar
        if is_pale and dashed:
            edge = chart(some).mark_rect(style="ink", filled=False, strokeDash=[3, 3])
            yield edge.encode(x=axis.x("zero"), x2=altair.X2(f"{field}:Q"), **places.edges)
    base = chart(told)
    yield whiskers(base, axis, f"{field}_low", f"{field}_high", vertical=False, y=places.y("at"))
    yield rule(0.0, axis, vertical=True)
    looks: dict[str, dict[str, Any]] = {"> 0": {"align": "left", "dx": 6}, "<= 0": {"align": "right", "dx": -6}}
    for side, look in looks.items():
        text = base.transform_filter(f"datum.{field} {side}").mark_text(style="text", fontSize=11, **look)
        yield text.encode(x=axis.x("end"), y=places.y("at"), text=altair.Text("number:N"))


def _by_workload(series: Series) -> Rows:
    """A row for each workload, for many jobs."""
    every = list(series.workloads.values())
    names = list(dict.fromkeys(every))
    return Rows(names, len(series.runs), [[name, plural(every.count(name), "job")] for name in names])


def _dots(
    series: Series, rows: Sequence[Row], axis: Axis, places: Rows, columns: Sequence[Column], **encoding: Any
) -> Iterator[Layer]:
    group_of = itemgetter("run", "workload")
    dotted, boxed = [], []
    for (run, workload), members in groupby(sorted(rows, key=group_of), group_of):
        group, number = list(members), series.number(run)
        spots = places.at(workload, number) + spread(len(group), 0.8 * places.reach)
        dotted += [{**row, "at": at} for row, at in zip(group, spots.tolist(), strict=True)]
        numbers = box_numbers(np.asarray([row["w"] for row in group]), EXTREMES)
        boxed.append(places.place({**group[0], **numbers}, workload, number))
    yield boxes(boxed, axis, places, **encoding)
    told, tooltip = described(dotted, columns)
    yield rule(0.0, axis, vertical=True)
    dot = dots(told, axis, places, "w", tooltip=tooltip, opacity=highlighted(0.1, 0.8), **encoding)
    yield dot.add_params(chosen())


def _comparison(series: Series) -> Iterator[Chart]:
    """Of exactly two runs with a job in common: the change from the second to the first, as ``compare`` computes it."""
    if len(series.runs) != 2:
        return
    (first, run), (second, other) = series.runs.items()
    try:
        compared = compare(other, run)
    except ScenarioError:  # nothing in common
        return
    order = pl.col("change").abs()
    table = compared.table.drop_nulls("change").sort(order, "name", descending=[True, False]).head(MOST_CHANGED)
    if table.is_empty():
        return
    places = Rows(table["name"].to_list())
    rows = [
        places.place(series.row(first, row["name"]) | row, row["name"])
        for row in table.drop("workload").iter_rows(named=True)
    ]
    axis = Axis.over(rows, "change change_low change_high", "Change of throughput", "change", also=[0.0])
    told = [JOB, WORKLOAD, Column("of", "of"), *columns(seconds, before="before", after="after")]
    told += [Column("change", with_change("change")), Column("beyond noise", "beyond_noise")]
    without = [*compared.without, *compared.only_in_one, *compared.failed]
    left = f" Not compared: {listed(without)}." if without else ""
    made = change_bars(rows, axis, places, "change", told, lambda row: not row["beyond_noise"])
    yield Chart(
        "comparison",
        f"Changes from {second} to {first}",
        drawing(places.height, made, zoom=("x",)),
        summary(compared),
        f"Throughput of {first} against that of {second}, over the iterations that both completed; of jobs without "
        f"iterations, the mean message latency, positive where it is lower. Pale: within noise.{left}",
        picked(rows, "job workload of before after change change_low change_high beyond_noise"),
    )


def tables(series: Series) -> Iterator[Table]:
    """One row per job: work, where its time went, and its work relative to being alone."""
    shown = [
        *series.run_column,
        Column("job", "name", left=True),
        Column("workload", "workload", left=True, wrap=True),
        *columns(str, ranks="ranks", iterations="iterations"),
        Column("time per\niteration", with_interval("seconds_per_iteration", seconds)),
        *columns(percent, compute_share="time in\ncompute", communication_share="time\nin MPI"),
        Column("W", _ColouredW("w")),
    ]
    rows = together(series.runs, "run", _jobs).to_dicts()
    data = together(series.runs, "run", lambda run: run.jobs)
    sentence = f"{data['w'].count()} of {plural(len(rows), 'job')} are compared with their isolated run."
    yield Table(shown, rows, "Jobs", note=ABOUT_W, sentence=sentence, data=data)


def _jobs(run: Run) -> pl.DataFrame:
    """The jobs with the spread of their iterations, and whether they failed."""
    failed = [] if run.failures is None else run.failures.filter(~pl.col("isolated"))["job"].to_list()
    jobs = run.jobs.join(spread_of_iterations(run.completions), on="name", how="left", maintain_order="left")
    return jobs.with_columns(failed=pl.col("job").is_in(failed))


class _ColouredW:
    """W of a row with its interval, in colour where it is beyond noise; rows are sorted by it."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __call__(self, job: Row) -> str | None:
        if job["failed"]:
            return Bad("failed")
        w = job["w"]
        if w is None:
            return None
        low, high = job["w_low"], job["w_high"]
        text = with_half_width(w, low, high, change)
        if abs(w) < NOTICEABLE or (low is not None and low <= 0 <= high):
            return Faint(text)
        return Bad(text) if w < 0 else Good(text)
