"""Legends and labels: legends above and below a panel, and text beside a point."""

from collections.abc import Iterable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.legend import Legend
from matplotlib.lines import Line2D

Point = tuple[float, float]
LINE, WIDE, DOT, SQUARE = "-", "=", "o", "s"  # marks of a legend
WIDTHS = {LINE: 2.0, WIDE: 5.0}


def label_at(
    axes: Axes, text: str, point: tuple[float, float], offset: tuple[float, float] = (8, 0), **look: Any
) -> None:
    """Draws text this many points off a point of the data."""
    axes.annotate(text, point, xytext=offset, textcoords="offset points", **{"va": "center", "fontsize": 10, **look})


def legend_above(axes: Axes, columns: int = 2, **look: Any) -> None:
    """Draws the legend of what has labels, or of ``handles``, in a row above the panel."""
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "borderaxespad": 0}
    axes.legend(ncols=columns, **place, **look)


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
    return axes.legend(marks, [words for words, _, _ in known], fontsize=10, **place)
