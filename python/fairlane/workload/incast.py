"""Incast: everybody sends to one rank, a congestor of GPCNeT (Chunduri et al. 2019)."""

from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["Incast"]


class Incast(Workload):
    """All ranks send to rank 0: its link is the bottleneck, and a tree of full buffers grows from there.

    Two-sided; a one-sided put differs in that the target's CPU has no part in it. By default four messages of 64 KiB.
    """

    message_size: Size = 64 * KIB
    messages_per_iteration: int = 4
    compute: Duration | None = 0

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages at once."""
        for _ in range(self.messages_per_iteration):
            if rank.index:
                rank.isend(0, self.message_size)
            else:
                for source in range(1, rank.ranks):
                    rank.irecv(source)
        rank.wait_all()
