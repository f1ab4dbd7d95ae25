"""The change of each job between two runs, as ``fairlane compare`` computes it."""

from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from fairlane.comparison import Comparison, compare
from fairlane.comparison.changes import summary
from fairlane.errors import ScenarioError
from fairlane.views.charts import Axis, Layer, chart, described, layers, rule, whiskers
from fairlane.views.model import Chart
from fairlane.views.rows import Rows, bars
from fairlane.views.run.series import WORKLOAD, Series, chosen, highlighted
from fairlane.views.run.slowdown import ends_of
from fairlane.views.tables import Column, Row, with_change
from fairlane.wording import listed, percent, seconds

MOST_JOBS = 60
"""Jobs that have a bar: those that changed most."""


def charts(series: Series) -> Iterator[Chart]:
    """Of exactly two runs with a job in common: the change from the second to the first."""
    if len(series.runs) != 2:
        return
    (first, run), (second, other) = series.runs.items()
    try:
        compared = compare(other, run)
    except ScenarioError:  # nothing in common
        return
    known = compared.table.drop_nulls("change")
    if known.is_empty():
        return
    order = pl.col("change").abs()
    table = known.sort(order, "name", descending=[True, False]).head(MOST_JOBS)
    rows = [
        series.row(first, row.pop("name"), **{k: v for k, v in row.items() if k != "workload"})
        for row in table.to_dicts()
    ]
    places = Rows([row["job"] for row in rows])
    yield Chart(
        "comparison",
        f"Changes from {second} to {first}",
        layers(places.height, *_bars([places.place(row, row["job"]) for row in rows], places), zoom=("x",)),
        summary(compared),
        f"Throughput of {first} against that of {second}, over the iterations that both completed; of jobs without "
        f"iterations, the mean message latency, positive where it is lower. Pale: within noise.{_without(compared)}",
        [{key: row[key] for key in _EXPORTED} for row in rows],
    )


_EXPORTED = ("job", "workload", "of", "before", "after", "change", "change_low", "change_high", "beyond_noise")


def _without(compared: Comparison) -> str:
    """Jobs that are not compared."""
    left = [*compared.without, *compared.only_in_one, *compared.failed]
    return f" Not compared: {listed(left)}." if left else ""


def _bars(rows: list[Row], places: Rows) -> Iterator[Layer]:
    ends = [row[key] for row in rows for key in ("change", "change_low", "change_high") if row[key] is not None]
    axis = Axis.of([0.0, *ends], "Change of throughput", "change", scale="linear")
    room = 0.12 * (axis.high - axis.low)
    lowest, highest = min([0.0, *ends]), max([0.0, *ends])
    axis = replace(axis, low=axis.low - (room if lowest < 0 else 0), high=axis.high + (room if highest > 0 else 0))
    drawn = [
        {
            **row,
            "zero": 0.0,
            "end": (max if row["change"] > 0 else min)(row["change"], *(row[end] or row["change"] for end in _ENDS)),
            "number": percent(row["change"], signed=True),
        }
        for row in rows
    ]
    columns = [
        Column("job", "job"),
        WORKLOAD,
        Column("of", "of"),
        Column("before", "before", seconds),
        Column("after", "after", seconds),
        Column("change", with_change("change")),
        Column("beyond noise", "beyond_noise"),
    ]
    told, tooltip = described(drawn, columns)
    for certain in (True, False):
        some = [row for row in told if bool(row["beyond_noise"]) == certain]
        opacity = highlighted(most=1.0 if certain else 0.45)
        if some:
            bar = bars(some, axis, places, "zero", "change", tooltip=tooltip, opacity=opacity)
            yield bar if certain and len(some) < len(told) else bar.add_params(chosen())
    base = chart(told)
    yield whiskers(base, axis, "change_low", "change_high", vertical=False, style="ink", y=places.y("at"))
    yield rule(0.0, axis, vertical=True)
    yield from ends_of(base, axis, places, "change")


_ENDS = ("change_low", "change_high")
