"""Heat maps: a colour for each pair of a row and a column.

The order of the colours survives any colour vision and a grey printer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import altair
import numpy as np

from fairlane.views.charts import NUMBERS, SHARES, stacked
from fairlane.views.style import DECADES, FEW_LARGE

HEAT = ("#fff5e8", "#fdc48d", "#ee6a4d", "#a8163a", "#45041f")
"""Lightness falls evenly from end to end."""
MOST_NUMBERS = 12
"""Columns up to which cells have two lines of text."""
MOST_TEXTS = 30
"""Columns up to which cells have one."""
_LIGHT, _DARK = "#ffffff", "#222222"
"""Texts on cells, in both themes."""


@dataclass(frozen=True)
class Heat:
    """A scale from values to colours: linear from zero, or logarithmic where a few values are far above the others."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Iterable[float]) -> "Heat":
        """The scale of these values; those below zero count as zero."""
        positive = np.asarray([value for value in values if value > 0], np.float64)
        high = float(positive.max(initial=0.0)) or 1.0
        log = bool(positive.size) and high > FEW_LARGE * float(np.median(positive))
        return cls(high * 10.0**-DECADES if log else 0.0, high, log)

    def shade(self, value: float) -> float:
        """The value that a cell is coloured by."""
        return min(max(value, self.low), self.high)

    def text(self, value: float) -> str:
        """The colour of text on such a cell."""
        return _LIGHT if self.place(value) > 0.5 else _DARK

    def place(self, value: float) -> float:
        """The place of a value among the colours, from 0 to 1."""
        shade = self.shade(value)
        return float(np.log(shade / self.low) / np.log(self.high / self.low) if self.log else shade / self.high)

    def _ticks(self) -> list[float]:
        if self.log:
            return [float(f"{value:.1g}") for value in np.geomspace(self.low, self.high, DECADES + 1)]
        step = 10.0 ** np.floor(np.log10(self.high / 2))
        step *= next(factor for factor in (1, 2, 5, 10) if self.high / (step * factor) <= 5)
        return [float(f"{value:.6g}") for value in np.arange(0, self.high * 1.0001, step)]

    def colour(self, field: str, title: str, *, share: bool = True) -> altair.Color:
        """The channel of a field that ``shade`` has made."""
        kind: Any = "log" if self.log else "linear"
        scale = altair.Scale(type=kind, domain=[self.low, self.high], range=list(HEAT), clamp=True, interpolate="rgb")
        legend = altair.Legend(
            title=title,
            orient="top",
            format=SHARES if share else NUMBERS,
            values=self._ticks(),
            gradientLength=260,
            titleLimit=600,
        )
        return altair.Color(f"{field}:Q", scale=scale, legend=legend)


def columns_in(field: str, names: Sequence[str], title: str) -> altair.X:
    """The channel of columns in this order."""
    axis = altair.Axis(title=title, labelAngle=-40, labelOverlap=False, labelLimit=160)
    return altair.X(f"{field}:N", axis=axis, scale=altair.Scale(domain=list(names), padding=0.04))


def rows_in(field: str, names: Sequence[str], title: str) -> altair.Y:
    """The channel of rows in this order."""
    axis = altair.Axis(title=title, labelOverlap=False, labelLimit=160)
    return altair.Y(f"{field}:N", axis=axis, scale=altair.Scale(domain=list(names), padding=0.04))


def side(columns: int) -> int:
    """The height of a cell, px, of so many columns."""
    return 38 if columns <= MOST_NUMBERS else 20 if columns <= MOST_TEXTS else max(6, 600 // columns)


def texts(cells: altair.Chart, columns: int, *, plain: bool = False) -> altair.LayerChart:
    """Texts in the middle of cells: ``text``, and ``below`` it where there is room; none in many columns.

    Rows have their colour in ``ink``, unless it is the ``plain`` one of the theme.
    """
    look: dict[str, Any] = {"style": "text"} if plain else {}
    colour: dict[str, Any] = {} if plain else {"color": altair.Color("ink:N", scale=None)}
    if columns > MOST_TEXTS:
        return stacked(cells.mark_text(text="").encode())
    upper, lower = (cells.encode(text=altair.Text(f"{field}:N"), **colour) for field in ("text", "below"))
    if columns > MOST_NUMBERS:
        return stacked(upper.mark_text(fontSize=9, **look))
    lower = lower.mark_text(fontSize=10, dy=8, opacity=0.85, **look)
    return stacked(upper.mark_text(fontSize=12, dy=-6, **look), lower)
