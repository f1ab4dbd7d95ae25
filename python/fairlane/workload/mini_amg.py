"""Mini-AMG: neighbours in grids that grow coarser and finer again (Savoie 2020, section 5.3; Gahvari 2011)."""

from itertools import product

from pydantic import Field
from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank
from fairlane.workload.grid import grid_shape, neighbours

__all__ = ["MiniAmg"]


class MiniAmg(Workload):
    """V-cycles of algebraic multigrid: on coarser grids a rank has more neighbours and smaller messages.

    On level l of a three-dimensional grid of ranks the neighbours are those within l + 1 steps (by the sum of the
    coordinates) and a message has ``message_size`` / 4^l bytes, at least 64; the cycle goes down to the coarsest level
    and up again, and ends with the norm of the residual. By default about 0.4 MiB a rank and iteration with 32 ranks.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: int = 1
    levels: int = Field(default=4, ge=1, le=16, description="grids from finest to coarsest")

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Down through the levels, up again, and an allreduce of eight bytes."""
        shape = grid_shape(rank.ranks, 3)
        down = range(self.levels)
        for level in (*down, *reversed(down[:-1])):
            size = max(64, self.message_size >> (2 * level))
            rank.exchange(neighbours(rank.index, shape, _within(level + 1)), size, self.messages_per_iteration)
        rank.collective("allreduce", 8)


def _within(steps: int) -> list[tuple[int, ...]]:
    """Offsets in three dimensions whose coordinates sum up to at most ``steps``, zero left out."""
    reach = range(-steps, steps + 1)
    return [offset for offset in product(reach, repeat=3) if 0 < sum(map(abs, offset)) <= steps]
