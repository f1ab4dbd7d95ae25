"""Grids as policies see them: sides, coordinates, and orders in which a line winds through all hosts.

``number`` is the order of host numbers, on a grid with dimension 0 fastest. ``snake`` reverses at the end of each
line, and ``hilbert`` follows Hilbert's curve through the smallest cube around the grid whose side is a power of two
(J. Skilling, "Programming the Hilbert curve", AIP Conf. Proc. 707, 2004), which keeps what is near on the line near in
the grid. The snake goes from neighbour to neighbour, and so does Hilbert's curve where all sides are powers of two and
the longest is at most twice the shortest; elsewhere it jumps over what is missing of the cube.
"""

from typing import Literal

import numpy
from numpy.typing import NDArray

from fairlane.core.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.model.placement.base import FabricView

Curve = Literal["number", "snake", "hilbert"]
"""An order of all hosts."""

Ints = NDArray[numpy.int64]


def sides_of(fabric: FabricView) -> tuple[int, ...] | None:
    """The sides of a grid of switches that all have equally many hosts; None if the fabric is no such grid."""
    if fabric.plan["kind"] != "grid":
        return None
    sides = tuple(fabric.plan["sides"])
    return sides if fabric.hosts % int(numpy.prod(sides)) == 0 else None


def coordinates(fabric: FabricView, sides: tuple[int, ...]) -> Ints:
    """The place of each host's switch in the grid: a row for each host."""
    return numpy.stack(numpy.unravel_index(numpy.asarray(fabric.leaf_of), sides, order="F"), axis=1).astype(numpy.int64)


def check_curve(fabric: FabricView, curve: Curve, key: str) -> None:
    """Raises ``Problems`` about ``key`` if the fabric has no such order."""
    if curve != "number" and sides_of(fabric) is None:
        message = f"the fabric is no grid (it is laid out as {fabric.plan['kind']!r})"
        raise Problems(Problem(key, message, curve, 'number; the others on fabrics such as "torus"'))


def host_order(fabric: FabricView, curve: Curve) -> list[int]:
    """All hosts in the order of the curve; those of one switch follow each other."""
    sides = sides_of(fabric)
    if curve == "number" or sides is None:
        return list(range(fabric.hosts))
    places = coordinates(fabric, sides)
    keys = _snake(places, sides) if curve == "snake" else _hilbert(places, sides)
    order: list[int] = numpy.lexsort(keys).tolist()
    return order


def _snake(places: Ints, sides: tuple[int, ...]) -> list[Ints]:
    """Sort keys, the least significant first: a coordinate runs backwards where the sum of those above it is odd."""
    above = places[:, ::-1].cumsum(axis=1)[:, ::-1] - places
    return [numpy.where(above[:, at] % 2, side - 1 - places[:, at], places[:, at]) for at, side in enumerate(sides)]


def _hilbert(places: Ints, sides: tuple[int, ...]) -> list[Ints]:
    """Sort keys, the least significant first. Short sides come first: then half a cube is the curve's first half."""
    bits = max(1, (max(sides) - 1).bit_length())
    axes = places[:, numpy.argsort(sides, kind="stable")].T.copy()
    _to_transpose(axes, bits)
    return [axis >> bit & 1 for bit in range(bits) for axis in axes[::-1]]


def _to_transpose(axes: Ints, bits: int) -> None:
    """Turns coordinates, a row for each axis, into the bits of their place on the curve, distributed over the axes."""
    for bit in range(bits - 1, 0, -1):
        low = (1 << bit) - 1
        for at in range(len(axes)):
            is_set = (axes[at] >> bit & 1).astype(bool)
            swapped = numpy.where(is_set, 0, (axes[0] ^ axes[at]) & low)
            axes[0] ^= numpy.where(is_set, low, swapped)
            axes[at] ^= swapped
    for at in range(1, len(axes)):
        axes[at] ^= axes[at - 1]
    flips = numpy.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        flips ^= numpy.where(axes[-1] >> bit & 1, (1 << bit) - 1, 0)
    axes ^= flips
