"""What a study varies besides treatments: time per iteration, W and improvement by condition.

Dots are jobs at single placements and seeds; bars are their means with intervals; colours are treatments. Rows are
conditions of each workload, or of all together if there are many. With more than ``MOST_CONDITIONS`` conditions there
is a row for each value of each parameter, over all others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any

import altair
import polars as pl

from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.statistics import COVERAGE, Estimate
from fairlane.study.conditions import CONDITION, condition_of, varied
from fairlane.study.replication import estimate
from fairlane.views.charts import Axis, Kind, Layer, chart, described, layers, rule, whiskers
from fairlane.views.model import Chart
from fairlane.views.rows import Rows
from fairlane.views.study.effects import placement_name
from fairlane.views.study.series import IMPROVEMENT, RUN, Compared, Series, W, ends
from fairlane.views.tables import Column, Write, change, with_change, with_interval
from fairlane.wording import plural, seconds, significant

MOST_CONDITIONS, MOST_WORKLOADS = 16, 4
MOST_DOTS = 2000
"""Of more jobs in a chart those that are evenly spaced have a dot."""
SECONDS = "seconds_per_iteration"
RELATIVE = "relative"
"""Time per iteration over the job's median in default runs: what jobs of many workloads have in common."""
TIMED = "timed"  # whether a job has a time per iteration anywhere: some workloads have no iterations
_EXPORTED = ("run", "label", "job", "where", "value", "value_low", "value_high")
"""Fields of rows in the CSV; the mean of a label has no job."""
_LETTERS = 34
"""Of a line of a label."""


@dataclass(frozen=True)
class _Measure:
    """What a chart shows of each job."""

    key: str
    words: str
    kind: Kind
    form: Write
    at: float
    """Where there is a line: no change."""


_MEASURES = {
    SECONDS: _Measure(SECONDS, "Time per iteration", "time", seconds, 0.0),
    RELATIVE: _Measure(RELATIVE, "Time per iteration over the job's median", "number", significant, 1.0),
    "w": _Measure("w", W, "change", change, 0.0),
    "improvement": _Measure("improvement", IMPROVEMENT, "change", change, 0.0),
}
_NAMES = {SECONDS: "time", RELATIVE: "time", "w": "w", "improvement": "improvement"}


def condition_charts(compared: Compared) -> Iterator[Chart]:
    """A chart for each measure; none if no study varies anything, or no job completed an iteration."""
    conditions = list(dict.fromkeys(label for one in compared.series for label in one.work[CONDITION]))
    if len(conditions) < 2 or not any(one.work[SECONDS].count() for one in compared.series):
        return
    works = _related(compared)
    labels, several = _rows(compared, works, conditions)
    measures = [_MEASURES[RELATIVE if several else SECONDS]]
    measures += [_MEASURES["w"]] if compared.co_running else []
    measures += [_MEASURES["improvement"]] if compared.treated else []
    note = _note(compared, works, weak=len(measures) > 1)
    words = {measure.key: _sentence(compared, works, conditions, measure.key) for measure in measures}
    first = words["w" if "w" in words else measures[0].key]
    for measure in measures:
        made = _chart(compared, works, labels, measure, f"{words[measure.key]}.", note)
        if made:
            yield replace(made, headline=first)


def _related(compared: Compared) -> list[pl.DataFrame]:
    """The rows of each series, with times over the median of the job in default runs of its study."""
    found = []
    for one in compared.series:
        default = [other.work for other in compared.series if other.is_default and other.study == one.study]
        own = pl.concat([other.work for other in compared.series if other.study == one.study])
        median = pl.concat(default).group_by("name").agg(pl.col(SECONDS).median().alias("median")) if default else None
        timed = own.group_by("name").agg((pl.col(SECONDS).count() > 0).alias(TIMED))
        work = one.work.join(timed, on="name", how="left", maintain_order="left")
        if median is None:
            work = work.with_columns(median=pl.lit(None, pl.Float64))
        else:
            work = work.join(median, on="name", how="left", maintain_order="left")
        relative = [
            (pl.col(f"{SECONDS}{end}") / pl.col("median")).alias(f"{RELATIVE}{end}") for end in ("", "_low", "_high")
        ]
        found.append(work.with_columns(relative))
    return found


