"""Whose packets take turns at an adapter, and what ranks of one host share: closed forms for both simulators."""

from collections.abc import Callable

import pytest

from oracle import Case, Engine, Job, Mark, Mpi, Network, Op, Recv, Send, Wait, core, fabrics, ser, simulate

RATE = 100_000_000_000
MEMORY = 80_000_000_000
LATENCY = 100_000


def exchange(ranks: int, messages: list[tuple[int, int, int]]) -> list[list[Op]]:
    """Scripts in which these messages, sender, receiver and bytes, are all started at once."""
    scripts: list[list[Op]] = [[] for _ in range(ranks)]
    for tag, (source, to, size) in enumerate(messages):
        scripts[source].append(Send(to, size, tag, tag))
        scripts[to].append(Recv(source, tag, len(messages) + tag))
    for script in scripts:
        script += [Wait(tuple(op.request for op in script if isinstance(op, Send | Recv))), Mark()]  # type: ignore[misc]
    return scripts


@pytest.mark.parametrize(
    ("injection", "sizes"),
    [
        ("messages", [1000, 1000, 1000, 1000, 900, 700, 500]),
        ("queue_pairs", [1000, 1000, 1000, 700, 500, 1000, 900]),
        ("fifo", [1000, 1000, 500, 1000, 900, 1000, 700]),
    ],
)
def test_adapters_send_messages_in_the_order_of_their_injection(run: Engine, injection: str, sizes: list[int]) -> None:
    """Rank 0 sends 2500 and 1900 bytes to rank 1, then 1700 to rank 2; the last packet of each has its own size."""
    scripts = exchange(3, [(0, 1, 2500), (0, 1, 1900), (0, 2, 1700)])
    network = Network(mtu=1000, header=0, injection=injection)
    case = Case(fabrics.star(3, bandwidth=RATE, latency=LATENCY), [Job([0, 1, 2], scripts)], network)
    outcome = run(case)
    assert [one.size for one in sorted(outcome.departures) if one.link == 0] == sizes
    # All bytes leave without a pause, whatever their order: nobody but the order of completion changes.
    assert outcome.links[0].active == sum(ser(size, RATE) for size in sizes)


@pytest.mark.parametrize("injection", ["queue_pairs", "fifo"])
def test_a_queue_pair_completes_its_messages_one_after_another(run: Engine, injection: str) -> None:
    """Of ten messages of eight packets between two ranks, number n is whole after 8 n packets: not all at the end."""
    messages = [(0, 1, 8000)] * 10
    network = Network(mtu=1000, header=0, injection=injection)
    case = Case(fabrics.star(2, bandwidth=RATE, latency=LATENCY), [Job([0, 1], exchange(2, messages))], network)
    found = run(case).latencies["message", 0, "eager"] if run is simulate else None
    flight = 2 * LATENCY + network.switch_latency
    expected = [flight + 8 * n * ser(1000, RATE) for n in range(1, 11)]
    if found is None:
        count, total, least, most = core.latencies(core.run(case))[0]["message", 0, "eager"]
        assert (count, total, least, most) == (10, sum(expected), expected[0], expected[-1])
    else:
        assert sorted(found) == expected


PATTERNS: dict[str, Callable[[int], list[tuple[int, int, int]]]] = {
    "all_to_all": lambda n: [(rank, (rank + step) % n, 4000) for rank in range(n) for step in range(1, n)],
    "incast": lambda n: [(rank, 0, 4000) for rank in range(1, n)],
    "outcast": lambda n: [(0, rank, 4000) for rank in range(1, n)],
    "pair": lambda _n: [(0, 1, 4000)],
}


@pytest.mark.parametrize("ranks", [2, 5, 8])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_ranks_of_one_host_share_their_memory_links(run: Engine, pattern: str, ranks: int) -> None:
    """N ranks on one host: (n - 1) m / B for an all-to-all, an incast and an outcast; without contention m / B."""
    messages = PATTERNS[pattern](ranks)
    busiest = 1 if pattern == "pair" else ranks - 1
    for contention, times in [(True, busiest), (False, 1)]:
        mpi = Mpi(memory_bandwidth=MEMORY, memory_latency=LATENCY, memory_contention=contention)
        fabric = fabrics.star(2, bandwidth=RATE, latency=LATENCY)
        outcome = run(Case(fabric, [Job([0] * ranks, exchange(ranks, messages))], mpi=mpi))
        assert max(one.last for one in outcome.progress.values()) == LATENCY + times * ser(4000, MEMORY)


def test_a_message_to_itself_takes_no_memory_link(run: Engine) -> None:
    mpi = Mpi(memory_bandwidth=MEMORY, memory_latency=LATENCY, memory_contention=True)
    fabric = fabrics.star(2, bandwidth=RATE, latency=LATENCY)
    outcome = run(Case(fabric, [Job([0, 0], exchange(2, [(0, 0, 4000), (0, 1, 4000)]))], mpi=mpi))
    assert max(one.last for one in outcome.progress.values()) == LATENCY + ser(4000, MEMORY)
