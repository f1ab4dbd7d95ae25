"""W by workload, and the improvement of each job.

The form is that of the result figures of Savoie et al. 2020, section 6: box plots of W by workload and treatment, and
the improvement of every job, from the greatest to the least. Over each box there is the mean with its interval over
placements. What the study varies besides treatments is in the charts of ``conditions``.
"""

from collections.abc import Iterator
from typing import Any

import altair
import polars as pl

from fairlane.statistics import COVERAGE, FEWEST_UNITS
from fairlane.study.conditions import CONDITION, varied
from fairlane.study.replication import distinct, estimate, over_points
from fairlane.views.charts import Axis, Layer, chart, described, layers, rule, stacked, whiskers
from fairlane.views.model import Chart
from fairlane.views.rows import QUARTILES, Rows, box_numbers, boxes, dots, thinned, whisker_words
from fairlane.views.study.effects import placement_name
from fairlane.views.study.series import IMPROVEMENT, RUN, VALUE, Compared, Series, W, ends, in_words
from fairlane.views.tables import Column, change
from fairlane.wording import plural

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
    own = [one for one in compared.series if one.study == study]
    work = pl.concat([one.work for one in own])
    treated = work.filter(pl.col("improvement").is_not_null())
    if treated.height:
        best = over_points(treated, ["treatment"], ["improvement"]).sort("improvement").row(-1, named=True)
        words = in_words(best, "improvement")
        return f"{best['treatment']}: {words} throughput against the default run, mean over jobs"
    mean = estimate(work, "w", own[0].unit) if compared.co_running else None
    return f"Mean W of co-running jobs: {in_words(ends(mean, 'w'), 'w')}" if mean else ""


def _boxes(compared: Compared) -> Chart:
    """Boxes of W by workload and series, with their means."""
    series = [one for one in compared.series if one.work["w"].count()]
    workloads = list(dict.fromkeys(name for one in series for name in one.work["workload"].unique(maintain_order=True)))
    places = Rows(workloads, len(series), [name.replace("_", " ") for name in workloads])
    found: list[dict[str, Any]] = []
    beyond: list[dict[str, Any]] = []
    for at, one in enumerate(series):
        for workload in workloads:
            rows = one.work.filter(pl.col("workload") == workload, pl.col("w").is_not_null())
            if rows.is_empty():
                continue
            values = rows["w"].to_numpy()
            numbers = box_numbers(values, QUARTILES)
            shared = {"run": one.name, "workload": workload}
            mean = ends(estimate(rows, "w", one.unit))
            found.append(places.place({**shared, **numbers, **mean, "jobs": len(values)}, workload, at))
            out = values[(values < numbers["low"]) | (values > numbers["high"])]
            beyond += [places.place({**shared, "value": value}, workload, at) for value in thinned(out).tolist()]
    columns = [
        RUN,
        Column("workload", "workload"),
        Column("mean", VALUE.value),
        Column("median", "median", change),
        Column("quartiles", lambda row: f"{change(row['q1'])} to {change(row['q3'])}"),
        Column("jobs at points", "jobs"),
    ]

    def spec() -> altair.LayerChart:
        told, tooltip = described(found, columns)
        axis = Axis.of([0.0, *(row[key] for row in (*found, *beyond) for key in _ENDS if key in row)], W, "change")
        coloured = compared.colour(only=[one.name for one in series])
        base = chart(told).encode(y=places.y("at"))
        diamond = base.mark_point(style="paper", shape="diamond", size=70)
        every: list[Layer] = [
            rule(0.0, axis, vertical=True),
            boxes(told, axis, places, color=coloured, tooltip=tooltip),
            *([dots(beyond, axis, places, "value", color=coloured)] if beyond else []),
            whiskers(base, axis, "value_low", "value_high", vertical=False, width=2.4),
            diamond.encode(x=axis.x("value")),
            base.mark_point(style="ink", shape="diamond", size=70, filled=False, strokeWidth=1.4).encode(
                x=axis.x("value"), tooltip=tooltip
            ),
        ]
        return layers(places.height, *every, zoom=("x",))

    units = compared.units
    few = any(distinct(one.work)[one.unit].n_unique() < FEWEST_UNITS for one in series)
    interval = (
        f"Too few {units} for an interval" if few else f"Whiskers of diamonds: {COVERAGE:.0%} interval over {units}"
    )
    several = max(one.work[CONDITION].n_unique() for one in series)
    over = f" under {plural(several, 'condition')}, taken together" if several > 1 else ""
    note = (
        f"W is the change of a job's throughput. Boxes: jobs at all points{over}; whiskers to "
        f"{whisker_words(QUARTILES)}; dots: jobs beyond. Diamonds: means. {interval}."
    )
    return Chart("w", "W by workload", spec, f"{_mean_w(series)}.", note, found, picture="work")


