"""One-sided communication: what an operation takes when nothing is in its way, who gets a lock, and bad use."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fairlane import RunError, _core
from fairlane.model.workload import JobScript, Rank
from oracle import Case, Job, Mpi, Network, Outcome, core, fabrics, ser

COSTS = Mpi(send_overhead=200_000, receive_overhead=300_000, eager_threshold=4096, control_bytes=48)
NETWORK = Network(mtu=1000, header=26, buffer=100_000)
SIZE = 123_456
Script = Callable[[Rank], None]


def case(ranks: int, mpi: Mpi = COSTS, hosts: list[int] | None = None) -> Case:
    """Ranks on hosts of one switch."""
    places = hosts or list(range(ranks))
    return Case(fabrics.star(max(2, ranks)), [Job(places, [[]] * ranks)], NETWORK, mpi=mpi)


def program(ranks: int, write: Script) -> _core.Program:
    script = JobScript(ranks)
    for rank in script:
        write(rank)
    return script.build()


def run(ranks: int, write: Script, of: Case | None = None) -> Outcome:
    return core.simulate(of or case(ranks), [program(ranks, write)])


def begin(rank: Rank, shared: bool = False) -> None:
    """A window, with ``shared`` open to everybody, and a mark when all have it."""
    rank.win_create(0)
    if shared:
        rank.win_lock_all(0)
    rank.compute(10**9)
    rank.mark_progress()


def ends(outcome: Outcome) -> list[int]:
    """When each rank passed its last mark."""
    return [progress.last for _, progress in sorted(outcome.progress.items())]


def trip(size: int) -> int:
    """Picoseconds from a message's start to its last packet's delivery: its packets follow each other on both links."""
    first, second = case(2).fabric.hops(0, 1)
    assert first.bandwidth == second.bandwidth
    sizes = [NETWORK.mtu] * (size // NETWORK.mtu) + ([size % NETWORK.mtu] if size % NETWORK.mtu or not size else [])
    wire = sum(ser(one + NETWORK.header, first.bandwidth) for one in sizes)
    # The switch cuts through, but a shorter last packet waits until the one before it has gone, as on the first link.
    return wire + first.latency + NETWORK.switch_latency + second.latency


def alone(operation: Script) -> int:
    """How long rank 0 takes for an operation and a flush, while rank 1 computes."""

    def write(rank: Rank) -> None:
        begin(rank, shared=True)
        if rank.index == 0:
            operation(rank)
            rank.win_flush(0)
            rank.mark_progress()
        else:
            rank.compute(10**10)

    progress = run(2, write).progress[0, 0]
    return progress.last - progress.first


COMBINING, COMBINING_8 = (ser(size, COSTS.reduction_bandwidth) for size in (SIZE, 8))
CONTROL = COSTS.control_bytes
TIMES: dict[str, tuple[Script, int]] = {
    "put": (lambda rank: rank.put(0, 1, SIZE), trip(SIZE) + trip(CONTROL)),
    "small put": (lambda rank: rank.put(0, 1, 0), trip(0) + trip(CONTROL)),
    "get": (lambda rank: rank.get(0, 1, SIZE), trip(CONTROL) + trip(SIZE)),
    "accumulate": (lambda rank: rank.accumulate(0, 1, SIZE), trip(SIZE) + COMBINING + trip(CONTROL)),
    "get_accumulate": (lambda rank: rank.get_accumulate(0, 1, SIZE), trip(SIZE) + COMBINING + trip(SIZE)),
    "fetch_and_op": (lambda rank: rank.fetch_and_op(0, 1), trip(8) + COMBINING_8 + trip(8)),
    "compare_and_swap": (lambda rank: rank.compare_and_swap(0, 1), trip(16) + COMBINING_8 + trip(8)),
}


@pytest.mark.parametrize("name", TIMES)
def test_an_operation_takes_its_messages_and_its_combination_and_not_the_targets_cpu(name: str) -> None:
    operation, expected = TIMES[name]
    assert alone(operation) == COSTS.send_overhead + expected


def test_a_request_is_complete_with_its_operation_and_costs_nothing_to_wait_for() -> None:
    assert alone(lambda rank: rank.wait(rank.rget(0, 1, SIZE))) == alone(lambda rank: rank.get(0, 1, SIZE))


def test_computation_overlaps_with_a_put() -> None:
    def both(rank: Rank) -> None:
        rank.put(0, 1, SIZE)
        rank.compute(7 * 10**9)

    assert alone(both) == COSTS.send_overhead + 7 * 10**9


def test_combinations_at_a_rank_follow_each_other() -> None:
    """Two origins' operands come at about the same time; the second is combined right after the first."""

    def write(rank: Rank) -> None:
        begin(rank, shared=True)
        if rank.index:
            rank.accumulate(0, 0, 1000)
            rank.win_flush(0)
        rank.mark_progress()

    slow = Mpi(**{**vars(COSTS), "reduction_bandwidth": 8 * 10**9})
    progress = run(3, write, case(3, slow)).progress
    combining, once = 1_000_000, COSTS.send_overhead + trip(1000) + 1_000_000 + trip(CONTROL)
    first, second = sorted((progress[0, rank].last, progress[0, rank].first) for rank in (1, 2))
    assert abs(first[1] - second[1]) < combining
    assert first[0] - first[1] == once
    assert second[0] - first[0] == combining


