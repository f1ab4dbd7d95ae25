"""Levels of imported trees with hosts above the leaves, what up/down routing uses of them, and what is said of it."""

import json
import random
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fairlane import Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.fabric import Cable, Fabric, Wiring, survey
from fairlane.inputs.tables import entries

FAT_TREES = [example for example in entries("topology")["fat_tree"].schema["examples"] if "preset" not in example]


def cabled(fabric: Fabric, above: int, seed: int = 1) -> tuple[Wiring, dict[str, int]]:
    """A fat-tree as a list of cables with ``above`` more hosts at random switches above the leaves; its levels by name."""
    ends = zip(
        *(fabric.links[key].tolist() for key in ("from_host", "from_switch", "to_host", "to_switch")), strict=True
    )
    cables = []
    for a, low, b, high in ends:
        if a >= 0:
            cables.append(Cable((f"h{a}", f"s{high}")))
        elif b < 0 and low < high:
            cables.append(Cable((f"s{low}", f"s{high}")))
    levels = {f"s{switch}": level for switch, level in enumerate(fabric.levels)}
    upper = [switch for switch, level in levels.items() if level > 1]
    draw = random.Random(seed)
    more = [f"m{number}" for number in range(above)]
    cables += [Cable((name, draw.choice(upper))) for name in more]
    return Wiring((*(f"h{host}" for host in range(fabric.hosts)), *more), tuple(cables)), levels


def tree_of_206(management: int = 10) -> Wiring:
    """Seven subtrees of 14 leaves and 12 spines, 24 core switches; 59 of 1,176 cables to spines are not plugged.

    Twelve hosts a leaf, and ``management`` hosts at two spines of the second subtree.
    """
    hosts = [f"node{number}" for number in range(7 * 14 * 12)]
    cables = [Cable((host, f"leaf{number // 12}")) for number, host in enumerate(hosts)]
    joined = [(7 * 0 + pod, leaf, spine) for pod, leaf, spine in product(range(7), range(14), range(12))]
    for number, (pod, leaf, spine) in enumerate(joined):
        if number % 20 != 7:
            cables.append(Cable((f"leaf{14 * pod + leaf}", f"spine{12 * pod + spine}")))
    for pod, spine, core, _ in product(range(7), range(12), range(2), range(7)):
        cables.append(Cable((f"spine{12 * pod + spine}", f"core{2 * spine + core}")))
    cables += [Cable((f"mgmt{number}", f"spine{12 + 5 * (number % 2)}")) for number in range(management)]
    return Wiring((*hosts, *(f"mgmt{number}" for number in range(management))), tuple(cables))


def time_per_iteration(fabric: dict[str, Any], ranks: int, **workload: Any) -> float:
    """Microseconds of an iteration of a job on the first hosts, in order: until the last rank has marked the last one."""
    job = {
        "name": "a",
        "ranks": ranks,
        "placement": {"strategy": "list", "hosts": list(range(ranks))},
        "workload": {"name": "shift", "compute": "1 us", "message_size": "16 KiB", **workload},
    }
    simulation = Simulation(Scenario(duration="100 us", fabric=fabric, jobs=[job]))
    simulation.run_until("100 us")
    marks = simulation.table("job_marks")
    assert marks["iteration"][-1] >= 5
    return float(marks["time"][-1] / marks["iteration"][-1] / 1e6)


@pytest.mark.parametrize("example", FAT_TREES, ids=lambda example: f"{example['hosts']}-{example['levels']}")
def test_fat_trees_with_hosts_above_the_leaves_keep_levels_and_throughput(example: dict[str, Any]) -> None:
    built_in = Fabric.build({"topology": "fat_tree", "params": example, "routing": "d_mod_k"})
    wiring, levels = cabled(built_in, above=built_in.hosts // 10)
    found = survey(wiring)
    assert {name: level for level, names in found.levels.items() for name in names} == levels
    assert found.tree.startswith(f"a tree of {example['levels']} levels")
    ranks = min(built_in.hosts, 128)
    step = {"steps": [ranks // 2 - 1], "messages_per_iteration": 2}
    here = time_per_iteration({"topology": "imported", **wiring.parameters()}, ranks, **step)
    there = time_per_iteration({"topology": "fat_tree", **example}, ranks, **step)
    assert here == pytest.approx(there, rel=0.02)
    assert Fabric.build(spec(wiring)).coverage.minimal_paths == 1


def spec(wiring: Wiring, routing: str = "up_down") -> dict[str, Any]:
    links = [{"ends": list(cable.ends)} for cable in wiring.cables]
    return {"topology": "imported", "params": {"hosts": list(wiring.hosts), "links": links}, "routing": routing}


def test_the_tree_of_206_switches_with_management_hosts_at_two_spines() -> None:
    wiring = tree_of_206()
    found = survey(wiring)
    assert {level: len(names) for level, names in found.levels.items()} == {1: 98, 2: 84, 3: 24}
    assert all(
        name.startswith(("leaf", "spine", "core")[level - 1]) for level, names in found.levels.items() for name in names
    )
    assert found.tree == "a tree of 3 levels, 98 - 84 - 24 switches"
    above = [words for words in found.odd if "hosts are at switches of level 2" in words]
    assert above == [
        "10 of 1186 hosts are at switches of level 2: spine12 (mgmt0, mgmt2, mgmt4, mgmt6 and 1 more), "
        "spine17 (mgmt1, mgmt3, mgmt5, mgmt7 and 1 more)"
    ]
    fabric = wiring.fabric("up_down")
    assert fabric.coverage.minimal_routes == 1
    # Leaves that lack a cable are not reached over every spine that others send over.
    assert fabric.coverage.minimal_paths > 0.97
    up = [kind for kind in fabric.describe().links if kind.name == "level 1 up"]
    assert [kind.links for kind in up] == [1117]
    assert not [idle for idle in fabric.coverage.idle if idle.name == "level 1 up"]


def test_management_hosts_cost_the_tree_of_206_switches_nothing() -> None:
    """An iteration takes as long as without them: all hosts of a subtree send to those of the next one."""
    workload = {"messages_per_iteration": 1, "steps": [14 * 12]}
    times = [
        time_per_iteration({"topology": "imported", **tree_of_206(management).parameters()}, 7 * 14 * 12, **workload)
        for management in (0, 10)
    ]
    assert times[1] == pytest.approx(times[0], rel=0.02)
