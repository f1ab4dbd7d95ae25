"""Pictures of fabrics: small ones in full, large ones by group or subtree with counts.

Dragonflies are rings of groups with global links as chords, tori grids of grids, trees rows of levels.
"""

from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.files import replacing
from fairlane.model.fabric.view import Fabric
from fairlane.views.drawing import grid, groups, levels
from fairlane.views.drawing.runs import Drawn, Given, figure_of
from fairlane.views.drawing.style import save, styled
from fairlane.views.style import Look

__all__ = ["draw", "write_figure"]

FORMATS = (".png", ".svg", ".pdf")


def draw(fabric: Fabric, axes: Given = None) -> Drawn:
    """The picture of a fabric, by its plan. A fabric of many groups has two panels, any other one."""
    match fabric.plan["kind"]:
        case "groups":
            return groups.draw(fabric, axes)
        case "grid":
            return grid.draw_grid(fabric, axes)
        case _ if len(set(fabric.levels)) > 1 or fabric.switches == 1:
            return levels.draw(fabric, axes)
        case _:
            return grid.draw_ring(fabric, axes)


def write_figure(fabric: Fabric, path: Path) -> Path:
    """Draws a fabric into a file and returns its path. Raises ``ScenarioError`` if that is not possible."""
    if path.suffix.lower() not in FORMATS:
        raise ScenarioError(Problem("--out", "unknown picture format", str(path), ", ".join(FORMATS)))
    with styled():
        picture = figure_of(draw(fabric))
        try:
            with replacing(path) as scratch:
                save(picture, scratch, Look())
        except OSError as error:
            raise ScenarioError(Problem("", f"cannot be written: {error.strerror}", file=str(path))) from None
    return path
