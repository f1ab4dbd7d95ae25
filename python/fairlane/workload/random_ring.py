"""The random ring of GPCNeT: every rank exchanges messages with both neighbours in a ring of random order."""

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import Count
from fairlane.workload.builder import Rank
from fairlane.workload.slices import SlicedWorkload


class RandomRing(SlicedWorkload):
    """Every rank exchanges messages with both neighbours in a ring of random order.

    A network test of GPCNeT (Chunduri et al., SC '19). By default one message of eight bytes each way, the test of
    latency; with ``message_size = "128 KiB"``, ``messages_per_iteration = 8`` and ``barrier = true`` it is the test of
    bandwidth. The ring is the same in all iterations; with ``distinct_iterations`` = n, n rings are used in turn.
    """

    message_size: Size = 8
    compute: Duration | None = 0
    distinct_iterations: Count = 1
    barrier: bool = Field(default=False, description="whether a barrier of its communicator ends an iteration")

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        part = self.slice_of(rank)
        name = f"random ring {iteration}.{part.number}"
        neighbours = rank.job.drawn(name, lambda rng: _ring(rng.random(part.size).argsort().tolist()))
        both = {part.world(index) for index in neighbours[part.index]}
        rank.exchange(sorted(both), self.message_size, self.messages_per_iteration * (3 - len(both)))
        if self.barrier:
            rank.collective("barrier", comm=part.comm)


def _ring(order: list[int]) -> list[tuple[int, int]]:
    """For each number in an order the one before and the one after it, with wraparound."""
    neighbours = [(0, 0)] * len(order)
    for at, index in enumerate(order):
        neighbours[index] = (order[at - 1], order[(at + 1) % len(order)])
    return neighbours
