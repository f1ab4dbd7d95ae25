"""Random snapshots to fit a model to: machines on which jobs have started and ended, under a random allocator."""

from collections.abc import Sequence

import numpy

from fairlane.core.seeds import Purpose, stream
from fairlane.learn.scheduler.log import PatternMix
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement import PLACEMENTS, PlacementPolicy, Request
from fairlane.model.placement.grid import sides_of
from fairlane.study.shipped.slowdowns import Resident

_ARRIVALS = 40
"""Jobs that have arrived before the snapshot is taken."""
_STAY = 0.35
"""Probability that a job which finds no hosts is rejected, instead of ending another one."""


def allocators(fabric: Fabric) -> list[PlacementPolicy]:
    """The allocators of snapshots: contiguous, in order, in units, at random, by pattern."""
    policies = [
        PLACEMENTS["linear"](),
        PLACEMENTS["random"](),
        PLACEMENTS["pattern"](),
        PLACEMENTS["fragmented"](),
        PLACEMENTS["box"]() if sides_of(fabric) is not None else PLACEMENTS["packed"](),
    ]
    units = [size for size in (4, 8) if fabric.hosts % size == 0]
    policies += [PLACEMENTS["units"].model_validate({"size": size, "order": "random"}) for size in units]
    return policies


def draw_snapshot(fabric: Fabric, mix: PatternMix, seed: int, number: int) -> list[Resident]:
    """The jobs at the end of a random history; their sizes are distributed evenly on a logarithmic scale."""
    rng = stream(seed, Purpose.SNAPSHOT, number, 0)
    choices = allocators(fabric)
    policy = choices[int(rng.integers(len(choices)))]
    jobs: list[Resident] = []
    for _ in range(_ARRIVALS):
        pattern = int(rng.integers(len(mix.pattern)))
        ranks = _size(rng, fabric.hosts // 2)
        hosts = allocated(policy, fabric, mix, jobs, Resident(pattern, tuple(range(ranks))), rng)
        while hosts is None and jobs and rng.random() > _STAY:
            jobs.pop(int(rng.integers(len(jobs))))
            hosts = allocated(policy, fabric, mix, jobs, Resident(pattern, tuple(range(ranks))), rng)
        if hosts is not None:
            jobs.append(Resident(pattern, hosts))
    return jobs


def _size(rng: numpy.random.Generator, largest: int) -> int:
    """A power of two with probability 1/2, else any size, log-uniform."""
    exact = 2.0 ** rng.uniform(1, numpy.log2(largest))
    return int(2 ** round(float(numpy.log2(exact)))) if rng.random() < 0.5 else round(exact)


def allocated(
    policy: PlacementPolicy,
    fabric: Fabric,
    mix: PatternMix,
    jobs: Sequence[Resident],
    job: Resident,
    rng: numpy.random.Generator,
) -> tuple[int, ...] | None:
    """The hosts of one more job among the free ones; None if the policy finds none."""
    taken = {host for resident in jobs for host in resident.hosts}
    free = [host for host in range(fabric.hosts) if host not in taken]
    if len(free) < job.ranks:
        return None
    request = Request(job.ranks, rng, lambda: mix.communication(job.pattern))
    hosts = policy.allocate(free, request, fabric)
    return None if hosts is None else tuple(hosts)
