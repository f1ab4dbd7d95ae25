"""Congestion control in scenarios: a victim of an incast, transports by job, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

import fairlane
from fairlane import Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from report_runs import printed

FABRIC = {
    "topology": "imported",
    "hosts": ["a", "b", "c", "v", "d", "w"],
    "links": [
        *({"ends": [host, "s0"]} for host in "abcv"),
        *({"ends": [host, "s1"]} for host in "dw"),
        {"ends": ["s0", "s1"], "bandwidth": "400 Gb/s"},
    ],
}
VICTIM: dict[str, Any] = {
    "name": "victim",
    "workload": {"name": "flood_pairs", "compute": "5 us", "message_size": "64 KiB", "messages_per_iteration": 1},
    "ranks": 2,
    "placement": {"hosts": ["v", "w"]},
}
INCAST: dict[str, Any] = {
    "name": "incast",
    "workload": {"name": "open_loop", "pattern": "incast", "load": 1.0, "message_size": "64 KiB"},
    "ranks": 4,
    "placement": {"hosts": ["d", "a", "b", "c"]},
}


def scenario(*jobs: dict[str, Any], **network: Any) -> Scenario:
    return Scenario(fabric=FABRIC, jobs=list(jobs), network=network, duration="3 ms")


def work(*jobs: dict[str, Any], **network: Any) -> int:
    """Iterations of the victim in 3 ms."""
    simulation = Simulation(scenario(*jobs, **network))
    simulation.run_for("3 ms")
    return simulation.work()["victim"]


def test_a_victim_of_an_incast_is_slowed_by_credits_alone() -> None:
    assert work(VICTIM, INCAST) < 0.8 * work(VICTIM)


@pytest.mark.parametrize("transport", ["ib_cc", "swift", "endpoint_cc", "hpcc", {"name": "ib_cc", "threshold": 14}])
def test_a_victim_keeps_its_rate_if_the_incast_is_controlled(transport: Any) -> None:
    alone = work(VICTIM)
    assert work(VICTIM, INCAST, transport=transport) >= 0.9 * alone
    assert work(VICTIM, {**INCAST, "transport": transport}) >= 0.9 * alone


def test_totals_have_what_congestion_control_did() -> None:
    simulation = Simulation(scenario(VICTIM, {**INCAST, "transport": "ib_cc"}))
    simulation.run_for("1 ms")
    totals = simulation.totals()
    assert totals["packet_hops"] == simulation.packet_hops
    assert 0 < totals["control_packets_received"] <= totals["control_packets"] <= totals["packets_marked"]
    assert totals["control_bytes"] == 4 * totals["control_packets"]  # an AETH each
    assert totals["messages_delivered"] <= totals["messages_injected"]
    assert simulation.result().meta.totals == totals


def test_totals_of_a_run_are_stored_and_shown(tmp_path: Path) -> None:
    network = {"transport": "swift"}
    run = fairlane.run(scenario(VICTIM, **network), out=tmp_path / "run", figures=False, isolated=False)
    assert run.meta.totals is not None
    sent = run.meta.totals["control_packets"]
    assert sent > 0 == run.meta.totals["packets_marked"]
    loaded = fairlane.load(tmp_path / "run")
    assert isinstance(loaded, fairlane.Run)
    assert loaded.meta.totals == run.meta.totals
    assert f"{sent:,} acknowledgements and CNPs sent" in printed(run, 400)
    without = fairlane.run(scenario(VICTIM), isolated=False)
    assert without.meta.totals is not None
    assert without.meta.totals["control_packets"] == 0
    assert "CNP" not in printed(without, 400)


def test_a_transport_of_a_job_has_its_parameters_in_base_units() -> None:
    controlled = {**VICTIM, "transport": {"name": "swift", "base_target_delay": "5 us"}}
    jobs = scenario(controlled, INCAST).resolve().spec["jobs"]
    assert jobs[0]["transport"] == {"name": "swift", "params": {"base_target_delay": 5_000_000}}
    assert "transport" not in jobs[1]


@pytest.mark.parametrize(
    ("network", "job", "words"),
    [
        ({"transport": "dcqcn"}, {}, "network.transport.kmax"),
        (
            {"transport": {"name": "endpoint_cc", "threshold": "65 KiB"}},
            {},
            "at most the buffer of a lane, 65536 bytes",
        ),
        ({}, {"transport": "dcqcn"}, "jobs[0].transport.kmax"),
        ({}, {"transport": {"name": "swift", "notice_vl": 3}}, "jobs[0].transport.notice_vl"),
        ({}, {"transport": {"name": "ib_cc", "threshold": 16}}, "jobs[0].transport.threshold"),
        ({}, {"transport": {"name": "ib_cc", "treshold": 3}}, "threshold"),
        ({}, {"transport": "swft"}, "swift"),
        ({"transport": "ib_cc", "switch": "input_queued"}, {}, "output_queued"),
        ({"transport": "hpcc", "switch": "input_queued"}, {}, "switches write telemetry"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(network: dict[str, Any], job: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario({**VICTIM, **job}, **network).resolve()
    assert words in str(refused.value)


def test_transports_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["list", "transports"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ["credits_only", "ib_cc", "dcqcn", "swift", "endpoint_cc", "hpcc"])
