"""FT of the NAS parallel benchmarks: a Fourier transform in three dimensions (Bailey et al. 1991)."""

from pydantic import Field
from typing_extensions import override

from fairlane.units import Size
from fairlane.workload.builder import Rank
from fairlane.workload.grid import grid_shape
from fairlane.workload.gridded import COLUMN, ROW, Pencils
from fairlane.workload.imbalance import ImbalanceField, Uniform

__all__ = ["Ft"]

_COMPLEX = 16


class Ft(Pencils):
    """A Fourier transform of a grid in pencils: all-to-all in rows, then in columns of ranks. Bound by bandwidth.

    Every rank has all of its points to hand on in both, and a sum of 16 bytes ends an iteration. By default 4096 points
    a rank: class S on 64 ranks.
    """

    message_size: Size = Field(default=0, description="not used: sizes follow from `points`")
    points: int = Field(default=4096, ge=1, description="grid points of a rank, complex numbers of 16 bytes")
    memory_bound: float = Field(default=0.5, ge=0, le=1, description="memory-bound share of the compute time")
    imbalance: ImbalanceField = Uniform(low=1)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Both transposes, and the checksum."""
        rows, columns = grid_shape(rank.ranks)
        rank.collective("alltoall", _COMPLEX * self.points // columns, comm=ROW)
        rank.collective("alltoall", _COMPLEX * self.points // rows, comm=COLUMN)
        rank.collective("reduce", _COMPLEX)
