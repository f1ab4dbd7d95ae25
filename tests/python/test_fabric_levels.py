"""Levels of imported trees with hosts above the leaves, what up/down routing uses of them, and what is reported."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from fairlane import Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.inputs.parameters import entries
from fairlane.model.fabric.graph import columns
from fairlane.model.fabric.survey import survey
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Cable, Wiring

FAT_TREES = [example for example in entries("topology")["fat_tree"].schema["examples"] if "preset" not in example]


def cabled(fabric: Fabric, above: int, seed: int = 1) -> tuple[Wiring, dict[str, int]]:
    """A fat-tree as cables, with ``above`` more hosts at random switches above the leaves; its levels by name."""
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
    for number, (pod, leaf, spine) in enumerate(product(range(7), range(14), range(12))):
        if number % 20 != 7:
            cables.append(Cable((f"leaf{14 * pod + leaf}", f"spine{12 * pod + spine}")))
    for pod, spine, core, _ in product(range(7), range(12), range(2), range(7)):
        cables.append(Cable((f"spine{12 * pod + spine}", f"core{2 * spine + core}")))
    cables += [Cable((f"mgmt{number}", f"spine{12 + 5 * (number % 2)}")) for number in range(management)]
    return Wiring((*hosts, *(f"mgmt{number}" for number in range(management))), tuple(cables))


def time_per_iteration(fabric: dict[str, Any], ranks: int, hosts: Sequence[int | str] = (), **workload: Any) -> float:
    """Microseconds of an iteration of a job on these hosts, by default the first: until the last rank has marked it."""
    job = {
        "name": "a",
        "ranks": ranks,
        "placement": {"name": "list", "hosts": list(hosts or range(ranks))},
        "workload": {"name": "shift", "compute": "1 us", "message_size": "16 KiB", **workload},
    }
    simulation = Simulation(Scenario(duration="100 us", fabric=fabric, jobs=[job]))
    simulation.run_until("100 us")
    marks = columns(simulation.engine.table("job_marks"))
    assert marks["iteration"][-1] >= 5
    return float(marks["time"][-1] / marks["iteration"][-1] / 1e6)


def listed_anew(wiring: Wiring, seed: int) -> Wiring:
    """The same with hosts and cables in a random order, as dumps list them."""
    draw = random.Random(seed)
    return Wiring(
        tuple(draw.sample(wiring.hosts, len(wiring.hosts))), tuple(draw.sample(wiring.cables, len(wiring.cables)))
    )


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("example", FAT_TREES, ids=lambda example: f"{example['hosts']}-{example['levels']}")
def test_fat_trees_with_hosts_above_the_leaves_keep_levels_and_throughput(
    example: dict[str, Any], shuffled: bool
) -> None:
    built_in = Fabric.build({"topology": "fat_tree", "params": example, "routing": "d_mod_k"})
    wiring, levels = cabled(built_in, above=built_in.hosts // 10)
    wiring = listed_anew(wiring, 3) if shuffled else wiring
    found = survey(wiring)
    assert {name: level for level, names in found.levels.items() for name in names} == levels
    assert found.tree.startswith(f"a tree of {example['levels']} levels")
    ranks = min(built_in.hosts, 128)
    step: dict[str, Any] = {"steps": [ranks // 2 - 1], "messages_per_iteration": 2}
    names = [f"h{number}" for number in range(ranks)]
    here = time_per_iteration({"topology": "imported", **wiring.parameters()}, ranks, names, **step)
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
    above = [words for words in found.anomalies if "hosts are at switches of level 2" in words]
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


def test_cables_that_do_not_join_adjacent_levels_are_listed() -> None:
    pods = product(range(8), range(2))
    ends = [(f"h{leaf}{host}", f"leaf{leaf}") for leaf in range(8) for host in range(4)]
    ends += [(f"leaf{leaf}", f"spine{leaf // 4}{spine}") for leaf, spine in pods]
    ends += [(f"spine{pod}{spine}", f"core{core}") for pod, spine, core in product(range(2), repeat=3)]
    hosts = tuple(host for host, _ in ends[:32])
    whole = Wiring(hosts, tuple(map(Cable, ends)))
    assert whole.fabric().exceptions == ()
    more = [("leaf0", "leaf1"), ("leaf2", "leaf3"), ("leaf0", "core0")]
    fabric = Wiring(hosts, (*whole.cables, *map(Cable, more))).fabric()
    assert fabric.exceptions == (
        "2 of 27 cables between switches join two of level 1: leaf0 to leaf1, leaf2 to leaf3",
        "1 of 27 cables between switches join level 1 with level 3: leaf0 to core0",
    )


def test_management_hosts_cost_the_tree_of_206_switches_nothing() -> None:
    """An iteration takes as long as without them: all hosts of a subtree send to those of the next one."""
    workload: dict[str, Any] = {"messages_per_iteration": 1, "steps": [14 * 12]}
    times = [
        time_per_iteration({"topology": "imported", **tree_of_206(management).parameters()}, 7 * 14 * 12, **workload)
        for management in (0, 10)
    ]
    assert times[1] == pytest.approx(times[0], rel=0.02)


@pytest.mark.parametrize("management", [0, 10])
def test_the_order_of_a_listing_does_not_matter(management: int) -> None:
    """Dumps list switches and hosts in any order; ranks of hosts are those of their names."""
    wiring = tree_of_206(management)
    workload: dict[str, Any] = {"messages_per_iteration": 1, "steps": [14 * 12]}
    ranks = 7 * 14 * 12
    in_order = time_per_iteration({"topology": "imported", **wiring.parameters()}, ranks, **workload)
    for seed in range(2):
        shuffled = listed_anew(wiring, seed)
        names = [f"node{number}" for number in range(ranks)]
        found = time_per_iteration({"topology": "imported", **shuffled.parameters()}, ranks, names, **workload)
        assert found == pytest.approx(in_order, rel=0.02)


def test_traffic_between_management_hosts_of_two_spines_arrives() -> None:
    """They have no up/down path: their packets go up again on a second virtual channel."""
    wiring = tree_of_206()
    first = len(wiring.hosts) - 10
    fabric = {"topology": "imported", **wiring.parameters()}
    job = {
        "name": "management",
        "ranks": 10,
        "placement": {"name": "list", "hosts": list(range(first, first + 10))},
        "workload": {"name": "all_to_all", "compute": "1 us", "message_size": "1 KiB"},
    }
    simulation = Simulation(Scenario(duration="200 us", fabric=fabric, jobs=[job]))
    simulation.run_until("200 us")
    assert simulation.work()["management"] > 2
    built = wiring.fabric("up_down")
    assert built.required_virtual_lanes(1) == [(0, 0), (0, 1)]
    # Down to a leaf and up again: two links between switches.
    assert len(built.route(first, first + 1)) == 4


def ring(switches: int = 6) -> Wiring:
    """Two hosts at each switch."""
    cables = [Cable((f"h{host}", f"s{host // 2}")) for host in range(2 * switches)]
    cables += [Cable((f"s{switch}", f"s{(switch + 1) % switches}")) for switch in range(switches)]
    return Wiring(tuple(f"h{host}" for host in range(2 * switches)), tuple(cables))


def test_a_ring_is_no_tree_and_some_of_its_routes_are_not_minimal() -> None:
    found = survey(ring())
    assert found.tree.startswith("no tree: ")
    assert "6 of 6 cables between switches stay within a level" in found.tree
    assert set(found.levels) == {1}
    coverage = ring().fabric("up_down").coverage
    # No path passes the bottom of the order, which is opposite of the top: two of the 30 ordered pairs of switches have
    # their only minimal path through it.
    assert coverage.minimal_routes == pytest.approx(28 / 30)
    assert ring().fabric("up_down").exceptions == ()


def random_graph(switches: int, degree: int, seed: int) -> Wiring:
    """Switches joined at random, as in a Jellyfish, four hosts each."""
    draw = random.Random(seed)
    ends = [switch for switch in range(switches) for _ in range(degree)]
    draw.shuffle(ends)
    pairs = Counter((min(pair), max(pair)) for pair in zip(ends[::2], ends[1::2], strict=True) if pair[0] != pair[1])
    cables = [Cable((f"h{host}", f"s{host // 4}")) for host in range(4 * switches)]
    cables += [Cable((f"s{a}", f"s{b}")) for a, b in pairs]
    return Wiring(tuple(f"h{host}" for host in range(4 * switches)), tuple(cables))


@pytest.mark.parametrize("seed", range(4))
def test_random_graphs_are_no_trees(seed: int) -> None:
    found = survey(random_graph(40, 6, seed))
    assert found.tree.startswith("no tree: every switch has hosts")


def test_idle_links_are_counted_named_and_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two leaves of two hosts, two spines, and a switch that only one spine joins, by two cables: four idle links."""
    ends = [("a0", "leaf0"), ("a1", "leaf0"), ("b0", "leaf1"), ("b1", "leaf1")]
    ends += [(leaf, spine) for leaf in ("leaf0", "leaf1") for spine in ("spine0", "spine1")]
    ends += [("spine0", "spare"), ("spine0", "spare")]
    wiring = Wiring(("a0", "a1", "b0", "b1"), tuple(map(Cable, ends)))
    wiring.save(tmp_path / "small.json")
    arguments = ["--topology", "imported", "--set", f"file={tmp_path / 'small.json'}"]
    assert execute(["fabric", "describe", *arguments]) == 0
    text = capsys.readouterr().out
    assert "100% of host pairs have a minimal route" in text
    assert sum(line.startswith("Warning: ") for line in text.splitlines()) == 2
    assert "2 of 2 level 2 up links are used by no route" in text
    assert execute(["fabric", "describe", *arguments, "--json"]) == 0
    coverage = json.loads(capsys.readouterr().out)["coverage"]
    assert {idle["name"]: (idle["links"], idle["total"]) for idle in coverage["idle"]} == {
        "level 2 up": (2, 2),
        "level 2 down": (2, 2),
    }
    assert all("spine0" in name and "spare" in name for idle in coverage["idle"] for name in idle["first"])
    assert (coverage["minimal_paths"], coverage["minimal_routes"], coverage["idle_is_exact"]) == (1, 1, True)
    scenario = tmp_path / "small.toml"
    scenario.write_text(
        'duration = "1 us"\n[fabric]\ntopology = "imported"\nfile = "small.json"\n'
        '[[jobs]]\nname = "a"\nranks = 2\nworkload = "ping_pong"\n',
        encoding="utf-8",
    )
    assert execute(["check", str(scenario)]) == 0
    assert "warning: 2 of 2 level 2 up links are used by no route" in capsys.readouterr().out


