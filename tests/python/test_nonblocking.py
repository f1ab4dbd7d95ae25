"""Non-blocking and neighborhood collectives, persistent requests: time alone and beside computation, and traffic."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from fairlane import _core
from fairlane.model.pattern import observe
from fairlane.model.workload import WORKLOADS, JobScript, Rank
from oracle import Case, Job, Mpi, Outcome, core, fabrics

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
    return Case(fabrics.fat_tree(hosts=ranks, levels=2), [Job(list(range(ranks)), [[]] * ranks)], mpi=mpi)


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
    expected = ends(blocking, case())
    assert max(expected) > 0
    assert ends(started, case()) == expected


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


def written(write: Callable[[Rank], None], ranks: int = RANKS) -> _core.Program:
    script = JobScript(ranks)
    for rank in script:
        write(rank)
        rank.mark_progress()
    return script.build()


def marks(program: _core.Program) -> list[int]:
    return [progress.last for _, progress in sorted(core.simulate(case(program.ranks), [program]).progress.items())]


def test_a_neighborhood_collective_is_an_exchange_along_the_topology() -> None:
    """In a row of ranks, that of sends and receives of the same sizes posted in the same order; empty blocks too."""

    def sizes(rank: Rank) -> list[int]:
        return [0 if rank.index % 3 == 0 else 9_000, 700 * rank.index]

    def collective(rank: Rank) -> None:
        rank.cart_create(4, [rank.ranks])
        rank.neighbor_alltoall(sizes(rank), comm=4)

    def messages(rank: Rank) -> None:
        rank.cart_create(4, [rank.ranks])
        sides = [(rank.index + side, size) for side, size in zip((-1, 1), sizes(rank), strict=True)]
        sides = [(peer, size) for peer, size in sides if 0 <= peer < rank.ranks]
        for peer, _ in sides:
            rank.irecv(peer)
        for peer, size in sides:
            rank.isend(peer, size)
        rank.wait_all()

    assert marks(written(collective)) == marks(written(messages))


def test_a_gathering_and_a_started_neighborhood_collective_are_the_blocking_one_of_the_same_size() -> None:
    def time(call: Callable[[Rank], object]) -> list[int]:
        def write(rank: Rank) -> None:
            rank.cart_create(4, [rank.ranks], periods=True)
            call(rank)
            rank.wait_all()

        return marks(written(write))

    blocking = time(lambda rank: rank.neighbor_alltoall(9_000, comm=4))
    assert min(blocking) > 0
    assert time(lambda rank: rank.neighbor_alltoall(90_000, comm=4)) > blocking
    assert time(lambda rank: rank.neighbor_allgather(9_000, comm=4)) == blocking
    assert time(lambda rank: rank.ineighbor_allgather(9_000, comm=4)) == blocking
    assert time(lambda rank: rank.ineighbor_alltoall(9_000, comm=4)) == blocking


def test_a_started_persistent_request_is_the_call_that_it_stands_for() -> None:
    def persistent(rank: Rank) -> None:
        left, right = (rank.index - 1) % rank.ranks, (rank.index + 1) % rank.ranks
        requests = [rank.recv_init(left), rank.send_init(right, 20_000), rank.send_init(right, 8)]
        total = rank.collective_init("allreduce", 64)
        rank.wait(requests[0])  # not started: nothing to wait for
        with rank.repeat(3):
            rank.start_all([*requests[:2], total])
            rank.compute(1000)
            rank.wait_all([*requests[:2], total])
        rank.request_free(requests[2])

    def plain(rank: Rank) -> None:
        left, right = (rank.index - 1) % rank.ranks, (rank.index + 1) % rank.ranks
        with rank.repeat(3):
            rank.irecv(left)
            rank.isend(right, 20_000)
            rank.icollective("allreduce", 64)
            rank.compute(1000)
            rank.wait_all()

    assert marks(written(persistent)) == marks(written(plain))


def test_a_request_that_is_freed_completes_by_itself_and_nobody_waits_for_it() -> None:
    late = 10**9

    def sends(rank: Rank, *, free: bool) -> None:
        if rank.index == 0:
            request = rank.isend(1, 20_000)  # by rendezvous, so that a wait for it lasts until the receive
            if free:
                rank.request_free(request)
            rank.wait_all()
        elif rank.index == 1:
            rank.compute(late)
            rank.recv(0)

    freed, awaited = (marks(written(partial(sends, free=free), ranks=2)) for free in (True, False))
    assert freed[0] == COSTS.send_overhead
    assert awaited[0] > late
    assert freed[1] == awaited[1] > late


@pytest.mark.parametrize("name", ["halo3d", "incast", "put_broadcast"])
def test_puts_and_neighborhood_collectives_carry_the_same_payload_as_messages(name: str) -> None:
    def traffic(**parameters: object) -> tuple[np.ndarray, dict[int, int]]:
        workload = WORKLOADS[name].model_validate({"message_size": "5 kB", "distinct_iterations": 1, **parameters})
        found = observe(workload.program(JobScript(12, iterations=1), 0))
        return found.bytes[0], found.sizes["collective"]

    messages, _ = traffic()
    assert messages.any()
    if name == "halo3d":
        assert np.array_equal(traffic(exchange="put")[0], messages)
        around = {"neighbours": 26, "periodic": True}
        assert np.array_equal(traffic(exchange="put", **around)[0], traffic(**around)[0])
        assert traffic(exchange="neighbor_alltoall")[1][5000] == messages.sum() / 5000
    else:
        assert np.array_equal(traffic(operation="put")[0], messages)
