"""Every LID of every adapter is followed to its end: LMC in dumps and tables, in import, export and checks."""

from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlane.cli.main import execute
from fairlane.cluster.opensm.nodes import ROUTES_FILE, fabric_files
from fairlane.model.fabric.export import FORMATS
from fairlane.model.fabric.export.infiniband import write_lfts
from fairlane.model.fabric.forwarding import read_entries, tables_of
from fairlane.model.fabric.identities import endpoint_lids, endpoints_of
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.survey import survey
from fairlane.model.fabric.wiring import Wiring
from simulated_subnets import lid_tree

Entries = dict[str, dict[int, int]]


def files(folder: Path, wiring: Wiring, entries: Entries) -> tuple[Path, Path]:
    """The dump of a fabric, and tables as ``ibroute`` prints them."""
    dump, lfts = folder / "dump", folder / "lfts"
    dump.write_text(FORMATS["ibnetdiscover"].write(wiring).text, encoding="utf-8")
    blocks = []
    for guid, switch in wiring.guids.items():
        rows = [f"0x{lid:04x} {port:03d} : (Channel Adapter)" for lid, port in sorted(entries[switch].items())]
        head = f"Unicast lids [0x0-0xff] of switch DR path slid 0; guid 0x{guid:016x} ({switch}):"
        blocks.append("\n".join([head, "  Lid  Out   Destination", *rows, f"{len(rows)} valid lids dumped", ""]))
    lfts.write_text("".join(blocks), encoding="utf-8")
    return dump, lfts


def entries_of(folder: Path, wiring: Wiring) -> Entries:
    """Tables along shortest paths, for all LIDs."""
    dump, lfts = files(folder, wiring, {name: {} for name in wiring.switches})
    lfts.write_text(write_lfts(wiring, {}), encoding="utf-8")
    return read_entries(read_wiring(dump), lfts)


@pytest.mark.parametrize("lmc", [0, 1, 2])
def test_all_lids_of_a_port_come_back_and_lead_to_it(lmc: int, tmp_path: Path) -> None:
    wiring = lid_tree(lmc, rails=2)
    entries = entries_of(tmp_path, wiring)
    again = read_wiring(*files(tmp_path, wiring, entries))
    assert endpoint_lids(again) == {((16 + at) << lmc) + k: at for at in range(8) for k in range(2**lmc)}
    assert all(len(row) == 8 * 2**lmc for row in entries.values())
    assert again.remarks == ()
    again.fabric("tables")
    again.save(tmp_path / "saved.json")
    assert endpoint_lids(read_wiring(tmp_path / "saved.json")) == endpoint_lids(again)
    assert FORMATS["ibnetdiscover"].write(again).text == (tmp_path / "dump").read_text()


def test_a_first_lid_that_ends_elsewhere_is_refused_with_a_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wiring = lid_tree(1)
    entries = entries_of(tmp_path, wiring)
    entries["leaf0"] |= {32: 2, 34: 1}  # the first LIDs of n0 and n1, exchanged at their leaf
    dump, lfts = files(tmp_path, wiring, entries)
    assert execute(["fabric", "import", str(dump), "--tables", str(lfts), "-o", str(tmp_path / "out.json")]) == 2
    words = "LID 32 of n0 port 1 ends at n1 port 1, LID 34 of n1 port 1 ends at n0 port 1"
    assert f"{lfts}: 2 of 8 LIDs of adapters are led elsewhere: {words}" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("at", "lid", "port", "end"),
    [
        ("leaf0", 65, 2, "LID 65 of n0 port 1 ends at n1 port 1"),
        ("spine0", 75, None, "LID 75 of n2 port 1 has no entry at spine0"),
        ("spine0", 75, 255, "LID 75 of n2 port 1 has no entry at spine0"),
        ("spine0", 75, 1, "LID 75 of n2 port 1 goes in a circle over leaf0"),
        ("leaf1", 77, 9, "LID 77 of n3 port 1 leads to port 9 of leaf1, which has no cable"),
    ],
)
def test_a_further_lid_that_ends_elsewhere_is_a_remark(
    at: str, lid: int, port: int | None, end: str, tmp_path: Path
) -> None:
    wiring = lid_tree(2)
    entries = entries_of(tmp_path, wiring)
    if at == "spine0":
        entries["leaf0"][lid] = 3  # over this spine
    entries[at].pop(lid)
    entries[at] |= {} if port is None else {lid: port}
    dump, lfts = files(tmp_path, wiring, entries)
    found = read_wiring(dump, lfts)
    words = f"{lfts}: 1 of 16 LIDs of adapters is led elsewhere: {end}; routes go to the first LID of a port"
    assert found.remarks == (words,)
    assert words in survey(found).anomalies
    found.fabric("tables")