_Labels = dict[str, pl.Expr]
"""The rows of a chart by label: what chooses the rows of the table."""


def _rows(compared: Compared, works: Sequence[pl.DataFrame], conditions: Sequence[str]) -> tuple[_Labels, bool]:
    """Rows by label, and whether any has jobs of several workloads."""
    names = list(dict.fromkeys(name for work in works for name in work["workload"]))
    if len(conditions) > MOST_CONDITIONS:
        return dict(_by_parameter(compared, works)), len(names) > 1
    if len(names) > MOST_WORKLOADS or len(names) == 1:
        return {name: pl.col(CONDITION) == name for name in conditions}, len(names) > 1
    return {
        f"{name.replace('_', ' ')}, {condition}": (pl.col("workload") == name) & (pl.col(CONDITION) == condition)
        for name in names
        for condition in conditions
    }, False


def _by_parameter(compared: Compared, works: Sequence[pl.DataFrame]) -> Iterator[tuple[str, pl.Expr]]:
    names = dict.fromkeys(name for study in compared.studies.values() for name in varied(study.work))
    for name in names:
        values = dict.fromkeys(value for work in works if name in work.columns for value in work[name])
        for value in values:
            shown = condition_of({name: value})
            yield f"{name}: {shown}", pl.col(name).eq_missing(pl.lit(value))


