"""Shift: every rank sends to the one some steps further in a grid of ranks, the worst case of many routings."""

from typing import Annotated, Self

from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.base import KIB, Workload
from fairlane.workload.builder import Rank

__all__ = ["Shift"]


class Shift(Workload):
    """Every rank sends to the rank at a fixed offset along each dimension of a grid of ranks, with wraparound.

    With a job on all hosts in order, ``sides = [8, 8], steps = [3, 3]`` is tornado traffic on a torus of 8 x 8, and
    ``sides = [8, 9], steps = [0, 1]`` sends all of each of nine groups of eight to the next group. By default eight
    messages of 32 KiB an iteration to the next rank.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: int = 8
    sides: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None,
        min_length=1,
        description="ranks along each dimension, the first varies fastest. Default: one dimension",
    )
    steps: list[int] = Field(default=[1], min_length=1, description="offset along each dimension")

    @model_validator(mode="after")
    def _as_many_steps_as_sides(self) -> Self:
        if len(self.steps) != len(self.sides or [1]):
            raise ValueError(f"steps needs one number for each side, {len(self.sides or [1])}")
        return self

    @override
    def problem_with(self, ranks: int) -> str | None:
        """The sides must multiply to the ranks."""
        product = 1
        for side in self.sides or [ranks]:
            product *= side
        return super().problem_with(ranks) or (
            None if product == ranks else f"as many ranks as its sides make, {product}"
        )

    def further(self, rank: int, ranks: int, times: int) -> int:
        """The rank that stands ``times`` x ``steps`` further than ``rank``."""
        found, stride, rest = 0, 1, rank
        for side, step in zip(self.sides or [ranks], self.steps, strict=True):
            rest, place = divmod(rest, side)
            found += (place + times * step) % side * stride
            stride *= side
        return found

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """All messages to the one rank and from the other at once."""
        source, target = (self.further(rank.index, rank.ranks, times) for times in (-1, 1))
        for _ in range(self.messages_per_iteration):
            rank.irecv(source)
        for _ in range(self.messages_per_iteration):
            rank.isend(target, self.message_size)
        rank.wait_all()
