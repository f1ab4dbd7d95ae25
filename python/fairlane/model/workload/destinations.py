"""Destination patterns of open-loop load."""

from collections.abc import Callable
from math import isqrt, prod
from typing import Annotated, ClassVar, Self

import numpy
from pydantic import BeforeValidator, Field, PlainSerializer, model_validator
from typing_extensions import override

from fairlane.core.units import Written
from fairlane.inputs.registry import Named, Registry
from fairlane.inputs.table import Table

Draw = Callable[[], numpy.random.Generator]


class Destinations(Named):
    """The destinations of each rank's messages."""

    part: ClassVar[float] = 1.0
    by_rank: ClassVar[bool] = True
    """Whether a rank's number decides where it sends, as that of a group: where the rank is placed then matters."""

    @property
    def share(self) -> float:
        """The share of a rank's messages that goes to its targets; the others go to random ranks."""
        return self.part

    def problem_with(self, ranks: int) -> str | None:
        """Return the numbers of ranks that it needs, if it does not fit this one."""
        del ranks
        return None

    def targets(self, ranks: int, draw: Draw) -> list[list[int]]:
        """The targets of each rank, with equal probability. A rank that is its own target sends nothing."""
        del draw
        return [[self.target(rank, ranks)] for rank in range(ranks)]

    def target(self, rank: int, ranks: int) -> int:
        """The one target of a rank."""
        raise NotImplementedError


class Uniform(Destinations):
    """Every message to a rank drawn uniformly at random."""

    part: ClassVar[float] = 0.0
    by_rank: ClassVar[bool] = False

    @override
    def targets(self, ranks: int, draw: Draw) -> list[list[int]]:
        return [[] for _ in range(ranks)]


class Permutation(Destinations):
    """A random permutation in which no rank sends to itself."""

    by_rank: ClassVar[bool] = False

    @override
    def targets(self, ranks: int, draw: Draw) -> list[list[int]]:
        rng, ranks_in_order = draw(), numpy.arange(ranks)
        order = rng.permutation(ranks)
        while (order == ranks_in_order).any():
            order = rng.permutation(ranks)
        return [[int(target)] for target in order]


class Offsets(Table):
    """A fixed offset along each dimension of a grid of ranks with wraparound."""

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

    def problem_with(self, ranks: int) -> str | None:
        """The number of ranks that the sides make, if it is another one."""
        product = prod(self.sides or [ranks])
        return None if product == ranks else f"as many ranks as its sides make, {product}"

    def further(self, rank: int, ranks: int, times: int) -> int:
        """The rank at ``times`` x ``steps`` from ``rank``."""
        offset, stride, rest = 0, 1, rank
        for side, step in zip(self.sides or [ranks], self.steps, strict=True):
            rest, place = divmod(rest, side)
            offset += (place + times * step) % side * stride
            stride *= side
        return offset


class Shift(Offsets, Destinations):
    """The rank at a fixed offset along each dimension of a grid of ranks, with wraparound.

    ``sides = [8, 8], steps = [3, 3]`` is tornado traffic on a torus of 8 x 8 whose hosts are the ranks in order.
    """

    @override
    def target(self, rank: int, ranks: int) -> int:
        return self.further(rank, ranks, 1)


class NextGroup(Destinations):
    """A random rank of the next group of consecutive ranks: the adversarial traffic of dragonflies (ADV+1)."""

    group: int = Field(ge=1, description="ranks of a group")
    steps: int = Field(default=1, ge=1, description="offset, in groups")

    @override
    def problem_with(self, ranks: int) -> str | None:
        if ranks % self.group:
            return f"a multiple of {self.group} ranks, the group"
        back = self.steps % (ranks // self.group) == 0
        return f"a number of groups that does not divide steps = {self.steps}" if back else None

    @override
    def targets(self, ranks: int, draw: Draw) -> list[list[int]]:
        groups = ranks // self.group
        starts = [(rank // self.group + self.steps) % groups * self.group for rank in range(ranks)]
        return [list(range(start, start + self.group)) for start in starts]


class Complement(Destinations):
    """The rank whose number is the complement, p - 1 - x; with a power of two that of every bit."""

    @override
    def target(self, rank: int, ranks: int) -> int:
        return ranks - 1 - rank


class Transpose(Destinations):
    """Row and column of a square matrix of ranks exchanged; the ranks on the diagonal send nothing."""

    @override
    def problem_with(self, ranks: int) -> str | None:
        return None if isqrt(ranks) ** 2 == ranks else "a square number of ranks"

    @override
    def target(self, rank: int, ranks: int) -> int:
        side = isqrt(ranks)
        return rank % side * side + rank // side


class BitReverse(Destinations):
    """The bits of the rank's number in reverse order; palindromes send nothing."""

    @override
    def problem_with(self, ranks: int) -> str | None:
        return _power_of_two(ranks)

    @override
    def target(self, rank: int, ranks: int) -> int:
        bits = ranks.bit_length() - 1
        return int(f"{rank:0{bits}b}"[::-1], 2)


class Shuffle(Destinations):
    """The bits of the rank's number rotated left by one; the first and the last rank send nothing."""

    @override
    def problem_with(self, ranks: int) -> str | None:
        return _power_of_two(ranks)

    @override
    def target(self, rank: int, ranks: int) -> int:
        return (2 * rank + 2 * rank // ranks) % ranks


class Hotspot(Destinations):
    """A share of the messages goes to a few hot ranks, the others to random ranks; hot ranks send to random ranks."""

    by_rank: ClassVar[bool] = False

    hot: list[Annotated[int, Field(ge=0)]] = Field(default=[0], min_length=1, description="the hot ranks")
    fraction: float = Field(
        default=0.1, gt=0, le=1, description="share of each rank's messages that goes to the hot ranks"
    )

    @property
    @override
    def share(self) -> float:
        return self.fraction

    @override
    def problem_with(self, ranks: int) -> str | None:
        return None if max(self.hot) < ranks else f"more than {max(self.hot)} ranks, for that one is hot"

    @override
    def targets(self, ranks: int, draw: Draw) -> list[list[int]]:
        hot = sorted(set(self.hot))
        return [[target for target in hot if target != rank] for rank in range(ranks)]


class Incast(Destinations):
    """All ranks send to one rank, which sends nothing."""

    by_rank: ClassVar[bool] = False

    to: int = Field(default=0, ge=0, description="the rank that receives")

    @override
    def problem_with(self, ranks: int) -> str | None:
        return None if self.to < ranks else f"more than {self.to} ranks, for that one receives"

    @override
    def target(self, rank: int, ranks: int) -> int:
        return self.to


def _power_of_two(ranks: int) -> str | None:
    return None if ranks.bit_count() == 1 else "a power of two ranks"


PATTERNS: Registry[type[Destinations]] = Registry(
    "pattern",
    "fairlane.patterns",
    {
        "uniform": Uniform,
        "permutation": Permutation,
        "shift": Shift,
        "next_group": NextGroup,
        "complement": Complement,
        "transpose": Transpose,
        "bit_reverse": BitReverse,
        "shuffle": Shuffle,
        "hotspot": Hotspot,
        "incast": Incast,
    },
    base=Destinations,
    unread=Uniform,
)
"""All destination patterns by name."""

DestinationsField = Annotated[Written[Destinations], BeforeValidator(PATTERNS.read), PlainSerializer(PATTERNS.written)]
"""A model's field that takes a pattern's name, a table with its name and parameters, or a pattern."""
