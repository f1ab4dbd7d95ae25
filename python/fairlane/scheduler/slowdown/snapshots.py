"""Random snapshots to fit a model to: machines on which jobs have started and ended, under a random allocator."""

from collections.abc import Sequence

import numpy

from fairlane.fabric import Fabric
from fairlane.placement import PLACEMENTS, PlacementPolicy, Request
from fairlane.placement.grid import sides_of
from fairlane.scheduler.mix import PatternMix
from fairlane.scheduler.slowdown.bench import Resident
from fairlane.seeds import Purpose, stream

_ARRIVALS = 40
"""Jobs that have arrived before the snapshot is taken."""
_STAY = 0.35
"""Probability that a job which finds no hosts is rejected, instead of ending another one."""


def allocators(fabric: Fabric) -> list[PlacementPolicy]:
    """The allocators of snapshots: contiguous, in order, in units, at random, by pattern."""
    found = [
        PLACEMENTS["linear"](),
        PLACEMENTS["random"](),
        PLACEMENTS["pattern"](),
        PLACEMENTS["fragmented"](),
        PLACEMENTS["box"]() if sides_of(fabric) is not None else PLACEMENTS["packed"](),
    ]
    units = [size for size in (4, 8) if fabric.hosts % size == 0]
    found += [PLACEMENTS["units"].model_validate({"size": size, "order": "random"}) for size in units]
    return found


def draw_snapshot(fabric: Fabric, mix: PatternMix, seed: int, number: int) -> list[Resident]:
    """The jobs at the end of a random history; their sizes are distributed evenly on a logarithmic scale."""
    rng = stream(seed, Purpose.SNAPSHOT, number, 0)
    choices = allocators(fabric)
    strategy = choices[int(rng.integers(len(choices)))]
    jobs: list[Resident] = []
    for _ in range(_ARRIVALS):
        pattern = int(rng.integers(len(mix.pattern)))
        ranks = _size(rng, fabric.hosts // 2)
        hosts = allocated(strategy, fabric, mix, jobs, Resident(pattern, tuple(range(ranks))), rng)
        while hosts is None and jobs and rng.random() > _STAY:
            jobs.pop(int(rng.integers(len(jobs))))
            hosts = allocated(strategy, fabric, mix, jobs, Resident(pattern, tuple(range(ranks))), rng)
        if hosts is not None:
            jobs.append(Resident(pattern, hosts))
    return jobs


def _size(rng: numpy.random.Generator, largest: int) -> int:
    """A power of two with probability 1/2, else any size, log-uniform."""
    exact = 2.0 ** rng.uniform(1, numpy.log2(largest))
    return int(2 ** round(float(numpy.log2(exact)))) if rng.random() < 0.5 else round(exact)


def allocated(
    strategy: PlacementPolicy,
    fabric: Fabric,
    mix: PatternMix,
    jobs: Sequence[Resident],
    job: Resident,
    rng: numpy.random.Generator,
) -> tuple[int, ...] | None:
    """The hosts of one more job among the free ones; None if the strategy finds none."""
    taken = {host for one in jobs for host in one.hosts}
    free = [host for host in range(fabric.hosts) if host not in taken]
    if len(free) < job.ranks:
        return None
    request = Request(job.ranks, rng, lambda: mix.communication(job.pattern))
    found = strategy.allocate(free, request, fabric)
    return None if found is None else tuple(found)
