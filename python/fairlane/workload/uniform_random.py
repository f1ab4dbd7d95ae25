"""Uniform random traffic: the standard load of network studies."""

from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["UniformRandom"]


class Ring:
    """All ranks in a ring: who stands before and after whom."""

    def __init__(self, order: list[int]) -> None:
        self.after = dict(zip(order, [*order[1:], order[0]], strict=True))
        self.before = {after: before for before, after in self.after.items()}


class UniformRandom(Workload):
    """Every message goes to a random rank; each rank receives as many as it sends.

    By default eight messages of 32 KiB an iteration.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: int = 8

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages of an iteration at once; for each, all ranks stand in a random ring and send to the next."""
        for number in range(self.messages_per_iteration):
            ring = rank.job.drawn(
                f"ring {iteration}.{number}", lambda rng: Ring(rng.random(rank.ranks).argsort().tolist())
            )
            rank.irecv(ring.before[rank.index], tag=number)
            rank.isend(ring.after[rank.index], self.message_size, tag=number)
        rank.wait_all()
