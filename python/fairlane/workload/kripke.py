"""Kripke: deterministic particle transport, sweeps from all corners of a domain (Kunen, Bailey and Brown 2015)."""

from itertools import product

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB
from fairlane.workload.builder import Rank, Request
from fairlane.workload.grid import neighbours
from fairlane.workload.gridded import GriddedWorkload
from fairlane.workload.imbalance import ImbalanceField, Uniform

__all__ = ["OCTANTS", "Kripke"]

OCTANTS = list(product((1, -1), repeat=3))
"""Where sweeps go, as steps along the sides of the grid."""


class Kripke(GriddedWorkload):
    """Sweeps through a three-dimensional grid of ranks in all eight octants, set by set. Bound by latency.

    The unknowns are cut into sets of energy groups and, within an octant, of directions; each pair of sets is a sweep
    of its own, in which a rank computes when the faces from its up to three upwind neighbours have come, and sends its
    own downwind. By default two sets of groups, one of directions in each octant, and faces of 8 KiB,
    and 40 us for a rank's part of a sweep.
    """

    message_size: Size = Field(default=8 * KIB, description="bytes of a face in one sweep")
    group_sets: int = Field(default=2, ge=1, description="sets of energy groups")
    direction_sets: int = Field(default=1, ge=1, description="sets of directions in each octant")
    compute: Duration | None = Field(
        default=640_000_000, description="Y: compute time per iteration of the slowest rank"
    )
    memory_bound: float = Field(default=0.5, ge=0, le=1, description="memory-bound share of the compute time")
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: int = Field(
        default=2, ge=1, description="number of iterations with jitter of their own; the program then repeats them"
    )

    @override
    def iterate(self, rank: Rank, iteration: int, compute: int) -> None:
        """One sweep after the other in the order of the program; sends end with the iteration."""
        sweeps = list(product(range(self.group_sets * self.direction_sets), OCTANTS))
        block, shape, sends = compute // len(sweeps), self.shape(rank.ranks), list[Request]()
        rank.compute(compute - block * len(sweeps))
        for tag, (_, steps) in enumerate(sweeps):
            upwind, downwind = (
                neighbours(rank.index, shape, [_along(side, sign * step) for side, step in enumerate(steps)])
                for sign in (-1, 1)
            )
            faces = [rank.irecv(source, tag=tag) for source in upwind]
            if faces:
                rank.wait_all(faces)
            rank.compute(block)
            sends += [rank.isend(target, self.message_size, tag=tag) for target in downwind]
        rank.wait_all(sends)


def _along(side: int, step: int) -> tuple[int, ...]:
    """An offset of ``step`` along one side."""
    return tuple(step if at == side else 0 for at in range(3))
