"""A port's memory divided among its lanes, evenly or dynamically: closed forms, equal cases, and what is refused."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from fairlane import Scenario
from fairlane.cli.main import execute
from oracle import Case, Engine, Job, Mark, Mpi, Network, Qos, Recv, Send, core, fabrics, ser
from oracle.case import InputQueued, Op

RATE = 100_000_000_000
LATENCY = 100_000
WIRE = 1050
"""Bytes of every packet on the wire."""
TIME = ser(WIRE, RATE)
NETWORK = Network(mtu=1024, switch_latency=5 * TIME - 2 * LATENCY - TIME)
LOOP = 2 * LATENCY + NETWORK.switch_latency + TIME
"""From a packet's start on an idle path until its credits are back at the port: five packet times."""
EAGER = Mpi(eager_threshold=1 << 40)
TWO_LANES = Qos((0, 1) + (0,) * 14, "weighted_round_robin", {"weights": [1, 1]})

star = partial(fabrics.star, bandwidth=RATE, latency=LATENCY)


def memory(packets: int, *, dynamic: bool) -> Network:
    """Ports with a memory of so many packets."""
    return replace(NETWORK, port_buffer=packets * WIRE, dynamic=dynamic)


@pytest.mark.parametrize(("lane", "packets"), [(0, 2), (1, 4)])
def test_each_lane_can_have_a_memory_of_its_own(run: Engine, lane: int, packets: int) -> None:
    """Credits of two packets carry two fifths of the link's rate, of four packets four fifths."""
    network = replace(NETWORK, own=(2 * WIRE, 4 * WIRE))
    job = Job([0, 1], [stream(1, 5 * packets + 1), [Recv(0), Mark()]], ranks={0: lane})
    case = Case(star(2), [job], network, replace(TWO_LANES, kinds={"eager": None}), EAGER)
    starts = sorted(departure.time for departure in run(case).departures if departure.link == 0)
    assert starts[-1] - starts[0] == 5 * LOOP


def stream(to: int, packets: int) -> list[Op]:
    """A message of so many packets."""
    return [Send(to, packets * NETWORK.mtu)]


@pytest.mark.parametrize(("dynamic", "window"), [(False, 3), (True, 5)])
def test_an_idle_lane_leaves_its_share_of_a_dynamic_memory_to_the_other(
    run: Engine, dynamic: bool, window: int
) -> None:
    """A memory of six packets: of two lanes, each has three, or one can have all but the packet reserved for the other.

    The credits of a packet are back after five packet times. So three packets of credits carry three fifths of the
    link's rate, five all of it.
    """
    assert LOOP == 5 * TIME
    packets = 31
    case = Case(star(2), [Job([0, 1], [stream(1, packets), [Recv(0), Mark()]])], memory(6, dynamic=dynamic), TWO_LANES)
    rounds, rest = divmod(packets - 1, window)
    delivered = rounds * LOOP + rest * TIME + LOOP
    assert run(replace(case, mpi=EAGER)).progress[0, 1].last == delivered


def test_a_lane_that_is_blocked_leaves_the_reserved_packet_of_the_other(run: Engine) -> None:
    """Lane 0 of host 0 waits for a link that two others fill too, and takes the pool; lane 1 goes on to a free host.

    Its credits are back after the loop, and then a packet of lane 0 may be on the link: a packet starts at least every
    loop and packet time.
    """
    packets, last = 40, 5
    blocked = [
        Job([sender, 4], [stream(1, packets), [Recv(0), Mark()]], service_level=0) for sender in range(4) if sender != 1
    ]
    free = Job([0, last], [stream(1, packets), [Recv(0), Mark()]], service_level=1)
    outcome = run(Case(star(6), [*blocked, free], memory(8, dynamic=True), TWO_LANES, EAGER))
    link = next(departure.link for departure in outcome.departures if departure.job == 3)
    own = [departure for departure in outcome.departures if departure.link == link]
    times = [departure.time for departure in own if departure.lane == 1]
    assert len(times) == packets
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # While there are credits, the link serves the lanes round-robin: a packet of each in two packet times. Once lane 0
    # has the pool, lane 1 is slower, and never waits for more than the credits of its reserved packet.
    assert gaps[0] == 2 * TIME
    assert 2 * TIME < max(gaps) <= LOOP + TIME


