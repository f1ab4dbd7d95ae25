"""How charts look: the configuration of Vega-Lite that has the colours of a theme.

Charts name styles (``ink``, ``muted`` ...) and take colours from scales; only this module knows what they are. A page
gets custom properties of CSS in place of colours, so that its theme changes without drawing anything again.
"""

from typing import Any

from fairlane.colours import THEMES, Colours, Theme

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
