"""Sweep3D: wavefronts from the corners of a domain through all of it (Wilke 2020, section V; Koch et al. 1992).

The domain is cut into columns, one for each rank of a two-dimensional grid. A sweep starts at a corner; a column is
worked on in blocks, and each needs what comes in through the two upwind faces of the same block.
"""

from itertools import product
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB
from fairlane.workload.builder import Rank
from fairlane.workload.grid import neighbours
from fairlane.workload.gridded import GriddedWorkload

__all__ = ["Sweep3D"]

CORNERS = list(product((1, -1), repeat=2))
"""Where sweeps go, as steps along both sides of the grid; with up and down they make eight octants."""


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
    distinct_iterations: int = Field(
        default=1, ge=1, description="number of iterations with jitter of their own; the program then repeats them"
    )
    block_compute: Duration = Field(
        default=0, description="compute time of a block, between its receives and its sends"
    )

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Sweep by sweep, block by block: receive from upwind, compute, send downwind."""
        shape = self.shape(rank.ranks)
        sizes = (self.message_size, self.message_size_across)
        for sweep in range(self.sweeps):
            down = [tuple(step if side == at else 0 for at in (0, 1)) for side, step in enumerate(CORNERS[sweep % 4])]
            upwind = [neighbours(rank.index, shape, [(-first, -second)]) for first, second in down]
            downwind = [neighbours(rank.index, shape, [step]) for step in down]
            for _ in range(self.blocks * self.messages_per_iteration):
                for sources in upwind:
                    for source in sources:
                        rank.irecv(source, tag=sweep)
                rank.wait_all()
                if self.block_compute:
                    rank.compute(self.block_compute)
                for targets, size in zip(downwind, sizes, strict=True):
                    for target in targets:
                        rank.isend(target, size, tag=sweep)
                rank.wait_all()
