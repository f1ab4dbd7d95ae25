"""All-to-all: every rank sends to every other, again and again (Savoie 2020, section 5.3)."""

from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["AllToAll"]


class AllToAll(Workload):
    """Every rank sends a message to every other, by the collective operation: global synchronisation.

    By default four times 32 KiB to each rank: 0.28 ms of a 3.2 GB/s link with 8 ranks, 0.74 ms with 20.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: int = 4

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """As many collectives as there are messages to each rank."""
        for _ in range(self.messages_per_iteration):
            rank.collective("alltoall", self.message_size)
