"""Fabrics from files: ibnetdiscover, forwarding tables, CSV, networkx-like graphs; and what is wrong with them."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import networkx
import pytest

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.core.errors import BuildError, ScenarioError
from fairlane.model.fabric.cable_files import read_csv
from fairlane.model.fabric.ibnetdiscover import LANE_RATES
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.survey import survey
from fairlane.model.fabric.wiring import Wiring, from_networkx

DATA = Path(__file__).parent.parent / "data" / "fabrics"
X5 = DATA / "x5.ibnetdiscover"


@pytest.fixture(scope="module")
def x5() -> Wiring:
    return read_wiring(X5)


def test_a_real_cluster_is_read_whole(x5: Wiring) -> None:
    # Counted from the file by other means: lines "Switch", lines "Ca", and ports' lines, of which a cable has two.
    text = X5.read_text(encoding="utf-8").splitlines()
    starts = Counter(line.split("\t")[0] for line in text)
    ports = sum(line.startswith("[") for line in text)
    assert (
        (len(x5.switches), len(x5.hosts), len(x5.cables))
        == (starts["Switch"], starts["Ca"], ports // 2)
        == (11, 89, 159)
    )
    assert Counter(cable.kind for cable in x5.cables) == {"4xQDR": 136, "4xDDR": 23}
    assert {cable.kind: cable.bandwidth for cable in x5.cables} == {"4xQDR": 32 * 10**9, "4xDDR": 16 * 10**9}


def test_the_switches_joined_are_those_of_the_clusters_own_topology_file(x5: Wiring) -> None:
    switches = {name: f"S-{guid:016x}" for guid, name in x5.guids.items()}
    joined = {frozenset(switches[end] for end in cable.ends) for cable in x5.cables if set(cable.ends) <= set(switches)}
    expected = set()
    for line in (DATA / "x5.slurm-topology.conf").read_text(encoding="utf-8").splitlines():
        words = dict(word.split("=") for word in line.split() if "=" in word)
        expected |= {frozenset((words["SwitchName"], other)) for other in words.get("Switches", "").split(",") if other}
    assert joined == expected


def test_what_the_cluster_is(x5: Wiring) -> None:
    found = survey(x5)
    assert {level: len(names) for level, names in found.levels.items()} == {1: 6, 2: 4, 3: 1}
    assert sorted(found.hosts_per_leaf.values()) == [5, 6, 9, 21, 24, 24]
    # The leaf with 24 hosts at 4xQDR and 12 cables up of the same speed.
    assert found.oversubscription["Voltaire 4036 # hoibp0013"] == 2.0
    # 21 hosts at 4xDDR and 12 cables up at 4xQDR.
    assert found.oversubscription["S-0008f10500200b50"] == pytest.approx(21 * 16 / (12 * 32))
    assert any("23 of 89 cables to hosts are not 4xQDR" in words for words in found.anomalies)
    assert any("has 6" in words for words in found.anomalies)


def test_an_imported_fabric_goes_into_a_scenario_and_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fabric", "import", str(X5), "--out", str(tmp_path / "x5.fabric.json")]) == 0
    assert "a tree of 3 levels, 6 - 4 - 1 switches" in capsys.readouterr().out
    scenario = tmp_path / "x5.toml"
    scenario.write_text(
        'duration = "50 us"\n[fabric]\ntopology = "imported"\nfile = "x5.fabric.json"\n'
        '[placement]\nname = "random"\n[[jobs]]\nname = "a"\nranks = 64\n'
        'workload = { name = "uniform_random", compute = "1 us" }\n',
        encoding="utf-8",
    )
    simulation = Scenario.load(scenario).resolve()
    assert simulation.tables["fabric"]["routing"] == "up_down"
    again = read_wiring(tmp_path / "x5.fabric.json")
    assert again.parameters() == read_wiring(X5).parameters()


DUMP = """\
switchguid=0xa1(a1)
Switch	4 "S-00000000000000a1"		# "leaf" base port 0 lid 1 lmc 0
[1]	"H-00000000000000b1"[1](b11) 		# "node1 HCA-1" lid 11 4xHDR
[2]	"H-00000000000000b2"[1](b21) 		# "node1 HCA-2" lid 12 4xHDR
[3]	"S-00000000000000a2"[1]		# "spine" lid 2 1xSDR
[4]	"S-00000000000000a2"[2]		# "spine" lid 2 4xNDR

