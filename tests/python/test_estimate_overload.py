"""Memory of messages that wait because more are sent than is received: estimated before a run, near what it has."""

from __future__ import annotations

from typing import Any

import pytest

from fairlane import Scenario, ScenarioError
from fairlane.core.tables import frame
from fairlane.model.scenario.estimate import MESSAGE
from fairlane.results.latency import Latency


def overloaded(duration: str, **workload: object) -> Scenario:
    fabric = {"topology": "fat_tree", "hosts": 16, "levels": 1, "radix": 16, "bandwidth": "100 Gb/s"}
    given = {"message_size": "4 KiB", **workload}
    return Scenario(duration=duration, fabric=fabric, jobs=[{"name": "a", "ranks": 16, "workload": given}])


def waiting(scenario: Scenario) -> float:
    found = scenario.decide().estimate
    assert found is not None
    parts = [part for part in found.parts if "waiting messages" in part.what]
    assert all(part.key == "jobs[0].workload" for part in parts)
    return sum(part.bytes for part in parts) / MESSAGE


@pytest.mark.parametrize("duration", ["200 us", "1 ms"])
@pytest.mark.parametrize(
    "workload",
    [
        {"name": "incast", "messages_per_iteration": 8, "compute": "0 us"},
        {"name": "incast", "messages_per_iteration": 8, "compute": "4 us"},
        {"name": "open_loop", "pattern": "incast", "load": 0.5},
    ],
)
def test_messages_that_receivers_do_not_take_are_counted(workload: dict[str, Any], duration: str) -> None:
    """No eager send waits for its receiver: what is sent in the time, less what was delivered, waits at the end."""
    scenario = overloaded(duration, **workload)
    resolved = scenario.resolve()
    engine = resolved.engine()
    engine.run_until(resolved.duration)
    sent = sum(frame(engine.table("ranks"))["messages_sent"].to_list())
    delivered = sum(Latency.measured(engine).exact.filter(of="message")["count"].to_list())
    assert sent - delivered > 500
    assert sent - delivered <= 1.1 * waiting(scenario)
    assert waiting(scenario) <= 1.4 * (sent - delivered)


@pytest.mark.parametrize(
    "workload",
    [
        {"name": "incast", "message_size": "64 KiB"},  # a rendezvous
        {"name": "incast", "operation": "put"},  # a fence
        {"name": "congestor", "pattern": "incast"},  # synchronous sends
        {"name": "congestor", "pattern": "put_incast"},
        {"name": "all_to_all"},
        {"name": "flood_pairs"},
        {"name": "open_loop", "load": 0.9},
        {"name": "open_loop", "load": 1.0, "pattern": "complement"},
    ],
)
def test_senders_that_wait_for_others_do_not_run_ahead(workload: dict[str, Any]) -> None:
    assert waiting(overloaded("5 ms", **workload)) == 0


def test_an_eager_incast_without_memory_for_its_messages_is_refused() -> None:
    scenario = overloaded("20 s", name="incast", compute="0 us").model_copy(update={"memory": 2**30})
    with pytest.raises(ScenarioError, match=r"jobs\[0\]\.workload: .* waiting messages: senders are faster than"):
        scenario.decide()
