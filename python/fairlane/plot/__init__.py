"""Pictures of a run, a study or a sweep of loads: how much jobs are slowed down, by whom, and where in the fabric.

A new figure is one file with a ``draw(run)`` and one line in ``FIGURES``.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from matplotlib.figure import Figure

from fairlane.plot import (
    interference,
    iterations,
    power,
    saturation,
    slowdown,
    study,
    study_conditions,
    timeline,
    utilisation,
)
from fairlane.plot.style import styled
from fairlane.results.errors import ResultsError
from fairlane.results.run import Run
from fairlane.results.study import StudyResults
from fairlane.saturation.results import Saturation

__all__ = ["FIGURES", "ON_DEMAND_FIGURES", "SATURATION_FIGURES", "STUDY_FIGURES", "draw_all"]

_T = TypeVar("_T")

FIGURES: dict[str, Callable[[Run], Figure | None]] = {
    "slowdown.png": slowdown.draw,
    "interference.png": interference.draw,
    "utilisation.png": utilisation.draw,
}
"""File name to the function that draws it; None when the run has nothing to show there."""

ON_DEMAND_FIGURES: dict[str, Callable[[Run], Figure | None]] = {
    "timeline.png": timeline.draw,
    "iterations.png": iterations.draw,
    "power.png": power.draw,
}
"""The same for the tables that a run has only if its scenario asked for them."""

STUDY_FIGURES: dict[str, Callable[[StudyResults], Figure | None]] = {
    "work.png": study.draw,
    "conditions.png": study_conditions.draw,
}
"""The same for studies."""

SATURATION_FIGURES: dict[str, Callable[[Saturation], Figure | None]] = {"saturation.png": saturation.draw}
"""The same for sweeps of loads."""


def draw_all(results: Run | StudyResults | Saturation) -> list[Path]:
    """Draws every figure that a run, a study or a sweep has data for into its folder, and returns their paths.

    Raises:
        ResultsError: it has no folder, or the folder cannot be written.
    """
    if results.folder is None:
        raise ResultsError("the run is only in memory; save it before drawing it")
    if isinstance(results, StudyResults):
        return _draw(results, STUDY_FIGURES, results.folder)
    if isinstance(results, Saturation):
        return _draw(results, SATURATION_FIGURES, results.folder)
    return _draw(results, {**FIGURES, **ON_DEMAND_FIGURES}, results.folder)


def _draw(results: _T, figures: Mapping[str, Callable[[_T], Figure | None]], folder: Path) -> list[Path]:
    drawn = []
    for name, draw in figures.items():
        path = folder / name
        with styled():
            figure = draw(results)
            if figure is None:
                path.unlink(missing_ok=True)
                continue
            try:
                figure.savefig(path)
            except OSError as error:
                raise ResultsError(f"{path}: cannot be written: {error.strerror}") from error
        drawn.append(path)
    return drawn
