"""A ring of neighbours, both ways round: the point-to-point congestor of GPCNeT (Chunduri et al. 2019)."""

from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["PointToPointRing"]


class PointToPointRing(Workload):
    """Every rank exchanges messages with the rank before and the rank after it; with wraparound.

    By default four messages of 64 KiB each way.
    """

    message_size: Size = 64 * KIB
    messages_per_iteration: int = 4
    compute: Duration | None = 0

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages to and from both at once."""
        beside = {(rank.index - 1) % rank.ranks, (rank.index + 1) % rank.ranks}
        rank.exchange(sorted(beside), self.message_size, self.messages_per_iteration)
