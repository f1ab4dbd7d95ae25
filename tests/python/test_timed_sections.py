"""Iterations with a timed part, the workloads that have one, and bursts: against arithmetic."""

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from typing_extensions import override

from fairlane import Run, Scenario, ScenarioError, Simulation, run
from fairlane.core.tables import frame
from fairlane.model.workload import Rank, Workload
from fairlane.results.views import spread_of_iterations
from report_runs import shown_times

RATE, LATENCY, SWITCH, HEADER = 100e9, 100_000, 90_000, 26
FABRIC = {"topology": "fat_tree", "hosts": 16, "levels": 1, "radix": 16, "bandwidth": "100 Gb/s", "latency": "100 ns"}
"""One switch, so that every two hosts are two links apart."""
MPI = {"send_overhead": 0, "receive_overhead": 0, "eager_threshold": "1 MiB"}
MS, US = 10**9, 10**6


def wire(size: int) -> int:
    """How long a message of one packet is on a link, ps."""
    return round((size + HEADER) * 8e12 / RATE)


def trip(size: int) -> int:
    """From the first bit of such a message to its last at the receiver, ps."""
    return 2 * LATENCY + SWITCH + wire(size)


def scenario(*jobs: dict[str, Any], **keys: Any) -> Scenario:
    network = {"switch_latency": f"{SWITCH} ps", "header": f"{HEADER} B"}
    return Scenario(fabric=FABRIC, network=network, mpi=MPI, placement="linear", jobs=list(jobs), **keys)


def job(ranks: int, workload: Workload | dict[str, Any], **keys: Any) -> dict[str, Any]:
    if isinstance(workload, dict):
        workload = {"jitter": 0, "imbalance": {"kind": "uniform", "low": 1}, **workload}
    return {"name": "job", "ranks": ranks, "workload": workload, "stop": 4, **keys}


def marks(of: dict[str, Any]) -> pl.DataFrame:
    """The iterations of a job that runs to its end."""
    simulation = Simulation(scenario(of))
    assert simulation.run_for("1 s")
    return frame(simulation.engine.table("job_marks"))


class Uneven(Workload):
    """Rank 1 computes for 300 us, rank 0 for 100 us; then a barrier, and an exchange of 1000 bytes."""

    timed: bool = True
    compute: int | None = 0

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """The barrier, which may be left out of the time, and the exchange."""
        rank.compute((300 if rank.index else 100) * US)
        rank.collective("barrier")
        if self.timed:
            rank.begin_timing()
        rank.exchange([1 - rank.index], 1000)


def outcome(workload: Workload) -> Run:
    return run(scenario(job(2, workload), observe={"iterations": ["job"]}, duration="1 s"))


def test_the_timed_part_of_an_iteration_begins_after_the_barrier() -> None:
    """The late rank leaves the barrier at once, sends behind its own message of the barrier, and waits for longer.

    The early one leaves it, and sends, when that message has come.
    """
    found = outcome(Uneven())
    late, early = trip(0) + trip(1000), wire(0) + trip(1000) - trip(0)
    assert found.completions["elapsed_ps"].to_list() == [late] * 4
    assert found.completions["timed"].all()
    assert found.iterations is not None
    of_ranks = dict(found.iterations.drop_nulls().group_by("rank").agg(pl.col("time_s").unique()).iter_rows())
    assert of_ranks == {0: [pytest.approx(early * 1e-12)], 1: [pytest.approx(late * 1e-12)]}
    same = pytest.approx(late * 1e-12)
    assert found.jobs["seconds_per_iteration"].to_list() == [same]
    assert spread_of_iterations(found.completions).drop("name").row(0) == (same, same, same)
    assert shown_times(found) == [pytest.approx(late * 1e-12, rel=1e-4)] * 3