@pytest.mark.parametrize("switch", [None, InputQueued()], ids=["output_queued", "input_queued"])
@pytest.mark.parametrize(("lanes", "rest"), [(1, 0), (2, 0), (2, 1), (3, 2)])
def test_an_even_memory_equals_a_buffer_of_its_part(switch: InputQueued | None, lanes: int, rest: int) -> None:
    levels = tuple(level % lanes for level in range(lanes)) + (0,) * (16 - lanes)
    qos = Qos(levels, "weighted_round_robin", {"weights": [1] * lanes})
    jobs = [Job([sender, 3], [stream(1, 20), [Recv(0), Mark()]], service_level=sender % lanes) for sender in range(3)]
    part = 2 * WIRE + 7
    case = Case(star(4), jobs, replace(NETWORK, buffer=part, switch=switch), qos, EAGER)
    expected = core.simulate(case)
    divided = replace(case.network, port_buffer=lanes * part + rest)
    found = core.simulate(replace(case, network=divided))
    assert sorted(found.departures) == sorted(expected.departures)
    assert found.facts() == expected.facts()
    if lanes == 1:  # a single lane shares with nobody
        assert core.simulate(replace(case, network=replace(divided, dynamic=True))).facts() == expected.facts()


SCENARIO = """duration = "20 us"
[fabric]
topology = "fat_tree"
hosts = 4
levels = 1
radix = 4
[network]
{network}
[qos]
service_levels = 2
[[jobs]]
ranks = 4
workload = {{ name = "all_to_all", compute = "1 us", message_size = "64 KiB" }}
"""


@pytest.mark.parametrize(
    ("network", "subject", "words"),
    [
        ('port_buffer = "64 KiB"\nbuffer = "64 KiB"', "network.port_buffer", "network.buffer"),
        (
            'port_buffer = "8243 B"',
            "network.port_buffer",
            "at least 8244, one full packet (mtu + header = 4122 bytes) for each of 2 lanes",
        ),
        (
            'port_buffer = { size = "8243 B", sharing = "dynamic" }',
            "network.port_buffer.size",
            "at least 8244, one full packet (mtu + header = 4122 bytes) for each of 2 lanes",
        ),
        ('port_buffer = { size = "64 KiB", sharing = "evn" }', "network.port_buffer.sharing", "even"),
        ('port_buffer = { sharing = "even" }', "network.port_buffer", "size"),
        ('port_buffer = { size = "64 KiB", alpha = 2 }', "network.port_buffer.alpha", "size"),
        ('port_buffer = "0 B"', "network.port_buffer", "above 0"),
        ('port_buffer = "5 GiB"', "network.port_buffer", "below 4 GiB"),
        ("port_buffer = { }", "network.port_buffer.size", "is missing"),
        (
            'port_buffer = { lanes = ["1 KiB", "8 KiB"] }',
            "network.port_buffer.lanes.0 = 1024",
            "at least one full packet",
        ),
        (
            'port_buffer = { lanes = ["8 KiB"] }',
            "network.port_buffer.lanes",
            "one for each of 2 lanes",
        ),
        ('port_buffer = { lanes = ["8 KiB"], size = "8 KiB" }', "network.port_buffer.lanes", "one of the two"),
        ('port_buffer = { lanes = ["8 KiB"], sharing = "dynamic" }', "network.port_buffer.sharing", "only with size"),
        ('port_buffer = ["64 KiB"]', "network.port_buffer.size", "a number with its unit"),
    ],
)
def test_wrong_memories_are_refused(
    network: str, subject: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.format(network=network))
    assert execute(["run", str(file), "--out", str(tmp_path / "results")]) == 2
    _, err = capsys.readouterr()
    print(err)
    assert subject in err
    assert words in err
    assert f"{file}:8" in err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("given", "kept"),
    [('"64 KiB"', {"size": 65536, "sharing": "even"}), ('{ lanes = ["64 KiB"] }', {"lanes": [65536]})],
)
def test_a_memory_is_kept_when_a_scenario_is_written_and_read_again(
    given: str, kept: dict[str, object], tmp_path: Path
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SCENARIO.format(network=f"port_buffer = {given}"))
    scenario = Scenario.load(file)
    assert scenario.network.spec["port_buffer"] == kept
    assert scenario.network.buffer is None
    again = Scenario.model_validate(scenario.model_dump(mode="json", exclude_none=True))
    assert again.network == scenario.network
