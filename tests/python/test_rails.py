"""Rails in scenarios: what they read, what they refuse, and what a run says of them."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import Scenario, ScenarioError, Simulation, load, run
from fairlane.cli.main import execute
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario.models import Job

FABRIC = {"topology": "fat_tree", "hosts": 16, "levels": 2, "radix": 8, "rails": 2}


def scenario(fabric: dict[str, Any] | None = None, rails: Any = None, **job: Any) -> Scenario:
    flood = {"workload": {"name": "flood_pairs", "compute": "1 us", "message_size": "64 KiB"}, "ranks": 8}
    return Scenario(
        fabric=fabric or FABRIC,
        jobs=[{**flood, **job, **({} if rails is None else {"rails": rails})}],
        placement="spread",
        duration="5 ms",
    )


def work(rails: Any, fabric: dict[str, Any] | None = None) -> int:
    simulation = Simulation(scenario(fabric, rails))
    simulation.run_for("5 ms")
    return simulation.work()["flood_pairs"]


def test_two_rails_do_twice_the_work_where_messages_are_cut() -> None:
    one, both, half = work("by_source"), work("stripe"), work({"only": 1})
    assert both == pytest.approx(2 * one, rel=0.05)
    assert half == one


def test_a_slow_adapter_slows_down_what_goes_over_it() -> None:
    slow = {**FABRIC, "rails": {"count": 2, "adapters": [{}, {"bandwidth": "25 Gb/s", "latency": "1 us"}]}}
    fast, slowed = work({"only": 0}, slow), work({"only": 1}, slow)
    assert fast == work({"only": 0})
    assert slowed == pytest.approx(fast / 4, rel=0.1)
    assert work("stripe", slow) == pytest.approx(2 * slowed, rel=0.1), "the slow half decides"


def test_policies_are_read_from_a_word_or_a_table() -> None:
    for given, policy in [
        ("round_robin", {"policy": "round_robin"}),
        ({"only": 1}, {"policy": "only", "only": 1}),
        ({"policy": "stripe", "above": "4 KiB"}, {"policy": "stripe", "above": 4096}),
    ]:
        job = scenario(rails=given).resolve().jobs[0]
        assert job.spec()["rails"] == policy


def test_processes_take_turns_on_each_host_in_an_order_of_their_own() -> None:
    def rails(seed: int) -> tuple[list[int], tuple[int, ...]]:
        jobs = [{"workload": {"name": "flood_pairs", "compute": 0}, "ranks": 12, "ranks_per_host": 3}]
        jobs[0]["rails"] = {"policy": "by_source", "order": "random"}
        given = Scenario(fabric=FABRIC, jobs=jobs, seed=seed, placement={"name": "packed", "seed": 1})
        job = given.resolve().jobs[0]
        return job.spec()["rails"]["ranks"], job.hosts

    (first, hosts), (second, _) = rails(1), rails(2)
    assert first != second
    assert first == rails(1)[0]
    for host in set(hosts):
        own = [rail for rail, at in zip(first, hosts, strict=True) if at == host]
        assert sorted(own) == [0, 0, 1]


@pytest.mark.parametrize(
    ("fabric", "rails", "key", "words"),
    [
        (FABRIC, {"policy": "stripe", "order": "random"}, "jobs[0].rails.order", "belongs to policy 'by_source'"),
        (FABRIC, {"only": 2}, "jobs[0].rails.only", "no such rail; allowed: 0 to 1"),
        ({**FABRIC, "rails": 1}, {"only": 1}, "jobs[0].rails.only", "no such rail; allowed: 0 to 0"),
        ({"topology": "torus", "sides": [4, 4]}, {"only": 1}, "jobs[0].rails.only", "more in fabric.rails"),
        (FABRIC, "only", "jobs[0].rails.only", "give both or neither"),
        (FABRIC, {"policy": "round_robin", "only": 1}, "jobs[0].rails.only", "give both or neither"),
        (FABRIC, {"policy": "by_source", "above": "1 KiB"}, "jobs[0].rails.above", "belongs to policy 'stripe'"),
        (FABRIC, "roundrobin", "jobs[0].rails.policy", "round_robin"),
        ({**FABRIC, "rails": 9}, None, "fabric.rails.count", "at most 8"),
        ({**FABRIC, "rails": {"count": 2, "adapters": [{}]}}, None, "fabric.rails.adapters", "describes 1 of 2"),
        ({**FABRIC, "rails": {"count": 2, "adapters": [{}, {"bandwith": "1 Gb/s"}]}}, None, "bandwith", "bandwidth"),
        ({**FABRIC, "rails": {"count": 3, "wiring": "shared"}}, None, "fabric.rails.count", "divisor of the topology"),
    ],
)
def test_what_does_not_fit_is_named(fabric: dict[str, Any], rails: Any, key: str, words: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(fabric, rails).resolve()
    message = str(caught.value)
    assert key in message
    assert words in message


def test_an_imported_host_without_a_second_adapter_is_named() -> None:
    links = [{"ends": [f"h{host}", "s0"]} for host in range(4)] + [{"ends": ["h0", "s1"]}, {"ends": ["s0", "s1"]}]
    fabric = {"topology": "imported", "hosts": [f"h{host}" for host in range(4)]}
    with pytest.raises(ScenarioError) as caught:
        scenario({**fabric, "links": links}, {"only": 1}, ranks=4).resolve()
    assert "jobs[0].rails.only" in str(caught.value)


def test_more_service_levels_than_lanes_are_refused() -> None:
    for qos, key in [
        ({"service_levels": 4, "lanes": 2}, "qos.lanes"),
        ({"service_levels": 4, "default": 4}, "qos.default"),
    ]:
        with pytest.raises(ScenarioError) as caught:
            Scenario(fabric=FABRIC, jobs=[{"workload": "flood_pairs", "ranks": 4}], qos=qos).resolve()
        assert key in str(caught.value)


def test_catalyst_has_eighteen_leaves_of_eighteen_hosts_on_each_of_two_planes() -> None:
    given = scenario({"topology": "fat_tree", "preset": "catalyst", "rails": 2})
    fabric = Fabric.build(given.fabric.spec)
    assert (fabric.hosts, fabric.rails, fabric.switches) == (324, 2, 2 * (18 + 9))
    of_hosts = fabric.links["from_host"] >= 0
    assert of_hosts.sum() == 648
    assert set(fabric.links["bandwidth"].tolist()) == {32_000_000_000}
    leaves = fabric.links["to_switch"][of_hosts].tolist()
    assert {leaves.count(leaf) for leaf in leaves} == {18}
    assert len(set(leaves)) == 36
    for rail in (0, 1):
        route = fabric.route(0, 300, rail)
        assert set(fabric.links["rail"][route].tolist()) == {rail}
        assert len(route) == 4


def test_a_run_says_which_rail_a_port_is_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fairlane import Run, load

    file = tmp_path / "two.toml"
    file.write_text(scenario(rails={"only": 1}).text)
    assert execute(["run", str(file), "--out", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    found = load(tmp_path / "run")
    assert isinstance(found, Run)
    carried = found.ports.group_by("rail").agg(pl.col("bytes").sum()).sort("rail")
    assert carried["rail"].to_list() == [0, 1]
    assert carried["bytes"][0] == 0
    assert carried["bytes"][1] > 0


@pytest.mark.parametrize(
    "policy",
    ["round_robin", {"only": 1}, {"policy": "by_source", "order": "random"}, {"policy": "stripe", "above": "4 KiB"}],
)
def test_a_policy_that_is_written_out_is_read_again(policy: Any) -> None:
    """Studies send scenarios to their workers with every key written out, those that do not apply too."""
    job = Job.model_validate({"ranks": 2, "workload": "ring", "rails": policy})
    assert job.rails is not None
    assert Job.model_validate(job.model_dump(mode="json", exclude_none=True)).rails == job.rails


def test_a_run_of_adapters_on_shared_switches_is_loaded_as_it_was(tmp_path: Path) -> None:
    """Ports between switches have no rail then, and loading refused the table."""
    fabric = {**FABRIC, "rails": {"count": 2, "wiring": "shared"}}
    scenario = Scenario(fabric=fabric, jobs=[{"ranks": 4, "workload": "ring"}], duration="20 us")
    stored = run(scenario, isolated=False).save(tmp_path / "run")
    assert set(stored.ports["rail"]) == {None, 0, 1}
    assert stored.ports.equals(load(tmp_path / "run").tables()["ports"])
