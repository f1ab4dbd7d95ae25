"""Allocators compared: a group of bars for each metric, each on a scale of its own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import altair

from fairlane.views.charts import Layer, chart, colour, described, layers
from fairlane.views.model import Chart
from fairlane.views.tables import Column, Row
from fairlane.wording import listed

FADED = altair.Opacity("strength:Q", scale=None)
"""Of bars, by the comparison that they are of."""
_ROOM = 1.25
"""Length of the axis over that of the longest bar, so that its number has room."""


def allocators_compared(rows: Sequence[Row], metrics: Sequence[Column], sentence: str) -> Chart:
    """The chart of these metrics; a row for each comparison (``schedules``) and allocator."""
    drawn = [one for column in metrics for one in _of(rows, column)]
    names = [*dict.fromkeys(row["allocator"] for row in rows)]
    which = [*dict.fromkeys(row["schedules"] for row in rows)]
    height = len(metrics) * (14 * len(rows) + 10)
    return Chart(
        "allocators",
        "Allocators compared",
        layers(height, *_layers(drawn, names, which), zoom=()),
        sentence,
        "The longest bar of each metric has the greatest value; bars begin at zero, of slowdowns at one."
        f"{paler(which)}",
        rows,
        wide=True,
    )


def _of(rows: Sequence[Row], column: Column) -> Iterator[dict[str, object]]:
    """The bars of a metric."""
    key = str(column.value)
    least = 1.0 if "slowdown" in key else 0.0
    longest = max(row[key] for row in rows) - least
    strengths = faded([row["schedules"] for row in rows])
    title = " ".join(column.header.split()).replace("- ", "")
    for row in rows:
        length = max(0.0, (row[key] - least) / longest) if longest > 0 else 0.0
        yield {
            **row,
            "strength": strengths[row["schedules"]],
            "metric": title,
            "length": length,
            "text": column.cell(row),
            "series": _series(row),
        }


def _series(row: Row) -> str:
    return f"{row['allocator']} {row['schedules']}"


def _layers(rows: Sequence[Row], names: Sequence[str], which: Sequence[str]) -> Iterator[Layer]:
    columns = [Column("allocator", "allocator"), Column("metric", "metric"), Column("value", "text")]
    told, tooltip = described(rows, [*([Column("schedules", "schedules")] if len(which) > 1 else []), *columns])
    kept = [
        {key: value for key, value in row.items() if isinstance(value, str) or key in ("length", "strength")}
        for row in told
    ]
    order = [*dict.fromkeys(row["series"] for row in rows)]
    metrics = altair.Y("metric:N", sort=None, title=None, scale=altair.Scale(paddingInner=0.2, paddingOuter=0.1))
    offset = altair.YOffset("series:N", sort=order)
    length = altair.X("length:Q", axis=None, scale=altair.Scale(domain=[0, _ROOM], nice=False))
    base = chart(kept).encode(y=metrics, yOffset=offset, x=length)
    yield base.mark_bar().encode(color=colour("allocator", names), opacity=FADED, tooltip=tooltip)
    yield base.mark_text(style="text", align="left", dx=5).encode(text="text:N")


def faded(which: Iterable[str]) -> dict[str, float]:
    """The opacity of the bars of each of several comparisons."""
    names = list(dict.fromkeys(which))
    return {name: 1 - 0.7 * at / max(1, len(names) - 1) for at, name in enumerate(names)}


def paler(which: Sequence[str]) -> str:
    """What opacities mean."""
    return f" From strong to pale: {listed(which)}." if len(which) > 1 else ""


def by_allocator(schedules: Mapping[str, object], names: Sequence[str]) -> dict[str, Any]:
    """How lines look: a colour for each allocator, dashes for each comparison."""
    dashes = [[1, 0], [6, 3], [2, 3], [8, 3, 2, 3]]
    legend = altair.Legend(title=None) if len(schedules) > 1 else None
    scale = altair.Scale(domain=list(schedules), range=[dashes[at % len(dashes)] for at in range(len(schedules))])
    dash = altair.StrokeDash("schedules:N", scale=scale, legend=legend)
    return {"color": colour("allocator", names), "strokeDash": dash}
