"""Writing a picture into a file that a user has named."""

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import replacing
from fairlane.plot.panels import Drawn, figure_of
from fairlane.plot.style import styled
from fairlane.plot.theme import save
from fairlane.views.look import Look

FORMATS = (".png", ".svg", ".pdf")  # what a picture's file may be called


def write(draw: Callable[[], Drawn | Figure], path: Path) -> Path:
    """Draws in the house's style and returns the path. Raises ``ScenarioError`` if that is not possible."""
    if path.suffix.lower() not in FORMATS:
        raise ScenarioError(Problem("--out", "unknown picture format", str(path), ", ".join(FORMATS)))
    with styled():
        picture = figure_of(draw())
        try:
            with replacing(path) as scratch:
                save(picture, scratch, Look())
        except OSError as error:
            raise ScenarioError(Problem("", f"cannot be written: {error.strerror}", file=str(path))) from None
    return path
