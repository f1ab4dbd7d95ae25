"""A simulation under way: progress, changes, forks, interruption."""

import _thread
from typing import Any

import pytest

from fairlane import BuildError, Scenario, ScenarioError, Simulation
from fairlane.model.scenario import Resolved
from fairlane.results.views import by_link
from samples import TREE

FABRIC = {**TREE, "latency": "100 ns"}
QOS = {"service_levels": 2, "arbiter": {"name": "weighted_round_robin", "weights": [1, 8]}}
LATENCY = 100_000
JOBS = [{"name": name, "ranks": 8, "workload": {"name": "flood_pairs", "compute": "50 us"}} for name in ("one", "two")]


def simulation() -> Simulation:
    return Simulation(Scenario(fabric=FABRIC, qos=QOS, jobs=JOBS))


def test_time_and_progress_go_on() -> None:
    running = simulation()
    assert (running.now, running.work()) == (0, {"one": 0, "two": 0})
    assert not running.run_for("2 ms")
    assert 0 <= running.now - 2 * 10**9 < LATENCY
    early = running.work()
    running.run_until("5 ms")
    assert 0 <= running.now - 5 * 10**9 < LATENCY
    assert all(running.work()[job] > early[job] for job in early)
    assert running.packet_hops > 0
    assert running.result().ranks["rank"].to_list() == [*range(8), *range(8)]


def test_slices_do_not_change_what_happens() -> None:
    whole, parts = simulation(), simulation()
    whole.run_for("3 ms")
    for _ in range(30):
        parts.run_for("100 us")
    assert whole.digest() == parts.digest()


def test_a_fork_goes_its_own_way() -> None:
    first = simulation()
    first.run_for("1 ms")
    second, third = first.fork(), first.fork()
    second.run_for("2 ms")
    third.run_for("2 ms")
    assert first.now < 10**9 + LATENCY
    assert second.digest() == third.digest()
    third.set_service_levels({"one": dict.fromkeys(range(8), 1)})
    for fork in (second, third):
        fork.run_for("5 ms")
    assert second.digest() != third.digest()


def test_levels_that_are_set_again_change_nothing() -> None:
    running = simulation()
    running.run_for("1 ms")
    other = running.fork()
    other.set_job_service_level("one", None)
    for each in (running, other):
        each.run_until("4 ms")
    assert other.digest() == running.digest()


def test_wrong_changes_are_told() -> None:
    running = simulation()
    with pytest.raises(ScenarioError, match='did you mean "one"'):
        running.set_service_levels({"onee": {0: 1}})
    with pytest.raises(ScenarioError, match="has no rank 8"):
        running.set_service_levels({"one": {8: 1}})
    with pytest.raises(ScenarioError, match="0 to 15"):
        running.set_job_service_level("one", 16)
    with pytest.raises(ScenarioError, match='did you mean "control"'):
        running.set_kind_service_level("controll", 1)
    with pytest.raises(ScenarioError, match="unknown arbiter"):
        running.set_arbiter("lottery")
    with pytest.raises(BuildError, match="weights"):
        running.set_weights([1, 2, 3])
    running.set_weights([3, 1])
    running.run_for("100 us")


@pytest.mark.parametrize(("arbiter", "parameters"), [("vlarb", "vlarb_high, vlarb_low"), ("strict_priority", "order")])
def test_an_arbiter_without_weights_says_what_to_set_instead(arbiter: str, parameters: str) -> None:
    running = simulation()
    running.set_arbiter(arbiter)
    before = running.digest()
    with pytest.raises(ScenarioError, match=rf"weights = \[3, 1\]: .* {arbiter} .*set_arbiter.*{parameters}"):
        running.set_weights([3, 1])
    assert running.digest() == before


@pytest.mark.parametrize("hosts_links", ["3.2 GB/s", "0.8 GB/s"])
def test_shares_are_of_each_link_where_links_differ(hosts_links: str) -> None:
    """Eight ranks flood one: its link is full, and the lane of priority gets a quarter of it, however fast it is."""
    fabric = {**FABRIC, "host_bandwidth": hosts_links}
    qos = {"service_levels": 2, "arbiter": {"name": "strict_priority", "shares": [[1, 25]], "interval": "200 us"}}
    levels = {"ranks": dict.fromkeys(range(1, 5), 1)}
    flood = {
        "name": "flood",
        "ranks": 9,
        "workload": {"name": "incast", "message_size": "16 KiB"},
        "service_levels": levels,
    }
    running = Simulation(Scenario(fabric=fabric, qos=qos, jobs=[flood]))
    running.run_for("4 ms")
    ports = running.result().ports
    busiest = ports.filter(link=by_link(ports).sort("bytes")["link"][-1])
    assert busiest["bytes"][1] / busiest["bytes"].sum() == pytest.approx(0.25, abs=0.02)
    assert busiest["port_active_ps"][0] > 0.9 * running.now


class Interrupted:
    """An engine during whose third slice Ctrl-C comes."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.slices = engine, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def run_window_budget(self, picoseconds: int, max_hops: int) -> None:
        self.slices += 1
        if self.slices == 3:
            _thread.interrupt_main()
        self.engine.run_window_budget(picoseconds, max_hops)


def test_ctrl_c_ends_the_slice_and_the_simulation_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Resolved.engine
    monkeypatch.setattr(Resolved, "engine", lambda *args, **kwargs: Interrupted(engine(*args, **kwargs)))
    running = simulation()
    with pytest.raises(KeyboardInterrupt):
        running.run_for("1000 s")
    interrupted: Any = running.engine
    assert interrupted.slices == 3
    stopped = running.now
    running.run_for("1 us")
    assert stopped < running.now < stopped + 2 * 10**6
