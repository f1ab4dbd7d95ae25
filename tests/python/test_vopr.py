"""Random scenarios with random actions keep all laws and agree in all ways to run them; see ``tests/vopr``.

``python -m vopr`` in ``tests`` tries thousands.
"""

import io
from dataclasses import replace
from pathlib import Path

import pytest

from fairlane import RunError, Scenario, Simulation
from fairlane.inputs.parameters import entries
from fairlane.model.fabric.graph import columns
from fairlane.model.scenario import Resolved
from fairlane.model.workload import WORKLOADS
from oracle.case import Change
from vopr import checks, reference
from vopr.campaign import run_seeds
from vopr.case import Action, Case, draw
from vopr.checks import Difference, Variant, check
from vopr.fabrics import pairs
from vopr.shrink import shrink

SPLITTING = {"fft", "ft", "pf3d"}
"""Workloads with communicators of some of the ranks, which the oracle does not have."""
REPRODUCERS = Path(__file__).parents[1] / "data" / "reproducers"
PARTS = 4


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
def test_random_scenarios_keep_the_laws_and_agree(part: int, campaign_seed: int | None) -> None:
    out = io.StringIO()
    seed, count = (0, 4) if campaign_seed is None else (1000 * campaign_seed, 15)
    tally = run_seeds(seed + part * count, count, None, 40, out)
    print(f"in tests: python -m vopr --seed {seed + part * count} --count {count}\n{tally}")
    assert not tally.failed, out.getvalue()
    assert tally.checks["packet-hops"] > 0


def test_every_topology_and_routing_is_drawn() -> None:
    assert {topology for topology, _ in pairs()} == set(entries("topology"))
    assert {routing for _, routing in pairs()} == set(entries("routing"))


def test_a_seed_draws_the_same_case_again_and_a_stored_case_is_the_same(tmp_path: Path) -> None:
    for seed in (3, 4):
        first, second = draw(seed)[0], draw(seed)[0]
        assert first == second
        (tmp_path / "case.toml").write_text(first.text, encoding="utf-8")
        assert Case.load(tmp_path / "case.toml") == first


class Forgetful(Simulation):
    """Does not do what it is told about jobs' service levels, once it has run."""

    def set_job_service_level(self, job: str, level: int | None) -> None:
        if not self.now:
            super().set_job_service_level(job, level)


def contended() -> Case:
    """Three jobs on three hosts each; one of them gets another service level at 40 us."""
    jobs = [{"name": name, "ranks": 4, "workload": {"name": "all_to_all", "compute": "1 us"}} for name in "abc"]
    fabric = {"topology": "fat_tree", "hosts": 12, "levels": 1}
    qos = {"service_levels": 2, "arbiter": {"name": "weighted_round_robin", "weights": [1, 9]}}
    scenario = {"seed": 1, "duration": "100 us", "fabric": fabric, "qos": qos, "jobs": jobs, "mpi": {}}
    scenario["placement"] = {"name": "random", "ranks_per_host": 3}
    change = {"at": 40_000_000, "do": "job_level", "job": "a", "level": 1}
    others = [{"at": 10_000_000, "do": "look"}, {"at": 20_000_000, "do": "kind_level", "kind": "bulk", "level": 0}]
    return Case(1, scenario, [*others, change])


def test_a_variant_that_differs_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(resolved: Resolved) -> Simulation:
        return Forgetful(resolved)

    monkeypatch.setattr(checks, "VARIANTS", (Variant("forgetful", forgetful),))
    case = contended()
    with pytest.raises(Difference, match="again: forgetful: these tables differ") as difference:
        check(case)
    small = shrink(case, difference.value.check, seconds=15)
    assert small.actions == [case.actions[-1]]
    assert len(small.scenario["jobs"]) <= 2
    assert "mpi" not in small.scenario
    with pytest.raises(Difference):
        check(small)


