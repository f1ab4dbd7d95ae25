"""Boxes on tori and meshes: a job gets a contiguous block of switches, as on Blue Gene, and a torus is a block too.

The shapes with names are those of Yang 2016, Fig. 8a, for any number of dimensions and hosts. Of all boxes with enough
hosts they are those in which two switches are least far apart on average, around the ends of rings or not: of all
shapes the ``cube``; of those at most half as thick as the cube the ``prism``; of those in one plane the ``plane``.
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import prod
from typing import Annotated, Literal

import numpy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from pydantic import Field
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.core.wording import plural
from fairlane.inputs.problems import Problems
from fairlane.model.placement.base import FabricView, PlacementPolicy, Request
from fairlane.model.placement.domain import Fit
from fairlane.model.placement.grid import sides_of

Name = Literal["cube", "prism", "plane"]
Shape = tuple[int, ...]
Ints = NDArray[numpy.int64]


class Box(PlacementPolicy):
    """A contiguous box of switches on a torus or mesh, of a given or a named shape; no hosts if none is free."""

    shape: Name | list[Annotated[int, Field(ge=1)]] = "cube"
    """Switches along each dimension; or the most balanced box with room for the job (cube), an unbalanced one (prism),
    or one that is flat (plane). A box may have more hosts than the job takes."""
    fit: Fit = "first"
    """Among the free boxes: the first one by host number, or the one with the fewest free neighbouring switches."""
    rotate: bool = False
    """Whether a given shape may be rotated; named shapes always are."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        sides = sides_of(fabric)
        if sides is None:
            return None
        per_switch = fabric.hosts // prod(sides)
        is_ring = fabric.plan["line"] == "ring"
        hosts_of = numpy.argsort(numpy.asarray(fabric.leaf_of), kind="stable").reshape(-1, per_switch)
        is_free = numpy.zeros(fabric.hosts, bool)
        is_free[list(free)] = True
        grid: Ints = numpy.all(is_free[hosts_of], axis=1).astype(numpy.int64).reshape(sides, order="F")
        for shape in self._shapes(-(-request.hosts // per_switch), sides):
            start = _place(grid, shape, self.fit, is_ring=is_ring)
            if start is not None:
                switches = _switches(start, shape, sides)
                chosen: list[int] = hosts_of[switches].ravel()[: request.hosts].tolist()
                return chosen
        return None

    def _shapes(self, switches: int, sides: Shape) -> Iterator[Shape]:
        """The shapes to try, the one as given first."""
        shape = named_shape(self.shape, switches, sides) if isinstance(self.shape, str) else tuple(self.shape)
        if shape is None or prod(shape) < switches:
            return
        turned = permutations(shape) if self.rotate or isinstance(self.shape, str) else [shape]
        for turned_shape in dict.fromkeys(turned):
            if len(turned_shape) == len(sides) and all(
                length <= side for length, side in zip(turned_shape, sides, strict=True)
            ):
                yield turned_shape

    @override
    def check(self, fabric: FabricView, hosts: Sequence[int]) -> None:
        sides = sides_of(fabric)
        if sides is None:
            message = f"needs a grid of switches (the fabric is laid out as {fabric.plan['kind']!r})"
            raise Problems(Problem("name", message, "box", 'fabrics such as "torus"'))
        per_switch = fabric.hosts // prod(sides)
        most = max(hosts, default=1)
        if isinstance(self.shape, str):
            if named_shape(self.shape, -(-most // per_switch), sides) is None:
                message = f"no such box of the fabric has {plural(most, 'host')}"
                raise Problems(Problem("shape", message, self.shape, f"boxes within {_written(sides)}"))
            return
        if not list(self._shapes(1, sides)):
            turned = " (turned or not)" if self.rotate else ""
            raise Problems(Problem("shape", f"does not fit the grid{turned}", self.shape, f"within {_written(sides)}"))
        room = prod(self.shape) * per_switch
        if room < most:
            raise Problems(
                Problem(
                    "shape", f"has {room} hosts, and a job needs {most}", self.shape, f"at least {plural(most, 'host')}"
                )
            )

    @override
    def wanted(self) -> str:
        shape = self.shape if isinstance(self.shape, str) else f"box of {_written(self.shape)} switches"
        return f"a free {shape} in one piece"


def _written(sides: Sequence[int]) -> str:
    return " x ".join(map(str, sides))


def named_shape(name: Name, switches: int, sides: Shape) -> Shape | None:
    """The box of that name with at least so many switches, longer sides first where it does not matter."""
    boxes = numpy.stack([axis.ravel() for axis in numpy.indices(sides)], axis=1) + 1
    boxes = boxes[boxes.prod(axis=1) >= switches]
    if name == "plane":
        boxes = boxes[(boxes > 1).sum(axis=1) <= 2]
    if name == "prism":
        cube = named_shape("cube", switches, sides)
        thick = (
            min(length for length, side in zip(cube, sides, strict=True) if side > 1) if cube and prod(sides) > 1 else 1
        )
        thin = numpy.where(numpy.array(sides) > 1, boxes, max(sides)).min(axis=1)
        boxes = boxes[thin <= max(1, thick // 2)]
    if not len(boxes):
        return None
    # The mean of |i - j| over all pairs of places on a line of s is (s - 1/s) / 3.
    apart = numpy.round(((boxes - 1 / boxes) / 3).sum(axis=1), 9)
    keys = [*(-boxes.T[::-1]), boxes.prod(axis=1), apart]
    return tuple(boxes[numpy.lexsort(keys)[0]].tolist())


def _place(grid: Ints, shape: Shape, fit: Fit, *, is_ring: bool) -> tuple[int, ...] | None:
    """Where a box begins all of whose switches are free."""
    room: Ints = grid
    for axis, length in enumerate(shape):
        room = _sums(room, axis, length, is_ring=is_ring)
    places = numpy.flatnonzero(room.ravel(order="F") == prod(shape))
    if not len(places):
        return None
    if fit == "best":
        around = _around(grid, shape, is_ring=is_ring).ravel(order="F")
        chosen = places[numpy.argmin(around[places])]
    else:
        chosen = places[0]
    return tuple(int(at) for at in numpy.unravel_index(chosen, grid.shape, order="F"))


def _padded(cells: Ints, axis: int, before: int, after: int, *, is_ring: bool) -> Ints:
    """The cells with more along an axis: those of the other end of a ring, or zeros."""
    widths = [(before, after) if at == axis else (0, 0) for at in range(cells.ndim)]
    return numpy.pad(cells, widths, mode="wrap" if is_ring else "constant")


def _sums(cells: Ints, axis: int, length: int, *, is_ring: bool) -> Ints:
    """For every cell the sum of ``length`` cells along an axis, itself first."""
    sums: Ints = sliding_window_view(_padded(cells, axis, 0, length - 1, is_ring=is_ring), length, axis).sum(axis=-1)
    return sums


def _around(grid: Ints, shape: Shape, *, is_ring: bool) -> Ints:
    """For every place of a box the number of free switches that touch it."""
    total: Ints = numpy.zeros(grid.shape, numpy.int64)
    for axis, (length, side) in enumerate(zip(shape, grid.shape, strict=True)):
        if length == side:
            continue
        face = grid
        for other, breadth in enumerate(shape):
            if other != axis:
                face = _sums(face, other, breadth, is_ring=is_ring)
        layers = _padded(face, axis, 1, length, is_ring=is_ring)
        total += numpy.take(layers, range(length + 1, length + 1 + side), axis)
        if not (is_ring and side == length + 1):  # else the layer before is the layer after
            total += numpy.take(layers, range(side), axis)
    return total


def _switches(start: Shape, shape: Shape, sides: Shape) -> Ints:
    """The numbers of a box's switches, dimension 0 fastest."""
    places = numpy.stack([axis.ravel(order="F") for axis in numpy.indices(shape)])
    wrapped = (places + numpy.array(start)[:, None]) % numpy.array(sides)[:, None]
    numbers: Ints = numpy.ravel_multi_index(tuple(wrapped), sides, order="F").astype(numpy.int64)
    return numbers
