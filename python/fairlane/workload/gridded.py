"""What workloads on a grid of ranks share: its sides, given or as equal as the number of ranks allows, and its rows."""

from math import prod
from typing import Annotated, ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.workload.base import Workload
from fairlane.workload.builder import Rank
from fairlane.workload.grid import grid_shape

__all__ = ["COLUMN", "ROW", "GriddedWorkload", "Pencils"]

ROW, COLUMN = 2, 3
"""Names of the communicators of ``Pencils``; 0 and 1 are the world and the rank itself."""


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


class Pencils(Workload):
    """A workload whose ranks stand in rows and columns, each of which has a communicator."""

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """Makes a communicator of each row and each column first."""
        columns = grid_shape(rank.ranks)[-1]
        rank.comm_split(ROW, rank.index // columns, rank.index)
        rank.comm_split(COLUMN, rank.index % columns, rank.index)
        super().write(rank, stages)
