"""Ping-pong: one message to and fro, the smallest measurement of latency and bandwidth."""

from typing import Any, ClassVar, Self

from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import Workload
from fairlane.workload.builder import Rank

__all__ = ["PingPong"]


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

    def size(self, iteration: int) -> int:
        """Bytes of a message in an iteration."""
        return self.sizes[iteration % len(self.sizes)] if self.sizes else self.message_size

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """There and back, as often as there are messages."""
        half, size = rank.ranks // 2, self.size(iteration)
        for _ in range(self.messages_per_iteration):
            if rank.index < half:
                rank.send(rank.index + half, size)
                rank.recv(rank.index + half)
            else:
                rank.recv(rank.index - half)
                rank.send(rank.index - half, size)
