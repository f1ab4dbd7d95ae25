"""What workloads on a grid of ranks share: its sides, given or as equal as the number of ranks allows."""

from math import prod
from typing import Annotated, ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.workload.base import Workload
from fairlane.workload.grid import grid_shape

__all__ = ["GriddedWorkload"]


class GriddedWorkload(Workload):
    """A workload whose ranks stand in a row-major grid without wraparound."""

    dimensions: ClassVar[int] = 3
    """Dimensions of the grid."""

    grid: list[Annotated[int, Field(ge=1)]] | None = Field(
        default=None, description="sides of the grid of ranks; without it as equal as the number of ranks allows"
    )

    @override
    def problem_with(self, ranks: int) -> str | None:
        """Also if the sides that were given do not multiply to the ranks."""
        if self.grid is not None and (len(self.grid) != self.dimensions or prod(self.grid) != ranks):
            sides = " x ".join(map(str, grid_shape(ranks, self.dimensions)))
            return f"a grid of {self.dimensions} sides whose product is the number of ranks, as {sides}"
        return super().problem_with(ranks)

    def shape(self, ranks: int) -> tuple[int, ...]:
        """The sides of the grid; the last coordinate is that of consecutive ranks."""
        return tuple(self.grid) if self.grid is not None else grid_shape(ranks, self.dimensions)
