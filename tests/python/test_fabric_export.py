"""Fabrics written in other tools' formats and read again: a round trip changes nothing; and what cannot be written."""

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.inputs.hosts import expand
from fairlane.model.fabric.export import FORMATS, infiniband, wiring_of
from fairlane.model.fabric.export.infiniband import write_ibsim
from fairlane.model.fabric.identities import numbered
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Cable, Wiring

DATA = Path(__file__).parents[1] / "data" / "fabrics"
DUMPS = ("x5.ibnetdiscover", "ndr-dgx.ibnetdiscover.xz")
BUILT: dict[str, dict[str, Any]] = {
    "fat-tree": {"topology": "fat_tree", "hosts": 64},
    "rails": {"topology": "fat_tree", "hosts": 32, "rails": 2},
    "torus": {"topology": "torus", "sides": [3, 4]},
}


def built(name: str) -> Wiring:
    return wiring_of(Fabric.build(FabricTable.read(BUILT[name]).spec))


def again(wiring: Wiring, name: str, folder: Path) -> Wiring:
    (folder / "exported").write_text(FORMATS[name].write(wiring).text, encoding="utf-8")
    return read_wiring(folder / "exported")


def joined(wiring: Wiring) -> set[tuple[tuple[str, int], ...]]:
    """The cables by their ends and ports, whatever their order and direction."""
    return {tuple(sorted(ends)) for ends in numbered(wiring)}


def renamed(wiring: Wiring) -> Wiring:
    """The same with _ for # in names."""
    ends = [(one.ends[0].replace("#", "_"), one.ends[1].replace("#", "_")) for one in wiring.cables]
    cables = tuple(replace(one, ends=pair) for one, pair in zip(wiring.cables, ends, strict=True))
    return replace(wiring, hosts=tuple(name.replace("#", "_") for name in wiring.hosts), cables=cables)


@pytest.mark.parametrize("dump", DUMPS)
def test_a_real_dump_comes_back_with_every_identifier(dump: str, tmp_path: Path) -> None:
    wiring = read_wiring(DATA / dump)
    found = again(wiring, "ibnetdiscover", tmp_path)
    assert found.hosts == wiring.hosts
    assert found.parameters() == wiring.parameters()
    assert (found.nodes, found.guids, found.labels) == (wiring.nodes, wiring.guids, wiring.labels)
    assert [cable.kind for cable in found.cables] == [cable.kind for cable in wiring.cables]


@pytest.mark.parametrize("dump", DUMPS)
def test_the_file_of_an_import_keeps_identifiers_and_the_names_of_a_map(dump: str, tmp_path: Path) -> None:
    plain = read_wiring(DATA / dump)
    lines = [
        f'0x{node.guid:016x} "node{at}"' for at, node in enumerate(plain.nodes) if not node.is_switch and node.guid
    ]
    (tmp_path / "map").write_text("\n".join(lines[:60]), encoding="utf-8")
    for wiring in (plain, read_wiring(DATA / dump, node_name_map=tmp_path / "map")):
        wiring.save(tmp_path / "x.fabric.json")
        found = read_wiring(tmp_path / "x.fabric.json")
        assert found.parameters() == wiring.parameters()
        assert (found.nodes, found.guids) == (wiring.nodes, wiring.guids)
        # A scenario takes the file, and a dump that is made of it has the same names.
        assert FabricTable.read({"topology": "imported", "file": str(tmp_path / "x.fabric.json")}).spec
        assert again(found, "ibnetdiscover", tmp_path).hosts == wiring.hosts
    assert plain.nodes != found.nodes
    text = (tmp_path / "x.fabric.json").read_text(encoding="utf-8")
    for right, wrong in (('"guid": "0x', '"guid": "0y'), ('"is_switch": true', '"is_switch": true, "unknown": 7')):
        (tmp_path / "x.fabric.json").write_text(text.replace(right, wrong, 1), encoding="utf-8")
        with pytest.raises(ScenarioError, match=r"x\.fabric\.json: not a file that fairlane fabric import wrote"):
            read_wiring(tmp_path / "x.fabric.json")


