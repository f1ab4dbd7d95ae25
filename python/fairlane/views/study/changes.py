"""The change of each job from other studies to one, with its interval, as ``fairlane compare`` computes it."""

from collections.abc import Mapping
from typing import Any

import altair

from fairlane.comparison.changes import Comparison, summary
from fairlane.statistics import COVERAGE
from fairlane.views.charts import Axis, Layer, chart, colour, described, layers, rule, whiskers
from fairlane.views.model import Chart
from fairlane.views.tables import Column, Row, with_change
from fairlane.wording import seconds, some

MOST_NAMES = 8
"""Jobs of one result only that are named."""
MOST_ROWS = 150
"""Changes that are drawn; of more, the greatest gains and losses."""
_VERDICTS = ("more", "less", "within noise", "no interval")


def changes_chart(others: Mapping[str, Comparison], note: str) -> Chart:
    """The changes against each of some other results, which have names.

    ``note`` says what is compared.
    """
    several = len(others) > 1
    rows: list[dict[str, Any]] = []
    for name, found in others.items():
        for row in found.table.iter_rows(named=True):
            parts = [row["name"], row["treatment"], row["condition"], f"against {name}" if several else None]
            shared = {"label": ", ".join(filter(None, parts)), "against": name, "verdict": _verdict(row)}
            rows.append({**shared, **row})
    rows.sort(key=lambda row: row["change"])
    shown = rows if len(rows) <= MOST_ROWS else [*rows[: MOST_ROWS // 2], *rows[-MOST_ROWS // 2 :]]
    columns = [
        Column("job", "label"),
        Column("change", with_change("change")),
        Column("verdict", "verdict"),
        Column("of", "of"),
        Column("before", "before", seconds),
        Column("now", "after", seconds),
    ]

    def spec() -> altair.LayerChart:
        told, tooltip = described(shown, columns)
        axis = Axis.of([0.0, *(row[end] for row in shown for end in _ENDS)], "Change of throughput", "change")
        y = altair.Y("label:N", title=None, sort=altair.EncodingSortField("change", op="min", order="ascending"))
        base = chart(told).encode(y=y)
        verdicts = colour("verdict", _VERDICTS, greys=_VERDICTS[2:])
        every: list[Layer] = [
            rule(0.0, axis, vertical=True),
            base.mark_bar(size=12).encode(x=axis.x("change"), x2=altair.datum(0), color=verdicts, tooltip=tooltip),
            whiskers(base, axis, "change_low", "change_high", vertical=False),
        ]
        return layers(0, *every, zoom=("x",)).properties(height=altair.Step(20))

    apart = {name for found in others.values() for name in found.only_in_one}
    only = f" Jobs of one of the results only: {some(sorted(apart), MOST_NAMES)}." if apart else ""
    few = f" {MOST_ROWS} of {len(rows):,} changes, the greatest and the least." if len(rows) > MOST_ROWS else ""
    words = " ".join(f"Against {name}: {summary(found)}" for name, found in others.items())
    about = f"{note} Whiskers: {COVERAGE:.0%} interval.{few}{only}"
    return Chart(
        "comparison", f"Change of jobs against {', '.join(others)}", spec, words, about, rows, wide=True, only_page=True
    )


_ENDS = ("change", "change_low", "change_high")


def _verdict(row: Row) -> str:
    if row["beyond_noise"] is None:
        return "no interval"
    return ("more" if row["change"] > 0 else "less") if row["beyond_noise"] else "within noise"
