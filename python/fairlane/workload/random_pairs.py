"""Random-Pairs: each rank of the lower half exchanges many messages with a random one of the upper half."""

from typing import ClassVar

from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["RandomPairs"]


class RandomPairs(Workload):
    """Ranks of the lower half exchange many messages with random partners in the upper half, fixed for the run.

    By default 1 MiB each way an iteration, like Flood-Pairs: the pairs differ, the load does not.
    """

    even_ranks: ClassVar[bool] = True
    message_size: Size = 32 * KIB
    messages_per_iteration: int = 32

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages to and from the partner at once."""
        half = rank.ranks // 2
        partners = rank.job.drawn("pairs", lambda rng: pair_up([int(x) for x in rng.random(half).argsort()]))
        rank.exchange([partners[rank.index]], self.message_size, self.messages_per_iteration)


def pair_up(order: list[int]) -> list[int]:
    """Each rank's partner, if rank x of the lower half is paired with number ``order[x]`` of the upper half."""
    half = len(order)
    partners = [half + upper for upper in order] + [0] * half
    for lower, upper in enumerate(order):
        partners[half + upper] = lower
    return partners