def test_the_nodes_of_a_dump_have_the_guids_that_its_lines_state() -> None:
    wiring = read_wiring(DATA / "x5.ibnetdiscover")
    node = next(node for node in wiring.nodes if node.identifier == "H-003048c749cd0000")
    assert (node.owner, node.guid, node.ports[0].guid, node.ports[0].lid) == (
        "H-003048c749cd0000",
        0x003048C749CD0000,
        0x003048C749CD0001,
        72,
    )
    assert sum(not node.is_switch for node in wiring.nodes) == len(wiring.hosts) == 89


@pytest.mark.parametrize("name", ["csv", "graphml"])
@pytest.mark.parametrize("source", [*DUMPS, *BUILT])
def test_cables_and_numbers_are_the_same(source: str, name: str, tmp_path: Path) -> None:
    wiring = built(source) if source in BUILT else read_wiring(DATA / source)
    found = again(wiring, name, tmp_path)
    assert found.parameters() == wiring.parameters()
    assert (found.hosts, found.switches) == (wiring.hosts, wiring.switches)


@pytest.mark.parametrize("name", ["ibnetdiscover", "ibsim"])
@pytest.mark.parametrize("source", [*BUILT, *DUMPS])
def test_hosts_switches_and_ports_are_the_same(source: str, name: str, tmp_path: Path) -> None:
    wiring = built(source) if source in BUILT else read_wiring(DATA / source)
    found = again(wiring, name, tmp_path)
    if name == "ibsim":  # which reserves the character
        wiring = renamed(wiring)
    assert (found.hosts, sorted(found.switches)) == (wiring.hosts, sorted(wiring.switches))
    assert joined(found) == joined(wiring)
    if name == "ibnetdiscover":
        assert {cable.bandwidth for cable in found.cables} == {cable.bandwidth for cable in wiring.cables}
    twice = again(found, name, tmp_path)  # ibsim's switches are numbered as the hosts come, from the first time on
    assert FORMATS[name].write(twice).text == FORMATS[name].write(found).text


def test_a_built_fabric_is_the_same_fabric_when_it_is_imported(tmp_path: Path) -> None:
    before = Fabric.build(FabricTable.read(BUILT["fat-tree"]).spec)
    after = again(wiring_of(before), "csv", tmp_path).fabric()
    for key in ("from_host", "from_switch", "to_host", "to_switch", "from_port", "to_port", "bandwidth", "latency"):
        assert sorted(after.links[key].tolist()) == sorted(before.links[key].tolist())
    assert (after.levels, after.host_names, after.switch_names) == (
        before.levels,
        before.host_names,
        before.switch_names,
    )


@st.composite
def wirings(draw: st.DrawFn) -> Wiring:
    """Random connected fabrics with trunks, mixed speeds, hosts with several cables, and hosts in any order."""
    switches = [f"sw {n}" for n in range(draw(st.integers(1, 5)))]
    hosts = [f"n{n}" for n in range(draw(st.integers(1, 8)))]
    speeds = st.sampled_from([10**11, 32 * 10**9, 4 * 10**11])
    cables = [Cable((a, b), bandwidth=draw(speeds)) for a, b in pairwise(switches)]
    for host in hosts:
        cables += [Cable((host, draw(st.sampled_from(switches))), bandwidth=draw(speeds))] * draw(st.integers(1, 2))
    cables.append(Cable((hosts[0], switches[-1]), bandwidth=draw(speeds)))
    for _ in range(draw(st.integers(0, 4)) if len(switches) > 1 else 0):
        two = draw(st.permutations(switches))[:2]
        cables.append(Cable((two[0], two[1]), bandwidth=draw(speeds)))
    wiring = Wiring(tuple(draw(st.permutations(hosts))), tuple(draw(st.permutations(cables))))
    if draw(st.booleans()):
        ports = [(one[1], other[1]) for one, other in numbered(wiring)]
        cables = [replace(cable, ports=pair) for cable, pair in zip(wiring.cables, ports, strict=True)]
        wiring = replace(wiring, cables=tuple(cables))
    return wiring