def test_the_bisection_is_also_that_of_the_links_in_use() -> None:
    """Forwarding tables that send everything over one of two spines: half of what the cables could carry."""
    ends = [("a0", "leaf0"), ("a1", "leaf0"), ("b0", "leaf1"), ("b1", "leaf1")]
    ends += [(leaf, spine) for leaf in ("leaf0", "leaf1") for spine in ("spine0", "spine1")]
    taken: Counter[str] = Counter()
    cables = []
    for pair in ends:
        taken.update(pair)
        cables.append(Cable(pair, ports=(taken[pair[0]], taken[pair[1]])))
    tables = {"leaf0": (1, 2, 3, 3), "leaf1": (3, 3, 1, 2), "spine0": (1, 1, 2, 2)}
    wiring = Wiring(("a0", "a1", "b0", "b1"), tuple(cables), tables=tables)
    described = wiring.fabric("tables").describe()
    assert (described.bisection, described.usable_bisection) == (200 * 10**9, 100 * 10**9)
    assert described.coverage.minimal_paths == 0.5
    assert described.coverage.warnings == (
        "2 of 4 level 1 up links are used by no route",
        "2 of 4 level 1 down links are used by no route",
        "of only 50% of the minimal paths every link is used by some route",
    )
    spread = wiring.fabric("up_down").describe()
    assert spread.usable_bisection == spread.bisection
    assert spread.coverage.warnings == ()


