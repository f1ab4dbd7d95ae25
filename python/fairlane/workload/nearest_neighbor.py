"""Nearest-Neighbor: a two-dimensional grid without wraparound (Savoie 2020, section 5.3)."""

from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank
from fairlane.workload.grid import grid_shape, neighbours

__all__ = ["NearestNeighbor"]


class NearestNeighbor(Workload):
    """Ranks in a two-dimensional grid exchange messages with their up to four neighbours, without wraparound.

    By default 384 KiB each way with each neighbour: 0.35 ms of a 3.2 GB/s link for a rank with three neighbours.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: int = 12

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages to and from all neighbours at once."""
        peers = neighbours(rank.index, grid_shape(rank.ranks), [(-1, 0), (0, -1), (0, 1), (1, 0)])
        rank.exchange(peers, self.message_size, self.messages_per_iteration)
