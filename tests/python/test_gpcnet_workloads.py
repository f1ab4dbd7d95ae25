"""The workloads of GPCNeT: what ranks send, to whom, at which place of a communicator, and wrong parameters."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.core.tables import frame
from fairlane.model.fabric.graph import columns

FABRIC = {"topology": "fat_tree", "hosts": 16, "levels": 2, "radix": 8, "bandwidth": "100 Gb/s"}


def ended(ranks: int, iterations: int = 1, ranks_per_host: int = 1, **workload: Any) -> Simulation:
    """A job by itself after so many iterations."""
    job = {"name": "job", "ranks": ranks, "workload": {"jitter": 0, **workload}, "stop": iterations}
    placement = {"name": "linear", "ranks_per_host": ranks_per_host}
    simulation = Simulation(
        Scenario(fabric=FABRIC, jobs=[job], placement=placement, observe={"record": {"job": "job"}})
    )
    assert simulation.run_for("1 s")
    return simulation


def payloads(simulation: Simulation, size: int) -> list[tuple[int, int]]:
    """Sender and receiver of every message of this size."""
    messages = frame(simulation.engine.table("messages")).filter(pl.col("bytes") == size)
    return list(messages.select("from_rank", "to_rank").iter_rows())


def neighbours(pairs: list[tuple[int, int]]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for sender, receiver in pairs:
        found.setdefault(sender, set()).add(receiver)
    return found


@pytest.mark.parametrize("communicators", [1, 4])
def test_a_random_ring_joins_all_ranks_of_a_communicator_and_no_others(communicators: int) -> None:
    found = ended(32, 1, 4, name="random_ring", message_size="77 B", communicators=communicators)
    ring = neighbours(payloads(found, 77))
    assert all(len(others) == 2 and all(one in ring[other] for other in others) for one, others in ring.items())
    rounds = []
    while ring:
        members, following = [], {min(ring)}
        while following:
            members.append(min(following))
            following = ring.pop(members[-1]) & set(ring)
        rounds.append(members)
    assert len(rounds) == communicators
    assert all(len({rank % communicators for rank in members}) == 1 for members in rounds)
    assert communicators == 4 or rounds[0] != sorted(rounds[0]), "the order is random"


def test_two_ranks_are_each_others_neighbours_on_both_sides() -> None:
    assert sorted(payloads(ended(2, name="random_ring", message_size="77 B"), 77)) == [(0, 1), (0, 1), (1, 0), (1, 0)]


def test_a_ring_in_windows_sends_so_many_and_a_barrier_ends_the_iteration() -> None:
    found = ended(6, name="random_ring", message_size="5 KiB", messages_per_iteration=3, barrier=True)
    ranks = columns(found.engine.table("ranks"))
    assert len(payloads(found, 5120)) == 6 * 2 * 3
    barrier = np.diff(np.sort(ranks["finished_at"]))
    assert barrier.max() < 3e6, "no rank is more than a trip of the barrier ahead"


def test_several_allreduces_stay_within_their_communicators() -> None:
    found = ended(32, 1, 4, name="multiple_allreduce", message_size="24 B", communicators=4)
    pairs = payloads(found, 24)
    assert len(pairs) == 32 * 3, "recursive doubling of eight ranks"
    assert all(sender % 4 == receiver % 4 for sender, receiver in pairs)


@pytest.mark.parametrize("ranks", [8, 6])
def test_the_all_to_all_congestor_exchanges_with_all_others(ranks: int) -> None:
    found = ended(ranks, name="congestor", message_size="700 B", messages_per_iteration=2)
    pairs = payloads(found, 700)
    assert sorted(pairs) == sorted(2 * [(x, y) for x in range(ranks) for y in range(ranks) if x != y])


@pytest.mark.parametrize("pattern", ["incast", "put_incast"])
def test_incasts_send_to_the_first_rank_of_each_communicator(pattern: str) -> None:
    sizes: dict[str, Any] = {"message_size": "700 B", "messages_per_iteration": 3, "communicators": 2, "window": 2}
    found = ended(12, name="congestor", pattern=pattern, **sizes)
    under_way = 2 if pattern == "incast" else 1
    assert sorted(payloads(found, 700)) == sorted(3 * under_way * [(rank, rank % 2) for rank in range(2, 12)])


def test_the_broadcast_by_gets_sends_from_the_first_rank() -> None:
    found = ended(12, name="congestor", pattern="get_broadcast", message_size="700 B", messages_per_iteration=3)
    assert sorted(payloads(found, 700)) == sorted(3 * [(0, rank) for rank in range(1, 12)])


@pytest.mark.parametrize("window", [1, 3])
def test_a_rank_of_an_incast_has_as_many_messages_under_way_as_its_window(window: int) -> None:
    sizes: dict[str, Any] = {"message_size": "700 B", "messages_per_iteration": 5, "window": window}
    found = ended(9, name="congestor", pattern="incast", **sizes)
    messages = frame(found.engine.table("messages")).filter((pl.col("bytes") == 700) & (pl.col("from_rank") == 3))
    sent, received = messages["sent_at"].to_numpy(), messages["received_at"].to_numpy()
    assert len(sent) == 5 * window
    assert (sent[window:] > received[:-window]).all()
    assert (sent[1:window] < received[: window - 1]).all()


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ({"name": "random_ring", "communicators": 5}, ["jobs[0].ranks", "12", "a multiple of communicators = 5"]),
        ({"name": "congestor", "communicators": 12}, ["jobs[0].ranks", "2 ranks or more in each"]),
        ({"name": "congestor", "pattern": "put_incats"}, ["pattern", "put_incats", 'did you mean "put_incast"']),
        ({"name": "multiple_allreduce", "communicators": 0}, ["communicators", "at least 1"]),
    ],
)
def test_wrong_parameters_are_named(workload: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ScenarioError) as raised:
        Scenario(fabric=FABRIC, jobs=[{"ranks": 12, "workload": workload}])
    assert all(word in str(raised.value) for word in words), str(raised.value)
