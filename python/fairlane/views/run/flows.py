"""Flow completion times and slowdowns by size, of a recorded job whose messages are flows."""

from collections.abc import Iterator, Sequence

import altair
import polars as pl

from fairlane.core.tables import PS
from fairlane.core.wording import data_size, plural, seconds
from fairlane.results.flows import QUANTILES, by_size, flows
from fairlane.views.charts import Axis, Layer, chart, described, drawing, legend_of
from fairlane.views.model import Chart
from fairlane.views.run.series import Series
from fairlane.views.tables import Column, Row, Table, columns, count

PICTURES = {"flows": "slowdowns of flows by size, of a recorded job whose messages are flows"}
"""Its pictures, and what they show."""
IDEAL = (
    "Time: from the send call to the last byte. Slowdown: time by the ideal: CPU time of the send, latencies of the "
    "route, and all bytes with headers at the bandwidth of its slowest link"
)
_NAMES = dict(zip(QUANTILES, ("50%", "95%", "99%"), strict=True))


def tables(series: Series) -> Iterator[Table]:
    """A row for each decade of sizes."""
    for name, table in _known(series).items():
        sizes = by_size(table).with_columns(pl.col("^time_ps_.*$") * PS)
        shown = [
            Column("size", _sizes, left=True),
            Column("flows", "count", count, note=IDEAL),
            *columns(seconds, **{f"time_ps_{key}": f"time\n{word}" for key, word in _NAMES.items()}),
            *columns("{:.2f}".format, **{f"slowdown_{key}": f"slowdown\n{word}" for key, word in _NAMES.items()}),
        ]
        title = f"{name}: flow completion" if series.several else "Flow completion"
        yield Table(shown, sizes.to_dicts(), title, sparse=True, sentence=f"{_sentence(table)}.")


def charts(series: Series) -> Iterator[Chart]:
    """Quantiles of the slowdown of each decade of sizes."""
    known = _known(series)
    rows = [
        {"run": name, "quantile": word, "size": max(1.0, (row["low"] * row["high"]) ** 0.5), "sizes": _sizes(row)}
        | {"flows": row["count"], "slowdown": row[f"slowdown_{key}"]}
        for name, table in known.items()
        for row in by_size(table).filter(pl.col("count") > 0).to_dicts()
        for key, word in _NAMES.items()
    ]
    if not rows:
        return
    yield Chart(
        "flow-slowdown",
        "Slowdown of flows by size",
        drawing(240, _slowdowns(series, rows)),
        "\n".join(f"{f'{name}: ' if series.several else ''}{_sentence(table)}." for name, table in known.items()),
        f"Flows of each decade of sizes. {IDEAL}.",
        rows,
        picture="flows",
    )


def _known(series: Series) -> dict[str, pl.DataFrame]:
    """The flows of the runs that have some, by name."""
    tables = {name: flows(run) for name, run in series.runs.items()}
    return {name: table for name, table in tables.items() if table is not None}


def _sizes(row: Row) -> str:
    low, high = data_size(row["low"]), data_size(row["high"])
    return low if low == high else f"{low} to {high}"


def _sentence(table: pl.DataFrame) -> str:
    """Say how many flows there are, their median slowdown, and how many had not come."""
    missing = table["time_ps"].null_count()
    sentence = plural(table.height, "flow")
    if missing < table.height:
        sentence += f", median slowdown {table.select('slowdown').median().item():.2f}"
    return sentence + (f"; {missing} not complete at the end of the run" if missing else "")


def _slowdowns(series: Series, rows: Sequence[Row]) -> Iterator[Layer]:
    size = Axis.over(rows, "size", "Size of the flow, bytes", scale="log")
    slowdown = Axis.over(rows, "slowdown", "Slowdown")
    told = [*series.run_column, Column("sizes", "sizes"), Column("flows", "flows", count)]
    told += [Column("quantile", "quantile"), Column("slowdown", "slowdown", "{:.2f}".format)]
    shown, tooltip = described(rows, told)
    names = list(_NAMES.values())
    colour = altair.Color("quantile:N", scale=altair.Scale(domain=names), legend=legend_of(names))
    base = chart(shown).encode(x=size.x("size"), y=slowdown.y("slowdown"), color=colour, detail=altair.Detail("run:N"))
    yield base.mark_line(strokeWidth=1.4)
    yield base.mark_point(size=45).encode(tooltip=tooltip)
