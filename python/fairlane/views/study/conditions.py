"""Conditions of a study besides treatments: time per iteration, W and improvement by condition.

Dots are jobs at single placements and seeds; bars are their means with intervals; colours are treatments. Rows are
conditions of each workload, or of all together if there are many. With more than ``MOST_CONDITIONS`` conditions there
is a row for each value of each parameter, over all others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from textwrap import wrap

import altair
import polars as pl

from fairlane.core.statistics import COVERAGE, Estimate
from fairlane.core.wording import plural, seconds, significant
from fairlane.results.derive import interval
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.study.conditions import CONDITION, condition_of, varied
from fairlane.study.replicates import estimate
from fairlane.views.charts import Axis, Kind, Layer, ends_of, layers, rule, whiskers, with_tooltip
from fairlane.views.model import Chart
from fairlane.views.rows import Rows
from fairlane.views.study.series import DEFAULT, IMPROVEMENT, RUN, Compared, W
from fairlane.views.tables import INTERVAL, Column, Write, change, with_change, with_interval

MOST_CONDITIONS, MOST_WORKLOADS = 16, 4
MOST_DOTS = 2000
"""Of more jobs in a chart those that are evenly spaced have a dot."""
SECONDS = "seconds_per_iteration"
RELATIVE = "relative"
"""Time per iteration over the job's median in default runs: what jobs of many workloads have in common."""
_LETTERS = 34
"""Of a line of a label."""


@dataclass(frozen=True)
class _Measure:
    """Measure of each job that a chart shows."""

    key: str
    name: str
    """Name of the chart."""
    words: str
    mean: str
    kind: Kind
    form: Write
    at: float = 0.0
    """Place of a line: no change."""

    @property
    def is_time(self) -> bool:
        """Whether it is one of times, of which some jobs have none."""
        return self.name == "time"


_SECONDS = _Measure(SECONDS, "time", "Time per iteration", "Mean time per iteration", "time", seconds)
_RELATIVE = _Measure(RELATIVE, "time", "Time per iteration over the job's median", "", "number", significant, 1.0)
_W = _Measure("w", "w", W, "Mean W", "change", change)
_IMPROVEMENT = _Measure("improvement", "improvement", IMPROVEMENT, "Mean improvement", "change", change)


def condition_charts(compared: Compared) -> Iterator[Chart]:
    """A chart for each measure; none if no study varies anything, or no job completed an iteration."""
    if not compared.studies:
        return
    work = _related(compared)
    conditions = work[CONDITION].n_unique()
    if conditions < 2 or not work[SECONDS].count():
        return
    rows, several = _labelled(compared, work, conditions)
    measures = [_RELATIVE if several else _SECONDS]
    measures += [_W] if compared.co_running else []
    measures += [_IMPROVEMENT] if compared.treated else []
    note = _note(compared, work, weak=len(measures) > 1)
    sentences = [_sentence(compared, work, conditions, measure) for measure in measures]
    first = sentences[1 if compared.co_running else 0]
    for measure, sentence in zip(measures, sentences, strict=True):
        made = _chart(compared, rows, measure, f"{sentence}.", note)
        if made:
            yield replace(made, headline=first)


def _related(compared: Compared) -> pl.DataFrame:
    """The rows of all series, with times over the median of the job in default runs of its study.

    ``timed`` is whether a job has a time per iteration anywhere: some workloads have no iterations.
    """
    median = pl.col(SECONDS).filter(pl.col("treatment") == DEFAULT).median()
    relative = [
        (pl.col(f"{SECONDS}{end}") / median).over("study", "name").alias(f"{RELATIVE}{end}") for end in INTERVAL
    ]
    return compared.work.with_columns(*relative, timed=pl.col(SECONDS).count().over("study", "name") > 0)


def _labelled(compared: Compared, work: pl.DataFrame, conditions: int) -> tuple[pl.DataFrame, bool]:
    """The rows of all series by the ``label`` of their row in the chart, and whether one has several workloads.

    Labels are in order; of several workloads, those of each are next to each other.
    """
    workloads = work["workload"].unique(maintain_order=True).to_list()
    label, several = pl.col(CONDITION), len(workloads) > 1
    if several and len(workloads) <= MOST_WORKLOADS and conditions <= MOST_CONDITIONS:
        label, several = pl.format("{}, {}", pl.col("workload").str.replace_all("_", " "), label), False
    rows = work.with_columns(label=label)
    if conditions > MOST_CONDITIONS:
        names = dict.fromkeys(name for study in compared.studies.values() for name in varied(study.work))
        labels = [
            table.select("run", "point", label=pl.lit(f"{name}: ") + _shown(table[name]))
            for name in names
            for table in compared.tables.values()
            if name in table.columns
        ]
        rows = (
            pl.concat(labels).unique(maintain_order=True).join(work, on=["run", "point"], maintain_order="left_right")
        )
    order = pl.col("workload").replace_strict(workloads, range(len(workloads)), return_dtype=pl.Int64)
    return (rows if several or len(workloads) == 1 else rows.sort(order, maintain_order=True)), several


def _shown(values: pl.Series) -> pl.Series:
    return pl.Series([condition_of({"": value}) for value in values], dtype=pl.String)


