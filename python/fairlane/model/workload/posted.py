"""Collectives as benchmarks write them by hand, from messages between two ranks, after a barrier.

A rank's own block goes from the sent to the received buffer by a copy, before the part that is timed, as in the
benchmarks of CRAB (HLC-Lab/CRAB).
"""

from abc import abstractmethod

from pydantic import Field
from typing_extensions import override

from fairlane.core.units import Bandwidth, Duration, Size
from fairlane.model.workload.base import KIB, Workload
from fairlane.model.workload.builder import Rank


class _AfterBarrier(Workload):
    """Rounds of messages after a barrier that is not timed; no computation by default."""

    compute: Duration | None = 0
    barrier: bool = Field(
        default=True,
        description="a barrier begins each iteration, and is not timed; without it nobody waits for others",
    )

    copy_bandwidth: Bandwidth | None = Field(
        default=None,
        gt=0,
        description="rate at which a rank copies its own block, after the barrier and not timed; without it no copy",
    )

    @abstractmethod
    def exchange(self, rank: Rank) -> None:
        """Writes one round."""

    @abstractmethod
    def block(self, ranks: int) -> int:
        """Bytes of a rank's own block."""

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        if self.barrier:
            rank.collective("barrier")
        if self.copy_bandwidth is not None:
            rank.compute(round(self.block(rank.ranks) * 8e12 / self.copy_bandwidth))
        if self.barrier or self.copy_bandwidth is not None:
            rank.begin_timing()
        for _ in range(self.messages_per_iteration):
            self.exchange(rank)


class AllPosted(_AfterBarrier):
    """Every rank starts a send to and a receive from every other rank, in order of their numbers, and waits for all.

    The victim and, with ``barrier = false``, the aggressor of the measurements on Leonardo and LUMI. By default 32 KiB
    to each rank.
    """

    message_size: Size = 32 * KIB

    @override
    def block(self, ranks: int) -> int:
        return self.message_size

    @override
    def exchange(self, rank: Rank) -> None:
        for peer in range(rank.ranks):
            if peer != rank.index:
                rank.isend(peer, self.message_size)
                rank.irecv(peer)
        rank.wait_all()


class RingAllgather(_AfterBarrier):
    """An allgather in a ring: in each of ``p - 1`` steps a rank sends to the next and receives from the one before.

    By default a buffer of 1 MiB: every step sends the share of one rank, a byte at least.
    """

    message_size: Size = Field(default=1024 * KIB, description="bytes of the gathered buffer, of all ranks together")

    @override
    def block(self, ranks: int) -> int:
        return max(1, self.message_size // ranks) if self.message_size else 0

    @override
    def exchange(self, rank: Rank) -> None:
        block = self.block(rank.ranks)
        for _ in range(rank.ranks - 1):
            rank.irecv((rank.index - 1) % rank.ranks)
            rank.isend((rank.index + 1) % rank.ranks, block)
            rank.wait_all()
