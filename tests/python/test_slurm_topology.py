"""Slurm's files of a fabric: its rules, what a real controller says, and the fabrics that are read from them."""

import random
from collections import defaultdict
from itertools import product
from pathlib import Path
from typing import Any

import networkx
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import slurm
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.inputs.hosts import expand
from fairlane.model.fabric.export import FORMATS, wiring_of
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.slurm_topology import YamlError, parse_yaml
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Cable, Wiring

DATA = Path(__file__).parents[1] / "data"
PLANES = DATA / "reproducers" / "fabrics" / "slurm-invalid-child.net"
X5 = DATA / "fabrics" / "x5.ibnetdiscover"
TREE: dict[str, Any] = {"topology": "fat_tree", "hosts": 32, "levels": 2, "leaf_down": 4, "leaf_up": 2}
BUILT: dict[str, dict[str, Any]] = {
    "fat tree": TREE,
    "three levels": {"topology": "fat_tree", "hosts": 32, "levels": 3, "radix": 8},
    "planes": {**TREE, "rails": 3},
    "shared": {**TREE, "rails": {"count": 2, "wiring": "shared"}},
    "torus": {"topology": "torus", "sides": [3, 2, 4]},
    "ring": {"topology": "torus", "sides": [6]},
    "dragonfly": {
        "topology": "dragonfly",
        "groups": 5,
        "switches_per_group": 4,
        "global_links": 1,
        "hosts_per_switch": 2,
    },
}


def built(name: str) -> Wiring:
    return wiring_of(Fabric.build(FabricTable.read(BUILT[name]).spec))


def conf(wiring: Wiring, *, merged: bool = False, plugin: str = "tree") -> str:
    return FORMATS["topology-conf"].write(wiring, merged=merged, plugin=plugin).text


def imported(folder: Path, text: str) -> Wiring:
    (folder / "topology").write_text(text)
    return read_wiring(folder / "topology")


def broken_rules(text: str, hosts: set[str]) -> list[str]:
    """What topology/tree of Slurm would stop on or warn of: topology.conf(5), and the messages of its reader."""
    found: list[str] = []
    below: dict[str, list[str]] = {}
    nodes: dict[str, list[str]] = {}
    for line in filter(lambda line: not line.startswith("#"), text.splitlines()):
        keys = dict(word.split("=") for word in line.split())
        name = keys["SwitchName"]
        found += [f"{name} has already been defined"] if name in below else []
        found += [f"{name} is too long"] if len(name) > 64 else []
        found += [f"{name} has not either nodes or switches"] if len(keys) != 2 else []
        below[name] = expand(keys.get("Switches", ""))
        nodes[name] = expand(keys.get("Nodes", ""))
    found += [
        f"{name} has invalid child {low}" for name in below for low in below[name] if low not in below or low == name
    ]
    graph: networkx.DiGraph[str] = networkx.DiGraph((name, low) for name in below for low in below[name])
    graph.add_nodes_from(below)
    if found or not networkx.is_directed_acyclic_graph(graph):
        return found or ["not a tree"]
    found += ["deeper than 20"] if networkx.dag_longest_path_length(graph) > 20 else []
    at: dict[str, list[str]] = defaultdict(list)
    for name, own in nodes.items():
        for host in own:
            at[host].append(name)
    found += [f"{host} is at {leaves}" for host, leaves in at.items() if len(leaves) > 1]
    found += [f"switches lack access to {hosts - at.keys()}"] if set(at) != hosts else []
    reached = [{host for low in {name, *networkx.descendants(graph, name)} for host in nodes[low]} for name in below]
    return found if hosts in reached else [*found, "no switch can reach all nodes"]


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("name", [*BUILT, "planes of the reproducer", "x5"])
def test_what_is_written_breaks_no_rule_of_slurm(name: str, merged: bool) -> None:
    wiring = built(name) if name in BUILT else read_wiring(X5 if name == "x5" else PLANES)
    assert broken_rules(conf(wiring, merged=merged), set(wiring.hosts)) == []


def random_wiring(seed: int) -> Wiring:
    """Switches joined at random, some without hosts, hosts with several cables anywhere."""
    draw = random.Random(seed)
    switches = [f"sw{at}" for at in range(draw.randint(2, 9))]
    cables = [Cable((one, draw.choice(switches[:at]))) for at, one in enumerate(switches) if at]
    for _ in range(draw.randint(0, 8)):
        one, other = draw.sample(switches, 2)
        cables.append(Cable((one, other)))
    hosts = [f"n{at}" for at in range(draw.randint(2, 12))]
    cables += [Cable((host, draw.choice(switches))) for host in hosts for _ in range(draw.randint(1, 3))]
    return Wiring(tuple(hosts), tuple(cables))


