"""Priority flow control: when a source is paused, what a storm does, and what DCQCN and the watchdog do about it."""

from pathlib import Path
from typing import Any

import pytest

import fairlane
from fairlane import Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from fairlane.core.errors import BuildError
from fairlane.results.notes import notes
from oracle import ser

GBPS = 10**9
LATENCY, SWITCH, HEADER, MTU = 100_000, 100_000, 58, 4096
FULL = MTU + HEADER


def ends(**bandwidths: str) -> dict[str, Any]:
    """Hosts at one switch."""
    links = [{"ends": [host, "s"], "bandwidth": rate, "latency": "100 ns"} for host, rate in bandwidths.items()]
    return {"topology": "imported", "hosts": list(bandwidths), "links": links}


def incast(*senders: str, **keys: Any) -> dict[str, Any]:
    """A job whose other ranks send to the first as fast as they can."""
    pattern = {"name": "open_loop", "pattern": "incast", "load": 1.0, "message_size": "1 MiB"}
    return {"name": "incast", "workload": pattern, "ranks": 1 + len(senders), **keys}


def scenario(
    fabric: dict[str, Any], *jobs: dict[str, Any], duration: str = "1 ms", departures: bool = False, **network: Any
) -> Scenario:
    """With priority flow control unless ``network`` says otherwise."""
    usual = {"header": f"{HEADER} B", "buffer": "256 KiB", "flow_control": "pfc"}
    tables: dict[str, Any] = {"fabric": fabric, "jobs": list(jobs), "network": {**usual, **network}}
    return Scenario(**tables, duration=duration, observe={"departures": departures})