@settings(deadline=None)
@given(wiring=wirings(), name=st.sampled_from(["csv", "graphml", "ibnetdiscover", "ibsim"]))
def test_random_fabrics_come_back(wiring: Wiring, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = again(wiring, name, tmp_path_factory.mktemp("fabric"))
    assert set(found.hosts) == set(wiring.hosts)
    assert joined(found) == joined(wiring)
    if name in ("csv", "graphml"):
        assert found.parameters() == wiring.parameters()


@pytest.mark.parametrize("source", ["fat-tree", "torus"])
def test_slurms_two_files_say_the_same(source: str) -> None:
    wiring = built(source)
    conf = FORMATS["topology-conf"].write(wiring).text
    yaml: Any = import_module("yaml")
    (found,) = yaml.safe_load(FORMATS["topology-yaml"].write(wiring).text)
    switches = found["tree"]["switches"]
    assert (found["topology"], found["cluster_default"]) == ("default", True)
    keys = {"nodes": "Nodes", "children": "Switches"}
    lines = [
        f"SwitchName={it['switch']} {keys[key]}={it[key]}"
        for it in switches
        for key in keys
        if isinstance(it, dict) and key in it
    ]
    assert lines == conf.splitlines()
    assert sorted(host for it in switches for host in expand(it.get("nodes", ""))) == sorted(wiring.hosts)


def refused(wiring: Wiring, name: str) -> Iterator[str]:
    with pytest.raises(ScenarioError) as caught:
        FORMATS[name].write(wiring)
    return map(str, caught.value.problems)


def test_a_bandwidth_that_infiniband_does_not_have_is_refused() -> None:
    wiring = Wiring(("a", "b"), (Cable(("a", "s"), bandwidth=10**11), Cable(("b", "s"), bandwidth=97 * 10**9)))
    (words,) = refused(wiring, "ibnetdiscover")
    assert words.startswith('bandwidth = "12.125 GB/s": of b to s is no speed of InfiniBand; allowed: lanes (4, 1, ')
    assert words.endswith("nearest 12 GB/s (12xQDR)")


@pytest.mark.parametrize(
    ("name", "host", "words"),
    [
        ("ibnetdiscover", 'a"b', "cannot be in a dump"),
        ("ibnetdiscover", "localhost", "hosts are others when the dump is read again: localhost becomes H-"),
        ("ibsim", "a" * 64, "1 to 63 bytes"),
        ("csv", "# a", "cannot be in a CSV file"),
        ("graphml", "a\x01b", "cannot be in a GraphML file"),
    ],
)
def test_names_that_a_format_cannot_hold_are_refused(name: str, host: str, words: str) -> None:
    found = list(refused(Wiring((host,), (Cable((host, "switch")),)), name))
    assert words in found[0]


def test_lids_that_a_subnet_does_not_have_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(infiniband, "LARGEST_LID", 5)
    for hosts, notes in ((4, []), (5, ["LIDs go up to 6, and a subnet of InfiniBand has 5: more than one is needed"])):
        names = [f"h{number}" for number in range(hosts)]
        wiring = Wiring(tuple(names), tuple(Cable((name, "s")) for name in names))
        assert [one for one in FORMATS["ibnetdiscover"].write(wiring).notes if "LID" in one] == notes


def test_a_network_file_of_ibsim_with_guids_is_the_same_fabric(tmp_path: Path) -> None:
    wiring = built("fat-tree")
    guids = {name: 0x1000 * number for number, name in enumerate((*wiring.hosts, *wiring.switches), 1)}
    (tmp_path / "net").write_text(write_ibsim(wiring, guids).text)
    (tmp_path / "without").write_text(write_ibsim(wiring).text)
    found, without = read_wiring(tmp_path / "net"), read_wiring(tmp_path / "without")
    assert (found.hosts, [cable.ends for cable in found.cables]) == (
        without.hosts,
        [cable.ends for cable in without.cables],
    )
    assert f'caguid=0x{0x1000:016x}\nHca\t1 "{wiring.hosts[0]}"' in (tmp_path / "net").read_text()


def test_characters_that_ibsim_reserves_are_replaced_with_a_note() -> None:
    ends = [("a@b", "s"), ("a_b", "s")]
    found = FORMATS["ibsim"].write(Wiring(("a@b", "a_b"), tuple(map(Cable, ends))))
    assert found.notes == ("node 'a@b' is written as a_b_2, as ibsim reserves # and @",)
    assert [line for line in found.text.splitlines() if line.startswith("Hca")] == [
        'Hca\t1 "a_b_2"\t# "a@b"',  # the NodeDescription, which a QoS policy names
        'Hca\t1 "a_b"',
    ]


def test_what_a_format_leaves_out_is_noted() -> None:
    notes = FORMATS["ibsim"].write(built("fat-tree")).notes
    assert [note.split(":")[0] for note in notes] == ["bandwidths are left out", "latencies are left out"]
    assert not FORMATS["csv"].write(built("fat-tree")).notes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('Switch 2 "s"\n[1] "a"[1]\nHca 1 "a"\n[1] "s"[2]\n', "2: s[1] leads to a[1], which does not lead back"),
        ('Switch 2 "s"\n[3] "a"[1]\nHca 1 "a"\n[1] "s"[3]\n', "2: port 3 of s is not one of its 2"),
        ('Switch 2 "s"\n[1] "a"[1]\nHca 1 "a"\n[1] s[1]\n', "4: not a line of a network file of ibsim"),
        ('Switch 2 "s"\n[1] "a"[1]\nHca 1 "a"\n[1] "s"[1]\nHca 1 "a"\n', "5: a has a record already"),
    ],
)
def test_wrong_lines_of_ibsims_files_are_named(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "net").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        read_wiring(tmp_path / "net")
    assert f"{tmp_path / 'net'}:{words}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<graphml><graph", "no GraphML that can be read"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><graphml></graphml>', "declares a document type"),
    ],
)
def test_graphml_that_cannot_be_read_is_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "a.graphml").write_text(f"{text}\n")
    with pytest.raises(ScenarioError, match=words):
        read_wiring(tmp_path / "a.graphml")