def test_planes_that_are_joined_only_through_hosts_are_routed_each_by_itself() -> None:
    """Two planes of two leaves and a spine; a message over a host's second adapter stays in the second plane."""
    cables = []
    for plane in "pq":
        cables += [Cable((f"h{host}", f"{plane}leaf{host // 2}")) for host in range(4)]
        cables += [Cable((f"{plane}leaf{leaf}", f"{plane}spine")) for leaf in range(2)]
    wiring = Wiring(("h0", "h1", "h2", "h3"), tuple(cables))
    assert survey(wiring).tree.startswith("a tree of 2 levels, 4 - 2 switches")
    fabric = wiring.fabric("up_down")
    names = fabric.links["from_name"]
    for rail, plane in enumerate("pq"):
        assert [names[link] for link in fabric.route(0, 3, rail)[1:]] == [
            f"{plane}leaf0",
            f"{plane}spine",
            f"{plane}leaf1",
        ]
    assert fabric.coverage.idle == ()


def director(edges: int, hosts: int) -> Wiring:
    """Twelve line cards of ``hosts`` hosts, twelve spines; edge switches of 16 hosts, at four line cards each."""
    cables = [Cable((f"line{line}", f"spine{spine}")) for line, spine in product(range(12), range(12))]
    cables += [Cable((f"d{line}-{host}", f"line{line}")) for line, host in product(range(12), range(hosts))]
    cables += [Cable((f"e{edge}-{host}", f"edge{edge}")) for edge, host in product(range(edges), range(16))]
    cables += [Cable((f"edge{edge}", f"line{(4 * edge + up) % 12}")) for edge, up in product(range(edges), range(4))]
    names = dict.fromkeys(end for cable in cables for end in cable.ends)
    return Wiring(tuple(name for name in names if name.startswith(("d", "e")) and "-" in name), tuple(cables))


