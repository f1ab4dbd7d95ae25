"""Messages that are sent faster than they are received: an error instead of all the memory, in runs and after them."""

from typing import Any

import pytest

from fairlane import RunError, Scenario, Simulation
from fairlane.sim.runner import experiment

LATE = {"name": "late", "ranks": 4, "placement": {"hosts": [0, 1, 2, 3]}}
"""Each iteration is seven messages of eight packets from each of three ranks to one."""


def incast(**network: Any) -> Scenario:
    """A small incast that sends faster than its network takes."""
    document = {
        "duration": "50 us",
        "fabric": {"topology": "fat_tree", "hosts": 8, "levels": 1, "radix": 8, "bandwidth": "10 Gb/s"},
        "network": {"mtu": "1000 B", **network},
        "jobs": [LATE | {"workload": {"name": "incast", "message_size": "8000 B", "messages_per_iteration": 7}}],
    }
    return Scenario.read(document)


@pytest.mark.parametrize("threads", [1, 2])
def test_too_many_messages_are_an_error_that_names_the_rank(threads: int) -> None:
    """Ranks 1 to 3 send alike; the limit holds whatever the threads."""
    scenario = incast()
    limited = scenario.model_copy(update={"mpi": scenario.mpi.model_copy(update={"max_messages": 1000})})
    simulation = Simulation(limited, threads=threads)
    with pytest.raises(RunError, match=r"at most mpi\.max_messages = 1000 may be.* of job late has sent") as caught:
        simulation.run_until(10**10)
    assert caught.value.slug == "too_many_messages"
    assert 1000 < simulation.engine.messages <= 1000 + 3 * 7
    # It is at the same instant that it ends, whoever looks.
    assert simulation.now < 10**9


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    one, other = (Simulation(incast()) for _ in range(2))
    one.run_until(5 * 10**7)
    other.run_until(5 * 10**7)
    assert one.engine.digest() == other.engine.digest()
    assert 0 < one.engine.messages < 2000


def test_an_isolated_run_is_not_prolonged_while_its_messages_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages take turns packet by packet, so none is ever complete: it ends by the bound, not by the packet-hops."""
    monkeypatch.setattr(experiment, "LATER_MESSAGES", 2000)
    simulation = Simulation(incast())
    simulation.run_until(5 * 10**7)
    before, hops = simulation.engine.messages, simulation.engine.packet_hops
    assert experiment.later_iterations(simulation.engine) == []
    assert simulation.engine.packet_hops - hops < experiment.LATER_HOPS / 2
    assert simulation.engine.messages < 10 * (2 * before + 2000)


def test_with_queue_pairs_the_first_messages_are_complete() -> None:
    """Three senders share the receiver's link: eight packets of 1026 bytes of each are there after 24 wire times."""
    simulation = Simulation(incast(injection="queue_pairs"))
    simulation.run_until(10**9)
    assert min(simulation.engine.progress()[0]) > 0
