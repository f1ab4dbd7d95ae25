"""A real OpenSM on simulated subnets: exported settings are read back from every port, and its routes are simulated."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from fairlane.cli.main import execute
from fairlane.cluster.opensm import check as checking
from fairlane.cluster.opensm.check import check
from fairlane.core.errors import ScenarioError
from fairlane.model.fabric.reader import read_wiring
from possible import no_subnet
from simulated_subnets import TREES, exported, scenario
from waiting import wait_for

pytestmark = pytest.mark.live("cluster/opensm", absent=no_subnet)


def folder(tmp_path: Path, name: str = "files") -> Path:
    (tmp_path / name).mkdir()
    return tmp_path / name


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is exported for 64 hosts."""
    return exported(tmp_path_factory.mktemp("small") / "qos", scenario(TREES[64]))


@pytest.mark.parametrize("hosts", [64, 648])
def test_exported_settings_are_read_back_from_every_port(hosts: int, tmp_path: Path) -> None:
    source = exported(tmp_path / "qos", scenario(TREES[hosts], hosts=hosts))
    found = check(source, folder(tmp_path), pairs=2000)
    # Twice as many ports of leaf switches as hosts, half of them up, as many at the spines, and one for each host.
    down = TREES[hosts]["leaf_down"]
    leaves, ports = hosts // down, 4 * hosts
    spines = leaves * down // (2 * down)
    inputs = leaves * 2 * down * (2 * down + 1) + spines * 2 * down * (2 * down + 1) + hosts
    counts = dict(found.counts)
    paths = counts.pop("path records")
    assert counts == {
        "lanes with a share of links": 4,
        "ports": ports,
        "VL arbitration tables": 2 * ports,
        "SL2VL tables": inputs,
        "forwarding table entries": (leaves + spines) * hosts,
    }
    assert 1000 < paths <= 2001
    assert found.differences == ()
    assert found.engine == "file"
    assert any(note.startswith("VLHighLimit is not compared") for note in found.notes)


def test_a_scenario_is_checked_with_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "two.toml").write_text(tomlkit.dumps(scenario(TREES[16], hosts=16)))
    keep, command = tmp_path / "keep", ["sm", "check", str(tmp_path / "two.toml")]
    assert execute([*command, "--keep", str(keep), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["equal"], found["routing_engine"], found["differences"]) == (True, "file", [])
    assert {"exported", "fabric.net", "opensm.conf", "osm.log", "qos-policy.conf"} <= {
        one.name for one in keep.iterdir()
    }
    assert execute([*command, "--keep", str(keep)]) == 2
    assert "--keep" in capsys.readouterr().err


def test_settings_that_ports_do_not_have_are_differences(small: Path, tmp_path: Path) -> None:
    """OpenSM is given other files than those that are compared."""
    write = checking._write

    def other(folder: Path, *rest: Any) -> None:
        write(folder, *rest)
        options = (folder / "opensm.conf").read_text()
        (folder / "opensm.conf").write_text(
            options.replace("qos_sl2vl 0,1,2,3", "qos_sl2vl 0,1,3,3").replace("2:32", "2:65")
        )
        policy = (folder / "qos-policy.conf").read_text()
        (folder / "qos-policy.conf").write_text(policy.replace("sl: 3", "sl: 1"))
        tables = (folder / "fabric.lfts").read_text().splitlines()
        row = next(number for number, line in enumerate(tables) if line.startswith("0x0040 "))  # at leaf0, to host63
        tables[row] = tables[row].replace(" 016 ", " 015 ")
        (folder / "fabric.lfts").write_text("\n".join(tables) + "\n")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checking, "_write", other)
        found = check(small, folder(tmp_path), pairs=500)
    kinds: dict[str, int] = {}
    for one in found.differences:
        name = one.what.partition(",")[0]
        kinds[name] = kinds.get(name, 0) + 1
    assert kinds["SL2VL"] == found.counts["SL2VL tables"]
    assert kinds["VL arbitration"] == found.counts["VL arbitration tables"] // 2
    assert {(one.expected, one.found) for one in found.differences if one.what == "service level of path"} == {
        ("3", "1")
    }
    assert [(one.node, one.port) for one in found.differences if one.what == "forwarding table"] == [
        ("leaf0", "to host63")
    ]


def test_lanes_that_max_op_vls_takes_away_are_due_to_the_exported_files(small: Path, tmp_path: Path) -> None:
    source = copied(small, tmp_path, "opensm.conf", "max_op_vls 5", "max_op_vls 2")
    found = check(source, folder(tmp_path), pairs=100)
    assert {(one.what, one.expected, one.found, one.cause) for one in found.differences} == {
        ("operational VLs", "at least 4", "2", "exported files"),
        # Lanes 2 and 3 are 0 and 1 then: lane 1 has the high table and one of three packets of low priority.
        (
            "shares of a link",
            "VL0 3.0%, VL1 3.0%, VL2 3.0%, VL3 90.9%",
            f"VL0 {100 * 2 / 33:.1f}%, VL1 {100 * 31 / 33:.1f}%",
            "exported files",
        ),
    }


