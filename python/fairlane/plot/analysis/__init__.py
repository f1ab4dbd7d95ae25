"""Figures of an analysis: one file each, with ``draw(analysis, axes=None)``, None if it has nothing to show.

A new figure is a file and a line in ``FIGURES``.
"""

from pathlib import Path

from matplotlib.figure import Figure

from fairlane.analysis.result import Analysis
from fairlane.errors import Problem, ScenarioError
from fairlane.plot import Draw, draw_into, draw_new
from fairlane.plot.analysis import breakdown, chain, delays, flits, flits_waits, iterations, waits
from fairlane.plot.panels import Drawn, Given

__all__ = ["FIGURES", "draw_all", "show"]

FIGURES: dict[str, Draw] = {
    "breakdown": breakdown.draw,
    "iterations": iterations.draw,
    "waits": waits.draw,
    "delays": delays.draw,
    "flits-waits": flits_waits.draw,
    "flits": flits.draw,
    "walk": chain.draw,
}
"""What draws each, by name."""


def show(found: Analysis, name: str, axes: Given = None) -> Drawn | Figure:
    """Draws a figure by name and returns its axes; without ``axes`` in a new figure that notebooks show.

    Raises:
        ScenarioError: there is no such figure, or nothing to show in it.
        ResultsError: ``axes`` are more or fewer than the figure has panels.
    """
    if name not in FIGURES:
        raise ScenarioError(Problem.unknown("figure", "figure", name, list(FIGURES), name))
    drawn: Drawn | Figure | None = draw_new(found, name, FIGURES[name], axes)
    if drawn is None:
        raise ScenarioError(Problem("figure", "there is nothing to show in it: the analysis lacks its data", name))
    return drawn


def draw_all(found: Analysis, folder: Path) -> list[Path]:
    """Draws every figure that an analysis has data for into a folder, and returns their paths.

    Raises:
        ResultsError: the folder cannot be written.
    """
    return [path for name, draw in FIGURES.items() if (path := draw_into(folder, found, name, draw))]
