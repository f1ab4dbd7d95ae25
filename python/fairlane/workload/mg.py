"""MG of the NAS parallel benchmarks: V-cycles of multigrid on a periodic grid (Bailey et al. 1991)."""

from collections.abc import Iterator

from pydantic import Field
from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.builder import Rank
from fairlane.workload.gridded import GriddedWorkload
from fairlane.workload.imbalance import ImbalanceField, Uniform

__all__ = ["Mg", "around", "exchange_faces"]

_WORD = 8


def around(rank: int, shape: tuple[int, ...], axis: int, stride: int = 1) -> tuple[int, int]:
    """The ranks ``stride`` before and behind along an axis of a row-major grid that closes on itself."""
    inner = 1
    for side in shape[axis + 1 :]:
        inner *= side
    place = rank // inner % shape[axis]
    before, behind = ((place + step) % shape[axis] for step in (-stride, stride))
    return rank + (before - place) * inner, rank + (behind - place) * inner


def exchange_faces(rank: Rank, shape: tuple[int, ...], axis: int, size: int, stride: int = 1) -> None:
    """Exchanges a face of ``size`` bytes with both ranks along an axis; nothing where the rank is its own neighbour."""
    both = around(rank.index, shape, axis, stride)
    if both[0] == rank.index:
        return
    for source in both:
        rank.irecv(source, tag=axis)
    for target in both:
        rank.isend(target, size, tag=axis)
    rank.wait_all()


class Mg(GriddedWorkload):
    """V-cycles of multigrid: faces with six neighbours, from large ones on the finest grid to a few bytes. Both bounds.

    A rank has a cube of points with half the side on each coarser grid; below one point every other rank along each
    axis goes on, as long as that leaves two. On each grid the faces are exchanged three times in a cycle, on the
    coarsest twice: after the restriction, the residual and the smoothing. By default 32 x 32 x 32 points: class W on
    64 ranks.
    """

    message_size: Size = Field(default=0, description="not used: sizes follow from `points`")
    points: int = Field(default=32, ge=2, description="points along each side of a rank's cube, a power of 2")
    memory_bound: float = Field(default=0.8, ge=0, le=1, description="memory-bound share of the compute time")
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: int = Field(
        default=4, ge=1, description="number of iterations with jitter of their own; the program then repeats them"
    )

    @override
    def problem_with(self, ranks: int) -> str | None:
        """Also if the points cannot be halved down to one."""
        return super().problem_with(ranks) or ("`points` as a power of 2" if self.points & self.points - 1 else None)

    def grids(self, shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        """Points along a side of a rank's cube, and how far ranks that take part are apart, finest grid first."""
        side, stride = self.points, 1
        while side:
            yield side, stride
            side //= 2
        while all(width % (4 * stride) == 0 for width in shape):
            stride *= 2
            yield 1, stride

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Down: restrict. On the coarsest grid: smooth. Up: residual and smoothing; at last the residual once more."""
        grids = list(self.grids(self.shape(rank.ranks)))
        for grid in (*grids[1:], grids[-1]):
            self._faces(rank, *grid)
        for grid in reversed(grids[:-1]):
            self._faces(rank, *grid)
            self._faces(rank, *grid)
        self._faces(rank, *grids[0])

    def _faces(self, rank: Rank, side: int, stride: int) -> None:
        """The faces of one axis after the other, each with what has come from the axes before."""
        shape, inner = self.shape(rank.ranks), rank.index
        for width in reversed(shape):
            inner, place = divmod(inner, width)
            if place % stride != stride - 1:
                return
        wide = side + 2
        for axis, points in zip((2, 1, 0), (side * side, wide * side, wide * wide), strict=True):
            exchange_faces(rank, shape, axis, _WORD * points, stride)
