"""Broadcast by puts: one rank writes to all others, a congestor of GPCNeT (Chunduri et al. 2019)."""

from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["PutBroadcast"]


class PutBroadcast(Workload):
    """Rank 0 sends the same to every other rank, one message each and no tree: its link is the bottleneck.

    There are no one-sided operations: puts are sends, which the targets receive, so large ones begin with a request.
    By default four messages of 64 KiB.
    """

    message_size: Size = 64 * KIB
    messages_per_iteration: int = 4
    compute: Duration | None = 0

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages at once."""
        for _ in range(self.messages_per_iteration):
            if rank.index:
                rank.irecv(0)
            else:
                for target in range(1, rank.ranks):
                    rank.isend(target, self.message_size)
        rank.wait_all()
