"""Roots of congestion: walks over fabrics by hand, an incast whose root is known, and hosts and links that are slow."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fairlane
from fairlane.cli.main import execute
from fairlane.model.fabric.congestion import BUSY, Port, mixed_speeds, trees, usual_bandwidth
from fairlane.results.views import by_link
from fairlane.sim.analysis.links import roots

STALLS, BUSY_LINK = (0.3, 0.6), (0.95, 0.0)  # shares of time: active, stalled


def port(link: int, ends: str, shares: tuple[float, float], queue: float = 1.0) -> Port:
    start, end = ends.split()
    return Port(link, start, end, *shares, queue)


def test_stalled_ports_lead_to_the_busy_link_downstream() -> None:
    chain = [port(0, "a b", STALLS), port(1, "b c", STALLS), port(2, "c d", BUSY_LINK), port(3, "d e", (0.2, 0.0))]
    assert trees(chain) == {2: [0, 1]}, "a link that stalls is no root, whatever it waits"
    back = [*chain[:2], port(4, "c b", BUSY_LINK, queue=9.0)]
    assert trees(back) == {4: []}, "what comes over a link does not go back over it; it is saturated by itself"


def test_of_several_outputs_those_with_as_much_in_their_queues_are_roots() -> None:
    outputs = [port(0, "a b", STALLS), port(1, "b x", BUSY_LINK, 4), port(2, "b y", BUSY_LINK, 3)]
    assert trees([*outputs, port(3, "b z", (0.6, 0.0), 1)]) == {1: [0], 2: [0]}


def test_a_circle_of_stalled_ports_has_no_root() -> None:
    assert trees([port(0, "a b", STALLS), port(1, "b c", STALLS), port(2, "c a", STALLS)]) == {}


@pytest.mark.parametrize("leaf", [0, 2])
def test_the_root_of_an_incast_is_the_link_to_its_receiver(leaf: int) -> None:
    hosts = list(range(4 * leaf, 4 * leaf + 8))  # the receiver with three of its leaf, and four of the next one
    fabric = {"topology": "fat_tree", "hosts": 16, "levels": 2, "leaf_down": 4, "leaf_up": 2, "bandwidth": "100 Gb/s"}
    workload = {"name": "incast", "message_size": "256 KiB", "messages_per_iteration": 2, "compute": "1 us"}
    job = {"name": "in", "ranks": 8, "workload": workload, "placement": {"name": "list", "hosts": hosts}}
    scenario = {"name": "incast", "duration": "2 ms", "fabric": fabric, "jobs": [job]}
    run = fairlane.run(fairlane.Scenario.model_validate(scenario), isolated=False)
    found = roots(run)
    assert found[0].link.endswith(f"to host{hosts[0]}")
    assert found[0].jobs == ("in",)
    assert found[0].upstream >= 2, "those of the other leaf wait at their spine, or at their own links"
    assert not found[0].slow
    measured = {row["link_name"]: row for row in by_link(run.ports).iter_rows(named=True)}
    for root in found:
        assert measured[root.link]["port_active_share"] >= BUSY
        assert measured[root.link]["port_stalled_share"] < 0.05


LINKS = """from,from_port,to,to_port,bandwidth
{hosts}leafA,9,spine,1,{trunk}
leafA,10,spine,3,100 Gb/s
leafB,9,spine,2,100 Gb/s
leafB,10,spine,4,100 Gb/s
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Six hosts, of which one is slower, and a trunk of half the speed of its peers."""
    hosts = "".join(
        f"n{number},1,leaf{'AB'[number % 2]},{number + 1},{25 if number == 3 else 100} Gb/s\n" for number in range(6)
    )
    (tmp_path / "fabric.csv").write_text(LINKS.format(hosts=hosts, trunk="50 Gb/s"))
    assert execute(["fabric", "import", str(tmp_path / "fabric.csv"), "-o", str(tmp_path / "fabric.json"), "-q"]) == 0
    file = tmp_path / "mixed.toml"
    file.write_text(
        """
duration = "1 ms"
fabric = { topology = "imported", file = "fabric.json" }
[[jobs]]
name = "all"
placement = { hosts = "n[0-5]" }
workload = { name = "all_to_all", message_size = "64 KiB", compute = "5 us" }
"""
    )
    return file


def test_check_notes_slow_hosts_and_links_and_the_run_has_them_as_roots(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert execute(["check", str(scenario), "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any(note.startswith("job 'all': 1 of its 6 hosts (n3) has 25 Gb/s, the others 100 Gb/s") for note in notes)
    slow = [note for note in notes if "most of their role" in note]
    assert sorted(note.partition(": ")[2] for note in slow) == [
        "leafA port 9 to spine",
        "spine port 1 to leafA",
    ]
    assert all(" 50 Gb/s, most of their role 100 Gb/s" in note for note in slow)
    run = fairlane.run(fairlane.Scenario.load(scenario), isolated=False, out=tmp_path / "run")
    assert set(run.meta.notes) >= set(notes)
    found = roots(run)
    assert {root.link for root in found[:2]} == {"n3 port 1 to leafB", "leafB port 4 to n3"}
    assert all(root.slow for root in found[:2])
    capsys.readouterr()
    assert (
        execute(
            ["analyze", str(tmp_path / "run"), "-o", str(tmp_path / "out"), "--files", str(tmp_path), "--json", "-q"]
        )
        == 0
    )
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [root["link"] for root in facts["roots"]] == [root.link for root in found]


def test_equal_speeds_are_no_note() -> None:
    rates = np.array([10.0, 10.0, 5.0])
    assert mixed_speeds("job", [0, 1, 1], rates, ["a", "b", "c"]) is None
    assert mixed_speeds("job", [0, 2], rates, ["a", "b", "c"]) is not None
    keys = {name: np.array([1, 1, 1, 2]) for name in ("class", "role", "from_level", "to_level")}
    usual = usual_bandwidth({**keys, "bandwidth": np.array([8, 4, 4, 1])})
    assert usual.tolist() == [4, 4, 4, 1], "a link of another class is no peer"
    tie = {name: np.array([1, 1]) for name in keys}
    assert usual_bandwidth({**tie, "bandwidth": np.array([8, 4])}).tolist() == [8, 8]
