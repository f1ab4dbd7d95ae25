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


LIGHT = Colours(
    ink="#222222",
    muted="#6b6b6b",
    grid="#dddddd",
    paper="#ffffff",
    palette=("#1845fb", "#ff5e02", "#c91f16", "#c849a9", "#adad7d", "#86c8dd", "#578dff", "#656364"),
)
DARK = Colours(
    ink="#e4e4e4",
    muted="#a3a3a3",
    grid="#3b3d40",
    paper="#131416",
    palette=("#578dff", "#ff5e02", "#e2503f", "#c849a9", "#adad7d", "#86c8dd", "#1845fb", "#a3a3a3"),
)
"""The first blue, the red and the last grey of the light theme are too dark here."""
THEMES: dict[Theme, Colours] = {"light": LIGHT, "dark": DARK}
