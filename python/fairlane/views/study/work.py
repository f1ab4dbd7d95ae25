"""W by workload, and the improvement of each job.

The form is that of the result figures of Savoie et al. 2020, section 6: box plots of W by workload and treatment, and
the improvement of every job, from the greatest to the least. Over each box there is the mean with its interval over
placements. What the study varies besides treatments is in the charts of ``conditions``.
"""

from collections.abc import Iterator

import altair
import polars as pl

from fairlane.core.statistics import COVERAGE, FEWEST_UNITS
from fairlane.core.wording import plural
from fairlane.results.derive import interval
from fairlane.study.conditions import CONDITION, varied
from fairlane.study.replicates import distinct, estimate, over_points
from fairlane.views.charts import Axis, Layer, chart, described, ends_of, layers, rule, stacked, whiskers, with_tooltip
from fairlane.views.model import Chart
from fairlane.views.rows import QUARTILES, Rows, box_numbers, boxes, dots, thinned, whisker_words
from fairlane.views.study.series import IMPROVEMENT, RUN, VALUE, Compared, W, in_words
from fairlane.views.tables import INTERVAL, Column, change

MOST_WHISKERS = 100
"""With more jobs than this their intervals are not drawn."""
MOST_JOBS = 400
"""Jobs that have a dot; of more, those that are evenly spaced in order."""


def work_charts(compared: Compared) -> Iterator[Chart]:
    """The panels of the picture ``work``; none when no job can be compared, or cases without treatments are."""
    cases = any(varied(study.work) for study in compared.studies.values())
    if "w" not in compared.effects or not (compared.treated or (compared.co_running and not cases)):
        return
    if compared.treated:
        yield _sorted(compared)
    yield _boxes(compared)


def headline(compared: Compared, study: str) -> str:
    """The greatest effect of a treatment, the mean W, or nothing that could be compared."""
    work = compared.work.filter(study=study)
    treated = work.drop_nulls("improvement")
    if treated.height:
        best = over_points(treated, ["treatment"], ["improvement"]).sort("improvement").row(-1, named=True)
        sentence = in_words(best, "improvement")
        return f"{best['treatment']}: {sentence} throughput against the default run, mean over jobs"
    mean = estimate(work, "w", work["unit"][0]) if compared.co_running else None
    return f"Mean W of co-running jobs: {in_words(interval('w', mean), 'w')}" if mean else ""


def _boxes(compared: Compared) -> Chart:
    """Boxes of W by workload and series, with their means."""
    work = compared.work.drop_nulls("w")
    series, workloads = (work[key].unique(maintain_order=True).to_list() for key in ("run", "workload"))
    places = Rows(workloads, len(series), [name.replace("_", " ") for name in workloads])
    rows, beyond = [], []
    for (run, workload), jobs in work.group_by("run", "workload", maintain_order=True):
        values = jobs["w"].to_numpy()
        numbers = box_numbers(values, QUARTILES)
        shared = places.place({"run": run, "workload": workload}, str(workload), series.index(run))
        mean = interval("value", estimate(jobs, "w", jobs["unit"][0]))
        rows.append({**shared, **numbers, **mean, "jobs": jobs.height})
        out = thinned(values[(values < numbers["low"]) | (values > numbers["high"])])
        beyond += [{**shared, "value": value} for value in out.tolist()]
    quartiles = Column("quartiles", lambda row: f"{change(row['q1'])} to {change(row['q3'])}")
    columns = [RUN, Column("workload", "workload"), Column("mean", VALUE.value), Column("median", "median", change)]
    columns += [quartiles, Column("jobs at points", "jobs")]

    def spec() -> altair.LayerChart:
        told, tooltip = described(rows, columns)
        shown = [row[end] for row in rows for end in ("low", "high")]
        axis = Axis.of([0.0, *shown, *ends_of([*rows, *beyond])], W, "change")
        coloured = compared.colour(only=series)
        base = chart(told).encode(y=places.y("at"))
        outline = base.mark_point(style="ink", shape="diamond", size=70, filled=False, strokeWidth=1.4)
        every: list[Layer] = [
            rule(0.0, axis, vertical=True),
            boxes(told, axis, places, color=coloured, tooltip=tooltip),
            *([dots(beyond, axis, places, "value", color=coloured)] if beyond else []),
            whiskers(base, axis, vertical=False, width=2.4),
            base.mark_point(style="paper", shape="diamond", size=70).encode(x=axis.x("value")),
            outline.encode(x=axis.x("value"), tooltip=tooltip),
        ]
        return layers(places.height, *every, zoom=("x",))

    units = compared.units
    by_run = {str(run): jobs for (run,), jobs in work.group_by("run", maintain_order=True)}
    few = any(distinct(jobs)[jobs["unit"][0]].n_unique() < FEWEST_UNITS for jobs in by_run.values())
    known = f"Too few {units} for an interval" if few else f"Whiskers of diamonds: {COVERAGE:.0%} interval over {units}"
    several = max(jobs[CONDITION].n_unique() for jobs in by_run.values())
    over = f" under {plural(several, 'condition')}, taken together" if several > 1 else ""
    note = (
        f"W is the change of a job's throughput. Boxes: jobs at all points{over}; whiskers to "
        f"{whisker_words(QUARTILES)}; dots: jobs beyond. Diamonds: means. {known}."
    )
    means = {run: interval("value", estimate(jobs, "w", jobs["unit"][0])) for run, jobs in by_run.items()}
    means_of = "; ".join(f"{run} {in_words(mean)}" for run, mean in means.items())
    return Chart("w", "W by workload", spec, f"Mean W: {means_of}.", note, rows, picture="work")