def test_lids_of_switches_with_an_enhanced_port_0_come_back(tmp_path: Path) -> None:
    wiring = lid_tree(1)
    dump, lfts = files(tmp_path, wiring, {name: {} for name in wiring.switches})
    leaf = next(node for node in wiring.nodes if node.owner == "leaf0")
    dump.write_text(
        dump.read_text().replace(f"base port 0 lid {leaf.lid} lmc 0", f"enhanced port 0 lid {leaf.lid} lmc 2")
    )
    found = read_wiring(dump)
    (again,) = (node for node in found.nodes if node.owner == "leaf0")
    assert (again.lid, again.lmc, len(again.lids)) == (leaf.lid, 2, 4)
    assert any("LIDs are used by several ports" in words for words in found.remarks), (
        "the switch after it has one of them"
    )
    dump.write_text(FORMATS["ibnetdiscover"].write(found).text)
    assert read_wiring(dump).nodes == found.nodes
    lfts.write_text(write_lfts(found, {}))
    rows = lfts.read_text().partition("\n\n")[0].splitlines()
    assert [row.split()[1] for row in rows if "'leaf0'" in row] == ["000"] * 4


def test_ranges_of_lids_that_overlap_are_remarked(tmp_path: Path) -> None:
    dump, _ = files(tmp_path, lid_tree(1), {name: {} for name in lid_tree(1).switches})
    dump.write_text(dump.read_text().replace("lid 34 lmc 1", "lid 33 lmc 1").replace("lid 34", "lid 33"))
    assert any("1 LID is used by several ports: 33 (n0 port 1 " in words for words in read_wiring(dump).remarks)


@pytest.mark.parametrize("rails", [1, 2, 4, 8])
def test_exported_tables_are_the_simulated_ones_whatever_the_order_of_the_dump(rails: int, tmp_path: Path) -> None:
    """The dump lists hosts, adapters and switches otherwise than the fabric that was simulated."""
    wiring = lid_tree(1, rails)
    fabric = wiring.fabric("up_down")
    spec = {"routing": "up_down", "params": wiring.parameters()}
    text = FORMATS["ibnetdiscover"].write(wiring).text
    head, *sections = text.strip().split("\n\n")
    (tmp_path / "dump").write_text("\n\n".join([head, *Random(rails).sample(sections, len(sections))]) + "\n")
    dump = read_wiring(tmp_path / "dump")
    assert dump.hosts != wiring.hosts
    files, notes = fabric_files(fabric, spec, dump)
    assert notes == []
    (tmp_path / "lfts").write_text(files[ROUTES_FILE])
    again = read_wiring(tmp_path / "dump", tmp_path / "lfts")
    assert again.remarks == ()
    simulated, column = tables_of(fabric, spec), {place: at for at, place in enumerate(endpoints_of(again))}
    assert simulated is not None
    for switch, ports in simulated.items():
        for place, port in zip(endpoints_of(wiring), ports, strict=True):
            assert port in (0, again.tables[switch][column[place]]), (switch, place)


@settings(suppress_health_check=list(HealthCheck), max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_tables_are_wrong_the_lids_that_end_elsewhere_are_named(data: st.DataObject, tmp_path: Path) -> None:
    """Entries of the leaf of a host are changed to its neighbour's port: these LIDs and no others are named."""
    lmc, rails = data.draw(st.sampled_from([1, 2])), data.draw(st.sampled_from([1, 2]))
    wiring = lid_tree(lmc, rails)
    entries, owners, endpoints = entries_of(tmp_path, wiring), endpoint_lids(wiring), endpoints_of(wiring)
    further = sorted(lid for lid in owners if lid % 2**lmc)
    wrong = data.draw(st.sets(st.sampled_from(further), min_size=1, max_size=3))
    for lid in wrong:
        leaf = f"leaf{int(endpoints[owners[lid]][0][1:]) // 2}"
        entries[leaf][lid] = entries[leaf][lid] % (2 * rails) + 1
    (words,) = read_wiring(*files(tmp_path, wiring, entries)).remarks
    assert f"{len(wrong)} of {len(owners)} LIDs" in words
    assert all(f"LID {lid} of n" in words for lid in wrong)
    assert words.count("LID ") == len(wrong) + 1  # "the first LID"
