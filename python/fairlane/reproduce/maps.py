"""The figures of robustness maps: clauses of a paper against its parameters, and the clauses of several papers."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten

import numpy
import polars as pl
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from fairlane.plot.files import write
from fairlane.plot.heat import EMPTY, HEAT
from fairlane.plot.style import INK, MUTED, PALETTE, canvas, headline_of
from fairlane.results.reproduction import CALIBRATED, DEPENDS, RARE, ROBUST, TOO_FEW

FILE = "robustness.png"
CLAUSE = ("a clause", "holds", "the clause's margin")
"""What a row of a paper's map is, in its caption."""
COLOURS = {ROBUST: PALETTE[0], DEPENDS: PALETTE[1], RARE: PALETTE[2], CALIBRATED: "#b5b5b5", TOO_FEW: "#d9d9d9"}
"""Of bars, by verdict."""
_ROW_IN, _FRAME_IN = 0.3, 2.9
_CELL_IN, _TEXT_IN, _BAR_IN = 0.5, 5.4, 2.2
_LETTERS, _TITLE_LETTERS = 58, 48
_PAGE_ROW_IN, _PAGE_WIDTH_IN, _ONE_WIDTH_IN = 0.245, 19.0, 13.0
_DARK = 0.45
"""Indices from which numbers in cells are white."""


def draw_map(
    clauses: pl.DataFrame, indices: pl.DataFrame, title: str, note: str, folder: Path, *, of: Sequence[str] = CLAUSE
) -> Path | None:
    """Draws clauses by parameters, and next to it the share at which each holds; nothing without clauses.

    ``of`` is what a row is, what it does at a point, and what the index is of, for the caption.
    """
    if not clauses.height:
        return None
    return write(_map(clauses, indices, title, note, of), folder / FILE)


def _map(
    clauses: pl.DataFrame, indices: pl.DataFrame, title: str, note: str, of: Sequence[str]
) -> Callable[[], Figure]:
    names = indices["parameter"].unique(maintain_order=True).to_list()

    def make() -> Figure:
        width = _TEXT_IN + _BAR_IN + _CELL_IN * max(len(names), 6) + 1.4
        figure = canvas(width, _FRAME_IN + _ROW_IN * clauses.height)
        grid = figure.add_gridspec(1, 2, width_ratios=(_BAR_IN, _CELL_IN * max(len(names), 6)))
        bars = figure.add_subplot(grid[0])
        _bars(bars, clauses, fontsize=10)
        if names:
            _cells(figure.add_subplot(grid[1], sharey=bars), clauses, indices, names)
        words = (
            f"Left: share of the points at which {of[0]} {of[1]}, with its 95% interval; blue: at least 90% (robust), "
            "orange: between (depends), red: at most 10%, grey: calibrated; the triangle is the share at the defaults. "
            f"Right: first-order Sobol' index of {of[2]}; numbers are beyond chance."
        )
        headline_of(figure, title, f"{note} {words}".strip())
        return figure

    return make


def _bars(axes: Axes, clauses: pl.DataFrame, fontsize: float) -> None:
    """A row for each clause: its share, the interval, and the share at the defaults."""
    places = numpy.arange(clauses.height)
    colours = [COLOURS[verdict] for verdict in clauses["verdict"]]
    axes.barh(places, clauses["share"].to_numpy(), color=colours, height=0.66, zorder=2)
    axes.hlines(places, clauses["share_low"], clauses["share_high"], color=INK, linewidth=1.3, zorder=3)
    none = clauses["share"].to_numpy() == 0  # bars without length, which show no colour
    axes.scatter(0 * places[none], places[none], c=numpy.array(colours)[none], s=26, zorder=4, clip_on=False)
    usual = clauses.with_row_index("place").filter(pl.col("default_points") > 0)
    shares = (usual["default_held"] / usual["default_points"]).to_numpy()
    axes.scatter(shares, usual["place"].to_numpy() - 0.36, marker="v", s=22, color=INK, zorder=4, clip_on=False)
    axes.set_yticks(places, [shorten(text, _LETTERS, placeholder=" …") for text in clauses["says"]], fontsize=fontsize)
    axes.set_ylim(clauses.height - 0.5, -0.6)
    axes.set_xlim(0, 1)
    axes.set_xticks((0, 0.1, 0.5, 0.9, 1), ("0%", "", "50%", "", "100%"))
    axes.grid(axis="x", zorder=0)


