"""Themes of figures that are written to files: light or dark ink, with or without a background.

Figures are drawn in the colours of ``style`` for white paper. For a dark theme, ink, grid and paper of a finished
figure are replaced, and the two blues of the palette are swapped; other colours of data stay, and so do numbers on
coloured cells.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from fairlane.plot.style import GRID, INK, MUTED, PALETTE

Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
PAPER = "#131416"
"""The background of the dark theme."""
ON_COLOUR = "on colour"
"""The ``gid`` of texts on coloured cells, which keep their colour."""
_DARK = {to_rgb(light): dark for light, dark in ((INK, "#e4e4e4"), (MUTED, "#a3a3a3"), (GRID, "#3b3d40"))}
_DARK |= {to_rgb("white"): PAPER, to_rgb("black"): "#e4e4e4", to_rgb("#eeeeee"): "#26282b"}
_DARK |= {to_rgb(PALETTE[0]): PALETTE[6], to_rgb(PALETTE[6]): PALETTE[0]}  # the first blue is too dark
_SETTERS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


@dataclass(frozen=True)
class Look:
    """How a figure's file looks."""

    theme: Theme = "light"
    """Dark ink on white, or light ink on a dark ground."""
    transparent: bool = False
    """Whether there is no background."""

    def save(self, figure: Figure, path: Path) -> None:
        """Writes the figure; raises ``OSError``."""
        if self.theme == "dark":
            darken(figure)
        with _laid_out(figure, path):
            figure.savefig(path, transparent=self.transparent)


@contextmanager
def _laid_out(figure: Figure, path: Path) -> Iterator[None]:
    """A figure without a layout engine, which has done its work: with one, ``savefig`` draws twice, once unseen.

    Vector formats measure texts by other means than PNG does, at another resolution, and are left to ``savefig``.
    """
    engine, dpi = figure.get_layout_engine(), figure.dpi
    if engine is None or path.suffix.lower() != ".png":
        yield
        return
    try:
        figure.dpi = rcParams["savefig.dpi"]
        engine.execute(figure)
        figure.set_layout_engine(None)
        yield
    finally:
        figure.set_layout_engine(engine)
        figure.dpi = dpi


def darken(figure: Figure) -> None:
    """Replaces ink, grid and paper of a finished figure by those of the dark theme."""
    figure.draw_without_rendering()  # which makes the ticks
    for artist in figure.findobj():
        if not (isinstance(artist, Text) and artist.get_gid() == ON_COLOUR):
            _darken(artist)


def _darken(artist: Artist) -> None:
    for name in _SETTERS:
        given = getattr(artist, f"get_{name}", None)
        if given is None:
            continue
        shown = given()
        colour: tuple[float, float, float] | None
        try:
            colour = to_rgb(shown)
        except (TypeError, ValueError):  # one for each element, or none
            colour = _common(shown)
        if colour in _DARK:
            getattr(artist, f"set_{name}")(_DARK[colour])


def _common(colours: Any) -> tuple[float, float, float] | None:
    """The colour of all elements of a collection, if it is one."""
    try:
        distinct = {to_rgb(colour) for colour in colours}
    except (TypeError, ValueError):
        return None
    return distinct.pop() if len(distinct) == 1 else None