def test_without_a_timed_part_an_iteration_lasts_from_mark_to_mark() -> None:
    found = outcome(Uneven(timed=False))
    whole = 300 * US + trip(0) + trip(1000)  # of rank 1, which rank 0 waits for
    assert found.completions["elapsed_ps"].to_list() == [whole] * 4
    assert not found.completions["timed"].any()
    assert found.completions["at_ps"].to_list() == [whole * number for number in range(1, 5)]
    assert found.jobs["seconds_per_iteration"].to_list() == [pytest.approx(whole * 1e-12)]
    timed = outcome(Uneven())
    assert timed.meta.digest == found.meta.digest, "what is timed changes nothing that happens"


@pytest.mark.parametrize("name", ["all_posted", "ring_allgather"])
@pytest.mark.parametrize("ranks", [2, 4, 7])
def test_messages_and_bytes_of_a_round(name: str, ranks: int) -> None:
    size = 4096 * ranks
    steps = (ranks - 1).bit_length()
    for barrier in (True, False):
        workload = {"name": name, "message_size": f"{size} B", "barrier": barrier, "messages_per_iteration": 3}
        simulation = Simulation(scenario(job(ranks, workload)))
        assert simulation.run_for("1 s")
        table = frame(simulation.engine.table("ranks"))
        assert set(table["messages_sent"]) == {4 * (3 * (ranks - 1) + steps * barrier)}
        each = size if name == "all_posted" else size // ranks
        assert set(table["bytes_sent"]) == {4 * 3 * (ranks - 1) * each}


