"""Every topology in a scenario, described and drawn, with no line of Python for any of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fairlane import Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.core.errors import BuildError, ScenarioError
from fairlane.inputs.parameters import entries
from fairlane.model.fabric.view import Fabric
from pictures import assert_drawn

TOPOLOGIES = entries("topology")
SMALL = [
    pytest.param(name, example, id=f"{name}-{number}")
    for name, entry in TOPOLOGIES.items()
    for number, example in enumerate(entry.schema["examples"])
    if "preset" not in example and example.get("hosts") not in (324, 1296)
]


def fabric(topology: str, **parameters: Any) -> Fabric:
    return Fabric.build({"topology": topology, "params": parameters, "routing": TOPOLOGIES[topology].routing})


def _written(bandwidth: Any) -> Any:
    return [_written(one) for one in bandwidth] if isinstance(bandwidth, list) else f"{bandwidth} b/s"


@pytest.mark.parametrize(("topology", "example"), SMALL)
def test_packets_arrive_on_every_topology(topology: str, example: dict[str, Any]) -> None:
    """A scenario without a routing, with every host sending to every other; quantities are given in base units."""
    built = fabric(topology, **example)
    table = {
        key: _written(value) if "bandwidth" in key else value
        for key, value in example.items()
        if key not in ("bandwidths", "links", "tables")
    }
    if topology == "imported":
        table = {"hosts": example["hosts"], "links": [{"ends": link["ends"]} for link in example["links"]]}
    ranks = min(built.hosts, 24)
    scenario = Scenario(
        duration="100 us",
        fabric={"topology": topology, **table},
        placement={"name": "random"},
        jobs=[
            {
                "name": "all",
                "ranks": ranks,
                "workload": {"name": "all_to_all", "compute": "1 us", "message_size": "1 KiB"},
            }
        ],
    )
    simulation = Simulation(scenario)
    simulation.run_until("100 us")
    assert simulation.work()["all"] > 0


@pytest.mark.parametrize(("topology", "example"), SMALL)
def test_every_topology_is_drawn(topology: str, example: dict[str, Any], tmp_path: Path) -> None:
    from fairlane.views.drawing.fabric import write_figure

    path = write_figure(fabric(topology, **example), tmp_path / "fabric.png")
    assert_drawn(path)


@pytest.mark.parametrize("name", ["dragonfly", "dragonfly_plus", "cascade", "torus", "fat_tree"])
def test_presets_are_drawn_and_described_on_the_command_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    preset = TOPOLOGIES[name].schema["properties"]["preset"]["enum"][-1]
    arguments = ["--topology", name, "--set", f"preset={preset}"]
    assert execute(["fabric", "draw", *arguments, "--out", str(tmp_path / "x.svg")]) == 0
    assert (tmp_path / "x.svg").read_text(encoding="utf-8").startswith("<?xml")
    assert execute(["fabric", "draw", *arguments, "--out", str(tmp_path / "x.gif")]) == 2
    assert "allowed: .png, .svg, .pdf" in capsys.readouterr().err


def test_bisections_of_grids_are_those_of_theory() -> None:
    rate = 100 * 10**9
    # A torus is halved across its longest side: two cuts, each through a plane of the other sides.
    torus = fabric("torus", sides=[4, 8, 4], hosts_per_switch=4).describe()
    assert torus.bisection_is_exact
    assert torus.bisection == 2 * 16 * rate
    mesh = fabric("torus", sides=[6, 4], mesh=True, hosts_per_switch=2).describe()
    assert mesh.bisection_is_exact
    assert mesh.bisection == 4 * rate
    assert not fabric("torus", sides=[5, 3]).describe().bisection_is_exact
    assert mesh.diameter == 5 + 3 + 2


def test_descriptions_count_links_by_role() -> None:
    described = fabric("dragonfly_plus", groups=5, leaves=3, spines=2, hosts_per_leaf=2, global_links=2).describe()
    roles = {kind.role: kind.links for kind in described.links if kind.role != "host"}
    assert roles == {"up": 5 * 3 * 2, "down": 5 * 3 * 2, "global": 5 * 4}
    assert described.virtual_channels == (1,)
    assert described.plan == {"kind": "groups", "switches": 5, "row": 5}
    dragonfly = fabric("dragonfly", groups=9, switches_per_group=4, hosts_per_switch=2, global_links=2).describe()
    assert dragonfly.diameter == 5
    assert dragonfly.virtual_channels == (2,)


def test_a_description_tells_the_channels_of_each_virtual_lane(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "both.toml").write_text("""
[fabric]
topology = "dragonfly"
groups = 9
switches_per_group = 4
hosts_per_switch = 2
global_links = 2
routing = { name = "per_lane", lanes = ["minimal", "minimal", "valiant"] }
[[jobs]]
ranks = 2
workload = { name = "all_to_all", compute = "1 us" }
""")
    assert execute(["fabric", "describe", str(tmp_path / "both.toml")]) == 0
    words = "of the routings, by virtual lane: lane 0: 2; lane 1: 2; lane 2 and above: 3"
    assert words in capsys.readouterr().out


def test_a_description_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fabric", "describe", "--topology", "cascade", "--set", "preset=edison"]) == 0
    out = capsys.readouterr().out
    assert "1440: 15 groups of 96 (16 x 6)" in out
    assert re.search(r"^green +local +21,600 +5\.25 GB/s +100 ns", out, re.MULTILINE)
    assert execute(["fabric", "describe", "--topology", "torus", "--set", "sides=[4,4]", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"] == {"kind": "grid", "sides": [4, 4], "line": "ring"}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (
            {"topology": "dragonfly", "preset": "wilke"},
            'unknown name; allowed: lumi, wilke2020; did you mean "wilke2020"?',
        ),
        ({"topology": "dragonfly", "preset": "wilke2020", "arrangement": "palm"}, 'did you mean "palm_tree"?'),
        ({"topology": "torus", "sides": [4, 4], "hosts": 15}, "the product of the sides x hosts_per_switch is 16"),
        (
            {"topology": "torus", "sides": [4, 4], "routing": "minimal"},
            "topology torus is usually routed by dimension_order",
        ),
        (
            {"topology": "dragonfly", "preset": "wilke2020", "routing": "d_mod_k"},
            "topology dragonfly is usually routed by",
        ),
        ({"topology": "torus", "side": [4, 4]}, 'did you mean "sides"?'),
        ({"topology": "torus"}, "missing field `sides`"),
    ],
)
def test_wrong_fabrics_are_refused_by_name(table: dict[str, Any], words: str) -> None:
    with pytest.raises((ScenarioError, BuildError, ValueError)) as error:
        Scenario(duration="1 us", fabric=table, jobs=[{"name": "a", "ranks": 2, "workload": "ping_pong"}]).resolve()
    assert words in str(error.value)
