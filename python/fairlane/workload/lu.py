"""LU of the NAS parallel benchmarks: wavefronts through the planes of a grid (Barszcz et al. 1993; Bailey et al. 1991).

Ranks stand in a two-dimensional grid, each with a column of points. A relaxation goes through the planes of the column
one after the other, forth from one corner of the grid of ranks and back from the opposite one, and every plane needs
the edges of the ranks before. The right-hand side then needs two layers of each face.
"""

from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.builder import Rank
from fairlane.workload.grid import neighbours
from fairlane.workload.gridded import GriddedWorkload
from fairlane.workload.imbalance import ImbalanceField, Uniform

__all__ = ["Lu"]

_WORD, _UNKNOWNS, _LAYERS = 8, 5, 2
_FORTH, _BACK = [(-1, 0), (0, -1)], [(1, 0), (0, 1)]
"""Who comes before a rank in a wavefront forth; in one back it is those behind."""


class Lu(GriddedWorkload):
    """A Gauss-Seidel relaxation: two wavefronts of tiny messages in every plane, then faces. Bound by latency.

    By default 4 x 4 x 33 points a rank, class W on 64 ranks, and the 0.67 ms that a recorded run of it computed.
    """

    dimensions: ClassVar[int] = 2

    message_size: Size = Field(default=0, description="not used: sizes follow from `side` and `planes`")
    side: int = Field(default=4, ge=1, description="points along each side of a rank's part of a plane")
    planes: int = Field(
        default=33, ge=3, description="planes of a rank's column, the first and the last of which stay as they are"
    )
    compute: Duration | None = Field(
        default=670_000_000, description="Y: compute time per iteration of the slowest rank"
    )
    memory_bound: float = Field(default=0.3, ge=0, le=1, description="memory-bound share of the compute time")
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: int = Field(
        default=2, ge=1, description="number of iterations with jitter of their own; the program then repeats them"
    )

    @override
    def iterate(self, rank: Rank, iteration: int, compute: int) -> None:
        """Two thirds of the time go into the planes of both wavefronts, the rest into the right-hand side."""
        planes, shape = self.planes - 2, self.shape(rank.ranks)
        block = compute // (3 * planes)
        edge, face = (_WORD * _UNKNOWNS * self.side * layers for layers in (1, _LAYERS * self.planes))
        for before, behind in ((_FORTH, _BACK), (_BACK, _FORTH)):
            sources, targets = (neighbours(rank.index, shape, offsets) for offsets in (before, behind))
            for _ in range(planes):
                for source in sources:
                    rank.recv(source)
                rank.compute(block)
                for target in targets:
                    rank.send(target, edge)
        rank.compute(compute - 2 * planes * block)
        rank.exchange(neighbours(rank.index, shape, _FORTH + _BACK), face)