def test_computation_and_barrier_of_a_ring_are_not_timed() -> None:
    """All ranks do the same at the same time, so the barrier takes a message for each of its three steps."""
    for compute in (0, 200):
        found = marks(job(8, {"name": "ring_allgather", "message_size": "2 KiB", "compute": f"{compute} us"}))
        assert set(found["elapsed"]) == {7 * trip(2048 // 8)}
        assert set(found["time"].diff().drop_nulls()) == {compute * US + 3 * trip(0) + 7 * trip(2048 // 8)}


@pytest.mark.parametrize("barrier", [True, False])
def test_the_copy_of_the_own_block_comes_before_the_timed_part(barrier: bool) -> None:
    """At 1 GB/s an eighth of 2 KiB takes 256 ns."""
    workload = {"name": "ring_allgather", "message_size": "2 KiB", "copy_bandwidth": "8 Gb/s", "barrier": barrier}
    found = marks(job(8, workload))
    assert set(found["elapsed"]) == {7 * trip(256)}
    assert set(found["time"].diff().drop_nulls()) == {256_000 + 3 * trip(0) * barrier + 7 * trip(256)}


def test_all_messages_of_a_round_are_under_way_at_once() -> None:
    """A link carries the seven messages of a rank, and another those for it; the last of all may wait for both."""
    found = marks(job(8, {"name": "all_posted", "message_size": "2 KiB", "compute": "200 us"}))
    least, most = trip(2048) + 6 * wire(2048), 3 * trip(0) + trip(2048) + 12 * wire(2048)
    assert all(least <= elapsed <= most for elapsed in found["elapsed"])


def test_a_small_buffer_is_gathered_byte_by_byte() -> None:
    found = marks(job(5, {"name": "ring_allgather", "message_size": "2 B"}))
    assert set(found["elapsed"]) == {4 * trip(1)}


def bursts(**keys: Any) -> dict[str, Any]:
    workload = {"name": "all_posted", "message_size": "64 B", "compute": "10 us", "barrier": False}
    return job(4, {**workload, **keys}, stop=34)


def test_bursts_last_as_many_rounds_as_fit_and_pauses_follow() -> None:
    """A round takes 10 us and up to 3 us of messages; a burst ends with the first round that ends after its length."""
    found = marks(bursts(burst="95 us", pause="1 ms"))
    plain = marks(bursts())
    gaps = found["time"].diff().drop_nulls().to_list()
    rounds = [number for number, gap in enumerate(gaps, 1) if gap > MS]
    (per_burst,) = {after - before for before, after in zip([0, *rounds], rounds, strict=False)}
    # On rank 0 a round lasts from its mark to the next; the first one that ends after the burst's length is its last.
    round_of = {gap for number, gap in enumerate(gaps, 1) if number not in rounds}
    assert (per_burst - 1) * min(round_of) < 95 * US <= per_burst * max(round_of)
    assert all(MS + 10 * US <= gap <= MS + 13 * US for gap in gaps if gap > MS)
    assert max(found["elapsed"]) <= 13 * US, "a pause is no part of an iteration"
    assert found.height == plain.height == 34
    assert set(found["timed"]) == {0, 1}, "the first iteration of the job is timed from its start"
    assert set(plain["timed"]) == {0}


def test_a_burst_of_no_length_is_one_round_and_one_broadcast() -> None:
    for pause in ({}, {"pause": "50 us"}):
        simulation = Simulation(scenario(bursts(burst=0, **pause)))
        assert simulation.run_for("1 s")
        sent = frame(simulation.engine.table("ranks"))
        # Three messages a round, and those of a binomial tree over four ranks: 0 to ranks 1 and 2, and 2 to 3.
        assert sent["messages_sent"].to_list() == [34 * (3 + more) for more in (2, 0, 1, 0)]
        assert sent["bytes_sent"].to_list() == [34 * (3 * 64 + 4 * more) for more in (2, 0, 1, 0)]
        calls = dict(frame(simulation.engine.table("calls")).select("call", "count").iter_rows())
        assert calls["bcast"] == 4 * 34
        gaps = frame(simulation.engine.table("job_marks"))["time"].diff().drop_nulls()
        assert min(gaps) >= (60 if pause else 10) * US


def test_a_pause_is_neither_computation_nor_communication() -> None:
    simulation = Simulation(scenario(bursts(burst=0, pause="50 us")))
    assert simulation.run_for("1 s")
    ranks = frame(simulation.engine.table("ranks"))
    assert set(ranks["compute"]) == {34 * 10 * US}
    idle = ranks["finished_at"] - ranks["compute"] - ranks["communication"]
    assert idle.to_list() == [34 * 50 * US] * 4


@pytest.mark.parametrize("keys", [{}, {"barrier": True}])
def test_bursts_are_the_same_on_any_number_of_threads(keys: dict[str, Any]) -> None:
    """Ranks are spread over all switches, so that the broadcast goes from one shard to another."""
    tree = {"topology": "fat_tree", "hosts": 16, "levels": 2, "radix": 8, "bandwidth": "100 Gb/s"}
    incast = {"name": "incast", "burst": "40 us", "pause": "20 us"}
    jobs = [bursts(burst="45 us", pause="30 us", **keys), {"name": "other", "ranks": 5, "workload": incast, "stop": 9}]
    digests, found = set(), []
    for threads in (1, 2, 4):
        simulation = Simulation(Scenario(fabric=tree, placement="spread", jobs=jobs), threads=threads)
        assert simulation.run_for("1 s")
        assert simulation.engine.shards == threads
        digests.add(simulation.engine.digest())
        found.append(frame(simulation.engine.table("job_marks")))
    assert len(digests) == 1
    assert all(table.equals(found[0]) for table in found)
    assert (found[0].filter(job=0)["time"].diff() > 40 * US).sum() >= 3, "pauses of 30 us and iterations of 10 us"


def wrong(name: str, **keys: Any) -> Callable[[], object]:
    return lambda: scenario(job(4, {"name": name, **keys}))


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (wrong("all_posted", pause="1 ms"), "pause"),
        (wrong("all_posted", burst="1"), "unit"),
        (lambda: scenario({"ranks": 4, "workload": {"name": "open_loop", "burst": "1 ms"}}), "burst"),
    ],
)
def test_wrong_bursts_are_refused(made: Callable[[], object], says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        made()
