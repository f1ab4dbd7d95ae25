"""Tori, meshes and HyperX as grids of grids: dimensions 0 and 1 span planes, 2 and 3 a grid of planes, and so on."""

from dataclasses import dataclass

import numpy as np

from fairlane.fabric.places import base
from fairlane.fabric.places.base import Floats
from fairlane.fabric.view import Fabric

SHAPE = 1.3  # width over height that the whole should have


def places(fabric: Fabric) -> tuple[Floats, Floats, Floats]:
    """All switches, the way from each to its hosts, and the room that these have (see ``places.places_of``).

    The planes of a fabric with rails stand side by side.
    """
    sides = list(fabric.plan["sides"])
    if fabric.plan["line"] == "ring" and sum(side > 1 for side in sides) == 1:
        count = int(np.prod(sides))
        found = base.circle(count, count / 2 / np.pi + 0.5)
        outward, room = 0.4 * found / np.hypot(*found.T)[:, None], np.array([0.7, 0.2])
    else:
        found = places_in(sides, steps_of(sides))
        outward, room = np.tile([0.25, -0.25], (len(found), 1)), np.array([0.45, 0.2])
    step = np.array([float(np.ptp(found[:, 0])) + 2.0, 0.0])
    copies = fabric.switches // len(found)
    return np.concatenate([found + at * step for at in range(copies)]), np.tile(outward, (copies, 1)), room


def longest(sides: list[int]) -> int:
    """The number of the longest side."""
    return int(np.argmax(sides))


@dataclass(frozen=True)
class Step:
    """How the switches along one dimension stand: along which axis (0 to the right, 1 down), how far apart."""

    axis: int
    offset: float
    block: tuple[float, float]  # width and height of what is repeated along it


def steps_of(sides: list[int]) -> list[Step]:
    """A step for each dimension: the first two span a plane, each further one goes where it makes the better shape."""
    steps: list[Step] = []
    extent = [0.0, 0.0]
    for number, side in enumerate(sides):
        gaps = [1.6 + 0.9 * sum(step.axis == axis for step in steps[2:]) for axis in (0, 1)]
        grown = [extent[axis] + (extent[axis] + gaps[axis]) * (side - 1) + 1 for axis in (0, 1)]
        wide, tall = grown[0] / (extent[1] + 1), (extent[0] + 1) / grown[1]
        axis = number if number < 2 else int(abs(np.log(tall / SHAPE)) < abs(np.log(wide / SHAPE)))
        offset = 1.0 if number < 2 else extent[axis] + gaps[axis]
        steps.append(Step(axis, offset, (extent[0], extent[1])))
        extent[axis] += offset * (side - 1)
    return steps


def places_in(sides: list[int], steps: list[Step]) -> Floats:
    """All switches of a plane, x to the right and y upwards."""
    count = int(np.prod(sides))
    rest, places = np.arange(count), np.zeros((count, 2))
    for side, step in zip(sides, steps, strict=True):
        places[:, step.axis] += rest % side * step.offset * (-1 if step.axis else 1)
        rest = rest // side
    return places
