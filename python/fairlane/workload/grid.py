"""Workloads on a grid of ranks: its sides, given or as equal as the number of ranks allows, its neighbours and rows."""

from collections.abc import Sequence
from math import prod
from typing import Annotated, ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.workload.base import Workload
from fairlane.workload.builder import Rank

ROW, COLUMN = 2, 3
"""Names of the communicators of ``Pencils``; 0 and 1 are the world and the rank itself."""


def grid_shape(ranks: int, dimensions: int = 2) -> tuple[int, ...]:
    """The most cubic grid of exactly this many ranks, shorter sides first."""
    if dimensions == 1:
        return (ranks,)
    target = ranks ** (1 / dimensions)
    side = max(side for side in range(1, int(target + 1e-9) + 1) if ranks % side == 0)
    return tuple(sorted((side, *grid_shape(ranks // side, dimensions - 1))))


def neighbours(
    rank: int, shape: tuple[int, ...], offsets: Sequence[tuple[int, ...]], *, periodic: bool = False
) -> list[int]:
    """The ranks at ``offsets`` from ``rank`` in a row-major grid, which wraps around if it is ``periodic``.

    A rank that meets another in both directions, along a side of two, has it twice; itself it never has.
    """
    strides = [prod(shape[axis + 1 :]) for axis in range(len(shape))]
    place = [rank // stride % side for stride, side in zip(strides, shape, strict=True)]
    ranks = []
    for offset in offsets:
        there = [at + step for at, step in zip(place, offset, strict=True)]
        if periodic:
            there = [at % side for at, side in zip(there, shape, strict=True)]
        if there != place and all(0 <= at < side for at, side in zip(there, shape, strict=True)):
            ranks.append(sum(at * stride for at, stride in zip(there, strides, strict=True)))
    return ranks


def around(rank: int, shape: tuple[int, ...], axis: int, stride: int = 1) -> tuple[int, int]:
    """The ranks ``stride`` before and after ``rank`` along an axis of a row-major grid with wraparound."""
    inner = prod(shape[axis + 1 :])
    place = rank // inner % shape[axis]
    before, after = ((place + step) % shape[axis] for step in (-stride, stride))
    return rank + (before - place) * inner, rank + (after - place) * inner


def exchange_faces(rank: Rank, shape: tuple[int, ...], side: int, cell: int, stride: int = 1) -> None:
    """Exchanges the faces of a cube of ``side`` cells with both ranks along each axis of a grid with wraparound.

    A cell has ``cell`` bytes. Axis by axis: a face has the cells that came along the axes before, too. Along an axis
    where the rank is its own neighbour there is nothing to exchange.
    """
    wide = side + 2
    for axis, cells in zip((2, 1, 0), (side * side, wide * side, wide * wide), strict=True):
        both = around(rank.index, shape, axis, stride)
        if both[0] == rank.index:
            continue
        for source in both:
            rank.irecv(source, tag=axis)
        for target in both:
            rank.isend(target, cell * cells, tag=axis)
        rank.wait_all()


class GriddedWorkload(Workload):
    """A workload whose ranks are in a row-major grid."""

    dimensions: ClassVar[int] = 3
    """Dimensions of the grid."""

    grid: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None, description="sides of the grid of ranks; without it as equal as the number of ranks allows"
    )

    @override
    def problem_with(self, ranks: int) -> str | None:
        if self.grid is not None and (len(self.grid) != self.dimensions or prod(self.grid) != ranks):
            sides = " x ".join(map(str, grid_shape(ranks, self.dimensions)))
            return f"a grid of {self.dimensions} sides whose product is the number of ranks, as {sides}"
        return super().problem_with(ranks)

    def shape(self, ranks: int) -> tuple[int, ...]:
        """The sides of the grid; the last coordinate is that of consecutive ranks."""
        return tuple(self.grid) if self.grid is not None else grid_shape(ranks, self.dimensions)


class Pencils(Workload):
    """A workload whose ranks are in rows and columns, each of which has a communicator."""

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        columns = grid_shape(rank.ranks)[-1]
        rank.comm_split(ROW, rank.index // columns, rank.index, name="row")
        rank.comm_split(COLUMN, rank.index % columns, rank.index, name="column")
        super().write(rank, stages)
