"""Dumps as people have them: pasted, large, with routers, adapters joined to each other, rails in any order."""

import lzma
import random
import re
from collections import Counter, defaultdict
from pathlib import Path

import networkx
import polars as pl
import pytest

from fabric_dumps import Device, dump, join, link_report, ports_report, tree
from fairlane import Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.export import FORMATS
from fairlane.model.fabric.export.infiniband import write_lfts
from fairlane.model.fabric.identities import endpoint_lids, endpoints_of, numbered, places
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.survey import survey
from fairlane.model.fabric.wiring import Wiring

DATA = Path(__file__).parents[1] / "data"
REPRODUCERS = DATA / "reproducers" / "fabrics"


def read(folder: Path, text: str, name_map: str | None = None) -> Wiring:
    (folder / "dump").write_bytes(text.encode())
    if name_map is not None:
        (folder / "map").write_text(name_map)
    return read_wiring(folder / "dump", node_name_map=folder / "map" if name_map is not None else None)


def pasted(text: str) -> str:
    """The text as a terminal gives it: without tabs, with other line ends, the prompt and the command."""
    lines = ["[admin@head ~]$ ibnetdiscover", *text.replace("\t", "").splitlines(), "[admin@head ~]$"]
    return "\r\n".join(lines) + "\r\n"


def rails(wiring: Wiring, host: str) -> list[str]:
    """The far ends of a host's cables in the order of its rails."""
    return [next(end for end in it.ends if end != host) for it in wiring.cables if host in it.ends]


def test_a_dump_that_a_terminal_has_stripped_of_its_tabs_is_read_with_a_note() -> None:
    wiring = read_wiring(REPRODUCERS / "terminal.ibnetdiscover")
    assert (len(wiring.hosts), len(wiring.switches), len(wiring.cables)) == (8, 3, 10)
    assert any(
        "23 lines have lost the tabs, as in a paste from a terminal, from line 12" in it for it in wiring.remarks
    )
    assert any("1 line skipped, text in front of the dump: line 1 (=~" in it for it in wiring.remarks)


@pytest.mark.parametrize("name", ["x5.ibnetdiscover", "ndr-dgx.ibnetdiscover.xz"])
def test_a_paste_of_a_real_dump_is_the_same_fabric(name: str, tmp_path: Path) -> None:
    raw = (DATA / "fabrics" / name).read_bytes()
    text = (lzma.decompress(raw) if name.endswith("xz") else raw).decode()
    plain, found = read(tmp_path, text), read(tmp_path, pasted(text))
    assert (found.hosts, found.parameters(), found.nodes) == (plain.hosts, plain.parameters(), plain.nodes)
    assert sum("lost the tabs" in words for words in found.remarks) == 1
    assert sum(" skipped, " in words for words in found.remarks) == 1, "a remark once, with a count"


def test_a_paste_that_is_cut_anywhere_is_noticed(tmp_path: Path) -> None:
    text = dump(tree(2, 1, {0: 2, 1: 1})).replace("\t", "")
    for end in range(text.index("[1]") + 4, len(text.rstrip()), 11):
        with pytest.raises(ScenarioError, match=r"cut off|truncated"):
            read(tmp_path, text[:end])


def test_a_paste_of_thousands_of_adapters_is_read_whole(tmp_path: Path) -> None:
    """2,328 adapters below 360 leaves, 40 spines."""
    hosts = {leaf: 6 + (leaf < 168) for leaf in range(360)}
    wiring = read(tmp_path, pasted(dump(tree(360, 40, hosts))))
    assert (len(wiring.hosts), len(wiring.switches)) == (2328, 400)
    assert len(wiring.cables) == 2328 + 360 * 40
    found = survey(wiring)
    assert found.tree == "a tree of 2 levels, 360 - 40 switches; every leaf is joined with every spine"
    assert Counter(found.hosts_per_leaf.values()) == {7: 168, 6: 192}


def test_wrong_lines_are_counted_beyond_the_first(tmp_path: Path) -> None:
    text = re.sub(r"(?m) 4xNDR$", " 4xQQR", dump(tree(20, 2, dict.fromkeys(range(20), 4))))
    with pytest.raises(ScenarioError) as error:
        read(tmp_path, text)
    wrong = text.count("4xQQR")
    assert len(error.value.problems) == 10
    assert str(error.value.problems[-1]).endswith(f"{wrong - 9} more lines are wrong")


