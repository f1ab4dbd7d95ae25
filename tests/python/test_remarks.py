"""What `check` says of buffers and round trips, and what it says nothing of."""

from typing import Any

import pytest

from fairlane import Scenario, Simulation
from fairlane.model.fabric.view import Fabric
from oracle.fabrics import decode

TREE = {"topology": "fat_tree", "hosts": 2, "levels": 1, "radix": 2, "bandwidth": "256 GB/s", "latency": "100 ns"}
STREAM = {"name": "open_loop", "load": 1.0, "pattern": {"name": "incast", "to": 1}, "message_size": "1 MiB"}
JOB = {"name": "flood", "ranks": 2, "workload": STREAM}


def resolved_notes(network: dict[str, Any], fabric: dict[str, Any], **more: Any) -> list[str]:
    """The notes of a scenario with this network."""
    document = {"duration": "300 us", "fabric": fabric, "network": network, "jobs": [JOB], **more}
    return [note for note in Scenario.read(document).resolve().notes if "credits are back" in note or "rtt" in note]


def loop(wire: int, latency: int = 100_000, switch: int = 100_000) -> int:
    """From the start of a packet to the return of its credits, ps: to a switch, and on over a link that is as fast."""
    return 2 * latency + switch + wire


def test_a_buffer_below_bandwidth_times_round_trip_is_named() -> None:
    """4122 bytes at 256 GB/s take 16,102 ps; 15 of them in a buffer of 64 KiB, for a loop of 316,102 ps: 76%."""
    wire = -(-4122 * 10**12 // (256 * 10**9))
    (note,) = resolved_notes({}, TREE)
    share = 15 * wire / loop(wire)
    assert f"reach {100 * share:.1f}% of their bandwidth" in note
    assert note.startswith("host links (256 GB/s, 100 ns)")
    assert "15 full packets" in note
    needed = -(-loop(wire) // wire) * 4122
    assert resolved_notes({"buffer": f"{needed} B"}, TREE) == []
    assert resolved_notes({"buffer": f"{needed - 4122} B"}, TREE) != []


def test_what_is_said_of_a_buffer_is_what_is_simulated() -> None:
    """A stream that never ends reaches the share, once it has begun."""
    document = {"duration": "200 us", "fabric": TREE, "network": {"buffer": "16492 B"}, "jobs": [JOB]}
    (note,) = (note for note in Scenario.read(document).resolve().notes if "credits are back" in note)
    wire = -(-4122 * 10**12 // (256 * 10**9))
    share = 4 * wire / loop(wire)
    assert f"reach {100 * share:.1f}%" in note
    simulation = Simulation(Scenario.read(document))
    carried = []
    for end in (10**8, 2 * 10**8):
        simulation.run_until(end)
        carried.append(max(decode(simulation.engine.table("ports"))["bytes"]))
    assert (carried[1] - carried[0]) / 100e-6 / 256e9 == pytest.approx(share, rel=0.002)


@pytest.mark.parametrize(
    ("network", "fabric"),
    [
        ({}, TREE | {"bandwidth": "100 Gb/s"}),
        ({"port_buffer": {"size": "1 MiB", "sharing": "dynamic"}}, TREE),
    ],
)
def test_buffers_that_suffice_are_not_named(network: dict[str, Any], fabric: dict[str, Any]) -> None:
    assert resolved_notes(network, fabric) == []


def test_a_round_trip_far_above_that_of_the_fabric_is_named() -> None:
    """One switch, 100 Gb/s, 100 ns: 2 (2 x 100 + 100) ns + (4122 + 26) x 80 ps = 931,840 ps."""
    fabric = TREE | {"bandwidth": "100 Gb/s"}
    qos = {"sl2vl": [0, 1], "service_levels": 2, "lossy": [0], "trim_vl": 1, "arbiter": "strict_priority"}

    def notes(**params: Any) -> list[str]:
        return resolved_notes({"transport": {"name": "uec", "notice_vl": 1, **params}}, fabric, qos=qos)

    (note,) = notes(base_rtt="12 us")
    assert "network.transport.base_rtt is 12 us" in note
    assert "931.84 ns" in note
    assert notes() == notes(base_rtt="1 us") == []
    tables = Scenario.read({"duration": "1 us", "fabric": fabric, "jobs": [JOB]}).resolve().tables
    assert Fabric.build(tables["fabric"]).round_trip(tables["network"], 26) == 931_840


@pytest.mark.parametrize(("ranks", "contention", "count"), [(2, False, 0), (8, True, 0), (8, False, 1)])
def test_ranks_that_share_a_host_without_contention_are_named(ranks: int, contention: bool, count: int) -> None:
    job = {"name": "dense", "ranks": 2 * ranks, "ranks_per_host": ranks, "workload": {"name": "all_to_all"}}
    document = {"duration": "1 us", "fabric": TREE, "mpi": {"memory_contention": contention}, "jobs": [job]}
    notes = [note for note in Scenario.read(document).resolve().notes if "memory_contention" in note]
    assert len(notes) == count
    assert all(note.startswith("up to 8 ranks of dense are on one host") for note in notes)
