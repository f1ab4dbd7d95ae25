"""Wavefronts through a grid of ranks: a rank waits for its upwind neighbours, computes, and sends downwind.

- Sweep3D (Wilke 2020, section V; Koch et al. 1992): the domain is cut into columns, one for each rank of a
  two-dimensional grid. A column is computed in blocks, and each needs what comes in through the two upwind faces.
- LU of the NAS parallel benchmarks (Barszcz et al. 1993; Bailey et al. 1991): a relaxation goes through the planes of
  the columns one after the other, from one corner of the grid of ranks to the opposite one and back. Every plane needs
  the edges of the ranks before. The right-hand side then needs two layers of each face.
- Kripke (Kunen, Bailey and Brown 2015): deterministic particle transport, sweeps from all corners of a domain.
"""

from itertools import product
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.core.units import Duration, Size
from fairlane.model.workload.base import KIB, Count, Share
from fairlane.model.workload.builder import Rank
from fairlane.model.workload.grid import GriddedWorkload, neighbours
from fairlane.model.workload.imbalance import ImbalanceField, Uniform
from fairlane.model.workload.writer import Request

_CORNERS = list(product((1, -1), repeat=2))
"""Directions of sweeps, as steps along both sides of the grid; with up and down they make eight octants."""
_OCTANTS = list(product((1, -1), repeat=3))
"""Directions of sweeps, as steps along the sides of the grid."""
_FORTH, _BACK = [(-1, 0), (0, -1)], [(1, 0), (0, 1)]
"""The upwind neighbours of LU's wavefronts in both directions."""
_WORD, _UNKNOWNS, _LAYERS = 8, 5, 2


class Sweep3D(GriddedWorkload):
    """Wavefronts sweep from each corner through a two-dimensional grid of ranks: bound by latency.

    By default eight sweeps in four blocks each, with 40 KiB through one face of a block and 10 KiB through the other.
    """

    dimensions: ClassVar[int] = 2

    message_size: Size = Field(
        default=40 * KIB, description="bytes through a block's face to the next rank of the first side"
    )
    message_size_across: Size = Field(
        default=10 * KIB, description="bytes through its face to the next rank of the other side"
    )
    sweeps: int = Field(default=8, ge=1, le=8, description="octants in an iteration; four start at the four corners")
    blocks: int = Field(default=4, ge=1, description="blocks of a rank's column, computed one after the other")
    compute: Duration | None = 0
    distinct_iterations: Count = 1
    block_compute: Duration = Field(
        default=0, description="compute time of a block, between its receives and its sends"
    )

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        shape = self.shape(rank.ranks)
        sizes = (self.message_size, self.message_size_across)
        for sweep in range(self.sweeps):
            first, second = _CORNERS[sweep % 4]
            upwind = neighbours(rank.index, shape, [(-first, 0), (0, -second)])
            downwind = [neighbours(rank.index, shape, [step]) for step in ((first, 0), (0, second))]
            for _ in range(self.blocks * self.messages_per_iteration):
                for source in upwind:
                    rank.irecv(source, tag=sweep)
                rank.wait_all()
                if self.block_compute:
                    rank.compute(self.block_compute)
                for targets, size in zip(downwind, sizes, strict=True):
                    for target in targets:
                        rank.isend(target, size, tag=sweep)
                rank.wait_all()


class Lu(GriddedWorkload):
    """A Gauss-Seidel relaxation: two wavefronts of tiny messages in every plane, then faces. Bound by latency.

    By default 4 x 4 x 33 points a rank, class W on 64 ranks, and the 0.67 ms that a recorded run of it computed.
    """

    dimensions: ClassVar[int] = 2

    message_size: Size = Field(default=0, description="not used: sizes follow from `side` and `planes`")
    side: int = Field(default=4, ge=1, description="points along each side of a rank's part of a plane")
    planes: int = Field(
        default=33, ge=3, description="planes of a rank's column, the first and the last of which stay as they are"
    )
    compute: Duration | None = 670_000_000
    memory_bound: Share = 0.3
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: Count = 2

    @override
    def iterate(self, rank: Rank, iteration: int, compute: int) -> None:
        """Two thirds of the time go into the planes of both wavefronts, the rest into the right-hand side."""
        planes, shape = self.planes - 2, self.shape(rank.ranks)
        block = compute // (3 * planes)
        edge, face = (_WORD * _UNKNOWNS * self.side * layers for layers in (1, _LAYERS * self.planes))
        for upwind, downwind in ((_FORTH, _BACK), (_BACK, _FORTH)):
            sources, targets = (neighbours(rank.index, shape, offsets) for offsets in (upwind, downwind))
            for _ in range(planes):
                for source in sources:
                    rank.recv(source)
                rank.compute(block)
                for target in targets:
                    rank.send(target, edge)
        rank.compute(compute - 2 * planes * block)
        rank.exchange(neighbours(rank.index, shape, _FORTH + _BACK), face)


class Kripke(GriddedWorkload):
    """Sweeps through a three-dimensional grid of ranks in all eight octants, set by set. Bound by latency.

    The unknowns are cut into sets of energy groups and, within an octant, of directions; each pair of sets is a sweep
    of its own, in which a rank computes when the faces from its up to three upwind neighbours have come, and sends its
    own downwind. By default two sets of groups, one of directions in each octant, faces of 8 KiB, and 40 us for a
    rank's part of a sweep.
    """

    message_size: Size = Field(default=8 * KIB, description="bytes of a face in one sweep")
    group_sets: int = Field(default=2, ge=1, description="sets of energy groups")
    direction_sets: int = Field(default=1, ge=1, description="sets of directions in each octant")
    compute: Duration | None = 640_000_000
    memory_bound: Share = 0.5
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: Count = 2

    @override
    def iterate(self, rank: Rank, iteration: int, compute: int) -> None:
        """One sweep after the other in the order of the program; sends end with the iteration."""
        sweeps = list(product(range(self.group_sets * self.direction_sets), _OCTANTS))
        block, shape, sends = compute // len(sweeps), self.shape(rank.ranks), list[Request]()
        rank.compute(compute - block * len(sweeps))
        for tag, (_, (x, y, z)) in enumerate(sweeps):
            upwind = neighbours(rank.index, shape, [(-x, 0, 0), (0, -y, 0), (0, 0, -z)])
            downwind = neighbours(rank.index, shape, [(x, 0, 0), (0, y, 0), (0, 0, z)])
            faces = [rank.irecv(source, tag=tag) for source in upwind]
            if faces:
                rank.wait_all(faces)
            rank.compute(block)
            sends += [rank.isend(target, self.message_size, tag=tag) for target in downwind]
        rank.wait_all(sends)