def test_a_cable_between_two_adapters_is_left_out_and_reported(tmp_path: Path) -> None:
    wiring = read_wiring(REPRODUCERS / "adapter-to-adapter.ibnetdiscover")
    assert (wiring.hosts, len(wiring.cables)) == (("n2", "n1"), 2)
    assert wiring.remarks == ("1 cable between two adapters left out: n3 mlx5_0 port 1 to n1 mlx5_0 port 2 (line 19)",)
    assert [node.ports[0].number for node in wiring.nodes if not node.is_switch] == [1, 1], "ports with a cable only"
    # Several such cables: one remark. Rails of their hosts are numbered without them.
    devices = tree(1, 1, {0: 6})
    adapters = [it for it in devices if it.kind == "Ca"]
    for one, other in zip(adapters[:3], adapters[3:], strict=True):
        join(one, 2, other, 2)
    found = read(tmp_path, dump(devices))
    assert len(found.cables) == 7
    assert found.remarks[0].startswith("3 cables between two adapters left out: node0000 mlx5_0 port 2 to node0003 ")


def test_a_router_is_no_host_and_reported() -> None:
    wiring = read_wiring(REPRODUCERS / "router-as-host.ibnetdiscover")
    assert (wiring.hosts, len(wiring.cables)) == (("n1",), 1)
    assert wiring.remarks == ("1 router to other subnets left out: router1 (line 24)",)
    assert wiring.remarks[0] in survey(wiring).anomalies


def test_a_router_is_no_host_where_only_sections_of_switches_or_a_report_name_it(tmp_path: Path) -> None:
    text = (REPRODUCERS / "router-as-host.ibnetdiscover").read_text()
    (tmp_path / "switches").write_text(text.partition("vendid=0x2c9\ndevid=0x1021")[0])
    devices = tree(1, 1, {0: 2})
    router = Device("Rt", 0xE000_0000_0000_0001, "router1", 99, 2)
    join(router, 1, devices[0], 60)
    devices[0].size = 60
    for name, report in (("ports", ports_report), ("links", link_report)):
        (tmp_path / name).write_text(report([*devices, router]))
    (tmp_path / "dump").write_text(dump([*devices, router]))
    for name, hosts in (("switches", ("n1",)), ("dump", None), ("ports", None), ("links", None)):
        wiring = read_wiring(tmp_path / name, switches_only=name == "switches")
        assert wiring.hosts == (hosts or read(tmp_path, dump(tree(1, 1, {0: 2}))).hosts), name
        assert any("1 router to other subnets left out: router1" in words for words in wiring.remarks), name
        assert not any("router1" in str(node) for node in wiring.nodes)


def test_the_guid_in_parentheses_is_the_switchs(tmp_path: Path) -> None:
    """Line cards of a director switch that state the system's GUID in front of their own."""
    devices = tree(4, 2, dict.fromkeys(range(4), 2))
    for device in devices[:6]:
        device.system = 0xD000_0000_0000_0000
    wiring = read(tmp_path, dump(devices))
    assert wiring.guids == {it.guid: it.description for it in devices[:6]}
    assert wiring.guids == {node.guid: node.owner for node in wiring.nodes if node.is_switch}
    # With the identifier of the system, too, as masking makes it, cards are distinguished by LID.
    text = dump(devices)
    for device in devices[:6]:
        text = text.replace(device.identifier, "S-d000000000000000")
    assert read(tmp_path, text).guids == wiring.guids
    # Where the first GUID is the one that the identifier has, and no other switch's, it is the node's.
    other = dump(tree(1, 1, {0: 2})).replace("(a000000000000000)", "(a000000000000009)")
    assert read(tmp_path, other).guids[0xA000_0000_0000_0000] == "leaf0"


def test_tables_of_line_cards_that_state_the_systems_guid_are_told_apart_by_lid(tmp_path: Path) -> None:
    """By their own GUIDs, as the subnet manager has them, or by the director's; export and import keep them apart."""
    devices = tree(4, 2, dict.fromkeys(range(4), 2))
    own = forwarding(devices)
    system = re.sub(r"guid 0x[ab]\w+", "guid 0xd000000000000000", own)
    for device in devices[:6]:
        device.system = device.card = 0xD000_0000_0000_0000
    wiring = read(tmp_path, dump(devices))
    (tmp_path / "again").write_text(FORMATS["ibnetdiscover"].write(wiring).text)
    assert read_wiring(tmp_path / "again").guids == wiring.guids == {it.guid: it.description for it in devices[:6]}
    (tmp_path / "lfts").write_text(own)
    (tmp_path / "system").write_text(system)
    expected = read_wiring(tmp_path / "dump", tmp_path / "lfts").tables
    for name, lfts in (("again", "lfts"), ("dump", "system"), ("again", "system")):
        assert read_wiring(tmp_path / name, tmp_path / lfts).tables == expected
    (tmp_path / "lfts").write_text(write_lfts(wiring, expected))
    assert read_wiring(tmp_path / "again", tmp_path / "lfts").tables == expected
    for text, words in (
        (system.replace("Lid", "DR path slid 0;"), "line has no LID"),
        (
            system.replace("switch Lid ", "switch Lid 99"),
            r"6 switches of the fabric state the GUID .*, none the LID 99",
        ),
        (own + own, "leaf0 has a table already"),
    ):
        (tmp_path / "lfts").write_text(text)
        with pytest.raises(ScenarioError, match=words):
            read_wiring(tmp_path / "dump", tmp_path / "lfts")