def _chart(
    compared: Compared, works: Sequence[pl.DataFrame], labels: _Labels, measure: _Measure, words: str, note: str
) -> Chart | None:
    places = Rows(list(labels), len(works), [wrap(label, _LETTERS) or [""] for label in labels])
    jobs: list[dict[str, Any]] = []
    means: list[dict[str, Any]] = []
    for at, (series, work) in enumerate(zip(compared.series, works, strict=True)):
        for label, chosen in labels.items():
            if any(name not in work.columns for name in chosen.meta.root_names()):
                continue
            rows = work.filter(chosen)
            shared = {"run": series.name, "label": label}
            mean = mean_of(rows, measure.key, series.unit)
            if mean is not None:
                means.append(places.place({**shared, **ends(mean)}, label, at))
            jobs += [places.place({**shared, **row}, label, at) for row in _dots(series, rows, measure.key)]
    values = [row[end] for row in (*jobs, *means) for end in ("value", "value_low", "value_high")]
    if not any(value is not None for value in values):
        return None
    axis = Axis.of([measure.at, *values], measure.words, measure.kind, scale="linear", zero=measure.kind == "time")
    form = with_change("value") if measure.kind == "change" else with_interval("value", measure.form)
    value = Column(measure.words, form)

    def spec() -> altair.LayerChart:
        told, tooltip = described(
            jobs[:: -(-len(jobs) // MOST_DOTS)], [RUN, Column("job", "job"), Column("at", "where"), value]
        )
        shown, of_mean = described(means, [RUN, Column("of", "label"), Column(f"mean {value.header.lower()}", form)])
        drawn = {row["run"] for row in jobs}
        coloured = compared.colour(only=[name for name in compared.names if name in drawn])
        dots = chart(told).encode(y=places.y("at"), color=coloured)
        base = chart(shown).encode(y=places.y("at"))
        every: list[Layer] = [rule(measure.at, axis, vertical=True)]
        solid, weak = (
            dots.transform_filter(f"{sign}datum.weak").encode(x=axis.x("value"), tooltip=tooltip) for sign in ("!", "")
        )
        every += [solid.mark_point(size=32, opacity=0.6)]
        every += (
            [weak.mark_point(size=32, opacity=0.7, filled=False, strokeWidth=1.4)]
            if any(row["weak"] for row in jobs)
            else []
        )
        every += [
            whiskers(base, axis, "value_low", "value_high", vertical=False),
            base.mark_rule(style="ink", strokeWidth=2.6).encode(
                x=axis.x("value"), y=places.y("top"), y2="bottom:Q", tooltip=of_mean
            ),
        ]
        return layers(places.height, *every, zoom=("x",))

    data = [{key: row.get(key) for key in _EXPORTED} for row in (*means, *jobs)]
    name = f"conditions_{_NAMES[measure.key]}"
    return Chart(name, f"{measure.words} by condition", spec, words, note, data, picture="conditions")


def _note(compared: Compared, works: Sequence[pl.DataFrame], *, weak: bool) -> str:
    """What the marks are; ``weak`` if there is W."""
    interval = f"its {COVERAGE:.0%} interval over {compared.units}"
    note = [f"A dot is a job at one placement and seed; an upright bar the mean, with {interval}."]
    if weak and any(work.filter(pl.col("w").is_not_null())["ten_iterations_ps"].count() for work in works):
        note.append(f"Hollow: W over fewer than {FEW_ITERATIONS} iterations, not reliable.")
    if sum(work.height for work in works) > MOST_DOTS:
        note.append(f"Of more than {MOST_DOTS:,} jobs, evenly spaced ones have a dot.")
    if any(work[SECONDS].null_count() for work in works):
        note.append("There is no mean time over jobs of which one has fewer than two iterations.")
    return " ".join(note)


def _dots(series: Series, rows: pl.DataFrame, key: str) -> Iterator[dict[str, Any]]:
    """A row for each job that has a value; weak where W compares too few iterations."""
    names = series.results.meta.placements
    for row in rows.drop_nulls(key).iter_rows(named=True):
        where = f"{placement_name(names, row['placement'])}, seed {row['seed']}"
        value = {f"value{end}": row.get(f"{key}{end}") for end in ("", "_low", "_high")}
        weak = key == "w" and row["ten_iterations_ps"] is not None
        yield {"job": row["name"], "where": where, **value, "weak": weak}


def mean_of(rows: pl.DataFrame, measure: str, unit: str) -> Estimate | None:
    """The mean of a condition over replicates; of times None if a run was too slow to have one."""
    times = measure in (SECONDS, RELATIVE)
    return estimate(rows.filter(pl.col(TIMED)) if times else rows, measure, unit, complete=times)


def _sentence(compared: Compared, works: Sequence[pl.DataFrame], conditions: Sequence[str], key: str) -> str:
    """What differs most between conditions: in the default runs, or of improvements in the others."""
    treated = key == "improvement"
    every = zip(compared.series, works, strict=True)
    pairs = [(one, work) for one, work in every if one.is_default != treated]
    comparable = [work.filter(pl.col("w").is_not_null()) for _, work in pairs]
    weak = sum(rows["ten_iterations_ps"].count() for rows in comparable)
    if key == "w" and weak > sum(rows.height for rows in comparable) / 2:
        return f"{plural(len(conditions), 'condition')} compared, with too few iterations for a reliable W"
    means = []
    for one, work in pairs:
        for (label,), rows in work.group_by(CONDITION, maintain_order=True):
            mean = mean_of(rows, key, one.unit)
            of = (one.study if compared.several else None, str(label), one.treatment if treated else None)
            means += [(mean.value, ", ".join(filter(None, of)))] if mean else []
    if not means:
        return f"{plural(len(conditions), 'condition')} compared"
    (least, low), (most, high) = min(means), max(means)
    if key == RELATIVE:
        return f"Iterations take {most / least:.2f} times as long with {high} as with {low}"
    names = {SECONDS: "Mean time per iteration", "w": "Mean W", "improvement": "Mean improvement"}
    form = _MEASURES[key].form
    return f"{names[key]} from {form(least)} ({low}) to {form(most)} ({high})"
