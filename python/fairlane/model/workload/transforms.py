"""Workloads of collectives: allreduce, and all-to-all of all ranks or of rows of a grid, as in Fourier transforms."""

from math import prod

from pydantic import Field
from typing_extensions import override

from fairlane.core.units import Duration, Size
from fairlane.model.workload.base import KIB, Count, Share, Workload
from fairlane.model.workload.builder import Rank
from fairlane.model.workload.grid import COLUMN, ROW, GriddedWorkload, Pencils, grid_shape
from fairlane.model.workload.imbalance import ImbalanceField, Uniform

_COMPLEX = 16


class AllToAll(Workload):
    """Every rank sends a message to every other, by the collective operation: global synchronisation.

    Savoie 2020, section 5.3. By default four times 32 KiB to each rank: 0.28 ms of a 3.2 GB/s link with 8 ranks,
    0.74 ms with 20.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: Count = 4

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        for _ in range(self.messages_per_iteration):
            rank.collective("alltoall", self.message_size)


class Allreduce(Workload):
    """Allreduce of one element of eight bytes over all ranks; no computation by default.

    Bound by latency and by the slowest message (Wilke 2020, section V).
    """

    message_size: Size = 8
    compute: Duration | None = 0

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        for _ in range(self.messages_per_iteration):
            rank.collective("allreduce", self.message_size)


class Pf3d(Pencils):
    """Fourier transforms of a plane of ranks: all-to-all in its rows, then in its columns, as in pF3D.

    Savoie 2020, section 5.3; Langer 2014. By default 32 KiB to each rank of the row and of the column, twice an
    iteration.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: Count = 2

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        for _ in range(self.messages_per_iteration):
            rank.collective("alltoall", self.message_size, comm=ROW)
            rank.collective("alltoall", self.message_size, comm=COLUMN)


class Fft(GriddedWorkload):
    """A Fourier transform along one side of a grid: all-to-all among the ranks of each row.

    Wilke 2020, section V. By default 32 KiB to each other rank of the row and no computation.
    """

    message_size: Size = Field(default=32 * KIB, description="bytes that a rank has for each rank of its row")
    contribution: Size | None = Field(
        default=None, description="instead of `message_size`: bytes that a rank has for its whole row, in equal blocks"
    )
    compute: Duration | None = 0
    axis: int = Field(default=2, ge=0, le=2, description="the coordinate that differs within a row")

    def block(self, ranks: int) -> int:
        """Bytes that a rank has for each rank of its row."""
        return self.message_size if self.contribution is None else self.contribution // self.shape(ranks)[self.axis]

    def row(self, rank: int, ranks: int) -> int:
        """The number of a rank's row: its place without the coordinate that differs."""
        shape = self.shape(ranks)
        inner = prod(shape[self.axis + 1 :])
        return rank // (inner * shape[self.axis]) * inner + rank % inner

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        rank.comm_split(ROW, self.row(rank.index, rank.ranks), rank.index, name="row")
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        for _ in range(self.messages_per_iteration):
            rank.collective("alltoall", self.block(rank.ranks), comm=ROW)


class Ft(Pencils):
    """A Fourier transform of a grid in pencils: all-to-all in rows, then in columns of ranks. Bound by bandwidth.

    FT of the NAS parallel benchmarks (Bailey et al. 1991): a rank sends all of its points in both, and a sum of 16
    bytes ends an iteration. By default 4096 points a rank: class S on 64 ranks.
    """

    message_size: Size = Field(default=0, description="not used: sizes follow from `points`")
    points: int = Field(default=4096, ge=1, description="grid points of a rank, complex numbers of 16 bytes")
    memory_bound: Share = Field(default=0.5, description="memory-bound share of the compute time")
    imbalance: ImbalanceField = Uniform(low=1)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        rows, columns = grid_shape(rank.ranks)
        rank.collective("alltoall", _COMPLEX * self.points // columns, comm=ROW)
        rank.collective("alltoall", _COMPLEX * self.points // rows, comm=COLUMN)
        rank.collective("reduce", _COMPLEX)