def test_lids_that_no_port_can_have_and_those_of_several_ports_are_named_once(tmp_path: Path) -> None:
    devices = tree(1, 1, {0: 8})
    adapters = [it for it in devices if it.kind == "Ca"]
    for adapter, lid in zip(adapters, (0, 0, 0, 0, 65535, 0xC000, 2010, 2010), strict=True):
        adapter.lid = lid
    wiring = read(tmp_path, dump(devices))
    remarks = [words for words in wiring.remarks if "LID" in words]
    assert [words.split(":")[0] for words in remarks] == [
        "4 ports with LID 0, which is no valid LID of a port",
        "1 port with LID 49152, which is no valid LID of a port",
        "1 port with LID 65535, which is no valid LID of a port",
        "1 LID is used by several ports",
    ]
    assert remarks[0].endswith("node0002 mlx5_0 port 1 (line 47) and 1 more")
    assert "2010 (node0006 mlx5_0 port 1 (line " in remarks[3]
    assert set(endpoint_lids(wiring)) == {2010}


def test_links_slower_than_their_peers_are_named(tmp_path: Path) -> None:
    """A trunk with a slow cable, and a host one of whose two adapters is slow, among leaves of two generations."""
    spine = Device("Switch", 0xB000, "spine", 1, 16)
    leaves = [Device("Switch", 0xA000 + 256 * at, f"leaf{at}", 10 + at, 16) for at in range(4)]
    adapters: list[Device] = []
    for at, leaf in enumerate(leaves):
        usual = "4xHDR" if at < 2 else "4xNDR"
        for trunk in (1, 2):
            join(leaf, trunk, spine, 2 * at + trunk, "2xHDR" if (at, trunk) == (1, 2) else usual)
        for rail in (0, 1):
            adapters.append(Device("Ca", 0xC000 + 256 * len(adapters), f"n{at} mlx5_{rail}", 100 + len(adapters), 1))
            join(leaf, 3 + rail, adapters[-1], 1, "1xNDR" if (at, rail) == (3, 1) else usual)
    anomalies = survey(read(tmp_path, dump([*leaves, spine, *adapters]))).anomalies
    slow = [re.sub(r" \(line \d+\)", "", words) for words in anomalies if "slower" in words]
    assert slow == [
        "1 cable is slower than another one of the same host: leaf3 port 4 to n3 port 2 1xNDR",
        "1 cable is slower than another one of the same trunk: leaf1 port 2 to spine port 4 2xHDR",
    ]


def test_rails_go_by_the_names_of_adapters_whatever_the_order_of_the_dump() -> None:
    wiring = read_wiring(REPRODUCERS / "rails-by-listing-order.ibnetdiscover")
    for host, unit in (("n1", 1), ("n2", 2)):
        assert rails(wiring, host) == [f"MF0;su{unit}-leaf{rail}:MQM9700/U1" for rail in (0, 1)]
    fabric = wiring.fabric()
    assert len(fabric.route(0, 1)) == 4, "within the plane of the first rail"


def test_a_message_of_rail_0_stays_in_its_plane(tmp_path: Path) -> None:
    """8 bytes and their header over 4 links of 100 ns and 3 switches; over the core there are two more of each."""
    file = REPRODUCERS / "rails-by-listing-order.ibnetdiscover"
    assert execute(["fabric", "import", str(file), "-o", str(tmp_path / "rails-by-listing-order.fabric.json")]) == 0
    (tmp_path / "s.toml").write_text((REPRODUCERS / "rails-by-listing-order.toml").read_text())
    simulation = Simulation(Scenario.load(tmp_path / "s.toml"))
    simulation.run_for("20 us")
    ports = simulation.table("ports").filter(pl.col("packets") > 0)
    assert not [name for name in ports["link_name"] if "core" in name]
    assert len({name for name in ports["link_name"] if "spine0" in name}) == 4