@pytest.mark.parametrize("merged", [False, True])
def test_random_fabrics_break_no_rule_of_slurm(merged: bool) -> None:
    for seed in range(60):
        wiring = random_wiring(seed)
        assert broken_rules(conf(wiring, merged=merged), set(wiring.hosts)) == [], seed


def test_a_single_switch_is_a_tree() -> None:
    assert conf(Wiring(("a", "b"), (Cable(("a", "s")), Cable(("b", "s"))))) == "SwitchName=s Nodes=a,b\n"


def test_hosts_of_an_upper_switch_have_an_entry_of_their_own() -> None:
    """A management host at each spine of a tree."""
    leaves, spines = [f"leaf{at}" for at in range(4)], ["spine0", "spine1"]
    cables = [Cable(pair) for pair in product(leaves, spines)]
    cables += [Cable((f"n{at}", leaves[at // 4])) for at in range(16)] + [
        Cable((f"m{at}", spines[at])) for at in (0, 1)
    ]
    wiring = Wiring((*(f"n{at}" for at in range(16)), "m0", "m1"), tuple(cables))
    text = conf(wiring)
    assert broken_rules(text, set(wiring.hosts)) == []
    assert "SwitchName=spine0-hosts Nodes=m0\n" in text
    assert "SwitchName=spine0 Switches=spine0-hosts,leaf[0-3]\n" in text
    assert "# hosts of 2 switches that join others have an entry of their own: spine0, spine1\n" in text


@pytest.mark.skipif(bool(slurm.missing()), reason=f"not installed: {', '.join(slurm.missing())}")
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("name", [*BUILT, "planes of the reproducer", "x5", "ndr-dgx"])
def test_a_real_controller_takes_it(name: str, merged: bool, tmp_path: Path) -> None:
    """Slurm 22.05, which knows no other topologies of a file than trees: block, ring and torus3d came later."""
    files = {"planes of the reproducer": PLANES, "x5": X5, "ndr-dgx": X5.with_name("ndr-dgx.ibnetdiscover.xz")}
    wiring = read_wiring(files[name]) if name in files else built(name)
    text = conf(wiring, merged=merged)
    members = (set(expand(line.partition("Nodes=")[2])) for line in text.splitlines() if "Nodes=" in line)
    hosts = set().union(*members)  # by the names that Slurm takes
    assert len(hosts) == len(wiring.hosts)
    shown = slurm.topology(tmp_path, sorted(hosts), text)
    assert "fatal" not in shown
    switches = {line.split()[0].partition("=")[2] for line in text.splitlines() if line.startswith("Switch")}
    rows = [dict(word.split("=") for word in line.split()) for line in shown.splitlines() if line]
    assert {row["SwitchName"] for row in rows} == switches
    assert any(set(expand(row["Nodes"])) == hosts for row in rows), "one reaches all"


def distances(wiring: Wiring) -> dict[str, dict[str, int]]:
    """Links of a shortest path between hosts over their first adapters; no way leads through a host."""
    hosts = set(wiring.hosts)
    graph: networkx.Graph[str] = networkx.Graph()
    first: dict[str, str] = {}
    for cable in wiring.cables:
        host = next((end for end in cable.ends if end in hosts), None)
        if host is None:
            graph.add_edge(*cable.ends)
        else:
            (switch,) = set(cable.ends) - {host}
            first.setdefault(host, switch)
            graph.add_node(switch)
    lengths = dict(networkx.all_pairs_shortest_path_length(graph))
    return {a: {b: 2 + lengths[first[a]][first[b]] for b in hosts if b != a} for a in hosts}


@pytest.mark.parametrize("name", ["topology-conf", "topology-yaml"])
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("source", ["fat tree", "three levels", "planes", "shared", "reproducer", "x5"])
def test_distances_in_the_tree_come_back(source: str, merged: bool, name: str, tmp_path: Path) -> None:
    wiring = built(source) if source in BUILT else read_wiring(X5 if source == "x5" else PLANES)
    found = imported(tmp_path, FORMATS[name].write(wiring, merged=merged).text)
    assert set(found.hosts) == set(wiring.hosts)
    assert distances(found) == distances(wiring)


@pytest.mark.parametrize("sides", [[3, 2, 4], [5, 4], [6]])
def test_a_torus_comes_back_cable_by_cable(sides: list[int], tmp_path: Path) -> None:
    wiring = wiring_of(Fabric.build(FabricTable.read({"topology": "torus", "sides": sides}).spec))
    found = imported(tmp_path, FORMATS["topology-yaml"].write(wiring, plugin="torus3d").text)

    def cables(of: Wiring) -> list[list[str]]:
        padded = {name: name + "-0" * (3 - len(sides)) if of is wiring else name for name in of.switches}
        return sorted(sorted(padded.get(end, end) for end in cable.ends) for cable in of.cables)

    assert cables(found) == cables(wiring)
    assert found.hosts == wiring.hosts


def test_a_ring_comes_back_in_order(tmp_path: Path) -> None:
    hosts = ["a", "c", "b", "n1", "n2", "n10"]
    cables = [Cable((host, f"switch-{at}")) for at, host in enumerate(hosts)]
    cables += [Cable((f"switch-{at}", f"switch-{(at + 1) % 6}")) for at in range(6)]
    wiring = Wiring(tuple(hosts), tuple(cables))
    for name in ("topology-conf", "topology-yaml"):
        found = imported(tmp_path, FORMATS[name].write(wiring, plugin="ring").text)
        assert (found.hosts, found.cables) == (wiring.hosts, tuple(replace_line(it, found) for it in wiring.cables))


def replace_line(cable: Cable, found: Wiring) -> Cable:
    return next(it for it in found.cables if it.ends == cable.ends)


def test_blocks_are_the_hosts_of_a_leaf_and_larger_ones_are_joined(tmp_path: Path) -> None:
    wiring = built("fat tree")
    for name in ("topology-conf", "topology-yaml"):
        text = FORMATS[name].write(wiring, plugin="block").text
        found = imported(tmp_path, text)
        assert distances(found) == distances(wiring)
    larger = conf(wiring, plugin="block").replace("BlockSizes=4", "BlockSizes=4,8,16")
    found = imported(tmp_path, larger)
    assert [found.switches.count(f"block8-{at}") for at in range(5)] == [1, 1, 1, 1, 0]
    apart = distances(found)["host0"]
    assert [apart[f"host{at}"] for at in (1, 4, 8, 16)] == [2, 4, 6, 8]
    with pytest.raises(ScenarioError, match="a block of 12 is not two, four, eight"):
        imported(tmp_path, larger.replace("4,8,16", "4,12"))


@pytest.mark.parametrize(
    ("source", "plugin", "words"),
    [
        ("fat tree", "torus3d", "is no torus: its switches are not named by coordinates"),
        ("torus", "ring", "is a torus of 3 x 2 x 4 hosts, and a ring of Slurm has one dimension and at most 16"),
    ],
)
def test_what_a_plugin_cannot_hold_is_refused(source: str, plugin: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        FORMATS["topology-yaml"].write(built(source), plugin=plugin)


def test_the_options_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torus = ["--topology", "torus", "--set", "sides=[4]"]
    for options, code, words in (
        (["--topology-yaml", "--plugin", "ring"], 0, ""),
        (["--topology-yaml", "--plugin", "rings"], 2, 'did you mean "ring"?'),
        (["--topology-conf", "--plugin", "torus3d"], 2, "allowed: --topology-yaml"),
        (["--topology-conf", "--plugin", "ring", "--merged"], 2, "needs the plugin tree"),
        (["--csv", "--plugin", "ring"], 2, "allowed: with Slurm's files"),
    ):
        assert execute(["fabric", "export", *torus, *options, "-o", str(tmp_path / "out")]) == code, options
        assert words in capsys.readouterr().err
    source = str(DATA / "fabrics" / "x5.slurm-topology.conf")
    assert execute(["fabric", "import", source, "-o", str(tmp_path / "x.json"), "--bandwidth", "200 Gb/s"]) == 0
    assert "113: 113 25 GB/s" in capsys.readouterr().out
    assert execute(["fabric", "import", source, "--bandwidth", "200"]) == 2
    assert "--bandwidth" in capsys.readouterr().err
    assert execute(["fabric", "import", str(X5), "--bandwidth", "200 Gb/s"]) == 2
    assert "every cable of" in capsys.readouterr().err


CONF = """\
# two leaves
SwitchName=leaf0 Nodes=n[0-1] LinkSpeed=100
switchname=leaf1 nodes=n[2-3]
SwitchName=top \\
  Switches=leaf[0-1]
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("leaf[0-1]", "leaf[0-2]", 4, "top has an invalid child 'leaf2': no other switch has that name"),
        ("Nodes=n[0-1]", "Nodes=n[0-1] Switches=leaf1", 2, "leaf0 has both nodes and switches"),
        ("leaf1 nodes", "leaf0 nodes", 3, "the name leaf0 is used already, on line 2"),
        ("LinkSpeed", "Speed", 2, "speed = .*unknown key"),
        ("n[2-3]", "n[2-", 3, "no list of hosts"),
        ("SwitchName=top", "BlockName=top", 4, "switches = .*unknown key"),
    ],
)
def test_files_that_are_wrong_are_refused_by_line(old: str, new: str, line: int, words: str, tmp_path: Path) -> None:
    assert len(imported(tmp_path, CONF).cables) == 6
    with pytest.raises(ScenarioError, match=rf"topology:{line}: .*{words}"):
        imported(tmp_path, CONF.replace(old, new))


YAML = """\
---
- topology: topo1
  cluster_default: true
  tree:
    switches:
    - switch: sw_root
      children: s[1-2]
    - {switch: s1, nodes: "node[01-02]"}
    - switch: s2  # the second
      nodes: 'node[03-04]'
- topology: topo5
  torus3d:
    toruses:
      - name: pod1
        dims: {x: 2, y: 1, z: 1}
        regions:
        - anchor: {x: 1, y: 0, z: 0}
          dims: {x: 1, y: 1, z: 1}
          nodes: a
- topology: topo3
  flat: true
"""


def test_the_default_topology_of_a_file_is_read(tmp_path: Path) -> None:
    wiring = imported(tmp_path, YAML)
    assert wiring.hosts == ("node01", "node02", "node03", "node04")
    assert wiring.remarks[1] == "of 3 topologies topo1 is read, not topo5 and topo3"
    torus = imported(
        tmp_path, YAML.replace("true\n  tree", "false\n  tree").replace("topo5", "topo5\n  cluster_default: True")
    )
    assert (torus.hosts, len(torus.cables)) == (("a",), 3)
    for old, new, words in (
        ("children", "child", r"topology:6: child: unknown key"),
        ("    switches:\n", "    switches: [\n", "topology:[0-9]+: not YAML: while parsing a flow "),
        ("tree:", "\ttree:", "topology:4: not YAML: while scanning "),
        ("  tree:", "  tree: 1\n  flat:", "switches: not a list"),
    ):
        with pytest.raises(ScenarioError, match=words):
            imported(tmp_path, YAML.replace(old, new))
    only = YAML[YAML.index("- topology: topo5") : YAML.index("- topology: topo3")]
    for old, new, words in (
        ("x: 1, y: 1, z: 1", "x: 1, y: 2, z: 1", "topology:7: 1 node for 1 x 2 x 1 places; allowed: 2"),
        ("x: 1, y: 0", "x: 2, y: 0", r"topology:7: the place \(2, 0, 0\) of a is outside the torus"),
        ("x: 2, y: 1", "x: 0, y: 1", "topology:4: dims: not three numbers; allowed: x, y and z, from 1"),
    ):
        with pytest.raises(ScenarioError, match=words):
            imported(tmp_path, only.replace(old, new))


PLAIN = st.from_regex(r"[a-z0-9][a-z0-9_]{0,5}", fullmatch=True)
VALUES = st.recursive(
    PLAIN | PLAIN.map(lambda text: f"{text}[01-03],#{text}"),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(PLAIN, inner, min_size=1, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)
@given(data=st.lists(VALUES, min_size=1, max_size=3) | st.dictionaries(PLAIN, VALUES, min_size=1, max_size=3))
def test_yaml_is_read_as_the_library_reads_it(data: Any) -> None:
    # But for the types of scalars: a host may be called 0123, no or 1e3.
    for text in (yaml.safe_dump(data, sort_keys=False), yaml.safe_dump(data, default_style='"', width=10**6)):
        assert parse_yaml(text) == data


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: &x b", 1, "anchors and aliases are not supported"),
        ("a:\n  b: c\n d: e", 3, "while parsing a block mapping"),
        ("- a\n- b: c\nd: e", 3, "while parsing a block collection"),
        ("a: 1\nb:\n  c: 1\n  c: 2", 4, "duplicate key c"),
        ("a: 1\n? [b]\n: 2", 2, "a key has to be a text"),
        ("a: 1\n---\nb: 2", 2, "a second document begins"),
        ("a: 1\nb: \x01", 2, "not allowed"),
        ("a: 1\nb: " + "[" * 200, 2, "nested more than"),
    ],
)
def test_what_is_not_read_of_yaml_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(YamlError, match=words) as raised:
        parse_yaml(text)
    assert raised.value.line == line


def test_tables_know_their_line() -> None:
    lines = ["- topology: a", "  tree: # of it", "    switches:", "    - switch: s1", "      nodes: n[1-4]"]
    lines.append("    - {switch: s2}")
    (topology,) = parse_yaml("\n".join(lines))
    rows = topology["tree"]["switches"]
    assert [row.line for row in (topology, topology["tree"], *rows)] == [1, 3, 4, 6]
    assert rows[0] == {"switch": "s1", "nodes": "n[1-4]"}
    assert parse_yaml("a:\nb: ''") == {"a": None, "b": ""}
