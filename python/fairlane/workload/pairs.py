"""Pairs of ranks that exchange messages (Savoie 2020, section 5.3), and ping-pong between them."""

from typing import Any, ClassVar, Self

from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB, Count, Workload
from fairlane.workload.builder import Rank


class FloodPairs(Workload):
    """Rank x and rank n/2 + x exchange many messages at once; bandwidth-bound.

    By default 1 MiB each way an iteration: 0.33 ms of a 3.2 GB/s link, an iteration of about 0.9 ms when alone.
    """

    even_ranks: ClassVar[bool] = True
    message_size: Size = 32 * KIB
    messages_per_iteration: Count = 32

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        partner = (rank.index + rank.ranks // 2) % rank.ranks
        rank.exchange([partner], self.message_size, self.messages_per_iteration)


class RandomPairs(Workload):
    """Ranks of the lower half exchange many messages with random partners in the upper half, fixed for the run.

    By default 1 MiB each way an iteration, like Flood-Pairs: the pairs differ, the load does not.
    """

    even_ranks: ClassVar[bool] = True
    message_size: Size = 32 * KIB
    messages_per_iteration: Count = 32

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
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


class PingPong(Workload):
    """Rank x sends a message to rank n/2 + x, which sends it back; no computation by default.

    With ``sizes``, iterations go through the sizes one after the other, and ``distinct_iterations`` defaults to their
    number.
    """

    even_ranks: ClassVar[bool] = True
    message_size: Size = 8
    sizes: list[Size] | None = Field(
        default=None, min_length=1, description="instead of `message_size`: message sizes of successive iterations"
    )
    compute: Duration | None = 0

    @model_validator(mode="before")
    @classmethod
    def _one_round(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("sizes"), list) and "distinct_iterations" not in given:
            return {**given, "distinct_iterations": max(1, len(given["sizes"]))}
        return given

    @model_validator(mode="after")
    def _whole_rounds(self) -> Self:
        if self.sizes and self.distinct_iterations % len(self.sizes):
            raise ValueError(f"distinct_iterations must be a multiple of the number of sizes, {len(self.sizes)}")
        return self

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        half = rank.ranks // 2
        size = self.sizes[iteration % len(self.sizes)] if self.sizes else self.message_size
        for _ in range(self.messages_per_iteration):
            if rank.index < half:
                rank.send(rank.index + half, size)
                rank.recv(rank.index + half)
            else:
                rank.recv(rank.index - half)
                rank.send(rank.index - half, size)
