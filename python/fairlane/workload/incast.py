"""Incast: everybody sends to one rank, a congestor of GPCNeT (Chunduri et al. 2019)."""

from typing import Literal

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["Incast"]

_WINDOW = 0


class Incast(Workload):
    """All ranks send to rank 0: its link is the bottleneck, and a tree of full buffers grows from there.

    By default four messages of 64 KiB, sent and received; with ``operation = "put"`` they are one-sided, and a fence
    ends the iteration.
    """

    message_size: Size = 64 * KIB
    messages_per_iteration: int = 4
    compute: Duration | None = 0
    operation: Literal["put"] | None = Field(
        default=None, description="one-sided puts between fences. Default: sends and receives"
    )

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """Makes the window first, if there is one."""
        if self.operation == "put":
            rank.win_create(_WINDOW)
            rank.win_fence(_WINDOW)
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages at once."""
        if self.operation == "put":
            for _ in range(self.messages_per_iteration if rank.index else 0):
                rank.put(_WINDOW, 0, self.message_size)
            rank.win_fence(_WINDOW)
            return
        for _ in range(self.messages_per_iteration):
            if rank.index:
                rank.isend(0, self.message_size)
            else:
                for source in range(1, rank.ranks):
                    rank.irecv(source)
        rank.wait_all()
