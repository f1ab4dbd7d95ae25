"""How every figure looks: one palette that colour-blind readers can tell apart, large labels, few lines."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from textwrap import wrap

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fairlane.colours import LIGHT
from fairlane.results.run import Run
from fairlane.views.scales import steps
from fairlane.wording import seconds, significant

INK, MUTED, GRID = LIGHT.ink, LIGHT.muted, LIGHT.grid
PALETTE = list(LIGHT.palette)
LETTERS_AN_INCH = 11.5  # how many letters of a note fit on an inch

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
    """Which run a figure is of, as a sentence."""
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


def percentages(axis: Axis, *, signed: bool = False) -> None:
    """Ticks at shares of one, written as percent with as many decimals as they need."""

    def write(value: float, _position: int | None) -> str:
        number = round(100 * value, 6)
        return f"{number:{'+' if signed and number else ''}.6g}%".replace("-", "−")

    axis.set_major_formatter(FuncFormatter(write))


def plain_ticks(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis that has its limits: at 1, 2 and 5 in each decade, at more on a short one."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=steps(low, high)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: significant(value)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_tick_params(which="minor", length=0)


def bare(axes: Axes) -> None:
    """Leaves the vertical grid as the only line."""
    axes.grid(axis="x")
    axes.tick_params(axis="y", pad=6)