def test_long_tables_are_compared_as_far_as_ibsim_can_hold_them(tmp_path: Path) -> None:
    weights = {"sl2vl": [0, 1, 1, 1], "arbiter": {"name": "weighted_round_robin", "weights": [40, 4]}}
    found = check(exported(tmp_path / "qos", scenario(TREES[16], weights, hosts=16)), folder(tmp_path), pairs=100)
    assert found.differences == ()
    (note,) = [note for note in found.notes if "ibsim have room for 8 and 8" in note]
    assert "VL0 90.9%, VL1 9.1% of a link, with those of ibsim VL0 100.0%, VL1 0.0%" in note


@pytest.mark.parametrize("lanes", [5, 2])
def test_exported_settings_are_taken_back(lanes: int, small: Path, tmp_path: Path) -> None:
    source = copied(small, tmp_path, "opensm.conf", "max_op_vls 5", f"max_op_vls {lanes}")
    found = check(source, folder(tmp_path), pairs=100, revert=True)
    assert found.counts["SL2VL tables after revert"] == found.counts["SL2VL tables"]
    assert not [one for one in found.differences if "after revert" in one.what]


def test_without_options_tables_stay_as_they_are(small: Path, tmp_path: Path) -> None:
    """Why the defaults are written out to take settings back."""
    left = copied(small, tmp_path, "revert/opensm.conf", "qos TRUE", "qos FALSE")
    kept = check(left, folder(tmp_path), pairs=100, revert=True)
    assert {one.what.partition(",")[0] for one in kept.differences} == {"VL arbitration", "SL2VL"}
    assert all("after revert" in one.what for one in kept.differences)
    assert {one.found for one in kept.differences if one.what.startswith("SL2VL")} == {"0,1,2,3" + ",0" * 12}


@pytest.mark.parametrize(
    ("arbiter", "note"),
    [
        ({"name": "weighted_round_robin", "weights": [1, 3, 2, 6]}, ""),
        ({"name": "strict_priority", "order": [3, 2, 1, 0], "shares": [[3, 20], [2, 30]]}, ""),
        ({"name": "strict_priority"}, ""),
        ({"name": "weighted_round_robin", "weights": [997, 3, 1, 1]}, "shares of a link are approximated"),
    ],
    ids=["weights", "shares", "priority", "nearest"],
)
def test_tables_of_every_arbiter_are_set_as_exported(arbiter: dict[str, Any], note: str, tmp_path: Path) -> None:
    qos = {"sl2vl": [0, 1, 2, 3], "arbiter": arbiter}
    found = check(exported(tmp_path / "qos", scenario(TREES[16], qos, hosts=16)), folder(tmp_path), pairs=20)
    assert found.differences == ()
    assert any(note in one for one in found.notes)
    assert bool(note) == any("approximated" in one for one in found.notes)


def copied(small: Path, tmp_path: Path, file: str, old: str, new: str) -> Path:
    """What was exported, with a file changed."""
    source = folder(tmp_path, "qos")
    (source / "revert").mkdir()
    exported_files = ("opensm.conf", "qos-policy.conf", "shares.tsv", "fabric.ibnetdiscover", "fabric.lfts")
    for name in (*exported_files, "revert/opensm.conf", "revert/qos-policy.conf"):
        text = (small / name).read_text()
        assert name != file or old in text
        (source / name).write_text(text.replace(old, new) if name == file else text)
    return source


