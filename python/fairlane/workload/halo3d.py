"""Halo3D: large faces exchanged with the neighbours in a three-dimensional grid (Wilke 2020, section V)."""

from typing import Literal

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB
from fairlane.workload.builder import Rank
from fairlane.workload.grid import neighbours
from fairlane.workload.gridded import GriddedWorkload

__all__ = ["Halo3D"]

_GRID, _WINDOW = 2, 0
"""Names of the communicator with the grid, and of the window."""
_FACES = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]


class Halo3D(GriddedWorkload):
    """Ranks in a three-dimensional grid exchange faces with their up to six neighbours: bound by bandwidth.

    By default faces of 2 MiB and no computation: 1 ms of a 100 Gb/s link for a rank inside the grid.
    """

    message_size: Size = 2048 * KIB
    compute: Duration | None = 0
    exchange: Literal["neighbor_alltoall", "put"] | None = Field(
        default=None, description="neighborhood collectives, or puts between fences. Default: messages"
    )

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """Makes the communicator or the window first, if there is one."""
        if self.exchange == "neighbor_alltoall":
            rank.cart_create(_GRID, self.shape(rank.ranks))
        elif self.exchange == "put":
            rank.win_create(_WINDOW)
            rank.win_fence(_WINDOW)
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All faces at once."""
        peers = neighbours(rank.index, self.shape(rank.ranks), _FACES)
        if self.exchange is None:
            rank.exchange(peers, self.message_size, self.messages_per_iteration)
        elif self.exchange == "neighbor_alltoall":
            for _ in range(self.messages_per_iteration):
                rank.neighbor_alltoall(self.message_size, comm=_GRID)
        else:
            for peer in peers * self.messages_per_iteration:
                rank.put(_WINDOW, peer, self.message_size)
            rank.win_fence(_WINDOW)
