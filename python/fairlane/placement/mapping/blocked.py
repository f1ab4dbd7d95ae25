"""Blocked mapping: ranks that are neighbours in a Cartesian grid live near each other."""

from collections.abc import Sequence
from math import prod
from typing import Annotated

import numpy
from pydantic import Field

from fairlane.placement.mapping.base import Mapping, Slots
from fairlane.wording import plural

__all__ = ["Blocked"]

Side = Annotated[int, Field(ge=1)]


class Blocked(Mapping):
    """Block by block of a Cartesian grid of ranks, so that the ranks of a block get consecutive hosts."""

    grid: list[Side] = Field(min_length=1)
    """The sides of the ranks' grid; ranks are numbered with the last dimension fastest, as MPI does."""
    block: list[Side] = Field(min_length=1)
    """The sides of a block; each divides the side of the grid."""

    def places(self, slots: Slots) -> Sequence[int]:
        """Ranks sorted by block, then by place in the block."""
        del slots
        at = numpy.indices(self.grid).reshape(len(self.grid), -1).T
        block = numpy.asarray(self.block)
        keys = numpy.concatenate([at // block, at % block], axis=1)
        order = numpy.lexsort(keys.T[::-1])
        found: list[int] = numpy.argsort(order, kind="stable").tolist()
        return found

    def problem_with(self, ranks: int) -> tuple[str, str, str] | None:
        """The grid must have the job's ranks, and the block divide the grid."""
        if prod(self.grid) != ranks:
            return (
                "grid",
                f"has {plural(prod(self.grid), 'rank')}, and the job {ranks}",
                f"sides whose product is {ranks}",
            )
        if len(self.block) != len(self.grid):
            return "block", "has not as many sides as the grid", f"{len(self.grid)} sides"
        if any(side % part for side, part in zip(self.grid, self.block, strict=True)):
            return "block", "does not divide the grid", f"divisors of {' x '.join(map(str, self.grid))}"
        return None