@pytest.mark.parametrize("engine", ["ftree", "updn", "dfsssp", "nue"])
def test_routes_of_opensm_can_be_simulated(
    engine: str, small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lfts, fabric = tmp_path / "routes.lfts", tmp_path / "routes.fabric.json"
    command = ["sm", "check", str(small), "--engine", engine, "--routes-out", str(lfts), "--pairs", "200", "--json"]
    status = execute(command)
    found = json.loads(capsys.readouterr().out)
    assert found["routing_engine"] == engine
    # dfsssp chooses service levels itself, whatever the policy says; all else is as exported.
    assert {one["what"] for one in found["differences"]} == ({"service level of path"} if engine == "dfsssp" else set())
    assert status == (1 if engine == "dfsssp" else 0)
    assert all(one["cause"] == "routing engine dfsssp" for one in found["differences"])
    dump = small / "fabric.ibnetdiscover"
    assert execute(["fabric", "import", str(dump), "--tables", str(lfts), "-o", str(fabric)]) == 0
    # Building a fabric with tables follows the route of every pair of hosts, and refuses one that does not arrive.
    assert len(read_wiring(fabric).tables) == 12
    read_wiring(fabric).fabric("tables")
    imported = {"topology": "imported", "file": str(fabric), "routing": "tables"}
    (tmp_path / "run.toml").write_text(tomlkit.dumps(scenario(imported)))
    assert execute(["run", str(tmp_path / "run.toml"), "--out", str(tmp_path / "run"), "--quiet"]) == 0


def test_imported_forwarding_tables_are_loaded_and_compared(small: Path, tmp_path: Path) -> None:
    wiring = read_wiring(small / "fabric.ibnetdiscover", small / "fabric.lfts")
    wiring.save(tmp_path / "tree.fabric.json")
    imported = {"topology": "imported", "file": str(tmp_path / "tree.fabric.json"), "routing": "tables"}
    found = check(exported(tmp_path / "qos", scenario(imported)), folder(tmp_path), pairs=100)
    assert (found.engine, found.differences) == ("file", ())


@pytest.mark.parametrize(
    ("fabric", "note"),
    [
        ({"topology": "torus", "sides": [4, 4]}, ""),
        ({**TREES[16], "routing": "adaptive"}, "OpenSM routes by minhop, which is not compared"),
        ({**TREES[16], "bandwidth": "97 Gb/s"}, ""),
        ({"topology": "slim_fly", "q": 3, "hosts_per_switch": 1}, "cannot be simulated in one virtual lane"),
    ],
    ids=["torus", "adaptive", "odd bandwidth", "deadlock"],
)
def test_other_fabrics(fabric: dict[str, Any], note: str, tmp_path: Path) -> None:
    found = check(exported(tmp_path / "qos", scenario(fabric, hosts=16)), folder(tmp_path), pairs=100)
    assert found.differences == ()
    assert any(note in one for one in found.notes)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("opensm.conf", "qos TRUE", "qos TRUE\nnonsense 3", 'OpenSM refuses an option: Unrecognized token: "nonsense"'),
        ("opensm.conf", "qos_sl2vl 0,1,2,3", "qos_sl2vl 0,1,2,8", "needs 9 data lanes; allowed: at most 8"),
        ("qos-policy.conf", "host0/P1", "host00/P1", "the fabric has no such port (group latency: 1 of 16)"),
        ("qos-policy.conf", "sl: 3", "sl: 3\n        pkey: 0xZZ", "OpenSM refuses what was exported: "),
        ("fabric.lfts", "0x0001 001", "0x0001 900", "OpenSM cannot route this fabric with it"),
    ],
)
def test_what_opensm_refuses(file: str, old: str, new: str, words: str, small: Path, tmp_path: Path) -> None:
    source = copied(small, tmp_path, file, old, new)
    with pytest.raises(ScenarioError) as error:
        check(source, folder(tmp_path))
    assert words in str(error.value)
    assert not _processes(os.getpid())


def test_wrong_options(small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "nine.toml").write_text(
        tomlkit.dumps(scenario(TREES[16], {"sl2vl": list(range(9)), "arbiter": {"name": "vlarb"}}, hosts=16))
    )
    for arguments, words in (
        ([str(small), "--engine", "ftre"], 'did you mean "ftree"?'),
        ([str(small), "--engine", "torus-2QoS"], "OpenSM cannot route this fabric with it, and has used minhop"),
        ([str(small), "--approximate"], "the folder has exported settings already"),
        (
            [str(tmp_path / "nine.toml")],
            "needs 9 data lanes; allowed: at most 8: the ports that ibsim simulates have VL0",
        ),
        ([str(tmp_path / "none.toml")], "none.toml"),
    ):
        assert execute(["sm", "check", *arguments]) == 2
        printed = capsys.readouterr().err
        assert words in printed
        allowed = printed.partition("another engine: ")[2]
        assert "torus-2QoS" not in allowed


def _processes(of: int) -> list[int]:
    """The processes of the simulated subnets of a process."""
    mark, found = f"IBSIM_SOCKNAME=fairlane-{of}-".encode(), []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in place.read_bytes():
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_runs_on_when_the_command_is_killed(number: signal.Signals, small: Path, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(folder(tmp_path, "tmp"))}
    command = [sys.executable, "-m", "fairlane", "sm", "check", str(small)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: len(_processes(process.pid)) >= 2, "ibsim and opensm", process)
        process.send_signal(number)
        process.wait()
        wait_for(lambda: not _processes(process.pid), "the end of ibsim and opensm")
    finally:
        process.kill()
        process.wait()
    expected = {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: 130}
    assert process.returncode == expected[number]
    if number != signal.SIGKILL:
        assert list((tmp_path / "tmp").iterdir()) == []


def test_an_error_while_reading_ends_the_subnet(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        assert len(_processes(os.getpid())) >= 2
        raise RuntimeError

    monkeypatch.setattr(checking, "compare_ports", fail)
    with pytest.raises(RuntimeError):
        check(small, folder(tmp_path))
    assert not _processes(os.getpid())
