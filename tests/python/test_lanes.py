"""Virtual lanes that a fabric, a routing and service levels need together."""

from pathlib import Path

import pytest

from fairlane import Scenario, ScenarioError, Simulation, required_virtual_lanes
from fairlane.cli.main import execute
from fairlane.model.fabric.graph import columns
from fairlane.views.fabric import lanes_text

DRAGONFLY = {"topology": "dragonfly", "preset": "wilke2020"}
FAT_TREE = {"topology": "fat_tree", "preset": "wilke2020"}
MIN_PAR = {"name": "per_lane", "lanes": ["progressive", "progressive", "minimal", "minimal"]}
FOUR = {"service_levels": 4}


def test_the_numbers_of_wilke_and_kenny() -> None:
    """24 lanes for four levels of progressive routing, 16 if two are minimal, 4 on the fat-tree."""
    assert len(required_virtual_lanes(DRAGONFLY, "progressive", FOUR)) == 24
    assert len(required_virtual_lanes(DRAGONFLY, MIN_PAR, FOUR)) == 16
    assert len(required_virtual_lanes(FAT_TREE, "adaptive", FOUR)) == 4
    assert required_virtual_lanes(DRAGONFLY) == [("0", 0), ("0", 1)]


@pytest.mark.parametrize("strategy", ["split_priority", "bandwidth_weight"])
def test_a_strategy_needs_its_levels(strategy: str) -> None:
    assert len(required_virtual_lanes(DRAGONFLY, "progressive", {"strategy": strategy})) == 24
    assert len(required_virtual_lanes(FAT_TREE, "adaptive", {"strategy": strategy})) == 4


def test_isolate_needs_a_level_for_each_job() -> None:
    fabric = {"topology": "fat_tree", "hosts": 16, "levels": 2}
    job = {"name": "ring", "count": 3, "ranks": 4, "workload": "ring"}
    isolated = Scenario(fabric=fabric, qos={"strategy": "isolate"}, jobs=[job])
    assert required_virtual_lanes(fabric, qos=isolated) == [("0", 0), ("1", 0), ("2", 0)]
    with pytest.raises(ScenarioError, match=r"qos.strategy = .isolate.: .* 1 to 16 jobs, and there are 0"):
        required_virtual_lanes(fabric, qos={"strategy": "isolate"})


def test_service_levels_may_share_lanes() -> None:
    """Pairs name all levels of a lane, and lanes that no level takes."""
    found = required_virtual_lanes(FAT_TREE, qos={"sl2vl": [0, 0, 2]})
    assert found == [("0+1", 0), ("none on lane 1", 0), ("2", 0)]
    assert lanes_text(found) == "3 virtual lanes: 1 channel each for service levels 0+1, none on lane 1, 2"


def scenario(lanes: int) -> str:
    return f"""
duration = "10 us"
[fabric]
topology = "dragonfly"
groups = 3
switches_per_group = 2
hosts_per_switch = 2
global_links = 1
routing = {{ name = "per_lane", lanes = ["progressive", "minimal"] }}
[qos]
service_levels = 2
lanes = {lanes}
[[jobs]]
name = "ping"
ranks = 2
workload = {{ name = "ping_pong", compute = "1 us" }}
"""


def test_too_few_lanes_are_refused_and_check_says_what_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Six channels for the level that is routed progressively, two for the other."""
    file = tmp_path / "lanes.toml"
    file.write_text(scenario(7))
    with pytest.raises(ScenarioError, match=r"qos\.lanes = 7: at least 8, one for each pair") as error:
        Scenario.load(file).resolve()
    assert "(0, 0) (0, 1) (0, 2) (0, 3) (0, 4) (0, 5) (1, 0) (1, 1)" in str(error.value)
    file.write_text(scenario(8))
    assert execute(["check", str(file)]) == 0
    assert "8 virtual lanes: 6 channels for service level 0; 2 channels for service level 1" in capsys.readouterr().out


def test_eight_isolated_jobs_under_par_have_48_lanes() -> None:
    """Each job sends on the six lanes of its level, those beyond the thirty-second included, and on no others."""
    fabric = {"topology": "dragonfly", "groups": 4, "switches_per_group": 2, "hosts_per_switch": 2, "global_links": 2}
    job = {"name": "job", "count": 8, "ranks": 2, "stop": 3, "placement": "spread"}
    job["workload"] = {"name": "ping_pong", "message_size": "20 KiB"}
    given = Scenario(
        fabric={**fabric, "routing": "progressive"},
        qos={"strategy": "isolate"},
        jobs=[job],
        observe={"departures": True},
    )
    simulation = Simulation(given)
    assert len(required_virtual_lanes({**fabric}, "progressive", given)) == 48
    assert simulation.run_for("1 s")
    departures = columns(simulation.engine.table("departures"))
    used = set(zip(departures["job"].tolist(), departures["lane"].tolist(), strict=True))
    assert {number for number, _ in used} == set(range(8))
    assert all(lane // 6 == number for number, lane in used)
    assert max(lane for _, lane in used) >= 42