def _cells(axes: Axes, clauses: pl.DataFrame, indices: pl.DataFrame, names: Sequence[str]) -> None:
    """The index of each clause and parameter; numbers where it is beyond chance."""
    values = numpy.full((clauses.height, len(names)), numpy.nan)
    beyond = numpy.zeros(values.shape, bool)
    rows = {key: at for at, key in enumerate(clauses.select("claim", "clause").iter_rows())}
    for claim, clause, name, index, counts in indices.select(
        "claim", "clause", "parameter", "index", "beyond_chance"
    ).iter_rows():
        at = rows[claim, clause], names.index(name)
        values[at], beyond[at] = index, counts
    norm = Normalize(0, 1)
    axes.imshow(
        numpy.ma.masked_invalid(values),
        cmap=HEAT.with_extremes(bad=EMPTY),
        norm=norm,
        aspect="auto",
        interpolation="nearest",
    )
    for row, column in zip(*numpy.nonzero(beyond), strict=True):
        value = values[row, column]
        colour = "white" if value > _DARK else INK
        axes.text(column, row, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=9.5, color=colour)
    axes.set_xticks(range(len(names)), [name.replace("_", " ") for name in names], rotation=45, ha="left", fontsize=10)
    axes.xaxis.tick_top()
    axes.tick_params(axis="y", labelleft=False)
    axes.spines[:].set_visible(False)
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure), "axes are in a figure"
    bar = figure.colorbar(ScalarMappable(norm, HEAT), ax=axes, shrink=0.8, aspect=30, pad=0.02, label="index")
    bar.outline.set_visible(False)


def draw_papers(papers: Mapping[str, pl.DataFrame], path: Path) -> Path:
    """Draws the clauses of several papers, by title: the share at which each holds, and what decides it."""
    columns = _columns(papers)

    def make() -> Figure:
        heights = [sum(papers[title].height + 3 for title in column) for column in columns]
        figure = canvas(_PAGE_WIDTH_IN if len(columns) > 1 else _ONE_WIDTH_IN, 1.9 + _PAGE_ROW_IN * max(heights))
        whole = figure.add_gridspec(1, len(columns))
        for at, column in enumerate(columns):
            rows = [papers[title].height + 2.0 for title in column]
            spare = max(heights) - heights[at]
            ratios = [*rows, spare] if spare else rows
            grid = whole[at].subgridspec(len(ratios), 1, height_ratios=ratios)
            for place, title in enumerate(column):
                _block(figure.add_subplot(grid[place]), papers[title], title)
        _legend(figure)
        note = (
            "Share of the plausible space of what a paper leaves open in which each clause holds, on a small system, "
            "with its 95% interval; the triangle is the share at the defaults, over seeds. To the right: parameters "
            "whose first-order Sobol' index of the clause's margin is beyond chance, the largest first."
        )
        headline_of(figure, "Which findings are robust, and what the others depend on", note)
        return figure

    return write(make, path)


def _columns(papers: Mapping[str, pl.DataFrame]) -> list[list[str]]:
    """Titles in two columns of about equal height, each in the given order."""
    if len(papers) == 1:
        return [[*papers]]
    heights = {title: clauses.height + 3 for title, clauses in papers.items()}
    titles = [*papers]
    splits = range(1, len(titles))
    best = min(splits, key=lambda at: max(sum(map(heights.get, part)) for part in (titles[:at], titles[at:])))  # type: ignore[arg-type]
    return [titles[:best], titles[best:]]


def _block(axes: Axes, clauses: pl.DataFrame, title: str) -> None:
    _bars(axes, clauses, fontsize=9.5)
    axes.set_xlim(0, 2.3)
    axes.set_title(shorten(title, _TITLE_LETTERS, placeholder=" …"), loc="left", fontsize=12, fontweight="bold")
    axes.spines["bottom"].set_visible(False)
    for at, decided in enumerate(clauses["decided_by"]):
        words = decided.replace("_", " ").replace(",", " ·") or "–"
        axes.text(
            1.06, at, shorten(words, 44, placeholder=" …"), va="center", fontsize=9.5, color=INK if decided else MUTED
        )
    axes.set_xticks((0, 0.5, 1), ("0%", "50%", "100%"), fontsize=9)


def _legend(figure: Figure) -> None:
    from matplotlib.patches import Patch

    words = {
        ROBUST: "robust: at 90% of the points or more",
        DEPENDS: "depends",
        RARE: "rarely holds: at 10% or fewer",
        CALIBRATED: "calibrated: an input was chosen by it",
    }
    handles = [Patch(color=COLOURS[name], label=text) for name, text in words.items()]
    if figure.get_figwidth() < _PAGE_WIDTH_IN:  # there is no room beside the title
        figure.legend(handles=handles, loc="outside right upper", fontsize=10.5)
    else:
        figure.legend(handles=handles, loc="outside upper right", ncols=4, fontsize=10.5)