switchguid=0xa2(a2)
Switch	4 "S-00000000000000a2"		# "spine" base port 0 lid 2 lmc 0
[1]	"S-00000000000000a1"[3]		# "leaf" lid 1 1xSDR
[2]	"S-00000000000000a1"[4]		# "leaf" lid 1 4xNDR
[3]	"H-00000000000000b3"[1](b31) 		# "node2 mlx5_0" lid 13 2xEDR

caguid=0xb1
Ca	2 "H-00000000000000b1"		# "node1 HCA-1"
[1](b11) 	"S-00000000000000a1"[1]		# lid 11 lmc 0 "leaf" lid 1 4xHDR

caguid=0xb2
Ca	2 "H-00000000000000b2"		# "node1 HCA-2"
[1](b21) 	"S-00000000000000a1"[2]		# lid 12 lmc 0 "leaf" lid 1 4xHDR

caguid=0xb3
Ca	1 "H-00000000000000b3"		# "node2 mlx5_0"
[1](b31) 	"S-00000000000000a2"[3]		# lid 13 lmc 0 "spine" lid 2 2xEDR
"""
LFTS = """\
Unicast lids [0x0-0xd] of switch Lid 1 guid 0x00000000000000a1 (leaf):
  Lid  Out   Destination
       Port     Info
