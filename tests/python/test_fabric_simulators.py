"""Fabrics from files of other simulators: htsim, ns-3 (HPCC, SimAI), ASTRA-sim."""

from collections import Counter
from math import prod
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane import Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric import Wiring, read_wiring

G = 10**9
LEAF_SPINE = """# Two tiers, three times as much bandwidth down as up
Nodes 24
Tiers 2
Podsize 24

Tier 0
Downlink_speed_Gbps 100
Radix_Down 6
Radix_Up 2
Downlink_Latency_ns 500
Switch_Latency_ns 0
Oversubscribed 3

Tier 1
Downlink_speed_Gbps 100
Radix_Down 4
Downlink_Latency_ns 500
"""
PODS = """nodes 12
tiers 3
podsize 4
tier 0
downlink_speed_gbps 200
radix_down 2
radix_up 2
downlink_latency_ns 1000
tier 1
downlink_speed_gbps 200
radix_down 2
radix_up 4
downlink_latency_ns 1000
tier 2
downlink_speed_gbps 100
radix_down 6
downlink_latency_ns 1000
bundle 2
"""
SERVERS = """# Three servers of four GPUs, joined by rings
topology: [ Switch, Ring ]
npus_count: [ 4, 3 ]
bandwidth: [300, 25 ]  # GB/s
latency: [ 800.5, 1500 ]  # ns
"""


def read(folder: Path, text: str) -> Wiring:
    (folder / "file").write_text(text)
    return read_wiring(folder / "file")


def graph_of(wiring: Wiring) -> "networkx.MultiGraph[str]":
    graph: networkx.MultiGraph[str] = networkx.MultiGraph()
    graph.add_edges_from(cable.ends for cable in wiring.cables)
    return graph


