"""Legends below a panel: words with a line, a dot or a square."""

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

LINE, WIDE, DOT, SQUARE = "-", "=", "o", "s"  # marks of a legend
WIDTHS = {LINE: 2.0, WIDE: 5.0}


def legend_below(
    axes: Axes, rows: Iterable[tuple[str, str, str]], columns: int = 4, size: float | None = None
) -> Legend:
    """Draws a legend: words, colour and mark, which is a line, a wide one, a dot or a square of ``size`` points."""
    known = list(rows)
    marks = [
        Line2D([], [], color=colour, linewidth=WIDTHS[mark])
        if mark in WIDTHS
        else Line2D([], [], color=colour, marker=mark, linestyle="", markersize=size)
        for _, colour, mark in known
    ]
    place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "ncols": columns}
    return axes.legend(marks, [words for words, _, _ in known], frameon=False, fontsize=10, **place)
