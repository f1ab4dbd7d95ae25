"""The colours of figures and pages: ink, paper and data in a light and a dark theme."""

from dataclasses import dataclass
from typing import Literal

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