@pytest.mark.parametrize(
    ("text", "hosts", "switches", "cables"),
    [
        # A leaf has 6 hosts and a cable to each of 2 spines.
        (LEAF_SPINE, 24, 4 + 2, {(100 * G, 500_000): 24 + 4 * 2}),
        # 3 pods of 2 leaves and 2 aggregation switches; 4 cores, each with 2 cables to one switch of each pod.
        (PODS, 12, 6 + 6 + 4, {(200 * G, 1_000_000): 12 + 6 * 2, (100 * G, 1_000_000): 4 * 3 * 2}),
        # 3 servers with a switch; a router for each of 12 GPUs; 4 rings of 3. 1 GB is 2^30 bytes.
        (
            SERVERS,
            12,
            3 + 12,
            {(300 * 2**33, 800_500): 12, (25 * 2**33, 1_500_000): 12, (350 * 2**33, 80_050): 12},
        ),
    ],
)
def test_files_have_the_cables_that_are_counted_by_hand(
    text: str, hosts: int, switches: int, cables: dict[Any, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wiring = read(tmp_path, text)
    assert (len(wiring.hosts), len(wiring.switches)) == (hosts, switches)
    assert Counter((cable.bandwidth, cable.latency) for cable in wiring.cables) == cables
    assert networkx.is_connected(graph_of(wiring))
    saved = tmp_path / "saved.fabric.json"
    assert execute(["fabric", "import", str(tmp_path / "file"), "-o", str(saved)]) == 0
    assert execute(["fabric", "describe", str(tmp_path / "file")]) == 0
    assert f"{hosts} hosts" in capsys.readouterr().out
    scenario = tmp_path / "scenario.toml"
    scenario.write_text(
        'duration = "200 us"\n[fabric]\ntopology = "imported"\nfile = "saved.fabric.json"\n'
        f'[[jobs]]\nname = "ring"\nranks = {hosts}\nworkload = {{ name = "ring", compute = "5 us" }}\n'
    )
    assert execute(["check", str(scenario)]) == 0
    assert execute(["run", str(scenario), "--no-isolated", "--out", str(tmp_path / "run")]) == 0


def test_pods_are_joined_as_htsim_joins_them(tmp_path: Path) -> None:
    """Aggregation switch j of each pod goes to cores j and j + 2: fat_tree_topology.cpp."""
    graph = graph_of(read(tmp_path, PODS))
    for switch in range(6):
        below = {f"leaf{switch // 2 * 2 + at}" for at in range(2)}
        assert set(graph["aggregation" + str(switch)]) == below | {f"core{switch % 2}", f"core{switch % 2 + 2}"}
        assert graph.number_of_edges(f"aggregation{switch}", f"core{switch % 2}") == 2


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_trees_of_htsim_have_the_radices_of_their_file(data: st.DataObject, tmp_path_factory: Any) -> None:
    """Each switch has as many cables down and up as the file says, whatever fits."""
    down, up, leaves, pods, bundle = (data.draw(st.integers(1, 4)) for _ in range(5))
    up *= bundle
    hosts, podsize = down * leaves * pods, down * leaves
    # A pod has as many aggregation switches as a leaf has bundles up; every core has a bundle to each pod.
    above, cores_each = up // bundle, data.draw(st.integers(1, 3))
    text = (
        f"# a comment\nNodes {hosts}\nTiers 3\nPodsize {podsize}\nTier 0\nRadix_Down {down}\nRadix_Up {up}\n"
        f"Downlink_speed_Gbps 100\nDownlink_Latency_ns 500\nTier 1\nRadix_Down {leaves * bundle}\n"
        f"Radix_Up {cores_each}\nBundle {bundle}\nDownlink_speed_Gbps 200\nDownlink_Latency_ns 600\n"
        f"Tier 2\nRadix_Down {pods}\nDownlink_speed_Gbps 400\nDownlink_Latency_ns 700\n"
    )
    wiring = read(tmp_path_factory.mktemp("topo"), text)
    graph = graph_of(wiring)
    degrees = Counter((name.rstrip("0123456789"), degree) for name, degree in graph.degree())
    expected = Counter({("host", 1): hosts})
    expected[("leaf", down + up)] += leaves * pods
    expected[("aggregation", leaves * bundle + cores_each)] += above * pods
    expected[("core", pods)] += above * cores_each
    assert degrees == expected


def ns3(nodes: int, switches: list[int], links: list[str]) -> str:
    """A file as ns-3 programs of HPCC read it."""
    return "\n".join([f"{nodes} {len(switches)} {len(links)}", " ".join(map(str, switches)), *links, ""])


def test_topologies_of_ns3(tmp_path: Path) -> None:
    links = ["0 2 100Gbps 1us 0", "1 3 25Gbps 0.0005ms 0.01", "2 3 400Gbps 1000ns 0.0", "2 3 400Gbps 1000ns 0.0"]
    wiring = read(tmp_path, ns3(4, [2, 3], links) + "\nFirst line: nodes, switches, links\n0 2 are two hosts\n")
    assert wiring.hosts == ("host0", "host1")
    assert [(cable.ends, cable.bandwidth, cable.latency) for cable in wiring.cables] == [
        (("host0", "switch2"), 100 * G, 1_000_000),
        (("host1", "switch3"), 25 * G, 500_000),
        *[(("switch2", "switch3"), 400 * G, 1_000_000)] * 2,
    ]
    assert wiring.remarks == (
        "from line 8 on the file is ignored: it announces no more links",
        "1 links have packet errors, which are left out: see faults, bit_errors",
    )


def test_topologies_of_simai_have_an_adapter_for_each_link_of_a_gpu(tmp_path: Path) -> None:
    """Two servers of two GPUs, each with an NVSwitch, and a switch for each of two rails."""
    gpus = [f"{gpu} {4 + gpu // 2} 2880Gbps 0.000025ms 0" for gpu in range(4)]
    rails = [f"{gpu} {6 + gpu % 2} 400Gbps 0.0005ms 0" for gpu in range(4)]
    joined = ["6 7 400Gbps 0.0005ms 0"]
    wiring = read(tmp_path, "\n".join(["8 2 2 2 9 H100", "4 5 6 7 ", *gpus, *rails, *joined]))
    assert sorted(wiring.switches) == ["nvswitch4", "nvswitch5", "switch6", "switch7"]
    assert Counter(end for cable in wiring.cables for end in cable.ends)["host0"] == 2
    assert wiring.remarks == ("each GPU is a host with an adapter for each of its links; a server has 2",)
    pairs = {"name": "all_to_all", "message_size": "64 KiB", "compute": "1 us"}
    job = {"name": "job", "ranks": 4, "workload": pairs}
    simulation = Simulation(Scenario(fabric=wiring.table(), jobs=[job], duration="1 ms"))
    simulation.run_for("1 ms")
    assert min(simulation.progress()["job"]) >= 2


@settings(max_examples=25, deadline=None)
@given(
    dimensions=st.lists(
        st.tuples(st.sampled_from(["Ring", "FullyConnected", "Switch"]), st.integers(2, 4)), min_size=1, max_size=3
    )
)
def test_dimensions_of_astra_sim(dimensions: list[tuple[str, int]], tmp_path_factory: Any) -> None:
    """NPUs that differ in one coordinate only are as far apart as in that dimension alone."""
    lists: dict[str, list[Any]] = {
        "topology": [form for form, _ in dimensions],
        "npus_count": [size for _, size in dimensions],
        "bandwidth": [50.0] * len(dimensions),
        "latency": [500] * len(dimensions),
    }
    text = "".join(f"{key}: [ {', '.join(map(str, values))} ]  # note\n" for key, values in lists.items())
    wiring = read(tmp_path_factory.mktemp("astra"), text)
    sizes = [size for _, size in dimensions]
    assert len(wiring.hosts) == prod(sizes)
    distances = dict(networkx.all_pairs_shortest_path_length(graph_of(wiring)))
    ends = 0 if [form for form, _ in dimensions] == ["Switch"] else 2  # links between hosts and routers
    stride = 1
    for form, size in dimensions:
        for step in range(1, size):
            expected = {"Ring": min(step, size - step), "FullyConnected": 1, "Switch": 2}[form]
            assert distances["npu0"][f"npu{step * stride}"] == ends + expected
        stride *= size


WIDE = """Nodes 65536
Tiers 2
Podsize 65536
Tier 0
Radix_Down 8
Radix_Up 65536
Downlink_speed_Gbps 100
Downlink_Latency_ns 500
Tier 1
Radix_Down 8192
Downlink_speed_Gbps 100
Downlink_Latency_ns 500
"""
NET = "topology: [ Ring ]\nnpus_count: [ 4 ]\nbandwidth: [ 50 ]\nlatency: [ 500 ]\n"
LINKS = ["0 2 100Gbps 1us 0", "1 2 100Gbps 1us 0"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (LEAF_SPINE.replace("Radix_Up 2", "Radix_Up 3"), "file:6: oversubscribed = 3, .* tier 0 give 2$"),
        (LEAF_SPINE.replace("Radix_Up 2", "Radix_Up 4"), "file:6: oversubscribed = 3, .* tier 0 give 1.5$"),
        (
            LEAF_SPINE.replace("Radix_Down 4", "Radix_Down 3"),
            "file:14: 8 cables up .* whole number of switches of 3 each",
        ),
        (
            LEAF_SPINE.replace("Radix_Down 4", "Radix_Down 8"),
            "file:6: radix_up of tier 0 is 2, and the other radices give 1",
        ),
        (LEAF_SPINE.replace("Radix_Up 2", "Radix_Upp 2"), r"file:9: no key radix_upp; allowed: tier, radix_down"),
        (LEAF_SPINE.replace("Nodes 24", "Nodes x"), r"file:2: nodes = x; allowed: a whole number from 1 to 65536"),
        (WIDE, "536,936,448 cables; allowed: at most 1,048,576"),
        (LEAF_SPINE.partition("Tier 1")[0], "tier 1 is missing"),
        (LEAF_SPINE.replace("Downlink_Latency_ns 500", "", 1), "file:6: tier 0 has no downlink_latency_ns"),
        (ns3(3, [2], LINKS[:1]).replace("3 1 1", "3 1 2"), "2 links of 5 words each are announced, and 5 words follow"),
        (ns3(3, [2], [LINKS[0], "1 3 100Gbps 1us 0"]), "file:4: a link from 1 to 3: no node; allowed: 0 to 2"),
        (ns3(3, [2], [LINKS[0], "1 2 100Gbit 1us 0"]), "file:4: .*Gbit"),
        (ns3(3, [2], [LINKS[0], "0 2 1Gbps 1us 2"]), "file:4: 2 is no rate of errors"),
        (ns3(3, [2], [LINKS[0]] * 2), "host1 has no link"),
        ("999999999 0 0\n", "999999999 nodes and 0 links; allowed: at most 0 nodes"),
        ("topology: []\nnpus_count: []\nbandwidth: []\nlatency: []\n", "no dimensions"),
        (ns3(3, [3], LINKS), "file:2: switch 3: no id, or twice; allowed: 0 to 2"),
        (NET.replace("Ring", "Rings"), "topology = Rings; allowed: Ring, FullyConnected, Switch"),
        (NET.replace("500", "tbd"), "latency = tbd; allowed: a number above 0"),
        (NET.replace("[ 4 ]", "[ 4, 2 ]"), "dimensions differ: 1 in topology, 2 in npus_count"),
        (NET.replace("latency", "lateness"), "latency is missing or no list"),
        (NET.replace("4", "100000"), "100,000 NPUs; allowed: at most 65,536"),
        (
            NET.replace("4", "65536").replace("Ring", "FullyConnected"),
            "2,147,450,880 cables; allowed: at most 1,048,576",
        ),
        ('{ "logical-dims": ["8"] }', "logical dimensions .* no links; allowed: the topology file"),
        (LEAF_SPINE.replace("Tier 1", "Tier 2"), "file:14: tier = 2; allowed: 0 to 1, each once"),
        ('{ "all-reduce-implementation": 5 }', "no fabric; allowed: its network file"),
        (
            '{ "all-reduce-implementation": ["ring"], "all-to-all-implementation": ["direct"] }',
            r'no fabric; .* mpi.collectives = \{ allreduce = "ring", alltoall = "linear" \}',
        ),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=words):
        read(tmp_path, text)


@pytest.mark.parametrize("suffix", ["json", "txt"])
def test_a_system_file_is_told_from_a_fabric_whatever_its_name(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / f"system.{suffix}").write_text('{ "endpoint-delay": 10, "all-reduce-implementation": ["ring"] }')
    assert execute(["fabric", "describe", str(tmp_path / f"system.{suffix}")]) == 2
    assert "a system file of ASTRA-sim, which has no fabric" in capsys.readouterr().err.replace("\n", " ")