_ENDS = ("low", "high", "value", "value_low", "value_high")


def _mean_w(series: list[Series]) -> str:
    means = [(one.name, estimate(one.work, "w", one.unit)) for one in series]
    parts = [f"{name} {in_words(ends(mean))}" for name, mean in means if mean]
    return f"Mean W: {'; '.join(parts)}"


def _sorted(compared: Compared) -> Chart:
    """The improvement of every job at every point, from the greatest to the least."""
    series = [one for one in compared.series if one.work["improvement"].count()]
    rows: list[dict[str, Any]] = []
    few = max(one.work["improvement"].count() for one in series) <= MOST_WHISKERS
    for one in series:
        ordered = one.work.drop_nulls("improvement").sort("improvement", descending=True).with_row_index("order", 1)
        kept = ordered.gather_every(-(-ordered.height // MOST_JOBS))
        names = one.results.meta.placements
        for row in kept.iter_rows(named=True):
            value = {f"value{end}": row[f"improvement{end}"] for end in ("", "_low", "_high")}
            where = [row[CONDITION], placement_name(names, row["placement"]), f"seed {row['seed']}"]
            shared = {"run": one.name, "order": row["order"], "job": row["name"], "workload": row["workload"]}
            rows.append({**shared, **value, "where": ", ".join(filter(None, where))})
    columns = [RUN, Column("job", "job"), Column("workload", "workload"), Column("at", "where"), VALUE]

    def spec() -> altair.LayerChart:
        told, tooltip = described(rows, columns)
        ends_of = ("value", "value_low", "value_high") if few else ("value",)
        change_axis = Axis.of([0.0, *(row[end] for row in rows for end in ends_of)], IMPROVEMENT, "change")
        order = Axis.of((row["order"] for row in rows), "Jobs, greatest improvement first", scale="linear")
        base = chart(told).encode(x=order.x("order"), color=compared.colour(only=[one.name for one in series]))
        points: altair.Chart = base.mark_point(size=30).encode(y=change_axis.y("value"), tooltip=tooltip)
        every: list[Layer] = [
            rule(0.0, change_axis, vertical=False),
            base.mark_line().encode(y=change_axis.y("value")),
            *([whiskers(base, change_axis, "value_low", "value_high", vertical=True)] if few else []),
            stacked(points),
        ]
        return layers(260, *every)

    measured = any(row["value_low"] is not None for row in rows)
    note = "A dot is a job at one point." + (" Bars: 95% interval within its run." if few and measured else "")
    least, greatest = (find(rows, key=lambda row: row["value"]) for find in (min, max))
    words = (f"{change(row['value'])}, {row['job']} with {row['run']}" for row in (least, greatest))
    note += f" From {' to '.join(words)}."
    first = next(iter(compared.studies))
    sentence = f"{f'{first}: ' if compared.several else ''}{headline(compared, first)}."
    return Chart("improvements", "Improvement of each job", spec, sentence, note, rows, picture="work")
