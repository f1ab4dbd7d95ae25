"""Halo3D: large faces exchanged with the neighbours in a three-dimensional grid (Wilke 2020, section V)."""

from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB
from fairlane.workload.builder import Rank
from fairlane.workload.grid import neighbours
from fairlane.workload.gridded import GriddedWorkload

__all__ = ["Halo3D"]

_FACES = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]


class Halo3D(GriddedWorkload):
    """Ranks in a three-dimensional grid exchange faces with their up to six neighbours: bound by bandwidth.

    By default faces of 2 MiB and no computation: 1 ms of a 100 Gb/s link for a rank inside the grid.
    """

    message_size: Size = 2048 * KIB
    compute: Duration | None = 0

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All faces at once."""
        peers = neighbours(rank.index, self.shape(rank.ranks), _FACES)
        rank.exchange(peers, self.message_size, self.messages_per_iteration)