@pytest.mark.parametrize("hosts", [0, 8, 12])
def test_a_director_with_hosts_on_line_cards_and_edge_switches_below_them(hosts: int) -> None:
    wiring = director(15, hosts)
    found = survey(wiring)
    assert {level: {name.rstrip("0123456789") for name in names} for level, names in found.levels.items()} == {
        1: {"edge"},
        2: {"line"},
        3: {"spine"},
    }
    assert found.tree == "a tree of 3 levels, 15 - 12 - 12 switches"
    if not hosts:
        # 240 destinations for 144 links from spines to line cards, all four line cards of an edge switch for its hosts.
        coverage = wiring.fabric("up_down").coverage
        assert sum(idle.links for idle in coverage.idle) <= 144 / 10
        assert coverage.minimal_paths > 0.9


def grid(sides: tuple[int, ...], wrap: bool) -> Wiring:
    """A torus or mesh with a host at each switch."""
    cables = []
    for at in product(*map(range, sides)):
        name = "s" + "-".join(map(str, at))
        cables.append(Cable((f"h{name}", name)))
        for axis, side in enumerate(sides):
            there = (*at[:axis], (at[axis] + 1) % side, *at[axis + 1 :])
            if at[axis] + 1 < side or (wrap and side > 2):
                cables.append(Cable((name, "s" + "-".join(map(str, there)))))
    return Wiring(tuple(cable.ends[0] for cable in cables if cable.ends[0].startswith("h")), tuple(cables))


@pytest.mark.parametrize(
    ("sides", "wrap"),
    [((8, 8), True), ((9, 9), False), ((12, 3), False), ((2, 2, 2, 2, 2, 2), False), ((4, 4, 4), True)],
)
def test_grids_and_hypercubes_are_no_trees(sides: tuple[int, ...], wrap: bool) -> None:
    """All their cables can join adjacent levels, by distance from a corner."""
    assert survey(grid(sides, wrap)).tree.startswith("no tree: every switch has hosts")