def test_a_fence_waits_for_operations_and_then_for_everybody() -> None:
    """The put is complete when its acknowledgement comes; then each rank waits for the other's empty message."""

    def write(rank: Rank) -> None:
        rank.win_create(0)
        rank.win_fence(0)
        rank.compute(10**9)
        rank.mark_progress()
        if rank.index == 0:
            rank.put(0, 1, SIZE)
        rank.win_fence(0)
        rank.mark_progress()

    progress = run(2, write).progress
    start = progress[0, 0].first
    complete = start + COSTS.send_overhead + trip(SIZE) + trip(CONTROL)
    signal = COSTS.send_overhead + trip(0)
    early, late = (progress[0, rank].last for rank in (0, 1))
    assert progress[0, 1].first <= complete
    assert late == complete + signal + COSTS.receive_overhead
    # The other's message has been there for long: the rank goes on once it has sent its own and received that.
    assert early == complete + COSTS.send_overhead + COSTS.receive_overhead


@pytest.mark.parametrize("exclusive", [True, False])
def test_exclusive_locks_exclude_each_other_and_shared_ones_do_not(exclusive: bool) -> None:
    hold = 10**8

    def write(rank: Rank) -> None:
        begin(rank)
        if rank.index:
            rank.win_lock(0, 0, exclusive=exclusive)
            rank.compute(hold)
            rank.win_unlock(0, 0)
            rank.mark_progress()

    progress = run(4, write, case(4)).progress
    spans = sorted(progress[0, rank].last - progress[0, rank].first for rank in (1, 2, 3))
    uncontended = COSTS.send_overhead + 2 * trip(CONTROL) + hold + COSTS.send_overhead
    # Until the next one has the lock: the release goes there, the grant comes back.
    handover = hold + COSTS.send_overhead + 2 * trip(CONTROL)
    slack = 3 * trip(CONTROL)  # requests and grants of three ranks share the target's links
    for place, span in enumerate(spans):
        expected = uncontended + (place * handover if exclusive else 0)
        assert expected <= span <= expected + slack, place


def test_post_and_start_let_through_who_was_named() -> None:
    def write(rank: Rank) -> None:
        rank.win_create(0)
        if rank.index == 0:
            rank.compute(10**9)
            rank.win_post(0, [1])
            rank.win_wait(0)
        else:
            rank.win_start(0, [0])
            rank.put(0, 0, SIZE)
            rank.win_complete(0)
        rank.mark_progress()

    target, origin = ends(run(2, write))
    assert origin > 10**9
    # The last message of the origin goes to the target, which receives it.
    assert target == origin + trip(CONTROL) + COSTS.receive_overhead


