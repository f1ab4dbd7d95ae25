"""Pictures of a run: how much jobs are slowed down, by whom, and where in the fabric.

A new figure is one file with a ``draw(run)`` and one line in ``FIGURES``.
"""

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from fairlane.plot import interference, slowdown, utilisation
from fairlane.plot.style import styled
from fairlane.results.errors import ResultsError
from fairlane.results.run import Run

__all__ = ["FIGURES", "draw_all"]

FIGURES: dict[str, Callable[[Run], Figure | None]] = {
    "slowdown.png": slowdown.draw,
    "interference.png": interference.draw,
    "utilisation.png": utilisation.draw,
}
"""File name to the function that draws it; None when the run has nothing to show there."""


def draw_all(run: Run) -> list[Path]:
    """Draws every figure that ``run`` has data for into its folder, and returns their paths.

    Raises:
        ResultsError: the run has no folder, or the folder cannot be written.
    """
    if run.folder is None:
        raise ResultsError("the run is only in memory; save it before drawing it")
    drawn = []
    for name, draw in FIGURES.items():
        path = run.folder / name
        with styled():
            figure = draw(run)
            if figure is None:
                path.unlink(missing_ok=True)
                continue
            try:
                figure.savefig(path)
            except OSError as error:
                raise ResultsError(f"{path}: cannot be written: {error.strerror}") from error
        drawn.append(path)
    return drawn