def _sorted(compared: Compared) -> Chart:
    """The improvement of every job at every point, from the greatest to the least."""
    ordered = compared.work.drop_nulls("improvement").sort("improvement", descending=True)
    ordered = ordered.with_columns(order=pl.int_range(1, pl.len() + 1).over("run"), jobs=pl.len().over("run"))
    kept = ordered.filter((pl.col("order") - 1) % ((pl.col("jobs") - 1) // MOST_JOBS + 1) == 0)
    kept = kept.sort(pl.col("run").cast(pl.Enum(compared.names)), "order")
    where = pl.when(pl.col(CONDITION) != "").then(CONDITION), "place", pl.format("seed {}", "seed")
    ends = {f"value{end}": f"improvement{end}" for end in INTERVAL}
    at = pl.concat_str(*where, separator=", ", ignore_nulls=True)
    rows = kept.select("run", "order", "workload", job="name", where=at, **ends).to_dicts()
    few = max(ordered["jobs"]) <= MOST_WHISKERS
    columns = [RUN, Column("job", "job"), Column("workload", "workload"), Column("at", "where"), VALUE]

    def spec() -> altair.LayerChart:
        base, tooltip = with_tooltip(rows, columns)
        shown = ends_of(rows) if few else [row["value"] for row in rows]
        axis = Axis.of([0.0, *shown], IMPROVEMENT, "change")
        order = Axis.of((row["order"] for row in rows), "Jobs, greatest improvement first", scale="linear")
        base = base.encode(x=order.x("order"), color=compared.colour(only=compared.with_effect("improvement")))
        every: list[Layer] = [
            rule(0.0, axis, vertical=False),
            base.mark_line().encode(y=axis.y("value")),
            *([whiskers(base, axis, vertical=True)] if few else []),
            stacked(base.mark_point(size=30).encode(y=axis.y("value"), tooltip=tooltip)),
        ]
        return layers(260, *every)

    measured = any(row["value_low"] is not None for row in rows)
    note = "A dot is a job at one point." + (" Bars: 95% interval within its run." if few and measured else "")
    least, most = (find(rows, key=lambda row: row["value"]) for find in (min, max))
    extremes = (f"{change(row['value'])}, {row['job']} with {row['run']}" for row in (least, most))
    note += f" From {' to '.join(extremes)}."
    first = next(iter(compared.studies))
    sentence = f"{f'{first}: ' if compared.several else ''}{headline(compared, first)}."
    return Chart("improvements", "Improvement of each job", spec, sentence, note, rows, picture="work")