0x0001 000 : (Switch portguid 0x00000000000000a1: 'leaf')
0x000b 001 : (Channel Adapter portguid 0x0000000000000b11: 'node1 HCA-1')
0x000c 002 : (Channel Adapter portguid 0x0000000000000b21: 'node1 HCA-2')
0x000d 004 : (Channel Adapter portguid 0x0000000000000b31: 'node2 mlx5_0')
4 valid lids dumped
Unicast lids [0x0-0xd] of switch Lid 2 guid 0x00000000000000a2 (spine):
0x000b 001 : (Channel Adapter portguid 0x0000000000000b11: 'node1 HCA-1')
0x000c 001 : (Channel Adapter portguid 0x0000000000000b21: 'node1 HCA-2')
0x000d 003 : (Channel Adapter portguid 0x0000000000000b31: 'node2 mlx5_0')
3 valid lids dumped
"""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


Write = Callable[[str, str], Path]


def test_adapters_of_one_machine_are_one_host_and_speeds_are_lanes_times_rates(written: Write) -> None:
    wiring = read_wiring(written("dump", DUMP))
    assert wiring.hosts == ("node1", "node2")
    assert wiring.switches == ("leaf", "spine")
    rates = {cable.ports: cable.bandwidth for cable in wiring.cables if set(cable.ends) == {"leaf", "spine"}}
    assert rates == {(3, 1): 2 * 10**9, (4, 2): 400 * 10**9}
    to_hosts = {cable.ends: (cable.bandwidth, cable.ports) for cable in wiring.cables if "node1" in cable.ends}
    assert len([cable for cable in wiring.cables if cable.ends == ("leaf", "node1")]) == 2
    assert to_hosts["leaf", "node1"] == (200 * 10**9, (2, 2))
    assert list(LANE_RATES.values()) == sorted(LANE_RATES.values())
    assert any("1xSDR" in words for words in survey(wiring).anomalies)
    assert any("node2 has 1" in words or "node1 has 2" in words for words in survey(wiring).anomalies)


def test_nodes_that_are_all_called_alike_are_told_by_their_cards(written: Write) -> None:
    """Two ports of one card, and a card of another machine."""
    text = DUMP.replace("node1 HCA-1", "localhost mlx5_0").replace("node1 HCA-2", "localhost mlx5_1")
    text = text.replace("node2 mlx5_0", "localhost mlx5_0")
    text = text.replace("caguid=0xb1\n", "sysimgguid=0xb1\ncaguid=0xb1\n").replace(
        "caguid=0xb2\n", "sysimgguid=0xb1\ncaguid=0xb2\n"
    )
    wiring = read_wiring(written("dump", text))
    assert wiring.hosts == ("H-00000000000000b1", "H-00000000000000b3")
    assert len([cable for cable in wiring.cables if "H-00000000000000b1" in cable.ends]) == 2
    assert any(words.startswith("3 adapters do not name their machine (line 16:") for words in survey(wiring).anomalies)


def test_aggregation_nodes_are_no_hosts(written: Write) -> None:
    node = "Mellanox Technologies Aggregation Node"
    wiring = read_wiring(written("dump", DUMP.replace("node1 HCA-2", node)))
    assert wiring.hosts == ("node1", "node2")
    assert all("H-00000000000000b2" not in cable.ends and node not in cable.ends for cable in wiring.cables)
    assert "1 aggregation node inside switches left out: no hosts" in survey(wiring).anomalies


def test_a_list_without_kinds_says_that_hosts_are_guessed(written: Write) -> None:
    text = "from,to\nh1,s1\nh2,s2\ns1,s2\n"
    assert any(
        "2 names with a single cable are assumed to be hosts" in words
        for words in survey(read_wiring(written("links.csv", text))).anomalies
    )


def test_forwarding_tables_are_followed(written: Write) -> None:
    wiring = read_wiring(written("dump", DUMP), written("lfts", LFTS))
    # By endpoint: both adapters of node1, each with its own LID, then node2.
    assert wiring.tables == {"leaf": (1, 2, 4), "spine": (1, 1, 3)}
    fabric = wiring.fabric()
    links = {key: column.tolist() for key, column in fabric.links.items()}
    there, back = fabric.route(0, 1), fabric.route(1, 0)
    # To node2 over the fast cable at port 4, back over the slow one at port 1 of the spine, as the tables say.
    assert [links["bandwidth"][link] for link in there] == [200 * 10**9, 400 * 10**9, 50 * 10**9]
    assert [links["bandwidth"][link] for link in back] == [50 * 10**9, 2 * 10**9, 200 * 10**9]


def test_a_dump_that_is_cut_anywhere_is_noticed(written: Write) -> None:
    whole = len(read_wiring(written("dump", DUMP)).cables)
    for end in range(DUMP.index("[1]") + 5, len(DUMP.rstrip()), 7):
        with pytest.raises((ScenarioError, BuildError)) as error:
            survey(read_wiring(written("cut", DUMP[:end])))
        assert "cut" in str(error.value)
    assert whole == 5


CSV = """\
# two leaves, two spines
from,to,from_port,to_port,bandwidth,latency
a1,leaf0,1,1,100 Gb/s,
a2,leaf0,1,2,,
b1,leaf1,1,1,,
leaf0,spine,3,1,200 Gb/s,500 ns
leaf1,spine,3,2,200 Gb/s,
"""


def test_a_list_of_links_is_read(written: Write) -> None:
    wiring = read_wiring(written("links.csv", CSV))
    assert (wiring.hosts, wiring.switches) == (("a1", "a2", "b1"), ("leaf0", "leaf1", "spine"))
    assert (wiring.cables[3].bandwidth, wiring.cables[3].latency) == (200 * 10**9, 500_000)
    trunk = "from,to,cables,from_kind,to_kind\nh,s,1,host,switch\ns,t,3,switch,switch\nt,g,2,switch,host\n"
    wiring = read_wiring(written("trunk.csv", trunk))
    assert wiring.hosts == ("h", "g")
    assert len(wiring.cables) == 6


NO_FABRIC = r"x\.json: not a file that fairlane fabric import wrote: "
ROWS = "from,to,from_port,to_port,cables,from_kind,to_kind\nh,s,,,,host,switch\n"
UP, DOWN = '[4]\t"S-00000000000000a2"[2]', '[2]\t"S-00000000000000a1"[4]'
TEXTS = {"dump": DUMP, "lfts": LFTS, "links.csv": CSV, "rows.csv": ROWS}


@pytest.mark.parametrize(
    ("name", "old", "new", "line", "words"),
    [
        ("dump", UP, UP.replace("4", "3"), 6, "port 3 of S-00000000000000a1 is used twice"),
        ("dump", DOWN, DOWN.replace("[4]", "[3]"), 6, "which leads to S-00000000000000a1[3] (line 11)"),
        (
            "dump",
            "lid 2 1xSDR",
            "lid 2 1xQQR",
            5,
            "unknown speed 1xQQR; allowed: a number of lanes and one of SDR, DDR",
        ),
        ("dump", UP, UP.replace("4", "5"), 6, "has no port 5: it has 4"),
        ("dump", UP, UP.replace("4", "4" * 5000), 6, ""),
        ("lfts", "3 valid lids dumped\n", "3 valid lids dump", 13, "not a line of a forwarding table"),
        ("lfts", "3 valid lids dumped\n", "", 9, "has no end: is the file cut off?"),
        ("lfts", "4 valid", "5 valid", 8, "the table has 4 lines, but its last line counts 5"),
        ("lfts", "00a2 (", "00a3 (", 9, "no switch with the GUID 0x00000000000000a3"),
        ("links.csv", "leaf0,spine,3,1", "leaf0,spine,2,1", 6, "port 2 of leaf0 has a cable already, on line 4"),
        ("links.csv", "200 Gb/s,500 ns", "200,500 ns", 6, "bandwidth = 200: a bandwidth needs a unit"),
        (
            "links.csv",
            "leaf1,spine,3,2,200 Gb/s,",
            "leaf1,spine,3",
            7,
            "has 3 cells, and the header 6: is the file cut off?",
        ),
        ("links.csv", "from_port", "form_port", 2, 'did you mean "from_port"?'),
        ("links.csv", "a2,leaf0", ",leaf0", 4, "a cable needs two ends"),
        ("links.csv", "leaf1,spine,3", f"leaf1,spine,{'3' * 5000}", 7, "not a number from 1 to 65535"),
        ("rows.csv", ",,,,host", ",1,1,2,host", 2, "several cables cannot share two ports"),
        ("rows.csv", "host,switch\n", "host,router\n", 2, "to_kind = router: allowed: host, switch"),
        ("rows.csv", "switch\n", "switch\ns,t,,,,host,switch\n", 3, "s is a host here and a switch before"),
    ],
)
def test_files_that_contradict_themselves_are_refused_by_line(
    written: Write, name: str, old: str, new: str, line: int, words: str
) -> None:
    file = written(name, TEXTS[name].replace(old, new))
    with pytest.raises(ScenarioError, match=rf"{re.escape(str(file))}:{line}: .*{re.escape(words)}"):
        read_wiring(*((written("dump", DUMP), file) if name == "lfts" else (file,)))


def test_more_cables_than_memory_is_for_are_refused(written: Write) -> None:
    lines = ["from,to,cables,from_kind,to_kind", *(f"h{number},s,4096,host,switch" for number in range(1000))]
    with pytest.raises(ScenarioError, match=r"links.csv:978: more than 4,000,000 cables") as error:
        read_wiring(written("links.csv", "\n".join(lines)))
    assert len(error.value.problems) == 1, "nothing is read beyond"


def test_fabrics_that_are_not_connected_name_who_is_cut_off(written: Write) -> None:
    text = "from,to,from_kind,to_kind\na1,s,host,switch\nb1,t,host,switch\n"
    with pytest.raises(ScenarioError) as error:
        survey(read_wiring(written("links.csv", text)))
    assert 'no way leads from "a1" to "b1" and 1 others' in str(error.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("notes.txt", "nothing of interest", "allowed: the output of ibnetdiscover"),
        ("x.json", "{", "not valid JSON"),
        ("x.json", '{"hosts": []}', f"{NO_FABRIC}'links' is missing"),
        ("x.json", '{"hosts": [], "links": [{"ends": ["a"]}]}', f"{NO_FABRIC}a table, list or text is something else"),
        ("x.json", '{"hosts": [], "links": 1}', f"{NO_FABRIC}a table, list or text is something else"),
        (
            "x.json",
            '{"hosts": [], "links": [{"ends": ["a", "b"], "latency": "1 m"}]}',
            f"{NO_FABRIC}'m' is not a unit of duration",
        ),
    ],
)
def test_files_that_are_no_fabric_are_refused(written: Write, name: str, text: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        read_wiring(written(name, text))


def test_graphs_become_wirings() -> None:
    graph: networkx.Graph[object] = networkx.Graph()
    graph.add_edge("h", 0, bandwidth="50 Gb/s")
    graph.add_edge("g", 1)
    graph.add_edge(0, 1, bandwidth=10**9, latency="1 us")
    plain, listed = from_networkx(graph), from_networkx(graph, hosts=["g", "h"])
    tested = from_networkx(graph, hosts=lambda node: node in ("g", "h"))
    for node in ("h", "g"):
        graph.nodes[node]["kind"] = "host"
    marked = from_networkx(graph)
    assert plain.hosts == listed.hosts == tested.hosts == marked.hosts == ("h", "g")
    rates = {frozenset(cable.ends): (cable.bandwidth, cable.latency) for cable in plain.cables}
    assert rates == {
        frozenset("h0"): (50 * 10**9, None),
        frozenset("g1"): (None, None),
        frozenset("01"): (10**9, 10**6),
    }
    assert plain.fabric().describe().diameter == 3


@pytest.mark.parametrize(
    ("graph", "hosts", "words"),
    [
        (networkx.Graph([("h", "s")]), ["x"], "no node of the graph"),
        (networkx.DiGraph([("h", "s")]), None, "a cable goes both ways"),
        (networkx.Graph([("1", 1)]), None, "two nodes have the same text"),
        (networkx.Graph([("h", "s", {"latency": "1 furlong"})]), None, "edge h - s.latency"),
    ],
)
def test_graphs_that_are_no_fabric_are_refused(
    graph: "networkx.Graph[object]", hosts: list[str] | None, words: str
) -> None:
    with pytest.raises(ScenarioError, match=words):
        from_networkx(graph, hosts)


def test_saved_fabrics_are_read_as_they_were(written: Write, tmp_path: Path) -> None:
    wiring = read_wiring(written("dump", DUMP), written("tables.lfts", LFTS))
    wiring.save(tmp_path / "saved.json")
    again = read_wiring(tmp_path / "saved.json")
    assert again.parameters() == wiring.parameters()
    assert again.tables == wiring.tables != {}
    with pytest.raises(ScenarioError, match="cannot be read"):
        read_wiring(tmp_path / "none")
    with pytest.raises(ScenarioError, match="cannot be written: No such file"):
        wiring.save(tmp_path / "none" / "saved.json")


def test_files_named_in_scenarios_that_are_wrong_are_named(tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'duration = "1 us"\n[fabric]\ntopology = "imported"\nfile = "x.json"\n[[jobs]]\nname = "a"\n'
        'ranks = 2\nworkload = "ping_pong"\n',
        encoding="utf-8",
    )
    unknown = '{"hosts": ["a", "b"], "links": [{"ends": ["a", "s"], "speed": 1}]}'
    for content, words in (
        (None, "cannot be read: No such file"),
        (b'{\n"hosts": [}', r"x\.json:2: fabric: not valid JSON"),
        (b'{"hosts": ["\xff"]}', r"x\.json: fabric: is not UTF-8"),
        (b"[" * 50 + b"]" * 50, r"x\.json: fabric: .* nested more than 40 deep"),
        (b"[]", "not a JSON object with parameters"),
        (unknown.encode(), r"fabric\.links\[0\]\.speed = 1: unknown key"),
    ):
        if content is not None:
            (tmp_path / "x.json").write_bytes(content)
        with pytest.raises(ScenarioError, match=words):
            Scenario.load(scenario)
    with pytest.raises(ScenarioError, match=r"fabric\.routing: missing: lanes; allowed: lanes: "):
        Scenario.load(scenario, set=['fabric.routing={ name = "per_lane" }', 'fabric.topology="fat_tree"'])


def test_what_cannot_be_built_names_the_file_and_the_vertices(written: Write) -> None:
    apart = written("apart.csv", "from,to\nh1,s1\nh2,s1\nh3,s2\nh4,s2\n")
    with pytest.raises(ScenarioError, match=r'apart\.csv: the fabric is not connected: .* "h1" to "h3"'):
        read_wiring(apart).fabric()
    circle = LFTS.replace("0x000b 001 : (Channel", "0x000b 003 : (Channel", 1)
    with pytest.raises(ScenarioError, match=r"circle\.lfts: 1 of 3 LIDs .*: LID 11 of node1 HCA-1 port 1 goes in a c"):
        read_wiring(written("dump", DUMP), written("circle.lfts", circle))


def test_where_a_kind_is_given_for_some_names_the_others_are_known_by_their_cables() -> None:
    lines = ["from,to,from_kind", *(f"h,{leaf},host" for leaf in "AB"), "A,S,switch", "B,S,switch", "S,g,switch"]
    found = read_csv("\n".join(lines), Path("net.csv"))
    assert found.hosts == ("h", "g")
    assert found.remarks == ("1 name with a single cable is assumed to be a host; set from_kind and to_kind",)
    found = read_csv("\n".join(lines[:-1]), Path("net.csv"))
    assert found.hosts == ("h",)
    words = "1 name of no kind, with several cables: S; assumed to be a switch; set from_kind and to_kind"
    assert found.remarks == (words,)
