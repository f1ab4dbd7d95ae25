"""Effects by the values of each parameter that a study varies, over all others; what controllers did by period."""

from collections.abc import Iterator
from typing import Any

import altair
import polars as pl

from fairlane.statistics import COVERAGE
from fairlane.study.conditions import shown, varied
from fairlane.study.replication import PACE, estimate
from fairlane.views.charts import (
    CHANGES,
    NUMBERS,
    Axis,
    Layer,
    caption,
    chart,
    choice,
    colour,
    described,
    layers,
    whiskers,
)
from fairlane.views.model import Chart
from fairlane.views.study.series import RUN, WORDS, Compared, ends
from fairlane.views.tables import Column, Estimated, Row, with_change, with_interval
from fairlane.wording import listed, plural, seconds, time_unit

TIME = PACE[0]
MOST_POINTS = 400
"""Points of a line of periods; of more periods, each point is the mean of some successive ones."""
_HEIGHT = 300


def sweep_charts(compared: Compared) -> Iterator[Chart]:
    """A chart for each parameter or case; measure and workload are chosen."""
    names = dict.fromkeys(name for study in compared.studies.values() for name in varied(study.work))
    for at, name in enumerate(names):
        yield _sweep(compared, name, "sweeps" if not at else f"sweeps{at}")


def _sweep(compared: Compared, name: str, key: str) -> Chart:
    rows, numeric, values = sweep_rows(compared, name)
    largest = max((row[TIME] for row in rows if row[TIME] is not None), default=1.0)
    factor, unit = time_unit(largest)
    measures = {**{of: WORDS[of] for of in compared.effects}, TIME: f"Time per iteration [{unit}]"}
    long: list[dict[str, Any]] = []
    for row in rows:
        for of, words in measures.items():
            if row[of] is not None:
                value = {f"value{end}": row[f"{of}{end}"] for end in ("", "_low", "_high")}
                shared = {"run": row["run"], "workload": row["workload"], "at": row["value"], "label": row["label"]}
                long.append({**shared, "of": words, "measure": of, **value})
    columns = [RUN, Column("workload", "workload"), Column(name, "label"), Column("mean", Estimated("value", _written))]

    def spec() -> altair.LayerChart:
        told, tooltip = described(long, columns)
        measure, chosen = choice(f"{key}_measure", "Measure", list(measures.values()))
        workloads = list(dict.fromkeys(row["workload"] for row in rows))
        workload, chosen_workload = choice(f"{key}_workload", "Workload", workloads, "workload")
        base = chart(told).transform_filter(f"{chosen} && {chosen_workload}")
        if numeric:
            x: Any = Axis.of((float(value) for value in values), name, zero=False).x("at")
        else:
            x = altair.X(
                "label:N", sort=[_label(value) for value in values], title=name, axis=altair.Axis(labelAngle=0)
            )
        y = Axis.chosen(
            labels=f"{key}_measure === '{measures[TIME]}' ? format(datum.value / {factor}, '{NUMBERS}') : {CHANGES}"
        )
        first = compared.effects[0] if compared.effects else TIME
        drawn = base.encode(
            x=x, color=compared.colour(only=compared.with_effect(first) if compared.effects else None, raised=True)
        )
        every: list[Layer] = [
            drawn.mark_line().encode(y=y.y("value")),
            whiskers(drawn, y, "value_low", "value_high", vertical=True),
            caption(f"{key}_measure", vertical=True),
            drawn.mark_point(size=60).encode(y=y.y("value"), tooltip=tooltip).add_params(measure, workload),
        ]
        return layers(_HEIGHT, *every, zoom=("x", "y") if numeric else ("y",))

    note = (
        f"Means over all other parameters, placements and seeds. Bars: {COVERAGE:.0%} interval over {compared.units}."
    )
    words = f"{name} has {plural(len(values), 'value')}: {listed([_label(value) for value in values])}."
    return Chart(key, f"Effects by {name}", spec, words, note, long, picture="sweeps", wide=True, only_page=True)


def _written(row: Row) -> str:
    column = with_interval("value", seconds) if row["measure"] == TIME else with_change("value")
    return column.write(row)


def _label(value: Any) -> str:
    return "none" if value is None else shown(value)


def sweep_rows(compared: Compared, name: str) -> tuple[list[dict[str, Any]], bool, list[Any]]:
    """Rows by series, workload and value of a parameter, whether it is a number, and its values in order.

    A row has means of time per iteration, s, W and improvement, with their intervals.
    """
    having = [one for one in compared.series if name in one.work.columns]
    columns = [one.results.work[name] for one in having]
    alike = len({column.dtype for column in columns}) == 1
    every = pl.concat([column if alike else column.cast(pl.String) for column in columns]).unique(maintain_order=True)
    numeric = every.dtype.is_numeric() and not every.has_nulls()
    rows: list[dict[str, Any]] = []
    for one in having:
        for (workload, own), group in one.work.group_by("workload", name, maintain_order=True):
            value = own if alike or own is None else str(own)
            row = {"run": one.name, "workload": workload, "value": value, "label": _label(value)}
            for column in (TIME, *WORDS):
                row |= ends(estimate(group, column, one.unit), column)
            rows.append(row)
    values = (every.sort() if numeric else every).to_list()
    order = {value: at for at, value in enumerate(values)}
    return sorted(rows, key=lambda row: order[row["value"]]), numeric, values


def periods_chart(compared: Compared) -> Chart | None:
    """Iterations of all jobs from period to period, mean over points; None without a controller."""
    rows: list[dict[str, Any]] = []
    for name, study in compared.studies.items():
        if study.periods.is_empty():
            continue
        sums = study.periods.group_by("treatment", "point", "period").agg(pl.col("iterations").sum())
        means = sums.group_by("treatment", "period").agg(pl.col("iterations").mean()).sort("treatment", "period")
        for (treatment,), line in means.group_by("treatment", maintain_order=True):
            run = f"{name}: {treatment}" if compared.several else str(treatment)
            group = -(-line.height // MOST_POINTS)
            merged = line.group_by(pl.int_range(pl.len()) // group, maintain_order=True).agg(
                pl.col("period", "iterations").mean()
            )
            rows += [
                {"run": run, "period": x, "iterations": y} for x, y in merged.select("period", "iterations").iter_rows()
            ]
    if not rows:
        return None
    runs = list(dict.fromkeys(row["run"] for row in rows))

    def spec() -> altair.LayerChart:
        told, tooltip = described(rows, [RUN, Column("period", "period"), Column("iterations", "iterations")])
        period = Axis.of((row["period"] for row in rows), "Period", scale="linear", zero=False)
        iterations = Axis.of((row["iterations"] for row in rows), "Iterations", scale="linear")
        known = set(runs) <= set(compared.names)
        coloured = compared.colour(only=runs) if known else colour("run", runs)
        base = chart(told).encode(x=period.x("period"), y=iterations.y("iterations"), color=coloured)
        points: Layer = base.mark_point(size=24).encode(tooltip=tooltip)
        return layers(240, base.mark_line(), points)

    words = f"{plural(len({row['period'] for row in rows}), 'period')} of {listed(runs)}."
    note = "Iterations of all jobs in each period, mean over points."
    return Chart("periods", "Iterations by period", spec, words, note, rows, only_page=True)
