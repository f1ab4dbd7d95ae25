"""Files of OpenSM in which the level of a traffic class does not reach its lane, or has another share of links."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.cluster.opensm.check import compare_classes
from fairlane.cluster.opensm.export import export

SCENARIO = """duration = "1 ms"
fabric = { topology = "fat_tree", hosts = 16 }
[qos]
service_levels = 4
arbiter = { name = "weighted_round_robin", weights = [1, 4, 2, 1] }
[classes.rows]
job = "transform"
communicator = "row"
service_level = 1
[classes.bulk]
job = "reads"
service_level = 2
[[jobs]]
name = "transform"
ranks = 8
workload = "fft"
[[jobs]]
name = "reads"
ranks = 8
workload = "flood_pairs"
service_level = 2
"""
LEVELS = "0,1,2,3,0,0,0,0,0,0,0,0,0,0,0,0"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The scenario, and what is exported for it."""
    (tmp_path / "job.toml").write_text(SCENARIO)
    exported = export(Scenario.load(tmp_path / "job.toml").decide(), approximate=True)
    for name in ("opensm.conf", "qos-policy.conf"):
        (tmp_path / name).write_text(exported.files[name])
    return tmp_path


def compared(folder: Path, file: str = "opensm.conf", changes: Sequence[tuple[str, str]] = ()) -> list[list[str]]:
    """Place with the line, what, expected, found and cause of each difference after changes of a file."""
    text = (folder / file).read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    (folder / file).write_text(text)
    resolved = Scenario.load(folder / "job.toml").decide()
    found = compare_classes(resolved, folder / "opensm.conf", folder / "qos-policy.conf")
    return [
        [Path(one.node).name, one.what, one.expected, one.found, one.cause.split(",")[0]] for one in found.differences
    ]


def line_of(folder: Path, file: str, key: str) -> str:
    """The place of the first line that begins with a key."""
    lines = (folder / file).read_text().splitlines()
    return f"{file}:{1 + next(at for at, line in enumerate(lines) if line.strip().startswith(key))}"


def test_what_is_exported_reaches_the_lanes(files: Path) -> None:
    assert compared(files) == []


def test_another_lane_is_named_with_the_line_and_the_class(files: Path) -> None:
    found = compared(files, changes=[(f"qos_sl2vl {LEVELS}", f"qos_sl2vl 0,15,0,3{LEVELS[7:]}")])
    place = line_of(files, "opensm.conf", "qos_sl2vl")
    assert found[:3] == [
        [place, "class rows, service level 1", "lane 1", "lane 15 (drops its packets)", "qos_sl2vl"],
        [place, "class bulk, service level 2", "lane 2", "lane 0", "qos_sl2vl"],
        [place, "job reads, service level 2", "lane 2", "lane 0", "qos_sl2vl"],
    ]


def test_fewer_lanes_in_operation_keep_the_low_bits(files: Path) -> None:
    found = compared(files, changes=[("max_op_vls 5", "max_op_vls 2")])
    place = line_of(files, "opensm.conf", "max_op_vls")
    assert [place, "class bulk, service level 2", "lane 2", "lane 0", "max_op_vls"] in found
    assert not [row for row in found if row[1] == "class rows, service level 1"], "two lanes are left"


def test_other_weights_are_shares_of_the_class(files: Path) -> None:
    lines = (files / "opensm.conf").read_text().splitlines()
    (before,) = [line for line in lines if line.startswith("qos_vlarb_low")]
    found = compared(files, changes=[(before, "qos_vlarb_low 0:64,1:64,2:64,3:64")])
    rows = {what: row for _, what, *row in found}
    assert rows["class rows, lane 1"][:2] == ["50.0% of a link", "25.0% of a link"]
    assert rows["job transform, lane 0"][:2] == ["12.5% of a link", "25.0% of a link"]
    assert "class bulk, lane 2" not in rows, "it has a quarter as before"
    assert {row[0] for row in found} == {line_of(files, "opensm.conf", "qos_vlarb_low")}


def test_a_policy_gives_paths_the_level_of_a_class_of_all_messages(files: Path) -> None:
    """Not that of the class of a communicator, which libraries set."""
    text = (files / "qos-policy.conf").read_text()
    rule = text.index("source: reads")
    at = text.index("qos-level-name: sl2", rule)
    (files / "qos-policy.conf").write_text(text[:at] + "qos-level-name: sl0" + text[at + 19 :])
    ((place, what, expected, found, cause),) = compared(files)
    line = 1 + text[: text.rindex("qos-match-rule\n", 0, rule)].count("\n")
    assert (place, what) == (f"qos-policy.conf:{line}", "class bulk, paths")
    assert (expected, found, cause) == ("service level 2", "service level 0", "qos-match-rule of level sl0")


def test_the_command_reads_files_without_a_subnet(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["sm", "check", str(files / "job.toml"), "--options", str(files / "opensm.conf"), "--json"]
    assert execute(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal"]
    assert found["compared"] == {"classes and jobs": 4, "service levels": 3, "rules of the policy": 2}
    compared(files, changes=[(f"qos_sl2vl {LEVELS}", "qos_sl2vl 0,0,2,3")])
    assert execute(command) == 1
    assert json.loads(capsys.readouterr().out)["differences"][0]["what"] == "class rows, service level 1"
    (files / "opensm.conf").write_text("qos_sl2vl 0,x\n")
    assert execute(command) == 2
    assert "opensm.conf" in capsys.readouterr().err
