"""The figure of a paper's claims: every number of every clause over replicates against its band.

Rows have different units, so each has a scale of its own on which the edges of its band are at fixed places. Where a
band has two edges their distance is the unit; where it has one, the unit is the size of the edge: a value of twice the
edge is one unit from it. Where the edge is zero the unit is the largest distance.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import isfinite, isnan
from pathlib import Path
from textwrap import shorten

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairlane.plot.boxes import spread
from fairlane.plot.files import write
from fairlane.plot.style import INK, MUTED, PALETTE, canvas, headline_of
from fairlane.reproduce.figures import Picture
from fairlane.reproduce.folder import BAND
from fairlane.reproduce.judging import Finding
from fairlane.reproduce.planning import Plan
from fairlane.reproduce.verdicts import ClaimVerdict, ClauseVerdict, Measured
from fairlane.wording import plural, significant

FILE = "claims.png"
LOWER, UPPER = 0.0, 1.0
"""Places of a band's edges."""
LEFT, RIGHT = -1.2, 2.2
"""Ends of the scale: values beyond them are drawn there, as arrows."""
_BAND, _WITHIN, _OUTSIDE = "#dfe8f2", PALETTE[0], PALETTE[1]
_ROW_IN, _FRAME_IN, _WIDTH_IN = 0.3, 1.7, 15.0
_LETTERS = 62
_COLUMNS = ((0.0, "median (range)"), (0.48, "band"), (0.7, "in it"), (0.8, "verdict"))
"""Places and titles of the columns of text."""


def numbers(one: ClaimVerdict) -> Iterator[tuple[ClauseVerdict, Measured]]:
    """Every number of a claim, with its clause."""
    for clause in one.clauses:
        for number in clause.numbers:
            yield clause, number


def band_of(number: Measured, clause: ClauseVerdict) -> str:
    """The band in the first replicate, as text; with a tilde where it differs between replicates."""
    first, found = number.first, BAND.fullmatch(clause.clause.band)
    differs = len({(it.low, it.high) for it in number.findings.values()}) > 1
    about = "~" if differs else ""
    ends = ["–" if it is None or isnan(it) else significant(it) for it in (first.low, first.high)]
    if found is None or not found["operator"]:
        return f"{about}{ends[0]} to {ends[1]}"
    return f"{found['operator']} {about}{ends[0] if first.low is not None else ends[1]}"


def spread_of(number: Measured) -> str:
    """Median and range over replicates, as text."""
    if number.summary is None:
        return "–"
    middle, least, greatest = (significant(it) for it in number.summary)
    return middle if least == greatest else f"{middle} ({least} to {greatest})"


def place(finding: Finding, unit: float) -> float:
    """Where a value stands on the row's scale; ``unit`` is used unless the band has two edges."""
    low, high, value = finding.low, finding.high, finding.value
    if low is not None and high is not None:
        return LOWER + (value - low) / (high - low) if high > low else (LOWER + UPPER) / 2 + (value - low) / unit
    return LOWER + (value - low) / unit if low is not None else UPPER + (value - (high or 0.0)) / unit


def unit_of(number: Measured) -> float:
    """The size of the only edge of the first replicate's band; where it is zero, the largest distance from it."""
    edges = [abs(edge) for edge in (number.first.low, number.first.high) if edge and isfinite(edge)]
    if edges:
        return max(edges)
    distances = [abs(it.margin) for it in number.findings.values() if isfinite(it.margin)]
    return max(distances, default=0.0) or 1.0


def draw_claims(plan: Plan, verdicts: Sequence[ClaimVerdict], folder: Path) -> list[Picture]:
    """Draws the figure into the folder; nothing without any number."""
    shown = [replace(one, under=()) for claim in verdicts for one in claim.settings if one.clauses]
    if not shown:
        return []
    most = max(one.complete for one in shown)
    title = f"{plan.folder.paper.title}: claims over {plural(max(1, most), 'replicate')}"
    write(_picture(shown, title), folder / FILE)
    return [Picture(FILE, title)]


