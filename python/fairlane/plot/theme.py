"""Themes of figures that are written to files: light or dark ink, with or without a background.

Figures are drawn in the colours of ``style`` for white paper. For a dark theme, ink, grid, paper and palette of a
finished figure are replaced by those of ``fairlane.colours.DARK``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from fairlane.colours import DARK, LIGHT
from fairlane.views.look import Look

_DARK = {to_rgb(getattr(LIGHT, name)): getattr(DARK, name) for name in ("ink", "muted", "grid", "paper")}
_DARK |= {to_rgb("black"): DARK.ink, to_rgb("#eeeeee"): "#26282b"}
_DARK |= {to_rgb(light): dark for light, dark in zip(LIGHT.palette, DARK.palette, strict=True)}
_SETTERS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")


def save(figure: Figure, path: Path, look: Look) -> None:
    """Writes the figure; raises ``OSError``."""
    if look.theme == "dark":
        darken(figure)
    with _laid_out(figure, path):
        figure.savefig(path, transparent=look.transparent)


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