def test_adapters_of_any_hosts_of_a_real_cluster_are_numbered_alike() -> None:
    """Each host's adapters by name; machines name them HCA-1 or mlx5_0, and listings have them in seven orders."""
    wiring = read_wiring(DATA / "fabrics" / "ndr-dgx.ibnetdiscover.xz")
    own: dict[str, list[str]] = defaultdict(list)
    guids: dict[str, list[int]] = defaultdict(list)
    for node in wiring.nodes:
        if not node.is_switch:
            own[node.owner].append(node.description.removeprefix(f"{node.owner} "))
            guids[node.owner].append(node.guid or 0)
    orders = Counter(tuple(names) for names in own.values() if len(names) > 1)
    assert orders == {
        ("HCA-1", "HCA-2", "HCA-5", "HCA-6"): 92,
        ("mlx5_0", "mlx5_1", "mlx5_4", "mlx5_5"): 17,
        ("HCA-1", "HCA-2", "HCA-6"): 10,
        ("mlx5_0", "mlx5_1"): 1,
    }
    (lacking,) = (words for words in wiring.remarks if "lack" in words)
    assert lacking.startswith("10 hosts lack an adapter that 92 others have: a05-p1-dgx-01-c04 (HCA-5), ")
    # Rail k of a host is its k-th cable, and that of its k-th adapter.
    for host, adapters in guids.items():
        ports = [
            port for it in wiring.cables if host in it.ends for port in [it.ports and it.ports[it.ends.index(host)]]
        ]
        assert ports == list(range(1, len(adapters) + 1))


def stated(text: str) -> dict[int, tuple[str, int]]:
    """By LID of an adapter's port the description of the switch and its port, from the switches' lines of a dump."""
    found: dict[int, tuple[str, int]] = {}
    switch = ""
    for line in text.splitlines():
        if begins := re.match(r'(Switch|Ca)\t\d+ "\S+"\s+# "(.*)"', line):
            switch = begins[2] if begins[1] == "Switch" else ""
        elif (
            (port := re.match(r'\[(\d+)\]\t"H-.*# "(.*)" lid (\d+) ', line)) and switch and "Aggregation" not in port[2]
        ):
            found[int(port[3])] = (switch, int(port[1]))
    return found


@pytest.mark.parametrize("name", ["rails-by-listing-order", "ndr-dgx", "random"])
def test_every_lid_is_at_the_port_that_the_dump_states(name: str, tmp_path: Path) -> None:
    """Each port of each adapter has its own, whatever the order of adapters in the dump."""
    if name == "random":
        devices = tree(5, 2, dict.fromkeys(range(5), 6))
        adapters = [it for it in devices if it.kind == "Ca"]
        for at, adapter in enumerate(adapters):
            adapter.description = f"n{at % 7} mlx5_{12 - at // 7}"
            join(adapter, 2, devices[at % 5], 20 + at)
            devices[at % 5].size = 60
        text = dump(random.Random(3).sample(devices, len(devices)))
    elif name == "ndr-dgx":
        text = lzma.decompress((DATA / "fabrics" / "ndr-dgx.ibnetdiscover.xz").read_bytes()).decode()
    else:
        text = (REPRODUCERS / f"{name}.ibnetdiscover").read_text()
    wiring = read(tmp_path, text)
    far: dict[tuple[str, int], tuple[str, int]] = {}
    for one, other in numbered(wiring):
        far[one], far[other] = other, one
    ends = places(wiring.nodes, wiring).items()
    found = {port.lid: far[place] for place, (node, port) in ends if not node.is_switch and port.lid is not None}
    assert found == stated(text)
    assert len(found) == sum(end in set(wiring.hosts) for cable in wiring.cables for end in cable.ends)


def forwarding(devices: list[Device]) -> str:
    """What ``dump_lfts`` prints of tables along shortest paths: an entry for each port of an adapter."""
    switches = [it for it in devices if it.kind == "Switch"]
    joined = {it: {far[0]: port for port, far in it.far.items() if far[0].kind == "Switch"} for it in switches}
    graph: networkx.Graph[Device] = networkx.Graph((it, far) for it in switches for far in joined[it])
    ends = [(it.port_lid(port), *far) for it in devices if it.kind == "Ca" for port, far in it.far.items()]
    text = []
    for switch in switches:
        paths = networkx.single_source_shortest_path(graph, switch)
        rows = [
            f"0x{lid:04x} {there if leaf is switch else joined[switch][paths[leaf][1]]:03d} : (Channel Adapter)"
            for lid, leaf, there, _ in ends
        ]
        head = f"Unicast lids [0x0-0xffff] of switch Lid {switch.lid} guid 0x{switch.guid:016x} ({switch.description}):"
        text += [head, "  Lid  Out   Destination", "       Port     Info", *rows, f"{len(rows)} valid lids dumped"]
    return "\n".join(text) + "\n"