def _picture(verdicts: Sequence[ClaimVerdict], title: str) -> Callable[[], Figure]:
    def make() -> Figure:
        rows = len(verdicts) + sum(len(clause.numbers) for one in verdicts for clause in one.clauses)
        figure = canvas(_WIDTH_IN, _FRAME_IN + _ROW_IN * rows)
        grid = figure.add_gridspec(1, 2, width_ratios=(1.0, 1.0))
        axes = figure.add_subplot(grid[0])
        table = figure.add_subplot(grid[1], sharey=axes)
        _rows(axes, table, verdicts)
        _frame(axes, table, rows)
        note = (
            "A dot is a replicate, the one with a ring replicate 1; shaded is the band. Each row has its own scale: "
            "edges of bands are at fixed places; where a band has one edge, twice its value is one unit away. "
            "Arrows: farther out. A clause holds if all its numbers are in their bands in 90% of the replicates."
        )
        headline_of(figure, title, note)
        return figure

    return make


def _rows(axes: Axes, table: Axes, verdicts: Sequence[ClaimVerdict]) -> None:
    at, places, labels, heads = 0, [], [], []
    last = None
    for one in verdicts:
        places.append(at)
        labels.append(one.title)
        heads.append(len(labels) - 1)
        table.text(0.0, at, one.words, va="center", fontsize=10, fontweight="bold")
        at += 1
        for clause, number in numbers(one):
            _row(axes, at, number)
            share = f"{number.held}/{len(number.findings)}"
            texts = (spread_of(number), band_of(number, clause), share, "" if clause is last else clause.words)
            last = clause
            for (x, _), text in zip(_COLUMNS, texts, strict=True):
                table.text(x, at, text, va="center", fontsize=9.5, color=INK)
            places.append(at)
            labels.append(shorten(number.label, _LETTERS, placeholder=" …"))
            at += 1
    axes.set_yticks(places, labels, fontsize=9.5)
    for head in heads:
        axes.get_yticklabels()[head].set_fontweight("bold")


def _row(axes: Axes, at: int, number: Measured) -> None:
    """The band and the dots of one number."""
    first, unit = number.first, unit_of(number)
    begin = LEFT if first.low is None else LOWER
    end = RIGHT if first.high is None else UPPER
    if first.low is not None and first.low == first.high:
        begin, end = (LOWER + UPPER) / 2 - 0.02, (LOWER + UPPER) / 2 + 0.02
    axes.barh(at, end - begin, left=begin, height=0.72, color=_BAND, linewidth=0, zorder=1)
    edges = [edge for edge, of in ((begin, first.low), (end, first.high)) if of is not None]
    axes.vlines(edges, at - 0.36, at + 0.36, color=MUTED, linewidth=1.2, zorder=2)
    found = [(number_of, it) for number_of, it in number.findings.items() if not isnan(it.margin)]
    for (replicate, it), shift in zip(found, spread(len(found), 0.18), strict=True):
        x = place(it, unit)
        marker = "<" if x < LEFT else ">" if x > RIGHT else "o"
        ring = {"edgecolors": INK, "linewidths": 1.1} if replicate == 1 else {"linewidths": 0}
        colour = _WITHIN if it.holds else _OUTSIDE
        where = at + (shift if len(found) > 1 else 0.0)
        axes.scatter(min(max(x, LEFT), RIGHT), where, s=30, marker=marker, color=colour, zorder=3, alpha=0.85, **ring)


def _frame(axes: Axes, table: Axes, rows: int) -> None:
    """The ends of the scale, the legend, titles of the columns."""
    axes.set_xticks((LOWER, UPPER), ("lower edge", "upper edge"), fontsize=10)
    axes.set_xlim(LEFT - 0.1, RIGHT + 0.1)
    axes.set_ylim(rows - 0.4, -1.2)
    axes.spines["bottom"].set_visible(False)
    within, outside = (axes.scatter([], [], s=30, color=colour) for colour in (_WITHIN, _OUTSIDE))
    axes.legend([within, outside], ["in the band", "outside"], loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    table.set_axis_off()
    table.set_xlim(0, 1)
    for x, title in _COLUMNS:
        table.text(x, -0.9, title, va="center", fontsize=9.5, color=MUTED)