def test_the_reference_notices_a_change_that_comes_late(monkeypatch: pytest.MonkeyPatch) -> None:
    on_time = reference._change

    def late(resolved: Resolved, now: int, action: Action) -> Change:
        change = on_time(resolved, now, action)
        return replace(change, at=change.at + 200_000)

    case = replace(contended(), actions=contended().actions[-1:])
    case.scenario["placement"] = {"name": "random", "ranks_per_host": 1}
    case.scenario["jobs"] = case.scenario["jobs"][:2]
    case.scenario["network"] = {"mtu": "2048 B"}
    case.scenario["mpi"] = {"eager_threshold": "0 B"}
    assert check(case, only="reference")["reference"] == 1
    monkeypatch.setattr(reference, "_change", late)
    with pytest.raises(Difference, match="reference"):
        check(case, only="reference")


OWN_TRAFFIC = {"stepped", "nccl_tests", "training", "inference"}
"""Workloads without ``compute`` and ``message_size``; the oracle has no collectives of NCCL."""


@pytest.mark.parametrize(
    "name", [name for name, workload in WORKLOADS.items() if not workload().offered() and name not in OWN_TRAFFIC]
)
def test_engine_and_oracle_agree_on_every_workload(name: str) -> None:
    workload: dict[str, object] = {"name": name, "compute": "1 us", "message_size": "500 B", "burst": "2 us"}
    small = {"points": 64, "iterations": 2, "side": 2, "planes": 4, "cells": 2, "atoms": 2}
    workload |= {key: value for key, value in small.items() if key in WORKLOADS[name].model_fields}
    fabric = {"topology": "fat_tree", "hosts": 4, "levels": 1}
    case = Case(0, {"duration": "30 us", "fabric": fabric, "jobs": [{"ranks": 4, "workload": workload}]})
    if name in SPLITTING:
        with pytest.raises(reference.Unsupported, match="comm_split"):
            reference.compare(case, case.resolve())
    else:
        assert not reference.compare(case, case.resolve())


def test_a_fork_without_counters_goes_on_alike() -> None:
    scenario = Scenario.load(REPRODUCERS / "fork_differs.toml")
    for at in range(10, 150, 10):
        first = Simulation(scenario)
        first.run_until(f"{at} us")
        fork = first.fork()
        for one in (first, fork):
            one.run_until("200 us")
        assert first.digest() == fork.digest(), f"forked at {at} us"
    ports = columns(first.engine.table("ports"))
    assert not any(ports[column].any() for column in ports if column not in ("link", "lane"))


def test_empty_packets_do_not_overtake_others_of_their_link() -> None:
    case = Case.load(REPRODUCERS / "empty_packets_overtake.toml")
    assert check(case, only="reference")["reference"] == 1


def test_iterations_that_take_no_time_are_refused_soon() -> None:
    scenario = Scenario.load(REPRODUCERS / "zero_time.toml")
    with pytest.raises(RunError, match="iterations without any time passing"):
        Simulation(scenario).run_for("20 us")


def test_a_scenario_built_in_python_is_written_so_that_it_can_be_read(tmp_path: Path) -> None:
    load = {"name": "open_loop", "sizes": {"dist": "uniform", "scale": "4 KiB"}, "load": 0.3}
    scenario = Scenario(
        fabric={"topology": "fat_tree", "hosts": 8, "levels": 1},
        jobs=[
            {"name": "sizes", "ranks": 4, "workload": load},
            {"name": "size", "ranks": 4, "workload": {"name": "open_loop", "message_size": "1 KiB"}},
        ],
        qos={"strategy": "isolate"},
        duration="50 us",
    )
    (tmp_path / "scenario.toml").write_text(scenario.text, encoding="utf-8")
    again = Scenario.load(tmp_path / "scenario.toml")
    one, other = Simulation(scenario), Simulation(again)
    for simulation in (one, other):
        simulation.run_until("50 us")
    assert one.digest() == other.digest()