def _chart(compared: Compared, rows: pl.DataFrame, measure: _Measure, sentence: str, note: str) -> Chart | None:
    labels = rows["label"].unique(maintain_order=True).to_list()
    places = Rows(labels, len(compared.names), [wrap(label, _LETTERS) or [""] for label in labels])
    series = {name: at for at, name in enumerate(compared.names)}
    means = [
        places.place({"run": run, "label": label, **interval("value", mean)}, label, series[run])
        for (run, label), group in rows.group_by("run", "label", maintain_order=True)
        for mean in [mean_of(group, measure)]
        if mean is not None
    ]
    weak = pl.lit(measure.key == "w") & pl.col("ten_iterations_ps").is_not_null()
    ends = {f"value{end}": f"{measure.key}{end}" for end in INTERVAL}
    where = pl.format("{}, seed {}", "place", "seed")
    known = rows.drop_nulls(measure.key).select("run", "label", where=where, **ends, job="name", weak=weak)
    jobs = [places.place(row, row["label"], series[row["run"]]) for row in known.to_dicts()]
    if not jobs and not means:
        return None
    values, zero = [measure.at, *ends_of([*jobs, *means])], measure is _SECONDS
    axis = Axis.of(values, measure.words, measure.kind, scale="linear", zero=zero)
    form = with_change("value") if measure.kind == "change" else with_interval("value", measure.form)

    def spec() -> altair.LayerChart:
        told = [RUN, Column("job", "job"), Column("at", "where"), Column(measure.words, form)]
        dots, tooltip = with_tooltip(jobs[:: -(-len(jobs) // MOST_DOTS)], told)
        base, of_mean = with_tooltip(means, [RUN, Column("of", "label"), Column(f"mean {measure.words.lower()}", form)])
        with_dot = {row["run"] for row in jobs}
        coloured = compared.colour(only=[name for name in compared.names if name in with_dot])
        dots = dots.encode(x=axis.x("value"), y=places.y("at"), color=coloured, tooltip=tooltip)
        every: list[Layer] = [
            rule(measure.at, axis, vertical=True),
            dots.transform_filter("!datum.weak").mark_point(size=32, opacity=0.6),
        ]
        if any(row["weak"] for row in jobs):
            weak_dots = dots.transform_filter("datum.weak")
            every.append(weak_dots.mark_point(size=32, opacity=0.7, filled=False, strokeWidth=1.4))
        upright = base.mark_rule(style="ink", strokeWidth=2.6)
        every.append(whiskers(base.encode(y=places.y("at")), axis, vertical=False))
        every.append(upright.encode(x=axis.x("value"), y=places.y("top"), y2="bottom:Q", tooltip=of_mean))
        return layers(places.height, *every, zoom=("x",))

    exported = ("run", "label", "job", "where", *ends)
    data = [{key: row.get(key) for key in exported} for row in (*means, *jobs)]  # the mean of a label has no job
    title = f"{measure.words} by condition"
    return Chart(f"conditions_{measure.name}", title, spec, sentence, note, data, picture="conditions")


def _note(compared: Compared, work: pl.DataFrame, *, weak: bool) -> str:
    """Explain the marks; ``weak`` if there is W."""
    interval = f"its {COVERAGE:.0%} interval over {compared.units}"
    note = [f"A dot is a job at one placement and seed; an upright bar the mean, with {interval}."]
    if weak and work.drop_nulls("w")["ten_iterations_ps"].count():
        note.append(f"Hollow: W over fewer than {FEW_ITERATIONS} iterations, not reliable.")
    if work.height > MOST_DOTS:
        note.append(f"Of more than {MOST_DOTS:,} jobs, evenly spaced ones have a dot.")
    if work[SECONDS].null_count():
        note.append("There is no mean time over jobs of which one has fewer than two iterations.")
    return " ".join(note)


def mean_of(rows: pl.DataFrame, measure: _Measure) -> Estimate | None:
    """The mean of a condition over replicates; of times None if a run was too slow to have one."""
    rows = rows.filter("timed") if measure.is_time else rows
    return estimate(rows, measure.key, rows["unit"][0], complete=measure.is_time) if rows.height else None


def _sentence(compared: Compared, work: pl.DataFrame, conditions: int, measure: _Measure) -> str:
    """Name the greatest difference between conditions: in the default runs, or of improvements in the others."""
    treated = measure is _IMPROVEMENT
    work = work.filter((pl.col("treatment") == DEFAULT) != treated)
    comparable = work.drop_nulls("w")
    compared_words = f"{plural(conditions, 'condition')} compared"
    if measure is _W and comparable["ten_iterations_ps"].count() > comparable.height / 2:
        return f"{compared_words}, with too few iterations for a reliable W"
    means = []
    for (_, label), rows in work.group_by("run", CONDITION, maintain_order=True):
        mean, (study, treatment) = mean_of(rows, measure), rows.select("study", "treatment").row(0)
        of = (study if compared.several else None, str(label), treatment if treated else None)
        means += [(mean.value, ", ".join(filter(None, of)))] if mean else []
    if not means:
        return compared_words
    (least, low), (most, high) = min(means), max(means)
    if measure is _RELATIVE:
        return f"Iterations take {most / least:.2f} times as long with {high} as with {low}"
    return f"{measure.mean} from {measure.form(least)} ({low}) to {measure.form(most)} ({high})"
