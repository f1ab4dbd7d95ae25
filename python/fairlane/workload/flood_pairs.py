"""Flood-Pairs: rank x and rank n/2 + x exchange many messages (Savoie 2020, section 5.3)."""

from typing import ClassVar

from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["FloodPairs"]


class FloodPairs(Workload):
    """Rank x and rank n/2 + x exchange many messages at once; bandwidth-bound.

    By default 1 MiB each way an iteration: 0.33 ms of a 3.2 GB/s link, an iteration of about 0.9 ms when alone.
    """

    even_ranks: ClassVar[bool] = True
    message_size: Size = 32 * KIB
    messages_per_iteration: int = 32

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages to and from the partner at once."""
        partner = (rank.index + rank.ranks // 2) % rank.ranks
        rank.exchange([partner], self.message_size, self.messages_per_iteration)