def test_a_record_has_the_payload_of_operations_and_what_their_waits_waited_for() -> None:
    def write(rank: Rank) -> None:
        rank.win_create(0)
        rank.win_lock_all(0)
        rank.compute(10**9 - 10**6 * rank.index)
        rank.mark_progress()
        if rank.index == 0:
            rank.put(0, 1, SIZE)
            rank.win_flush(0)
            rank.get(0, 1, 1000)
            rank.win_flush(0)

    spec = core.spec(case(2))
    spec["observe"]["record"] = {"job": 0, "from": 0, "to": 10**12}
    simulation = _core.Simulation(json.dumps(spec), [program(2, write)])
    simulation.run_until(10**12)
    called = core.outcome(simulation).progress[0, 0].first
    table = simulation.table("messages")
    messages, waits = fabrics.decode(table), fabrics.decode(simulation.table("waits"))
    put, get = (index for index, sent in enumerate(messages["sent_at"]) if sent >= called)
    arrived = called + COSTS.send_overhead + trip(SIZE)
    acknowledged = arrived + trip(CONTROL)
    fetched = acknowledged + COSTS.send_overhead + trip(CONTROL) + trip(1000)
    assert [messages[name][put] for name in ("from_rank", "to_rank", "bytes")] == [0, 1, SIZE]
    assert [messages[name][put] for name in ("sent_at", "received_at", "acknowledged_at")] == [
        called,
        arrived,
        acknowledged,
    ]
    assert [messages[name][get] for name in ("from_rank", "to_rank", "bytes", "received_at")] == [1, 0, 1000, fetched]
    last = [index for index, rank in enumerate(waits["rank"]) if rank == 0][-2:]
    assert [waits["message"][index] for index in last] == [messages["message"][put], messages["message"][get]]
    assert [waits["end"][index] for index in last] == [acknowledged, fetched]
    assert fabrics.decode(simulation.table("ranks"))["late_partner"][0] == 0


def test_ranks_of_one_host_use_memory() -> None:
    outcome = run(2, lambda rank: fenced(rank, lambda: rank.put(0, 1 - rank.index, SIZE)), case(2, hosts=[0, 0]))
    assert not outcome.departures
    assert len(set(ends(outcome))) == 1


def fenced(rank: Rank, operations: Callable[[], None]) -> None:
    """An epoch between fences."""
    rank.win_create(0)
    rank.win_fence(0)
    operations()
    rank.win_fence(0)
    rank.mark_progress()


