"""Rows of a chart with names: bars, boxes and dots of one or several series, at places that are computed here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair
import numpy as np
import numpy.typing as npt
from pydantic_core import to_json

from fairlane.views.charts import Axis, Layer, chart, stacked
from fairlane.views.tables import Row

Floats = npt.NDArray[np.float64]
TAILS = (1.0, 99.0)
"""Percentiles that the whiskers of boxes reach."""
EXTREMES = (0.0, 100.0)
QUARTILES = 1.5
"""Whiskers of Tukey's box plots reach the last value within so many interquartile ranges."""
FEW = 100
"""Of fewer values in every box the percentiles of the whiskers would be the extremes, or nearly so."""
MOST_DOTS = 200
"""Of more dots in a row, those that are evenly spaced in order, the extremes among them, are drawn."""
_FILLED = 0.72
"""Share of a row that its marks take."""


@dataclass(frozen=True)
class Rows:
    """A vertical axis with a row for each name, from top to bottom; several series of a row are below each other."""

    names: Sequence[str]
    series: int = 1
    labels: Sequence[str | Sequence[str]] = ()
    """Labels of the rows; by default their names. Several lines are several texts."""

    @property
    def height(self) -> int:
        """The height of a chart, px."""
        return max(60, round(len(self.names) * max(18 + 9 * self.series, 10 + 14 * self._lines, 24)))

    @property
    def _lines(self) -> int:
        """Lines of the longest label; those of several lines begin at the middle of the row, if nothing moves them."""
        return max((1 if isinstance(label, str) else len(label) for label in self.labels), default=1)

    @property
    def reach(self) -> float:
        """Half the height of a mark, in rows."""
        return _FILLED / 2 / self.series * (0.88 if self.series > 1 else 1)

    def at(self, name: str, series: int = 0) -> float:
        """The middle of a mark."""
        return self.names.index(name) + _FILLED * ((series + 0.5) / self.series - 0.5)

    def y(self, field: str, bold: Sequence[int] = ()) -> altair.Y:
        """The vertical channel of a place; ``bold`` are the rows whose names are headings."""
        count = len(self.names)
        labels = to_json(list(self.labels or self.names)).decode()
        axis = altair.Axis(
            title=None,
            values=list(range(count)),
            labelExpr=f"{labels}[datum.value]",
            grid=False,
            labelOverlap=False,
            labelLineHeight=14,
            labelFontWeight=_weight(bold) if bold else altair.Undefined,
            labelOffset=-7 * (self._lines - 1),
        )
        scale = altair.Scale(domain=[count - 0.5, -0.5], nice=False, zero=False)
        return altair.Y(f"{field}:Q", axis=axis, scale=scale)

    @property
    def edges(self) -> dict[str, Any]:
        """The vertical channels of a mark from its ``top`` to its ``bottom``."""
        return {"y": self.y("top"), "y2": altair.Y2("bottom:Q")}

    def place(self, row: Row, name: str, series: int = 0) -> dict[str, Any]:
        """The row with its place: ``at``, and the edges ``top`` and ``bottom`` of its mark."""
        at = self.at(name, series)
        return {**row, "at": at, "top": at - self.reach, "bottom": at + self.reach}


def _weight(bold: Sequence[int]) -> Any:
    condition = {"test": f"indexof({list(bold)}, datum.value) >= 0", "value": "bold"}
    return {"condition": condition, "value": "normal"}


def whiskers_of(most: int) -> float | tuple[float, float]:
    """The whiskers of boxes of which the largest has so many values: percentiles, or those of Tukey of few values."""
    return QUARTILES if most < FEW else TAILS


def whisker_words(whiskers: float | tuple[float, float]) -> str:
    """Describe whiskers, for a note."""
    if isinstance(whiskers, tuple):
        return f"{whiskers[0]:g}% and {whiskers[1]:g}%" if whiskers != EXTREMES else "the extremes"
    return f"the last values within {whiskers:g} interquartile ranges of the quartiles"


