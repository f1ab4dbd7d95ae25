"""Style of figures of Matplotlib: a palette that colour-blind readers can tell apart, large labels, few lines.

They are drawn in colours for white paper. For a dark theme, ink, grid, paper and palette of a finished figure are
replaced by those of ``fairlane.views.style.DARK``.
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fairlane.core.wording import seconds
from fairlane.results.run import Run
from fairlane.views.style import DARK, LIGHT, Look

INK, MUTED, GRID = LIGHT.ink, LIGHT.muted, LIGHT.grid
PALETTE = list(LIGHT.palette)
EMPTY = "#eeeeee"
"""Colour of cells without a value."""
LETTERS_AN_INCH = 11.5  # how many letters of a note fit on an inch

_DARK = {to_rgb(getattr(LIGHT, name)): getattr(DARK, name) for name in ("ink", "muted", "grid", "paper")}
_DARK |= {to_rgb("black"): DARK.ink, to_rgb(EMPTY): "#26282b"}
_DARK |= {to_rgb(light): dark for light, dark in zip(LIGHT.palette, DARK.palette, strict=True)}
_SETTERS = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")
_STYLE: dict[str, object] = {
    "figure.dpi": 100,
    "savefig.dpi": 150,
    "figure.facecolor": "white",
    "font.family": "DejaVu Sans",
    "font.size": 12,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.labelsize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}


def styled() -> AbstractContextManager[None]:
    """The house style, for the figures drawn and saved within."""
    return matplotlib.rc_context(_STYLE)  # type: ignore[arg-type]


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each name, in order of first appearance; they repeat after eight."""
    distinct = list(dict.fromkeys(names))
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(distinct)}


def what_of(run: Run) -> str:
    """Name the run of a figure, as a sentence."""
    meta = run.meta
    partial = " (partial: interrupted)" if meta.partial else ""
    return f"{meta.scenario}, {seconds(meta.simulated_s)} simulated, seed {meta.seed}{partial}."


def headline_of(figure: Figure, title: str, what: str) -> None:
    """A title that says what is seen, and in small letters below it of what."""
    title_of(figure, title)
    lines = wrap(what, width=int(LETTERS_AN_INCH * figure.get_figwidth()))
    figure.supxlabel("\n".join(lines), x=0.012, ha="left", fontsize=10, color=MUTED)


def title_of(figure: Figure, title: str) -> None:
    """A title over the whole width, in smaller letters where it is long."""
    longest = max(map(len, title.split("\n")))
    size = min(16.0, 9.4 * LETTERS_AN_INCH * figure.get_figwidth() / max(longest, 1))
    figure.suptitle(title, x=0.012, ha="left", fontsize=size, fontweight="bold")


def canvas(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, with a margin around what is drawn."""
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", w_pad=0.12, h_pad=0.12)
    return figure


def changes(axis: Axis) -> None:
    """Ticks at changes of a share of one, written as percent with a sign and as many decimals as they need."""

    def write(value: float, _position: int | None) -> str:
        number = round(100 * value, 6)
        return f"{number:{'+' if number else ''}.6g}%".replace("-", "−")

    axis.set_major_formatter(FuncFormatter(write))


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
