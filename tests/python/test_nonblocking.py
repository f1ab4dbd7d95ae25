"""Non-blocking and neighborhood collectives: their time alone, and beside computation."""

import pytest

from fairlane import _core
from oracle import Case, Job, Mpi, Outcome, core

RANKS = 8
COSTS = Mpi(send_overhead=200_000, receive_overhead=300_000, eager_threshold=4096)
KINDS: dict[str, int | list[int]] = {
    "barrier": 0,
    "bcast": 30_000,
    "reduce": 3_000,
    "allreduce": 1_000,
    "gather": 500,
    "scatter": 9_000,
    "allgather": 700,
    "alltoall": [3_000, 0, 200, 5_000, 1, 10_000, 7, 64],
    "reduce_scatter": 800,
    "scan": 100,
}


def case(ranks: int = RANKS, mpi: Mpi = COSTS) -> Case:
    """Ranks on hosts of their own."""
    return Case(core.fat_tree(hosts=ranks, levels=2), [Job(list(range(ranks)), [[]] * ranks)], mpi=mpi)


def ends(builder: _core.ProgramBuilder, of: Case) -> list[int]:
    """When each rank passes its mark."""
    for rank in range(RANKS):
        builder.mark_progress(rank)
    return [progress.last for _, progress in sorted(run(builder, of).progress.items())]


def run(builder: _core.ProgramBuilder, of: Case) -> Outcome:
    return core.simulate(of, [builder.build()])


@pytest.mark.parametrize("kind", KINDS)
def test_started_and_awaited_it_takes_the_time_of_the_blocking_one(kind: str) -> None:
    blocking, started = _core.ProgramBuilder(RANKS), _core.ProgramBuilder(RANKS)
    for rank in range(RANKS):
        blocking.collective(rank, kind, KINDS[kind], 0, 0)
        started.icollective(rank, kind, 7, KINDS[kind], 0, 0)
        started.wait(rank, 7)
    assert ends(started, case()) == ends(blocking, case())
    assert min(ends(started, case())) > 0 or kind in ("bcast", "reduce", "gather", "scatter", "scan")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compute", [1_000_000, 100_000_000])
def test_computation_overlaps_so_that_the_longer_one_counts(kind: str, compute: int) -> None:
    alone, both = _core.ProgramBuilder(RANKS), _core.ProgramBuilder(RANKS)
    for rank in range(RANKS):
        alone.icollective(rank, kind, 0, KINDS[kind], 0, 0)
        alone.wait(rank, 0)
        both.icollective(rank, kind, 0, KINDS[kind], 0, 0)
        both.compute(rank, compute)
        both.wait(rank, 0)
    assert ends(both, case()) == [max(time, compute) for time in ends(alone, case())]
