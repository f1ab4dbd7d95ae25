"""What a check compares: answers of ports, service levels of paths and forwarding tables; every one can differ."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairlane import Scenario
from fairlane.cluster.opensm.check import compare_shares, simulated
from fairlane.cluster.opensm.check.layout import GENERATED, layout_of
from fairlane.cluster.opensm.check.paths import Read, compare_paths, compare_routes, for_subnet, members
from fairlane.cluster.opensm.check.ports import Compared, compare_ports
from fairlane.cluster.opensm.check.query import PortSettings, decode_level, decode_sl2vl, decode_vlarb
from fairlane.cluster.opensm.nodes import FABRIC_FILE, ROUTES_FILE, as_ranges, fabric_files
from fairlane.cluster.opensm.policy import Group, Policy, Rule
from fairlane.cluster.opensm.settings import LaneShare, Settings, read_shares, write_shares
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.export import FORMATS, wiring_of
from fairlane.model.fabric.export.infiniband import write_lfts
from fairlane.model.fabric.forwarding import read_entries, tables_of, with_tables
from fairlane.model.fabric.identities import endpoint_lids, endpoints_of
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Cable, Wiring
from simulated_subnets import RECORDED, TREES, RecordedSubnet, answers, scenario

DATA = Path(__file__).parents[1] / "data" / "fabrics"
SETTINGS = Settings(4, 0, ((3, 64),), ((0, 8), (1, 16), (2, 32)), (0, 1, 2, 3, *[0] * 12))
"""What was in force when the answers were recorded."""
PACKET = 4122


def built(**fabric: Any) -> tuple[Fabric, dict[str, Any]]:
    """A fabric and its specification."""
    spec = Scenario.read(scenario(fabric, hosts=16)).fabric.spec
    return Fabric.build(spec), spec


def tree() -> Wiring:
    return wiring_of(built(**TREES[16])[0])


def tree_tables() -> Mapping[str, Sequence[int]]:
    """The forwarding tables of the tree."""
    tables = tables_of(*built(**TREES[16]))
    assert tables is not None
    return tables


def compared(change: Callable[[str, int, int], bytes | None] | None = None, exported: Settings = SETTINGS) -> Compared:
    """The ports of the tree, with another answer for some queries, against what was exported."""
    return compare_ports(RecordedSubnet(change), layout_of(tree()).ends, exported, PACKET)


def written(wiring: Wiring, file: Path) -> Wiring:
    """The wiring from a dump of it."""
    file.write_text(FORMATS["ibnetdiscover"].write(wiring).text)
    return read_wiring(file)


def test_answers_are_decoded_as_smpquery_and_saquery_print_them() -> None:
    printed, found = (RECORDED / "answers.txt").read_text(), answers()

    def row(table: str, name: str) -> list[int]:
        """A row of a table of ``smpquery vlarb``."""
        cells = re.search(rf"{table} priority VL.*?{name} *: *\|([^\n]*)\|\n", printed, re.DOTALL | re.IGNORECASE)
        assert cells
        return [int(cell, 16) for cell in cells[1].split("|")]

    for table in ("low", "high"):
        entries = list(zip(row(table, "VL"), row(table, "WEIGHT"), strict=True))
        assert list(decode_vlarb(found[f"vlarb_{table}"])[: len(entries)]) == entries
    lanes = re.search(r"in  1, out  3: \|(.*)\|", printed)
    assert lanes
    assert decode_sl2vl(found["sl2vl"]) == tuple(map(int, lanes[1].split("|")))
    level = re.search(r"\bsl\.+(0x\w+)", printed)
    assert level
    assert decode_level(found["path_record"]) == int(level[1], 16) == 3
    for line in ("VLCap:...........................VL0-7", "OperVLs:.........................VL0-7"):
        assert line in printed
    caps = [int(re.findall(rf"{key}:\.+(\d+)", printed)[0]) for key in ("VLHighLimit", "VLArbLowCap", "VLArbHighCap")]
    assert PortSettings.decode(found["port_info"]) == PortSettings(8, 8, *caps)


def test_ports_that_have_what_was_exported_are_equal() -> None:
    found = compared()
    # 16 hosts with a port each; 4 leaf switches with 8 cables, 2 spine switches with 8. Input port 0 and those with
    # a cable, for each output port of a switch.
    assert found.counts == {"ports": 16 + 48, "VL arbitration tables": 128, "SL2VL tables": 16 + 6 * 8 * 9}
    assert found.differences == ()
    assert found.notes == ()


@pytest.mark.parametrize(
    ("kind", "answer", "what", "expected", "read"),
    [
        ("sl2vl", b"\x01\x32", "SL2VL, input port 2", "0,1,2,3" + ",0" * 12, "0,1,3,2" + ",0" * 12),
        ("vlarb_low", bytes([0, 8, 1, 16, 2, 65]), "VL arbitration, low priority", "0:8,1:16,2:32", "0:8,1:16,2:65"),
        ("vlarb_high", bytes(6), "VL arbitration, high priority", "3:64", "empty"),
        ("port_info", b"", "PortInfo", "an answer", "no answer"),
        ("sl2vl", b"", "SL2VL, input port 2", "0,1,2,3" + ",0" * 12, "no answer"),
    ],
)
def test_a_port_that_has_something_else_is_a_difference(
    kind: str, answer: bytes, what: str, expected: str, read: str
) -> None:
    leaf = next(end for end in layout_of(tree()).ends if end.node == "leaf1" and end.port == 3)

    def change(asked: str, lid: int, modifier: int) -> bytes | None:
        wrong = asked == kind and lid == leaf.lid and modifier & 255 == leaf.port
        if asked == "sl2vl":
            wrong &= modifier >> 8 == 2
        return answer.ljust(64 if answer else 0, b"\x00") if wrong else None

    found = compared(change)
    (one,) = found.differences
    assert (one.node, one.port, one.what, one.expected, one.found) == ("leaf1", "3", what, expected, read)
    assert one.cause == ("ibsim" if read == "no answer" else "OpenSM")
    # A packet of high priority and one of low priority follow each other; 65 units are two packets. Without the high
    # table lane 3 is never sent.
    assert one.effect == {
        "0:8,1:16,2:65": "VL0 12.5%, VL1 12.5%, VL2 25.0%, VL3 50.0% instead of "
        "VL0 16.7%, VL1 16.7%, VL2 16.7%, VL3 50.0%",
        "empty": "VL0 33.3%, VL1 33.3%, VL2 33.3%, VL3 0.0% instead of VL0 16.7%, VL1 16.7%, VL2 16.7%, VL3 50.0%",
    }.get(read, "")


def test_ports_that_do_not_say_how_many_lanes_are_in_operation_are_a_difference() -> None:
    info = bytearray(answers()["port_info"])
    info[43] &= 15
    found = compared(lambda asked, *_: bytes(info) if asked == "port_info" else None)
    assert {(one.what, one.expected, one.found) for one in found.differences} == {
        ("operational VLs", "at least 4", "0")
    }


@pytest.mark.parametrize("low", [[0, 8, 1, 16, 2, 33], [0, 8, 5, 0, 1, 16, 2, 32], [2, 32, 0, 8, 1, 16]])
def test_other_tables_with_the_same_shares_are_a_note(low: list[int]) -> None:
    table = bytes(low).ljust(64, b"\0")
    found = compared(lambda asked, _, modifier: table if asked == "vlarb_low" and modifier & 255 == 2 else None)
    assert found.differences == ()
    assert found.notes == ("6 ports have other tables of VL arbitration that give all lanes the same shares",)


@pytest.mark.parametrize(
    ("text", "differences", "note"),
    [
        ("0:64,1:192", 0, ""),
        ("0:65,1:195", 1, ""),
        ("0:1,1:64,1:64,1:64", 0, ""),
        (None, 0, "there is no shares.tsv"),
    ],
)
def test_shares_of_the_exported_options(text: str | None, differences: int, note: str, tmp_path: Path) -> None:
    rows = (LaneShare(0, (0,), 0.25, 0.25), LaneShare(1, (1,), 0.75, 0.75))
    if text:
        (tmp_path / "shares.tsv").write_text(write_shares(rows, PACKET))
    low = tuple((int(one[0]), int(one[2:])) for one in (text or "0:1,1:1").split(","))
    packet, found = compare_shares(Settings(2, 0, (), low, (0, 1, *[0] * 14)), tmp_path)
    assert packet == PACKET
    assert [(one.cause, one.expected, one.found) for one in found.differences] == [
        ("exported files", "VL0 25.0%, VL1 75.0%", "VL0 33.3%, VL1 66.7%")
    ] * differences
    assert note in "".join(found.notes)
    assert bool(note) == bool(found.notes)


def test_shares_that_were_approximated_are_a_note(tmp_path: Path) -> None:
    rows = (LaneShare(0, (0,), 0.997, 252 / 253), LaneShare(1, (1,), 0.003, 1 / 253))
    (tmp_path / "shares.tsv").write_text(write_shares(rows, PACKET))
    assert read_shares(tmp_path / "shares.tsv")[1][0].levels == (0,)
    made = Settings(2, 0, (), (*[(0, 255)] * 63, (1, 64)), (0, 1, *[0] * 14))
    _, found = compare_shares(made, tmp_path)
    assert found.differences == ()
    assert found.notes == (
        "shares of a link are approximated: simulated VL0 99.7%, VL1 0.3%, exported VL0 99.6%, VL1 0.4%",
    )


@pytest.mark.parametrize(("text", "line"), [("lane\n", 1), ("{}\n1\t2\t3\n", 3)])
def test_a_file_of_shares_that_is_none_is_named_with_its_line(text: str, line: int, tmp_path: Path) -> None:
    file = tmp_path / "shares.tsv"
    file.write_text(text.format(write_shares((), PACKET).rstrip("\n")))
    with pytest.raises(ScenarioError, match=rf"shares.tsv:{line}: "):
        read_shares(file)


def test_a_fabric_that_needs_more_lids_than_there_are_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.cluster.opensm.check.layout.LARGEST_LID", 21)
    with pytest.raises(ScenarioError, match=r"more ports of hosts and switches than there are LIDs.*at most 21"):
        layout_of(tree())  # 16 hosts and 6 switches


def test_what_ports_cannot_hold_is_a_note() -> None:
    low = (*[(number % 4, 64) for number in range(8)], (0, 192), (1, 64))
    longer = replace(SETTINGS, high_limit=10, vlarb_low=low)
    table = bytes(value for entry in low[:8] for value in entry).ljust(64, b"\x00")
    found = compared(lambda asked, *_: table if asked == "vlarb_low" else None, longer)
    assert found.differences == ()
    # Ten packets of lane 3 for each of low priority, of which there are 5 + 3 + 2 + 2 in a round, or 2 of each lane.
    share = [100 * part / 11 for part in (5 / 12, 3 / 12, 2 / 12, 2 / 12 + 10)]
    short = [100 * part / 11 for part in (1 / 4, 1 / 4, 1 / 4, 1 / 4 + 10)]
    whole, cut = (", ".join(f"VL{lane} {part:.1f}%" for lane, part in enumerate(one)) for one in (share, short))
    assert found.notes == (
        "VLHighLimit is not compared: 64 ports read back 0, as all of ibsim do; exported is 10",
        "VL arbitration has 10 low-priority and 1 high-priority entries, and 64 ports of ibsim have room for 8 and 8, "
        f"which are compared. Real ports need room for all: {whole} of a link, with those of ibsim {cut}",
    )
    wider = replace(SETTINGS, sl2vl=(*range(9), *[0] * 7))
    limits = compared(exported=wider).differences
    assert {(one.expected, one.found, one.cause) for one in limits if one.what == "operational VLs"} == {
        ("at least 9", "8", "ibsim")
    }
    folded = replace(wider, operational_vls=4)
    causes = compared(exported=folded).differences
    assert {one.cause for one in causes if one.what == "operational VLs"} == {"exported files"}


def test_a_limit_of_high_priority_that_is_another_is_a_difference() -> None:
    info = bytearray(answers()["port_info"])
    info[38] = 7
    (one,) = compared(lambda *query: bytes(info) if query == ("port_info", 1, 1) else None).differences
    assert (one.node, one.what, one.expected, one.found) == ("host0", "VLHighLimit", "0", "7")


def policy_of(level: int = 3) -> Policy:
    """Two groups with a rule each; the second rule is for all pairs of its group."""
    groups = (Group("a", names=("host0/P1", "host1/P1")), Group("b", names=tuple(f"host{at}/P1" for at in range(2, 8))))
    levels = {"DEFAULT": 0, "sl3": level}
    return Policy(groups, levels, (Rule("a", "a", "sl3"), Rule("b", "b", "sl3")))


def test_paths_between_ports_of_a_rule_have_its_level() -> None:
    ends = layout_of(tree()).ends
    policy = policy_of()
    groups = members(policy, ends, Path("policy"))
    # Recorded is level 3 for every path: right within the groups, and wrong for the pair between them.
    found = compare_paths(RecordedSubnet(), policy, groups, 1, 1000)
    assert found.counts == {"path records": 2 * 1 + 6 * 5 + 1}
    (between,) = found.differences
    assert (between.node, between.port, between.expected, between.found) == ("host0", "to host2/P1", "0", "3")
    other = compare_paths(RecordedSubnet(), policy_of(2), groups, 1, 1000)
    assert len(other.differences) == 33
    lost = compare_paths(RecordedSubnet(lambda kind, *_: b"" if kind == "path_record" else None), policy, groups, 1, 9)
    assert {one.found for one in lost.differences} == {"no path"}


def test_a_sample_of_paths_is_stated() -> None:
    ends = layout_of(tree()).ends
    policy = policy_of()
    found = compare_paths(RecordedSubnet(), policy, members(policy, ends, Path("policy")), 1, 10)
    assert found.notes == (
        "path records: a sample of every 4th of 40 pairs of ports that a rule is for; --pairs 40 reads all",
    )
    assert 5 <= found.counts["path records"] <= 11


def test_ports_that_the_fabric_lacks_are_named() -> None:
    ends = layout_of(tree()).ends
    groups = (Group("a", names=("host0/P1", "host99/P1"), line=3), Group("b", as_ranges([0x10000001, 7]), line=9))
    with pytest.raises(ScenarioError) as error:
        members(Policy(groups, {}, ()), ends, Path("policy"))
    first, second = str(error.value).splitlines()
    assert 'policy:3: port-name = "host99/P1": the fabric has no such port (group a: 1 of 2)' in first
    assert 'policy:9: port-guid = "0x0000000000000007": the fabric has no port with this GUID (group b: 1 of' in second


def test_lids_and_guids_are_those_of_the_dump() -> None:
    wiring = read_wiring(DATA / "x5.ibnetdiscover")
    layout = layout_of(wiring)
    assert layout.notes == ()
    number = {place: at for at, place in enumerate(endpoints_of(wiring))}
    ends = {end.lid: number[end.node, end.port] for end in layout.ends if not end.is_switch}
    assert ends == endpoint_lids(wiring)
    assert {end.guid: end.node for end in layout.ends if end.is_switch} == wiring.guids
    assert all(end.guid == end.fabric_guid for end in layout.ends)
    assert layout.sizes.nodes == 89 + 11
    assert len(layout.guid2lid.splitlines()) == 2 * (89 + 11)


def test_hosts_with_several_adapters_have_consecutive_guids() -> None:
    layout = layout_of(read_wiring(DATA / "ndr-dgx.ibnetdiscover.xz"))
    ports = {end for end in layout.ends if not end.is_switch}
    assert len({end.guid for end in ports}) == len({end.lid for end in ports}) == len(ports) == 542
    host = next(end.node for end in ports if end.guid != end.fabric_guid)
    own = [end for end in ports if end.node == host]
    policy = Policy((Group("a", as_ranges([end.fabric_guid for end in own])),), {}, ())
    groups = members(policy, layout.ends, Path("policy"))
    assert set(groups["a"]) == set(own)
    inside, notes = for_subnet(policy, groups)
    assert {guid for guid, _ in inside.groups[0].guids} == {end.guid for end in own}
    assert notes == (
        f"{len(own)} port GUIDs of hosts with several adapters are others in the simulated subnet: its policy has "
        "those",
    )


def test_identities_that_are_not_unique_are_replaced_with_a_note() -> None:
    wiring = read_wiring(DATA / "x5.ibnetdiscover")
    adapters = [node for node in wiring.nodes if not node.is_switch]
    lid = adapters[0].ports[0].lid
    same = replace(adapters[1], ports=(replace(adapters[1].ports[0], lid=lid),))
    nodes = tuple(same if node == adapters[1] else node for node in wiring.nodes)
    assert layout_of(replace(wiring, nodes=nodes)).notes == (GENERATED,)


def test_planes_are_several_subnets() -> None:
    fabric, _ = built(**TREES[16], rails=2)
    with pytest.raises(ScenarioError, match="consists of 2 subnets that no cable between switches joins"):
        layout_of(wiring_of(fabric))


@pytest.mark.parametrize("name", ["fat_tree", "torus", "x5"])
def test_forwarding_tables_come_back_and_lead_to_every_lid(name: str, tmp_path: Path) -> None:
    if name == "x5":
        fabric = read_wiring(DATA / "x5.ibnetdiscover").fabric()
        wiring, spec = read_wiring(DATA / "x5.ibnetdiscover"), {"routing": "up_down"}
    else:
        own: dict[str, Any] = TREES[16] if name == "fat_tree" else {"topology": "torus", "sides": [4, 4]}
        fabric, spec = built(**own)
        wiring = written(wiring_of(fabric), tmp_path / "dump")
    tables = tables_of(fabric, spec)
    assert tables is not None
    columns = [fabric.host_names.index(host) for host in wiring.hosts]
    ordered = {switch: [ports[column] for column in columns] for switch, ports in tables.items()}
    (tmp_path / "lfts").write_text(write_lfts(wiring, ordered))
    again = with_tables(wiring, tmp_path / "lfts").tables
    assert all(port in (0, again[switch][at]) for switch, ports in ordered.items() for at, port in enumerate(ports))
    text = (tmp_path / "lfts").read_text()
    lids = 100 if name == "x5" else len(wiring.hosts) + len(wiring.switches)
    assert re.findall(r"^(\d+) valid lids dumped", text, re.MULTILINE) == [str(lids)] * len(wiring.switches)
    if name != "torus":  # with one virtual lane its routes can deadlock
        replace(wiring, tables=again).fabric("tables")


@pytest.mark.parametrize(("hosts", "ports", "switches"), [(20, 24, 24), (4, 1, 150)])
def test_own_tables_are_read_whatever_their_size(hosts: int, ports: int, switches: int, tmp_path: Path) -> None:
    """A switch has an entry for every port of a host and for every switch, and there can be many more than hosts."""
    cables = [Cable((f"host{host}", f"s{port}")) for host in range(hosts) for port in range(ports)]
    cables += [Cable((f"s{number}", f"s{number + 1}")) for number in range(switches - 1)]
    wiring = written(Wiring(tuple(f"host{host}" for host in range(hosts)), tuple(cables)), tmp_path / "dump")
    text = write_lfts(wiring, {switch: [1] * len(endpoints_of(wiring)) for switch in wiring.switches})
    assert len(text) > 256 * (hosts + 16) * (switches + 16)  # more than a limit by the number of hosts
    (tmp_path / "lfts").write_text(text)
    assert len(read_entries(wiring, tmp_path / "lfts")) == switches
    (tmp_path / "lfts").write_text(text * 9)
    with pytest.raises(ScenarioError, match="it has more than"):
        read_entries(wiring, tmp_path / "lfts")


def test_tables_are_the_ports_of_routes() -> None:
    fabric, spec = built(**TREES[16])
    tables = tables_of(fabric, spec)
    assert tables is not None
    for source in range(16):
        for host in range(16):
            for link in fabric.route(source, host)[1:] if source != host else ():
                assert tables[fabric.links["from_name"][link]][host] == fabric.links["from_port"][link]
    for routing in ("adaptive", "ecmp"):
        assert tables_of(*built(**TREES[16], routing=routing)) is None
    imported = replace(tree(), tables={name: tuple(ports) for name, ports in tables.items()})
    spec = {"routing": "tables", "params": imported.parameters()}
    assert tables_of(imported.fabric("tables"), spec) == imported.tables


def read_of(tables: Mapping[str, Sequence[int]]) -> Read:
    """The tables of the tree by LID, as if OpenSM had set them."""
    wiring = layout_of(tree()).wiring
    lids = endpoint_lids(wiring)
    return Read("", wiring, {name: {lid: ports[lids[lid]] for lid in lids} for name, ports in tables.items()})


def test_other_ports_in_forwarding_tables_are_differences_only_of_loaded_ones() -> None:
    tables = tree_tables()
    expected = read_of(tables).entries
    assert compare_routes(read_of(tables), expected, loaded=True).differences == ()
    fabric, _ = built(**TREES[16])
    far = {
        int(port): str(end)
        for begin, port, end in zip(*(fabric.links[key] for key in ("from_name", "from_port", "to_name")), strict=True)
        if begin == "leaf0"
    }
    usual = tables["leaf0"][15]
    up = next(port for port, end in far.items() if end == far[usual] and port != usual)  # the parallel cable
    other = read_of({**tables, "leaf0": (*tables["leaf0"][:15], up)})
    found = compare_routes(other, expected, loaded=True)
    (one,) = found.differences
    assert (one.node, one.port, one.expected) == ("leaf0", "to host15", f"port {tables['leaf0'][15]}")
    engine = compare_routes(other, expected, loaded=False)
    assert engine.differences == ()
    assert "entries of forwarding tables are those of the simulated routing" in engine.notes[0]


def test_routes_that_lead_nowhere_are_a_difference() -> None:
    tables = tree_tables()
    lost = read_of({**tables, "leaf0": (*tables["leaf0"][:15], 0)})
    (one,) = compare_routes(lost, None, loaded=False).differences
    assert (one.what, one.expected) == ("routes", "every host is reached")
    assert 'to "host15" finds no entry at "leaf0"' in one.found


@pytest.mark.parametrize(("loaded", "cause"), [(True, "exported files"), (False, "OpenSM")])
def test_lids_that_end_at_another_port_are_one_difference(loaded: bool, cause: str) -> None:
    tables = tree_tables()
    swapped = read_of({**tables, "leaf0": (2, 1, *tables["leaf0"][2:])})
    (one,) = compare_routes(swapped, swapped.entries if loaded else None, loaded=loaded).differences
    assert (one.expected, one.cause) == ("each LID ends at its port", cause)
    words = "LID 1 of host0 port 1 ends at host1 port 1, LID 2 of host1 port 1 ends at host0 port 1"
    assert one.found == f"2 of 16 LIDs of adapters are led elsewhere: {words}"


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path: None if name in ("opensm", "dump_fts") else path)
    with pytest.raises(ScenarioError, match=r"not installed: opensm, dump_fts.*apt install opensm infiniband-diags"):
        simulated.find_programs()


SHARED = {"count": 2, "wiring": "shared"}
RAILS = {
    "shared": (TREES[16], SHARED),
    "optimised": ({**TREES[16], "hosts": 16}, {"count": 4, "wiring": "rail_optimised"}),
}


@pytest.mark.parametrize("name", RAILS)
def test_tables_of_hosts_with_several_adapters_have_each_of_them(name: str, tmp_path: Path) -> None:
    tree, rails = RAILS[name]
    fabric, spec = built(**tree, rails=rails)
    tables = tables_of(fabric, spec)
    assert tables is not None
    # Exported in the order of the fabric, and of dumps that list hosts in another order.
    own = wiring_of(fabric)
    turned = replace(own, hosts=own.hosts[::-1])
    for number, dump in enumerate((None, written(own, tmp_path / "own"), turned)):
        texts, notes = fabric_files(fabric, spec, dump)
        assert notes == []
        folder = tmp_path / str(number)
        folder.mkdir()
        for file, text in texts.items():
            (folder / file).write_text(text)
        read = with_tables(read_wiring(folder / FABRIC_FILE), folder / ROUTES_FILE)
        ends = {end: at for at, end in enumerate(_by_host(endpoints_of(read)))}
        for switch, ports in tables.items():
            for end, port in zip(_by_host(endpoints_of(own)), ports, strict=True):
                assert port in (0, read.tables[switch][ends[end]]), (switch, end)
    wiring = read_wiring(folder / FABRIC_FILE)
    entries = read_entries(wiring, folder / ROUTES_FILE)
    assert compare_routes(Read("", wiring, entries), entries, loaded=True).differences == ()
    lids = {end: lid for lid, endpoint in endpoint_lids(wiring).items() for end in [endpoints_of(wiring)[endpoint]]}
    lid = lids["host0", 2]
    wrong = {switch: {**ports, lid: ports[lid] + 1} for switch, ports in entries.items()}
    found = compare_routes(Read("", wiring, wrong), entries, loaded=True).differences
    assert f"to host0 port 2 (LID {lid})" in {one.port for one in found}


def _by_host(ends: tuple[tuple[str, int], ...]) -> list[tuple[str, int]]:
    """The host of each endpoint, and its number there."""
    return [(host, [other for other, _ in ends[:at]].count(host)) for at, (host, _) in enumerate(ends)]
