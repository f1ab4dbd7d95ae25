"""What Slurm reads: lists of hosts both ways, and topology.conf of a real cluster beside its own."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.cli.main import execute
from fairlane.errors import ScenarioError
from fairlane.fabric import Wiring, read_wiring
from fairlane.fabric.export import FORMATS
from fairlane.slurm import can_hold, compress, expand, in_order

DATA = Path(__file__).parents[1] / "data" / "fabrics"
NAMES = st.from_regex(r"[a-z.-]{0,3}[0-9]{0,4}[a-z]?[0-9]{0,20}", fullmatch=True).filter(bool)


@given(names=st.lists(NAMES, max_size=40))
def test_lists_hold_each_name_once(names: list[str]) -> None:
    text = compress(names)
    found = expand(text)
    assert sorted(found) == sorted(set(names))
    assert compress(found) == text


@given(numbers=st.sets(st.integers(0, 300), min_size=1), width=st.integers(0, 4))
def test_numbers_of_one_prefix_stand_in_ranges(numbers: set[int], width: int) -> None:
    names = [f"rack{number:0{width}d}" for number in numbers]
    text = compress(names)
    assert sorted(expand(text)) == sorted(names)
    stretches = sum(number - 1 not in numbers for number in numbers)
    # Widths differ only where numbers outgrow theirs: one more range for each such step at most.
    assert text.count(",") + 1 <= stretches + 3


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a1", "a2", "a3", "a7"], "a[1-3,7]"),
        (["a08", "a09", "a10"], "a[08-10]"),
        (["a9", "a10"], "a[9-10]"),
        (["a1", "a01"], "a[1,01]"),
        (["login", "a1"], "login,a1"),
        (["a", "a2"], "a,a2"),
        (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
        ([], ""),
    ],
)
def test_lists_as_slurm_writes_them(names: list[str], text: str) -> None:
    assert compress(names) == text
    assert sorted(expand(text)) == sorted(names)


@given(names=st.lists(NAMES, max_size=20, unique=True))
def test_lists_in_order_keep_it(names: list[str]) -> None:
    assert expand(in_order(names)) == names
    assert in_order([f"n{at}" for at in range(3)]) == "n[0-2]"


@pytest.mark.parametrize("text", ["a[1-3", "a[3-1]", "a[x]", "a]", "a,,b", "a[1]b", "a[0-9999999]"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError):
        expand(text)
    with pytest.raises(ScenarioError, match="cannot be in a list"):
        compress(["a[1]"])


def of_wiring(wiring: Wiring, *, merged: bool) -> str:
    return FORMATS["topology-conf"].write(wiring, merged=merged).text


def parsed(text: str) -> dict[str, tuple[str, list[str]]]:
    """By switch: "Nodes" or "Switches", and which."""
    rows = (re.fullmatch(r"SwitchName=(\S+) (Nodes|Switches)=(\S+)", line) for line in text.splitlines())
    return {row[1]: (row[2], expand(row[3])) for row in rows if row}


def test_a_real_cluster_is_written_as_its_own_file_has_it() -> None:
    wiring = read_wiring(DATA / "x5.ibnetdiscover")
    found = parsed(of_wiring(wiring, merged=False))
    theirs = parsed((DATA / "x5.slurm-topology.conf").read_text(encoding="utf-8"))
    assert found.keys() == theirs.keys()
    switch_level = {f"S-{guid:016x}": name for guid, name in wiring.guids.items()}
    levels = dict(zip(wiring.switches, wiring.fabric("up_down").levels, strict=True))
    for name, (kind, members) in theirs.items():
        assert found[name][0] == kind
        if kind == "Nodes":  # the dump knows adapters, the file machines
            assert len(found[name][1]) == len(members)
        else:  # the file lists all switches that are joined, also those above
            below = {one for one in members if levels[switch_level[one]] < levels[switch_level[name]]}
            assert set(found[name][1]) == below


def is_strict_tree(text: str, hosts: list[str]) -> None:
    """Every host and every switch but one is below exactly one switch."""
    found = parsed(text)
    members = [one for _, below in found.values() for one in below]
    assert len(members) == len(set(members))
    assert set(hosts) <= set(members)
    assert len(set(found) - set(members)) == 1


def test_merged_switches_make_a_strict_tree(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    wiring = read_wiring(DATA / "x5.ibnetdiscover")
    is_strict_tree(of_wiring(wiring, merged=True), list(wiring.hosts))
    for options, hosts in (
        (["fat_tree", "--set", "hosts=32"], 32),
        (["torus", "--set", "sides=[4,2]"], 8),
        (
            [
                "dragonfly",
                "--set",
                "groups=5",
                "--set",
                "switches_per_group=4",
                "--set",
                "global_links=1",
                "--set",
                "hosts_per_switch=2",
            ],
            40,
        ),
    ):
        status = execute(["fabric", "export", "--topology", *options, "--topology-conf", "--merged"])
        text = capsys.readouterr()
        assert status == 0, text.err
        is_strict_tree(text.out, [f"host{at}" for at in range(hosts)])
    target = tmp_path / "topology.conf"
    dump = str(DATA / "x5.ibnetdiscover")
    assert execute(["fabric", "export", dump, "--topology-conf", "-o", str(target)]) == 0
    assert target.read_text(encoding="utf-8") == of_wiring(wiring, merged=False)
    assert execute(["fabric", "export", dump, "--topology-conf", "-o", str(tmp_path / "no" / "file")]) == 2
    assert execute(["fabric", "export", "--topology-conf"]) == 2


def test_place_prints_node_lists(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "torus.toml"
    scenario.write_text(
        '[fabric]\ntopology = "torus"\nsides = [4, 4]\n[placement]\nname = "box"\nshape = [2, 2]\n'
        '[[jobs]]\nworkload = "all_to_all"\nranks = 4\n',
        encoding="utf-8",
    )
    assert execute(["place", str(scenario), "--slurm"]) == 0
    assert capsys.readouterr().out == "all_to_all host[0-1,4-5]\n"


def test_names_that_a_list_cannot_hold_are_known() -> None:
    assert can_hold("rack1-h7.domain")
    assert not any(map(can_hold, ("a b", "a,b", "a[1]", "", "a=b", "a#b")))