@pytest.mark.parametrize(("xoff", "response"), [(FULL, 0), (20_000, 0), (100_000, 700_000)])
def test_a_source_is_paused_when_its_buffer_has_filled(xoff: int, response: int) -> None:
    """A source of 100 Gb/s sends to a host of 25 Gb/s: of four packets that come, one leaves.

    Packet ``k`` starts at ``t + k S``, and its head is in the buffer one latency later. Packet ``j`` joins the output
    after the latency of the switch and has left ``4 S (j + 1)`` after the first joined.
    """
    control = {"name": "pfc", "xoff": f"{xoff} B", "response": f"{response} ps"}
    job = incast("b", placement={"hosts": ["a", "b"]})
    given = scenario(ends(a="25 Gb/s", b="100 Gb/s"), job, duration="100 us", departures=True, flow_control=control)
    run = fairlane.run(given)
    assert run.departures is not None
    assert run.pauses is not None
    begin = run.departures["time_ps"].min()
    assert isinstance(begin, int)
    wire = ser(FULL, 100 * GBPS)

    def held(k: int) -> int:
        """Bytes in the buffer when head ``k`` has come."""
        left = max(0, (k * wire - SWITCH) // (4 * wire))
        return (k + 1 - left) * FULL

    k = next(k for k in range(256) if held(k) > xoff)
    first = run.pauses.row(0, named=True)
    expected = begin + k * wire + LATENCY + LATENCY + ser(84, 100 * GBPS) + response
    assert (first["first_ps"], first["nic"]) == (expected, True)
    assert first["link_name"].startswith("b ")
    assert xoff < first["peak_bytes"] <= xoff + (2 * LATENCY + ser(84, 100 * GBPS) + response) // 80 + FULL
    assert [note for note in notes(run) if note.startswith("PAUSE stopped 1 lane (1 of adapters), first b port 1")]


def test_buffers_that_never_fill_are_those_of_credits() -> None:
    fabric = {"topology": "fat_tree", "hosts": 16, "radix": 8, "levels": 2}
    job = {"name": "all", "workload": "all_to_all", "ranks": 16}
    digests = set()
    for control in ("credits", "pfc"):
        simulation = Simulation(scenario(fabric, job, buffer="64 MiB", flow_control=control))
        simulation.run_for("1 ms")
        simulation.engine.check_laws()
        assert simulation.pauses().is_empty()
        digests.add(simulation.digest())
    assert len(digests) == 1


def test_dcqcn_keeps_pauses_away() -> None:
    """Zhu et al., SIGCOMM 2015, section 6.2: with DCQCN the number of PAUSE frames falls to almost none."""
    fabric = {"topology": "fat_tree", "hosts": 16, "radix": 8, "levels": 2, "bandwidth": "40 Gb/s"}
    paused = {}
    for transport in ("credits_only", "dcqcn"):
        job = incast(*"bcde", placement={"hosts": [0, 4, 8, 12, 1]})
        simulation = Simulation(scenario(fabric, job, buffer="2 MiB", transport=transport, duration="30 ms"))
        simulation.run_for("10 ms")
        before = int(simulation.pauses()["paused_ps"].sum())
        simulation.run_for("10 ms")
        paused[transport] = int(simulation.pauses()["paused_ps"].sum()) - before
    assert paused["credits_only"] > 10 * 10**9
    assert paused["dcqcn"] < 0.05 * paused["credits_only"]


PAIRS = {"name": "pairs", "workload": {"name": "open_loop", "pattern": "uniform", "load": 0.4}, "ranks": 16}


def stormy(**control: str) -> Simulation:
    """Random traffic among 16 hosts, one of which sends PAUSE for a millisecond."""
    fabric = {"topology": "fat_tree", "hosts": 16, "radix": 8, "levels": 2}
    pfc = {"name": "pfc", **control}
    given = scenario(fabric, PAIRS, duration="1.6 ms", flow_control=pfc, retransmission_timeout="300 us")
    simulation = Simulation(given.model_copy(update={"seed": 3}))
    simulation.storm("host0", at="100 us", until="1.1 ms")
    return simulation


def test_a_storm_spreads_and_the_watchdog_stops_it() -> None:
    delivered, paused = {}, {}
    for name, control in {"none": {}, "watchdog": {"watchdog": "50 us"}}.items():
        simulation = stormy(**control)
        simulation.run_until("900 us")
        before = simulation.totals()["bytes_delivered"]
        simulation.run_until("1.1 ms")
        delivered[name] = simulation.totals()["bytes_delivered"] - before
        paused[name] = table = simulation.pauses()
        first = table.row(0, named=True)
        assert (first["storm"], first["nic"]) == (True, False)
        assert table["storm"].sum() == 1
        assert 9.9e8 < first["paused_ps"] <= 1e9
        simulation.run_until("1.6 ms")
        simulation.engine.check_laws()
    # Random traffic: every other host soon has a message for the one that takes none.
    assert paused["none"]["nic"].sum() == 15
    assert delivered["none"] < 0.1 * delivered["watchdog"]
    assert paused["none"]["dropped"].sum() == 0 < paused["watchdog"]["dropped"].sum()
    assert paused["watchdog"].height == 1


def test_a_storm_without_end_is_an_error_that_names_the_host() -> None:
    job = {"name": "two", "workload": {"name": "flood_pairs"}, "ranks": 2, "placement": {"hosts": ["a", "b"]}}
    simulation = Simulation(scenario(ends(a="100 Gb/s", b="100 Gb/s"), job))
    simulation.storm("b")
    with pytest.raises(fairlane.RunError, match=r"packets wait at .* for a host that sends PAUSE without end: .* to b"):
        simulation.run_for("1 ms")


def test_a_run_has_a_table_and_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fabric = {"topology": "fat_tree", "hosts": 8, "radix": 8, "levels": 1}
    given = scenario(fabric, incast(*"bcd"), duration="300 us")
    fairlane.run(given).save(tmp_path / "run")
    capsys.readouterr()
    assert execute(["query", str(tmp_path / "run"), "SELECT count(*) AS paused FROM pauses WHERE nic"]) == 0
    assert "3" in capsys.readouterr().out
    stored = fairlane.load(tmp_path / "run")
    assert isinstance(stored, fairlane.Run)
    assert stored.pauses is not None


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ({"buffer": "10 kB"}, r"network.buffer.*at least \d+ bytes with priority flow control"),
        ({"flow_control": {"name": "pfc", "xoff": "250 KiB"}}, r"network.flow_control.xoff.*headroom"),
        ({"flow_control": {"name": "pfc", "xoff": "1 kB"}}, r"network.flow_control.xoff.*a full packet"),
        ({"flow_control": {"name": "pfc", "xoff": "9 kB", "xon": "10 kB"}}, "xon.*above xoff"),
        ({"flow_control": {"name": "pfc", "xon": "250 KiB"}}, "network.flow_control.xon.*at most"),
        ({"flow_control": {"name": "credits", "xoff": "9 kB"}}, "credits have no parameters"),
        ({"flow_control": "pcf"}, "pfc"),
        ({"buffer": None, "port_buffer": {"size": "1 MiB", "sharing": "dynamic"}}, "sharing = dynamic"),
        ({"switch": "input_queued", "flow_control": {"name": "pfc", "watchdog": "1 ms"}}, "network.switch"),
    ],
)
def test_bad_input_is_named(network: dict[str, Any], words: str) -> None:
    fabric = {"topology": "fat_tree", "hosts": 8, "radix": 8, "levels": 1}
    qos = {"sl2vl": [0, 1], "service_levels": 2}
    usual = {"flow_control": "pfc", **network}
    with pytest.raises((ScenarioError, BuildError), match=words):
        Simulation(Scenario(fabric=fabric, jobs=[PAIRS | {"ranks": 8}], network=usual, qos=qos, duration="1 ms"))


def test_ethernet_has_eight_priorities() -> None:
    fabric = {"topology": "fat_tree", "hosts": 8, "radix": 8, "levels": 1}
    tables = {"fabric": fabric, "jobs": [PAIRS | {"ranks": 8}], "duration": "1 ms"}
    qos: dict[str, Any] = {"sl2vl": [*range(9)], "service_levels": 9}
    network: dict[str, Any] = {"flow_control": "pfc", "transport": "swift"}
    with pytest.raises((ScenarioError, BuildError), match=r"at most 8 lanes .* that are not lossy: 9 are in use"):
        Simulation(Scenario(**tables, network=network, qos=qos))
    simulation = Simulation(Scenario(**tables, network=network, qos={**qos, "lossy": [3]}))
    simulation.run_for("20 us")
    simulation.engine.check_laws()


def test_a_storm_needs_priority_flow_control() -> None:
    fabric = {"topology": "fat_tree", "hosts": 8, "radix": 8, "levels": 1}
    simulation = Simulation(scenario(fabric, PAIRS | {"ranks": 8}, flow_control="credits"))
    with pytest.raises(BuildError, match=r"only with network\.flow_control = pfc"):
        simulation.storm("host0")
    simulation = Simulation(scenario(fabric, PAIRS | {"ranks": 8}))
    with pytest.raises(BuildError, match="a virtual lane in use that is not lossy: 0"):
        simulation.storm("host0", vl=3)
