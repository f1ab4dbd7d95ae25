"""FFT: all-to-all within the rows of a three-dimensional grid of ranks (Wilke 2020, section V)."""

from math import prod

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB
from fairlane.workload.builder import Rank
from fairlane.workload.gridded import GriddedWorkload

__all__ = ["Fft"]

_ROW = 2
"""Name of the communicator; 0 and 1 are the world and the rank itself."""


class Fft(GriddedWorkload):
    """A Fourier transform along one side of a grid: all-to-all among the ranks of each row.

    By default 32 KiB to each other rank of the row and no computation.
    """

    message_size: Size = Field(default=32 * KIB, description="bytes that a rank has for each rank of its row")
    contribution: Size | None = Field(
        default=None, description="instead of `message_size`: bytes that a rank has for its whole row, in equal blocks"
    )
    compute: Duration | None = 0
    axis: int = Field(default=2, ge=0, le=2, description="the coordinate that differs within a row")

    def block(self, ranks: int) -> int:
        """Bytes that a rank has for each rank of its row."""
        return self.message_size if self.contribution is None else self.contribution // self.shape(ranks)[self.axis]

    def row(self, rank: int, ranks: int) -> int:
        """The number of a rank's row: its place without the coordinate that differs."""
        shape = self.shape(ranks)
        inner = prod(shape[self.axis + 1 :])
        return rank // (inner * shape[self.axis]) * inner + rank % inner

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """Makes a communicator of each row first."""
        rank.comm_split(_ROW, self.row(rank.index, rank.ranks), rank.index)
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """As many collectives as there are messages."""
        for _ in range(self.messages_per_iteration):
            rank.collective("alltoall", self.block(rank.ranks), comm=_ROW)