def test_a_csv_line_that_only_names_a_host_needs_a_cable_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("from,to,cables\nb,,0\nc,,0\na,s,1\nb,s,1\n")
    with pytest.raises(ScenarioError, match=r"a\.csv:3: c has no cable"):
        read_wiring(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("from,to,cables\nb,,0\na,s,1\nb,s,1\n")
    assert read_wiring(tmp_path / "a.csv").hosts == ("b", "a")


def test_the_command_writes_or_prints_one_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = ["fabric", "export", "--topology", "fat_tree", "--set", "hosts=16"]
    assert execute([*tree, "--ibsim"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[2:4] == ['Hca\t1 "host0"', '[1]\t"leaf0"[1]']
    assert "fairlane: latencies are left out" in printed.err
    assert execute([*tree, "--csv", "-o", str(tmp_path / "a.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "csv"
    assert execute(["fabric", "export", str(tmp_path / "a.csv"), "--csv", "-o", str(tmp_path / "b.csv")]) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


@pytest.mark.parametrize("formats", [[], ["--csv", "--ibsim"]])
def test_the_command_needs_exactly_one_format(formats: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fabric", "export", "--topology", "fat_tree", "--set", "hosts=8", *formats]) == 2
    assert "allowed: --ibnetdiscover, --ibsim, --topology-conf" in capsys.readouterr().err


def test_only_slurms_files_have_merged_switches(capsys: pytest.CaptureFixture[str]) -> None:
    tree = ["fabric", "export", "--topology", "fat_tree", "--set", "hosts=32", "--merged"]
    assert execute([*tree, "--csv"]) == 2
    assert "is an option of Slurm's files only" in capsys.readouterr().err
    assert execute([*tree, "--topology-yaml"]) == 0
    merged = capsys.readouterr().out
    assert execute([*tree[:-1], "--topology-yaml"]) == 0
    assert merged.count("- switch:") < capsys.readouterr().out.count("- switch:")


def test_nothing_is_written_where_a_fabric_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "dump"
    out.write_text("kept")
    odd = ["--topology", "fat_tree", "--set", "hosts=8", "--set", 'bandwidth="97 Gb/s"', "--ibnetdiscover"]
    assert execute(["fabric", "export", *odd, "-o", str(out)]) == 2
    assert "no speed of InfiniBand" in capsys.readouterr().err
    assert out.read_text() == "kept"