def box_numbers(values: Floats, whiskers: float | tuple[float, float] = TAILS) -> dict[str, float]:
    """Return the numbers of a box: the ends of the whiskers, the quartiles and the median."""
    q1, median, q3 = (float(value) for value in np.percentile(values, (25, 50, 75)))
    if isinstance(whiskers, tuple):
        least, most = np.percentile(values, whiskers)
    else:
        least, most = q1 - whiskers * (q3 - q1), q3 + whiskers * (q3 - q1)
    low = float(values[values >= least].min(initial=q1))
    high = float(values[values <= most].max(initial=q3))
    return {"low": min(low, q1), "q1": q1, "median": median, "q3": q3, "high": max(high, q3)}


def thinned(values: Floats, most: int = MOST_DOTS) -> Floats:
    """The values in order; of many those that are evenly spaced, the extremes among them."""
    ordered = np.sort(values)
    if ordered.size <= most:
        return ordered
    kept: Floats = ordered[np.linspace(0, ordered.size - 1, most).round().astype(int)]
    return kept


def spread(count: int, reach: float) -> Floats:
    """Offsets that keep equal values apart; a low-discrepancy sequence, so a redrawn figure is the same."""
    golden = (5**0.5 - 1) / 2
    return ((np.arange(count, dtype=np.float64) * golden) % 1 * 2 - 1) * reach


def strips(
    groups: Iterable[tuple[Row, Floats, str, int]],
    places: Rows,
    whiskers: float | tuple[float, float] = EXTREMES,
    *,
    field: str = "value",
    reach: float = 0.7,
    beyond: bool = False,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows for ``boxes`` and for ``dots`` of groups of values.

    A group is a row for all of its marks, its values, and the name and series of its place. Dots are all values, or
    those ``beyond`` the whiskers, as ``field``; they are spread over a share ``reach`` of the mark's height.
    """
    boxed: list[dict[str, Any]] = []
    dotted: list[dict[str, Any]] = []
    for row, values, name, series in groups:
        numbers = box_numbers(values, whiskers)
        boxed.append(places.place({**row, **numbers}, name, series))
        shown = thinned(values[(values < numbers["low"]) | (values > numbers["high"])] if beyond else values)
        spots = places.at(name, series) + spread(shown.size, reach * places.reach)
        dots_ = zip(shown.tolist(), spots.tolist(), strict=True)
        dotted += [{**row, field: float(f"{value:.8g}"), "at": at} for value, at in dots_]
    return boxed, dotted


def stacked_rows(rows: Iterable[Row], by: str, size: str) -> list[dict[str, Any]]:
    """Rows with the ends of their bars: those with the same ``by`` lie one after the other, as long as ``size``."""
    ends: dict[Any, float] = {}
    pieces = []
    for row in rows:
        begin = ends.get(row[by], 0)
        ends[row[by]] = begin + row[size]
        pieces.append({**row, "begin": begin, "end": ends[row[by]]})
    return pieces


def boxes(rows: Sequence[Row], axis: Axis, places: Rows, **encoding: Any) -> altair.LayerChart:
    """Boxes of ``box_numbers``, at their ``place``; ``encoding`` has their colour and tooltip."""
    base = chart(rows)
    line = base.mark_rule(style="ink").encode(x=axis.x("low"), x2=altair.X2("high:Q"), y=places.y("at"))
    box = base.mark_rect(fillOpacity=0.35, strokeWidth=1.2)
    box = box.encode(x=axis.x("q1"), x2=altair.X2("q3:Q"), **places.edges, **encoding)
    ends = [
        base.mark_rule(style="ink", strokeWidth=2.4 if end == "median" else 1).encode(x=axis.x(end), **places.edges)
        for end in ("low", "median", "high")
    ]
    return stacked(line, box, *ends)


def bars(rows: Sequence[Row], axis: Axis, places: Rows, begin: str, end: str, **encoding: Any) -> altair.Chart:
    """Bars from one field to another, at their ``place``."""
    bar: altair.Chart = chart(rows).mark_rect()
    return bar.encode(x=axis.x(begin), x2=altair.X2(f"{end}:Q"), **places.edges, **encoding)


def dots(rows: Sequence[Row], axis: Axis, places: Rows, field: str, **encoding: Any) -> Layer:
    """A dot for each row, at its place ``at``; smaller and fainter the more there are."""
    size, opacity = (26, 0.8) if len(rows) <= 400 else (12, 0.6)
    mark: altair.Chart = chart(rows).mark_point(size=size, opacity=opacity)
    return mark.encode(x=axis.x(field), y=places.y("at"), **encoding)
