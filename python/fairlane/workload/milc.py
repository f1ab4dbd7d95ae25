"""MILC: lattice quantum chromodynamics, the solver of ``su3_rmd`` (Bernard et al. 2000; Smith et al. 2018).

Ranks stand in a four-dimensional grid that closes on itself. An iteration of the conjugate gradient is two exchanges
with all eight neighbours and a sum. In each exchange go first the faces and then layers three times as deep.
"""

from collections.abc import Iterator
from typing import ClassVar

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.builder import Rank, Request
from fairlane.workload.gridded import GriddedWorkload
from fairlane.workload.imbalance import ImbalanceField, Uniform
from fairlane.workload.mg import around

__all__ = ["Milc"]

_EXCHANGES = 2
_DEEP = 3
"""How many times as much the deep layers are as the faces."""


class Milc(GriddedWorkload):
    """Timesteps of many iterations: two exchanges with eight neighbours in a grid of four dimensions, then a sum.

    Marks progress once in a timestep. The first `warmup` timesteps are shorter; of the others every `every`-th computes
    more. By default 8 x 8 x 8 x 8 points a rank in single precision: faces of 6 KiB, deep layers of 18 KiB.
    """

    dimensions: ClassVar[int] = 4

    message_size: Size = Field(default=6144, description="bytes of a face; a deep layer has three times as many")
    iterations: int = Field(default=10, ge=1, description="iterations of a timestep")
    warmup: int = Field(default=0, ge=0, description="warm-up timesteps at the beginning, which are shorter")
    warmup_iterations: int = Field(default=1, ge=1, description="iterations of a warm-up timestep")
    every: int = Field(default=15, ge=2, description="after the warm-up, every n-th timestep computes more")
    extra: float = Field(default=0.25, ge=0, description="additional compute time of these, relative to a timestep's")
    between: float = Field(
        default=0.5, ge=0, le=1, description="share of the compute time between the calls of an exchange"
    )
    compute: Duration | None = Field(
        default=7_500_000_000, description="Y: compute time of a timestep of the slowest rank"
    )
    imbalance: ImbalanceField = Uniform(low=1)
    distinct_iterations: int = Field(
        default=1, ge=1, le=1, description="always 1: jitter is the same in every timestep"
    )

    @override
    def shape(self, ranks: int) -> tuple[int, ...]:
        """The sides; without `grid` longer ones first, as MILC divides a lattice that is longest in time."""
        return tuple(self.grid) if self.grid is not None else super().shape(ranks)[::-1]

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """Timesteps to warm up; others up to the first that computes more; then rounds that begin with such a one."""
        time, left = stages[-1][0], rank.job.iterations
        first = self.warmup if left is None else min(self.warmup, left)
        self._timesteps(rank, first, self.warmup_iterations, time * self.warmup_iterations // self.iterations)
        rest = None if left is None else left - first
        plain = self.every - 1 if rest is None else min(self.every - 1, rest)
        self._timesteps(rank, plain, self.iterations, time)
        rounds, over = (None, 0) if rest is None else divmod(rest - plain, self.every)
        for times, count in ((rounds, self.every), (1, over)):
            if times != 0 and count:
                with rank.repeat(times):
                    rank.compute(round(time * self.extra))
                    self._timesteps(rank, count, self.iterations, time)

    def _timesteps(self, rank: Rank, count: int, iterations: int, time: int) -> None:
        """So many timesteps of this compute time."""
        if count:
            with rank.repeat(count):
                with rank.repeat(iterations):
                    self.iterate(rank, 0, time // iterations)
                rank.mark_progress()

    @override
    def iterate(self, rank: Rank, iteration: int, compute: int) -> None:
        """Two exchanges, each with its half of the compute time, and a sum of eight bytes."""
        share = compute // _EXCHANGES
        inside = round(share * self.between)
        for _ in range(_EXCHANGES):
            self._exchange(rank, inside)
            rank.compute(share - inside)
        rank.collective("allreduce", 8)

    def _exchange(self, rank: Rank, compute: int) -> None:
        """All receives and sends, then a wait for each in order, with computation after each direction and wait."""
        directions = list(self._directions(rank))
        part = compute // (4 + 4 * len(directions))
        requests: list[Request] = []
        for large, size in enumerate((self.message_size, _DEEP * self.message_size)):
            for sign in (0, 1):
                for tag, (source, target, way) in enumerate(directions):
                    if way == sign:
                        requests.append(rank.irecv(source, tag=2 * tag + large))
                        requests.append(rank.isend(target, size, tag=2 * tag + large))
                rank.compute(part)
        for request in requests:
            rank.wait(request)
            rank.compute(part)

    def _directions(self, rank: Rank) -> Iterator[tuple[int, int, int]]:
        """Source, target and sign of each direction, the innermost axis first; none along an axis of one rank."""
        shape = self.shape(rank.ranks)
        for axis in reversed(range(self.dimensions)):
            before, behind = around(rank.index, shape, axis)
            if before != rank.index:
                yield behind, before, 0
                yield before, behind, 1
