"""Pictures of an analysis: one file each, with a function from an analysis to a figure, None if it has nothing to show.

A new picture is a file and a line in ``FIGURES``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from fairlane.analysis.result import Analysis
from fairlane.plot.analysis.breakdown import draw as draw_breakdown
from fairlane.plot.analysis.chain import draw as draw_chain
from fairlane.plot.analysis.delays import draw as draw_delays
from fairlane.plot.analysis.flits import draw as draw_flits
from fairlane.plot.analysis.flits_waits import draw as draw_flits_waits
from fairlane.plot.analysis.periods import draw as draw_periods
from fairlane.plot.analysis.waits import draw as draw_waits
from fairlane.plot.style import styled
from fairlane.results.errors import ResultsError

__all__ = ["FIGURES", "draw_all"]

FIGURES: dict[str, Callable[[Analysis], Figure | None]] = {
    "breakdown.png": draw_breakdown,
    "iterations.png": draw_periods,
    "waits.png": draw_waits,
    "delays.png": draw_delays,
    "flits-waits.png": draw_flits_waits,
    "flits.png": draw_flits,
    "walk.png": draw_chain,
}
"""File name to the function that draws it."""


def draw_all(found: Analysis, folder: Path) -> list[Path]:
    """Draws every picture that an analysis has data for into a folder, and returns their paths.

    Raises:
        ResultsError: the folder cannot be written.
    """
    drawn = []
    for name, draw in FIGURES.items():
        path = folder / name
        with styled():
            figure = draw(found)
            try:
                if figure is None:
                    path.unlink(missing_ok=True)
                    continue
                figure.savefig(path)
            except OSError as error:
                raise ResultsError(f"{path}: cannot be written: {error.strerror}") from error
        drawn.append(path)
    return drawn