def test_a_fork_goes_on_alike() -> None:
    def write(rank: Rank) -> None:
        rank.win_create(0)
        with rank.repeat(20):
            request = rank.icollective("allreduce", 5000)
            rank.win_lock(0, (rank.index + 1) % 4)
            rank.put(0, (rank.index + 1) % 4, 3000)
            rank.accumulate(0, (rank.index + 1) % 4, 3000)
            rank.win_unlock(0, (rank.index + 1) % 4)
            rank.compute(50_000)
            rank.wait(request)
            rank.mark_progress()

    spec = json.dumps(core.spec(case(4)))
    whole = _core.Simulation(spec, [program(4, write)])
    whole.run_until(10**12)
    end = max(ends(core.outcome(whole)))
    for part in range(1, 12):
        start = _core.Simulation(spec, [program(4, write)])
        start.run_until(end * part // 12)
        fork = start.fork()
        assert not fork.finished
        for simulation in (start, fork):
            simulation.run_until(10**12)
            assert core.outcome(simulation).facts() == core.outcome(whole).facts()


def steps(*calls: tuple[str, *tuple[int, ...]]) -> Script:
    """Calls of a rank, by name and arguments."""

    def write(rank: Rank) -> None:
        for name, *arguments in calls:
            getattr(rank, name)(*arguments)

    return write


def with_request(make: str, arguments: tuple[Any, ...], *then: str) -> Script:
    """A call that returns a request, and calls with this."""

    def write(rank: Rank) -> None:
        request = getattr(rank, make)(*arguments)
        for name in then:
            getattr(rank, name)(request)

    return write


BAD: dict[str, tuple[Script, str]] = {
    "unknown window": (steps(("win_fence", 3)), r"rank 0 has no window 3; it has: none"),
    "made twice": (steps(("win_create", 1), ("win_create", 1)), r"rank 0 has a window 1 already"),
    "outside of an epoch": (
        steps(("win_create", 1), ("put", 1, 0, 8)),
        r"rank 0: put at rank 0 on window 1 outside of an epoch: win_fence, win_lock",
    ),
    "another target's lock": (
        steps(("win_create", 1), ("win_lock", 1, 1), ("get", 1, 0, 8)),
        r"get at rank 0 on window 1 outside of an epoch",
    ),
    "unlocked twice": (steps(("win_create", 1), ("win_unlock", 1, 0)), r"rank 0 has no lock of rank 0"),
    "freed too soon": (
        steps(("win_create", 1), ("win_lock_all", 1), ("win_free", 1)),
        r"rank 0 frees window 1 within an epoch",
    ),
    "completed without a start": (steps(("win_create", 1), ("win_complete", 1)), r"win_start comes first"),
    "never waited for": (
        with_request("icollective", ("barrier",)),
        r"rank 0 never waits for its ibarrier \(request 0\)",
    ),
    "started twice": (
        with_request("send_init", (1, 8), "start", "start"),
        r"rank 0 has started request \d+ \(send_init\) already",
    ),
    "started and left": (with_request("recv_init", (1,), "start"), r"rank 0 never waits for its started recv_init"),
    "not persistent": (with_request("isend", (1, 8), "start"), r"rank 0 has no persistent request 0"),
    "freed and started": (with_request("send_init", (1, 8), "request_free", "start"), r"rank 0 has freed request"),
    "freed collective": (with_request("icollective", ("barrier",), "request_free"), r"rank 0 cannot free its ibarrier"),
    "periods": (lambda rank: rank.cart_create(2, [2, 2], periods=[True]), r"rank 0: 1 periods for 2 dims"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_mpi_does_not_allow_is_refused_where_it_is_written(name: str) -> None:
    write, message = BAD[name]
    with pytest.raises(ValueError, match=message):
        program(2, write)


Calls = list[tuple[Any, ...]]
"""Calls of the builder, by name and arguments but for the rank."""
WINDOW: tuple[Any, ...] = ("win_create", 0)
# What rank 0 calls, what the others call, and the error.
ENGINE: dict[str, tuple[Calls, Calls, str]] = {
    "unknown window": ([("win_fence", 7)], [], r"rank 0, operation WinFence.*no window 7 at this rank"),
    "target": (
        [WINDOW, ("rma", "put", 0, 3, 8)],
        [WINDOW],
        r"rank 0, operation put\(8 bytes, target 3, window 0\): the window has 3 ranks",
    ),
    "mixed": (
        [("collective", "barrier")],
        [("icollective", "barrier", 0)],
        r"collective number 0: rank \d called i?barrier.* but rank \d called i?barrier",
    ),
    "no topology": (
        [("neighbor", "neighbor_alltoall", 8, 0)],
        [],
        r"rank 0.*communicator 0 has no topology",
    ),
    "blocks": (
        [("cart_create", 5, [(3, True)]), ("neighbor", "neighbor_alltoall", [8], 5)],
        [("cart_create", 5, [(3, True)])],
        r"neighbor_alltoall to 2 neighbours got 1 blocks",
    ),
    "grid": (
        [("cart_create", 5, [(2, True), (2, True)])],
        [("cart_create", 5, [(2, True), (2, True)])],
        r"the topology has 4 ranks and the communicator 3",
    ),
    "unlock": ([WINDOW, ("win_unlock", 0, 1)], [WINDOW], r"this rank has no lock of target 1"),
    "a lock that nobody gives up": (
        [WINDOW, ("win_lock", 0, 1, True)],
        [WINDOW, ("win_lock", 0, 1, True)],
        r"can never go on.*WinLock\(exclusive, target 1, window 0\), a lock that rank \d holds",
    ),
    "a window that nobody opens": (
        [WINDOW, ("win_start", 0, [1, 2])],
        [WINDOW],
        r"can never go on.*rank 0 in WinStart\(targets 1, 2, window 0\)",
    ),
    "a collective that one rank never calls": (
        [("recv", 1)],
        [("icollective", "allgather", 4, 64), ("wait", 4)],
        r"can never go on.*Wait\(request 4\), iallgather, collective number 0 of its communicator, waits for messages "
        r"from 0",
    ),
}


@pytest.mark.parametrize("name", ENGINE)
def test_the_engine_names_rank_call_and_problem(name: str) -> None:
    first, others, message = ENGINE[name]
    builder = _core.ProgramBuilder(3)
    for rank in range(3):
        for call, *arguments in others if rank else first:
            getattr(builder, call)(rank, *arguments)
    with pytest.raises(RunError, match=message):
        core.simulate(case(3), [builder.build()])
