"""Ping-pong: one message to and fro, the smallest measurement of latency and bandwidth."""

from typing import ClassVar

from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import Workload
from fairlane.workload.builder import Rank

__all__ = ["PingPong"]


class PingPong(Workload):
    """Rank x sends a message to rank n/2 + x, which sends it back; no computation unless asked for."""

    even_ranks: ClassVar[bool] = True
    message_size: Size = 8
    compute: Duration | None = 0

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """There and back, as often as there are messages."""
        half = rank.ranks // 2
        for _ in range(self.messages_per_iteration):
            if rank.index < half:
                rank.send(rank.index + half, self.message_size)
                rank.recv(rank.index + half)
            else:
                rank.recv(rank.index - half)
                rank.send(rank.index - half, self.message_size)
