"""Workloads of lattices and meshes: multigrid, molecular dynamics, lattice quantum chromodynamics.

- MG of the NAS parallel benchmarks (Bailey et al. 1991): V-cycles of multigrid on a periodic grid.
- CoMD (Pearce et al. 2018; a proxy application of ExMatEx): molecular dynamics with short-range forces.
- MILC, the solver of ``su3_rmd`` (Bernard et al. 2000; Smith et al. 2018). Ranks are in a four-dimensional grid with
  wraparound. An iteration of the conjugate gradient is two exchanges with all eight neighbours and a sum. In each
  exchange go first the faces and then layers three times as deep.

Workloads on a grid of ranks: its sides, given or as equal as the number of ranks allows, its neighbours and rows.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Annotated, ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.core.units import Duration, Size
from fairlane.model.workload.base import Count, Share, Workload
from fairlane.model.workload.builder import Rank
from fairlane.model.workload.imbalance import ImbalanceField, Uniform
from fairlane.model.workload.writer import Request

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


_WORD = 8
_ATOM = 56
"""Number, species, position and momentum of an atom, bytes."""
_EXCHANGES = 2
_DEEP = 3
"""Size of the deep layers over that of the faces."""


class Mg(GriddedWorkload):
    """V-cycles of multigrid: faces with six neighbours, from large ones on the finest grid to a few bytes. Both bounds.

    A rank has a cube of points with half the side on each coarser grid; below one point every other rank along each
    axis goes on, as long as that leaves two. On each grid the faces are exchanged three times in a cycle, on the
    coarsest twice: after the restriction, the residual and the smoothing. By default 32 x 32 x 32 points: class W on
    64 ranks.
    """

    message_size: Size = Field(default=0, description="not used: sizes follow from `points`")
    points: int = Field(default=32, ge=2, description="points along each side of a rank's cube, a power of 2")
    memory_bound: Share = 0.8
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: Count = 4

    @override
    def problem_with(self, ranks: int) -> str | None:
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
        shape, inner = self.shape(rank.ranks), rank.index
        for width in reversed(shape):
            inner, place = divmod(inner, width)
            if place % stride != stride - 1:
                return
        exchange_faces(rank, shape, side, _WORD, stride)


class Comd(GriddedWorkload):
    """Time steps of molecular dynamics: the atoms of the outer cells to six neighbours. Mostly computation.

    Faces go axis by axis, each with the cells that came along the axes before; every ten steps the energies are summed.
    By default 3 x 3 x 3 cells of 32 atoms a rank, and the 2 ms that a recorded run of it computed.
    """

    message_size: Size = Field(default=0, description="not used: sizes follow from `cells` and `atoms`")
    cells: int = Field(default=3, ge=1, description="link cells along each side of a rank's cube")
    atoms: int = Field(default=32, ge=1, description="atoms of a cell")
    compute: Duration | None = Field(default=2_000_000_000, description="Y: compute time of a step of the slowest rank")
    memory_bound: Share = 0.1
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: int = Field(default=10, ge=1, description="steps with own jitter, before they repeat")

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """The faces, and the energies in the first step of those that repeat."""
        exchange_faces(rank, self.shape(rank.ranks), self.cells, _ATOM * self.atoms)
        if iteration == 0:
            rank.collective("allreduce", 2 * 8)


class Milc(GriddedWorkload):
    """Timesteps of many iterations: two exchanges with eight neighbours in a grid of four dimensions, then a sum.

    Marks progress once in a timestep. The first `warmup` timesteps are shorter; of the others every `every`-th computes
    more. By default 8 x 8 x 8 x 8 points a rank in single precision: faces of 6 KiB, deep layers of 18 KiB.
    """

    dimensions: ClassVar[int] = 4

    message_size: Size = Field(default=6144, description="bytes of a face; a deep layer has three times as many")
    iterations: int = Field(default=10, ge=1, description="iterations of a timestep")
    warmup: int = Field(default=0, ge=0, description="warm-up timesteps at the beginning, which are shorter")
    warmup_iterations: int = Field(default=1, ge=1, description="iterations of a warm-up timestep")
    every: int = Field(default=15, ge=2, description="after the warm-up, every n-th timestep computes more")
    extra: float = Field(default=0.25, ge=0, description="additional compute time of these, relative to a timestep's")
    between: float = Field(
        default=0.5, ge=0, le=1, description="share of the compute time between the calls of an exchange"
    )
    compute: Duration | None = Field(
        default=7_500_000_000, description="Y: compute time of a timestep of the slowest rank"
    )
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: int = Field(default=1, ge=1, le=1, description="always 1: all timesteps have the same jitter")

    @override
    def shape(self, ranks: int) -> tuple[int, ...]:
        """The sides; without `grid` longer ones first, as MILC divides a lattice that is longest in time."""
        return super().shape(ranks)[:: 1 if self.grid else -1]

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """Timesteps to warm up; others up to the first that computes more; then rounds that begin with such a one."""
        time, left = stages[-1][0], rank.job.iterations
        first = self.warmup if left is None else min(self.warmup, left)
        self._timesteps(rank, first, self.warmup_iterations, time * self.warmup_iterations // self.iterations)
        rest = None if left is None else left - first
        plain = self.every - 1 if rest is None else min(self.every - 1, rest)
        self._timesteps(rank, plain, self.iterations, time)
        rounds, over = (None, 0) if rest is None else divmod(rest - plain, self.every)
        for times, count in ((rounds, self.every), (1, over)):
            if times != 0 and count:
                with rank.repeat(times):
                    rank.compute(round(time * self.extra))
                    self._timesteps(rank, count, self.iterations, time)

    def _timesteps(self, rank: Rank, count: int, iterations: int, time: int) -> None:
        if count:
            with rank.repeat(count):
                with rank.repeat(iterations):
                    self.iterate(rank, 0, time // iterations)
                self.end_iteration(rank)

    @override
    def iterate(self, rank: Rank, iteration: int, compute: int) -> None:
        """Two exchanges, each with its half of the compute time, and a sum of eight bytes."""
        share = compute // _EXCHANGES
        inside = round(share * self.between)
        for _ in range(_EXCHANGES):
            self._exchange(rank, inside)
            rank.compute(share - inside)
        rank.collective("allreduce", 8)

    def _exchange(self, rank: Rank, compute: int) -> None:
        """All receives and sends, then a wait for each in order, with computation after each direction and wait."""
        directions = list(self._directions(rank))
        part = compute // (4 + 4 * len(directions))
        requests: list[Request] = []
        for large, size in enumerate((self.message_size, _DEEP * self.message_size)):
            for sign in (0, 1):
                for tag, (source, target, direction) in enumerate(directions):
                    if direction == sign:
                        requests.append(rank.irecv(source, tag=2 * tag + large))
                        requests.append(rank.isend(target, size, tag=2 * tag + large))
                rank.compute(part)
        for request in requests:
            rank.wait(request)
            rank.compute(part)

    def _directions(self, rank: Rank) -> Iterator[tuple[int, int, int]]:
        """Source, target and sign of each direction, the innermost axis first; none along an axis of one rank."""
        shape = self.shape(rank.ranks)
        for axis in reversed(range(self.dimensions)):
            before, after = around(rank.index, shape, axis)
            if before != rank.index:
                yield after, before, 0
                yield before, after, 1
