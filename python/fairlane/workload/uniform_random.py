"""Uniform random traffic: the standard load of network studies."""

from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["UniformRandom"]


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
            order = rank.job.drawn(f"order {iteration}.{number}", lambda rng: rng.random(rank.ranks).argsort())
            place = rank.job.drawn(f"place {iteration}.{number}", lambda _, order=order: order.argsort())
            at = int(place[rank.index])
            rank.irecv(int(order[at - 1]), tag=number)
            rank.isend(int(order[(at + 1) % rank.ranks]), self.message_size, tag=number)
        rank.wait_all()