def test_tables_of_a_subnet_lead_every_lid_to_its_own_port(tmp_path: Path) -> None:
    """Hosts with several adapters of two ports, listed in any order: 60 LIDs from each of 7 switches."""
    devices = tree(5, 2, dict.fromkeys(range(5), 6))
    for at, adapter in enumerate(it for it in devices if it.kind == "Ca"):
        adapter.description = f"n{at % 7} mlx5_{12 - at // 7}"
        join(adapter, 2, devices[at % 5], 20 + at)
        devices[at % 5].size = 60
    listed = random.Random(5).sample(devices, len(devices))
    (tmp_path / "dump").write_text(dump(listed))
    (tmp_path / "lfts").write_text(forwarding(listed))
    wiring = read_wiring(tmp_path / "dump", tmp_path / "lfts")
    far: dict[tuple[str, int], tuple[str, int]] = {}
    for one, other in numbered(wiring):
        far[one], far[other] = other, one
    endpoints = endpoints_of(wiring)
    assert len(endpoints) == 60
    for switch in wiring.switches:
        for number, endpoint in enumerate(endpoints):
            place, hops = (switch, 0), 0
            while place[0] in wiring.tables and hops < 4:
                place = far[place[0], wiring.tables[place[0]][number]]
                hops += 1
            assert place == endpoint
    assert wiring.fabric().route(0, 1), "the simulator takes them"


def test_random_listings_of_one_fabric_have_the_same_rails(tmp_path: Path) -> None:
    """Names with numbers of several digits, two ports of an adapter; adapters without a name come last, by GUID."""
    draw = random.Random(7)
    expected: dict[str, list[str]] = {}
    leaves = [Device("Switch", 0xA000 + 256 * at, f"leaf{at}", 10 + at, 60) for at in range(12)]
    spine = Device("Switch", 0xB000, "spine", 1, 16)
    for at, leaf in enumerate(leaves):
        join(leaf, 1, spine, at + 1)
    adapters: list[Device] = []
    for host in range(6):
        order = draw.sample(leaves, 6)
        guids = [it + host for it in draw.sample(range(0xC000, 0xFFFF00, 256), 3)]
        unnamed = sorted(it + host for it in draw.sample(range(0x1000000, 0xFFFFF00, 256), 2))
        names = [f"n{host} mlx5_2", f"n{host} mlx5_10", f"n{host} mlx5_11", *["MT4129 ConnectX7   Mellanox"] * 2]
        ports = [(name, guid, port) for name, guid in zip(names, guids + unnamed, strict=True) for port in (1, 2)]
        for at, (name, guid, port) in enumerate(it for it in ports if it[2] == 1 or it[1] == guids[2]):
            if port == 1:
                adapters.append(Device("Ca", guid, name, 100 + 2 * len(adapters), 2, card=guids[0]))
            join(order[at], 2 + 6 * host + at, adapters[-1], port)
            expected.setdefault(f"n{host}", []).append(order[at].description)
    for _ in range(5):
        wiring = read(tmp_path, dump(draw.sample([*leaves, spine, *adapters], 13 + len(adapters))))
        assert {host: rails(wiring, host) for host in wiring.hosts} == expected
        wiring.save(tmp_path / "saved.json")
        again = read_wiring(tmp_path / "saved.json")
        assert {host: rails(again, host) for host in wiring.hosts} == expected


def test_rails_of_a_network_file_go_by_port(tmp_path: Path) -> None:
    text = 'Switch 4 "s"\n[1] "h"[2]\n[2] "g"[1]\n[3] "t"[2]\n\nSwitch 4 "t"\n[1] "h"[1]\n[2] "s"[3]\n\n'
    (tmp_path / "net").write_text(text + 'Hca 2 "h"\n[1] "t"[1]\n[2] "s"[1]\n\nHca 1 "g"\n[1] "s"[2]\n')
    assert rails(read_wiring(tmp_path / "net"), "h") == ["t", "s"]
