"""Pictures of fabrics: small ones in full, large ones by group or subtree with counts.

Dragonflies are rings of groups with global links as chords, tori grids of grids, trees rows of levels.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from fairlane.fabric.view import Fabric
from fairlane.plot.fabric import grid, groups, levels, ring
from fairlane.plot.files import write

__all__ = ["draw", "figure"]


def figure(fabric: Fabric) -> Figure:
    """The picture of a fabric, by its plan; in the style that is current."""
    match fabric.plan["kind"]:
        case "groups":
            return groups.figure(fabric)
        case "grid":
            return grid.figure(fabric)
        case _ if len(set(fabric.levels)) > 1 or fabric.switches == 1:
            return levels.figure(fabric)
        case _:
            return ring.figure(fabric)


def draw(fabric: Fabric, path: Path) -> Path:
    """Draws a fabric into a file and returns its path. Raises ``ScenarioError`` if that is not possible."""
    return write(lambda: figure(fabric), path)
