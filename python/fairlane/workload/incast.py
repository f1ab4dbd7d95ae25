"""One rank and all others: the incast and broadcast congestors of GPCNeT (Chunduri et al. 2019)."""

from abc import abstractmethod
from typing import Literal

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["Incast", "PutBroadcast"]

_WINDOW = 0


class _Star(Workload):
    """Messages between rank 0 and every other one, in one direction."""

    message_size: Size = 64 * KIB
    messages_per_iteration: int = 4
    compute: Duration | None = 0
    operation: Literal["put"] | None = Field(
        default=None, description="one-sided puts between fences; without it, sends and receives"
    )

    @abstractmethod
    def peers(self, rank: Rank) -> tuple[range, range]:
        """The ranks that ``rank`` receives from, and those that it sends to."""

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
        sources, targets = self.peers(rank)
        if self.operation == "put":
            for target in [*targets] * self.messages_per_iteration:
                rank.put(_WINDOW, target, self.message_size)
            rank.win_fence(_WINDOW)
            return
        for _ in range(self.messages_per_iteration):
            for source in sources:
                rank.irecv(source)
            for target in targets:
                rank.isend(target, self.message_size)
        rank.wait_all()


class Incast(_Star):
    """All ranks send to rank 0: its link is the bottleneck, and a tree of full buffers grows from there.

    By default four messages of 64 KiB, sent and received; with ``operation = "put"`` they are one-sided, and a fence
    ends the iteration.
    """

    @override
    def peers(self, rank: Rank) -> tuple[range, range]:
        """Rank 0 receives from all, the others send to it."""
        return (range(0), range(1)) if rank.index else (range(1, rank.ranks), range(0))


class PutBroadcast(_Star):
    """Rank 0 sends the same to every other rank, one message each and no tree: its link is the bottleneck.

    By default four messages of 64 KiB, sent and received, so large ones begin with a request. With
    ``operation = "put"`` they are one-sided, and a fence ends the iteration.
    """

    @override
    def peers(self, rank: Rank) -> tuple[range, range]:
        """Rank 0 sends to all, the others receive from it."""
        return (range(1), range(0)) if rank.index else (range(0), range(1, rank.ranks))
