"""Style of charts and pictures: the configuration of Vega-Lite for a theme, and the rule for logarithmic axes.

Charts name styles (``ink``, ``muted`` ...) and take colours from scales; only this module knows what they are. A page
gets custom properties of CSS in place of colours, so that its theme changes without drawing anything again.

The colours of figures and pages: ink, paper and data in a light and a dark theme.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Theme = Literal["light", "dark"]


@dataclass(frozen=True)
class Colours:
    """The colours of a theme."""

    ink: str
    muted: str
    grid: str
    paper: str
    palette: tuple[str, ...]
    """Of things: for people with and without colour vision, by Petroff (arXiv:2107.02270)."""
    diverging: tuple[str, ...]
    """Of changes: from the greatest loss by no change, in the middle, to the greatest gain."""


def _between(stops: tuple[str, ...], count: int = 15) -> tuple[str, ...]:
    """So many colours from the first stop to the last, at even distances."""
    parts = [[int(stop[at : at + 2], 16) for at in (1, 3, 5)] for stop in stops]
    colours = []
    for place in (at * (len(stops) - 1) / (count - 1) for at in range(count)):
        low = min(int(place), len(stops) - 2)
        mixed = (round(a + (b - a) * (place - low)) for a, b in zip(parts[low], parts[low + 1], strict=True))
        colours.append("#" + "".join(f"{part:02x}" for part in mixed))
    return tuple(colours)


LIGHT = Colours(
    ink="#222222",
    muted="#6b6b6b",
    grid="#dddddd",
    paper="#ffffff",
    palette=("#1845fb", "#ff5e02", "#c91f16", "#c849a9", "#adad7d", "#86c8dd", "#578dff", "#656364"),
    diverging=_between(("#b84500", "#f0a46b", "#dcdcdc", "#7fa3e6", "#0b3ea8")),
)
DARK = Colours(
    ink="#e4e4e4",
    muted="#a3a3a3",
    grid="#3b3d40",
    paper="#131416",
    palette=("#578dff", "#ff5e02", "#e2503f", "#c849a9", "#adad7d", "#86c8dd", "#1845fb", "#a3a3a3"),
    diverging=_between(("#ffa25c", "#a8541f", "#3d4148", "#2f55a8", "#6ea8ff")),
)
"""The first blue, the red and the last grey of the light theme are too dark here."""
THEMES: dict[Theme, Colours] = {"light": LIGHT, "dark": DARK}


@dataclass(frozen=True)
class Look:
    """Style of the file of a picture."""

    theme: Theme = "light"
    """Dark ink on white, or light ink on a dark ground."""
    transparent: bool = False
    """Whether there is no background."""
    format: Literal["png", "svg", "pdf"] = "png"
    """The format of the file."""


FONT = "DejaVu Sans"
PAGE_FONT = "system-ui, sans-serif"
PAGE = Colours(
    "var(--ink)",
    "var(--muted)",
    "var(--line)",
    "var(--card)",
    tuple(f"var(--palette{at})" for at in range(len(THEMES["light"].palette))),
    tuple(f"var(--diverging{at})" for at in range(len(THEMES["light"].diverging))),
)
"""Properties of the style sheet of pages."""


def properties(theme: Theme) -> str:
    """The colours of data of a theme as custom properties of CSS."""
    every = {"palette": THEMES[theme].palette, "diverging": THEMES[theme].diverging}
    return " ".join(f"--{name}{at}: {colour};" for name, of in every.items() for at, colour in enumerate(of))


def config(colours: Colours, font: str = FONT, *, background: bool = True) -> dict[str, Any]:
    """The configuration of charts in these colours."""
    text = {"labelColor": colours.ink, "titleColor": colours.ink, "labelFontSize": 12, "titleFontSize": 12}
    first = colours.palette[0]
    return {
        "background": colours.paper if background else None,
        "font": font,
        "padding": 12,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "group",
            "color": colours.ink,
            "fontSize": 13,
            "subtitleColor": colours.muted,
            "subtitleFontSize": 11,
            "subtitlePadding": 4,
        },
        "axis": {
            **text,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelLimit": 300,
            "gridColor": colours.grid,
            "domain": False,
            "tickSize": 0,
            "labelPadding": 6,
        },
        "axisDiscrete": {"grid": False},
        "legend": {
            **text,
            "orient": "top",
            "labelLimit": 260,
            "symbolSize": 90,
            "symbolStrokeWidth": 2,
            "columnPadding": 18,
            "symbolBaseFillColor": colours.ink,
            "symbolBaseStrokeColor": colours.ink,
        },
        "range": {"category": list(colours.palette), "diverging": list(colours.diverging)},
        "params": [
            *({"name": f"palette{at}", "value": colour} for at, colour in enumerate(colours.palette)),
            {"name": "grey0", "value": colours.muted},
            {"name": "grey1", "value": colours.grid},
        ],
        "mark": {"color": first},
        "line": {"strokeWidth": 2, "strokeJoin": "round"},
        "point": {"size": 45, "filled": True, "opacity": 1},
        "style": {
            "ink": {"color": colours.ink, "strokeWidth": 0.8},
            "muted": {"color": colours.muted, "strokeWidth": 1},
            "shade": {"color": colours.muted, "opacity": 0.1},
            "free": {"color": colours.grid, "opacity": 0.6},
            "band": {"color": colours.grid, "opacity": 0.35},
            "edged": {"stroke": colours.paper, "strokeWidth": 0.15},
            "paper": {"color": colours.paper},
            "halo": {"fill": colours.paper, "stroke": colours.paper, "strokeWidth": 4},
            "text": {"color": colours.ink, "fontSize": 12},
            "note": {"color": colours.muted, "fontSize": 11, "lineHeight": 15},
        },
    }


WIDE = 10.0
"""An axis is logarithmic where all values are positive and the greatest is more than this many times the least."""
TAIL = 5.0
"""An axis for distributions is logarithmic where the greatest value of one is more than this many times its median."""
MANY_DECADES = 3000.0
"""A logarithmic axis over more than this factor has labels at powers of ten only."""
SHORT = 5.0
"""A logarithmic axis over less than this factor has more labels than at 1, 2 and 5."""
FEW_LARGE = 30.0
"""Colours are logarithmic where the greatest value is more than this many times the median."""
DECADES = 3
"""Decades of logarithmic colours; smaller values have the lowest one."""


def steps(low: float, high: float) -> tuple[float, ...]:
    """Return the labels of a logarithmic axis in each decade: 1, 2 and 5, on a short one more."""
    if high / low > MANY_DECADES:
        return (1.0,)
    return (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0) if high / low < SHORT else (1.0, 2.0, 5.0)


def is_wide(low: float, high: float) -> bool:
    """Whether an axis from one value to another is logarithmic."""
    return 0 < WIDE * low < high


def has_tail(median: float, most: float) -> bool:
    """Whether a distribution has a tail that would press the rest of it together on a linear axis."""
    return 0 < TAIL * median < most


def is_logarithmic(scale: str, values: npt.NDArray[np.float64]) -> bool:
    """Whether a figure's axis for these values is logarithmic, by its ``scale``: of ``auto`` if most of them need it.

    A few values of a distribution that are far from the others do not count: its 5% and 95% quantiles decide.
    """
    if scale != "auto" or not values.size:
        return scale == "log"
    low, high = np.percentile(values, (5, 95))
    return float(values.min()) > 0 and is_wide(float(low), float(high))
