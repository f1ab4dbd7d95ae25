"""pF3D: all-to-all exchanges on subsets of the ranks (Savoie 2020, section 5.3; Langer 2014)."""

from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB
from fairlane.workload.builder import Rank
from fairlane.workload.gridded import COLUMN, ROW, Pencils

__all__ = ["Pf3d"]


class Pf3d(Pencils):
    """Fourier transforms of a plane of ranks: all-to-all in its rows, then in its columns, as in pF3D.

    By default 32 KiB to each rank of the row and of the column, twice an iteration.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: int = 2

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Rows, then columns, as many times as there are messages."""
        for _ in range(self.messages_per_iteration):
            rank.collective("alltoall", self.message_size, comm=ROW)
            rank.collective("alltoall", self.message_size, comm=COLUMN)
