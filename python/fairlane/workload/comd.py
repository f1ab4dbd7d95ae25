"""CoMD: molecular dynamics with short-range forces (Pearce et al. 2018; a proxy application of ExMatEx)."""

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.builder import Rank
from fairlane.workload.gridded import GriddedWorkload
from fairlane.workload.imbalance import ImbalanceField, Uniform
from fairlane.workload.mg import exchange_faces

__all__ = ["Comd"]

_ATOM = 56
"""Number, species, position and momentum of an atom, bytes."""


class Comd(GriddedWorkload):
    """Time steps of molecular dynamics: the atoms of the outer cells to six neighbours. Mostly computation.

    Faces go axis by axis, each with the cells that came along the axes before; every ten steps the energies are summed.
    By default 3 x 3 x 3 cells of 32 atoms a rank, and the 2 ms that a recorded run of it computed.
    """

    message_size: Size = Field(default=0, description="not used: sizes follow from `cells` and `atoms`")
    cells: int = Field(default=3, ge=1, description="link cells along each side of a rank's cube")
    atoms: int = Field(default=32, ge=1, description="atoms of a cell")
    compute: Duration | None = Field(default=2_000_000_000, description="Y: compute time of a step of the slowest rank")
    memory_bound: float = Field(default=0.1, ge=0, le=1, description="memory-bound share of the compute time")
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: int = Field(default=10, ge=1, description="steps with own jitter, before they repeat")

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Both faces of one axis after the other; the energies in the first step of those that repeat."""
        side, wide = self.cells, self.cells + 2
        shape = self.shape(rank.ranks)
        for axis, cells in zip((2, 1, 0), (side * side, wide * side, wide * wide), strict=True):
            exchange_faces(rank, shape, axis, _ATOM * self.atoms * cells)
        if iteration == 0:
            rank.collective("allreduce", 2 * 8)
