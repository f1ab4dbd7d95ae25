"""pF3D: all-to-all exchanges on subsets of the ranks (Savoie 2020, section 5.3; Langer 2014)."""

from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank
from fairlane.workload.grid import grid_shape

__all__ = ["Pf3d"]

_ROW, _COLUMN = 2, 3
"""Names of the communicators; 0 and 1 are the world and the rank itself."""


class Pf3d(Workload):
    """Fourier transforms of a plane of ranks: all-to-all in its rows, then in its columns, as in pF3D.

    By default 32 KiB to each rank of the row and of the column, twice an iteration.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: int = 2

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """Makes a communicator of each row and each column first."""
        columns = grid_shape(rank.ranks)[-1]
        rank.comm_split(_ROW, rank.index // columns, rank.index)
        rank.comm_split(_COLUMN, rank.index % columns, rank.index)
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Rows, then columns, as many times as there are messages."""
        for _ in range(self.messages_per_iteration):
            rank.collective("alltoall", self.message_size, comm=_ROW)
            rank.collective("alltoall", self.message_size, comm=_COLUMN)
