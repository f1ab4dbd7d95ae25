"""Levels of communicators as libraries and networks spell them: exported files lead messages to their lanes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from fairlane.cluster.opensm.export import export as opensm_files
from fairlane.model.stacks import LIBRARIES, export, reached, rebuilt, roce
from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import Rank

KINDS = ("expert_parallel", "data_parallel", "kv_cache")
COMMUNICATORS = ("world", *KINDS)


class Step(Workload):
    """A collective in each of the communicators, all of them at once."""

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        for handle, name in enumerate(KINDS, 3):
            rank.comm_split(handle, rank.index // 4, name=name)
        super().write(rank, stages)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        for handle in (0, 3, 4, 5):
            rank.icollective("alltoall", 8192, comm=handle)
        rank.wait_all()


ARBITER = {"name": "weighted_round_robin", "weights": [1, 4, 2, 1]}


def scenario(classes: dict[str, Any], level: int = 0, **qos: Any) -> Scenario:
    """Two jobs of eight ranks that share the cables of a tapered fat-tree."""
    jobs = [
        {"name": name, "ranks": 8, "workload": Step(), "service_level": own}
        for name, own in (("train", level), ("serve", 0))
    ]
    fabric = {"topology": "fat_tree", "hosts": 16, "levels": 2, "leaf_down": 4, "leaf_up": 1}
    tables = {"service_levels": 4, "arbiter": ARBITER, **qos}
    return Scenario(fabric=fabric, qos=tables, classes=classes, jobs=jobs, duration="300 us")


def digest(one: Scenario) -> str:
    simulation = Simulation(one)
    simulation.run_for("300 us")
    return simulation.digest()


EXPERTS = {"communicator": "expert_parallel", "service_level": 1}
DATA = {"communicator": "data_*", "job": "train", "service_level": 3}
CACHE = {"communicator": "kv_cache", "service_level": 2}
TRAIN = {"job": "train", "service_level": 1}
LAWS = [
    ("nccl", "infiniband", {"experts": EXPERTS, "data": DATA}),
    ("nccl", "roce", {"experts": EXPERTS, "data": DATA}),
    ("nccl", "roce", {"train": TRAIN}),
    ("mooncake", "infiniband", {"cache": CACHE}),
    ("mooncake", "roce", {"cache": CACHE}),
    ("ucx", "infiniband", {"train": TRAIN}),
    ("ucx", "roce", {"train": TRAIN}),
    ("cray_mpi", "slingshot", {"train": TRAIN}),
]
NAMES = {0: "BEST_EFFORT", 1: "LOW_LATENCY"}


@pytest.mark.parametrize(("library", "network", "classes"), LAWS)
def test_exported_settings_have_the_simulated_effect(library: str, network: str, classes: dict[str, Any]) -> None:
    """What is read back from the files alone gives a scenario that runs in the same way, and not as without levels."""
    original = scenario(classes)
    resolved = original.resolve()
    spelled = export(resolved, library, network, names=NAMES)
    lanes = reached(spelled, resolved.tables["qos"]["sl2vl"], NAMES)
    if library == "nccl":  # which does not carry the messages of the KV cache
        cache = export(resolved, "mooncake", network)
        lanes |= reached(cache, resolved.tables["qos"]["sl2vl"])
    again = scenario(rebuilt(lanes))
    assert digest(again) == digest(original) != digest(scenario({}))
    for one in spelled.spellings:
        assert {lanes[one.job, name] for name in one.communicators} == {one.lane}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    ("classes", "qos", "key"),
    [
        ({"a": {"operation": "alltoall", "service_level": 1}}, {}, "classes.a.operation"),
        ({"a": {"size": {"above": "1 KiB"}, "service_level": 1}}, {}, "classes.a.size"),
        ({"a": EXPERTS}, {}, "classes.a.communicator"),
        ({}, {"kinds": {"control": 1}}, "qos.kinds"),
    ],
)
def test_what_a_library_cannot_say_is_refused_or_noted(
    library: str, classes: dict[str, Any], qos: dict[str, Any], key: str
) -> None:
    resolved = scenario(classes, **qos).resolve()
    network = next(iter(LIBRARIES[library].settings))
    if key.endswith("communicator") and library in ("nccl", "mooncake"):
        export(resolved, library, network)
        return
    with pytest.raises(ScenarioError, match=re.escape(key) + r".*--approximate"):
        export(resolved, library, network, names=NAMES)
    spelled = export(resolved, library, network, approximate=True, names=NAMES)
    assert any(key in note for note in spelled.notes)
    assert {one.level for one in spelled.spellings} == {0}


def test_opensm_is_not_given_levels_of_classes() -> None:
    resolved = scenario({"experts": EXPERTS}).resolve()
    with pytest.raises(ScenarioError, match="qos classes writes those that a library can set"):
        opensm_files(resolved)
    assert any("traffic classes" in note for note in opensm_files(resolved, approximate=True).notes)


def test_a_communicator_s_configuration_gives_way_to_a_variable() -> None:
    """So NCCL's variables are cleared where communicators differ: with one, all messages have one level."""
    resolved = scenario({"experts": EXPERTS}).resolve()
    spelled = export(resolved, "nccl", "roce")
    assert json.loads(spelled.files["communicators.json"])["train"] == {
        "world": 0,
        "data_parallel": 0,
        "expert_parallel": 32,  # DSCP 8 in the upper six bits
    }
    assert "unset NCCL_IB_TC" in spelled.files["env/train.sh"]
    wrong = {**spelled.files, "env/train.sh": "export NCCL_IB_TC=0\n"}
    lanes = reached(type(spelled)(**{**vars(spelled), "files": wrong}), resolved.tables["qos"]["sl2vl"])
    assert {lanes["train", name] for name in ("world", "data_parallel", "expert_parallel")} == {0}
    assert lanes["serve", "expert_parallel"] == 1


@given(st.lists(st.integers(0, 7), min_size=8, max_size=8), st.lists(st.integers(1, 20), min_size=8, max_size=8))
def test_the_tools_of_roce_set_the_same(lanes: list[int], weights: list[int]) -> None:
    """Every packet comes to its lane, shares add up, and ``dcb`` says what ``mlnx_qos`` says."""
    qos = {
        "sl2vl": [*lanes, *[0] * 8],
        "lossy": [7],
        "arbiter": {"name": "weighted_round_robin", "params": {"weights": weights}},
    }
    ports, _ = roce.priority_map(qos, range(8), approximate=False)
    texts = roce.scripts(ports)
    assert roce.read(texts["mlnx_qos.sh"]) == ports
    assert [ports.lane(8 * level) for level in range(8)] == lanes
    assert sum(ports.shares) == 100
    total = sum(weights[lane] for lane in set(lanes))
    assert all(abs(ports.shares[lane] - 100 * weights[lane] / total) < 1 for lane in set(lanes))
    dcb = {
        words[0]: words[1]
        for words in re.findall(r"(prio-pfc|prio-tc|prio-buffer|dscp-prio) ((?:\d+:\w+ ?)+)", texts["dcb.sh"])
    }
    pairs = {name: [entry.split(":")[1] for entry in found.split()] for name, found in dcb.items()}
    assert pairs["prio-tc"] == pairs["prio-buffer"] == list(map(str, lanes))
    assert pairs["prio-pfc"] == ["off" if lane == 7 else "on" for lane in lanes]
    assert pairs["dscp-prio"] == list(map(str, range(8)))
    enabled = ",".join(str(level) for level in range(8) if lanes[level] != 7) or "none"
    assert f"enabled={enabled}\n" in texts["lldptool.sh"]


def test_files_are_written_in_the_folder_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(FILE.replace('name = "job"', 'name = "../../job"'))
    options = ["--library", "nccl", "--network", "roce", "--out", str(tmp_path / "new" / "stack")]
    assert execute(["qos", "classes", str(file), *options]) == 2
    assert "env/../../job.sh" in capsys.readouterr().err.replace("\n", "")
    assert not (tmp_path / "new").exists()


def test_lanes_that_no_message_has_need_no_traffic_class() -> None:
    """Only the levels in use need one of the eight; the other priorities have that of the default."""
    qos = {
        "sl2vl": [1, 0, 9, *range(10, 15), *[0] * 8],
        "default": 0,
        "arbiter": {"name": "weighted_round_robin", "params": {}},
    }
    ports, _ = roce.priority_map(qos, {0, 1}, approximate=False)
    assert ports.lanes == (1, 0, *[1] * 6)
    assert ports.lossless == (True, True, *[False] * 6)
    with pytest.raises(ScenarioError, match="needs 10 virtual lanes"):
        roce.priority_map(qos, {0, 2}, approximate=False)


def test_lanes_of_small_weights_keep_a_share() -> None:
    """A traffic class of 0 percent would have strict priority."""
    arbiter = {"name": "weighted_round_robin", "params": {"weights": [1000, 1, 1]}}
    ports, notes = roce.priority_map({"sl2vl": [0, 1, 2] + [0] * 13, "arbiter": arbiter}, range(3), approximate=False)
    assert ports.shares == (98, 1, 1, 0, 0, 0, 0, 0)
    assert notes == ["shares of links are rounded to percent: traffic classes [0, 1, 2]"]


FILE = """duration = "1 ms"
fabric = { topology = "fat_tree", hosts = 16 }
qos = { service_levels = 2 }
[[jobs]]
name = "job"
ranks = 16
workload = "fft"
[classes.rows]
communicator = "row"
service_level = 1
"""


SLINGSHOT = ["--library", "cray_mpi", "--network", "slingshot", "--set", "classes={}"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--library", "ncl", "--network", "roce"], 'did you mean "nccl"?'),
        (["--library", "nccl", "--network", "slingshot"], "has no setting for this network; allowed: infiniband, roce"),
        (["--library", "mooncake", "--network", "roce"], "no communicator is one of Mooncake: kv_*"),
        (["--library", "ucx", "--network", "roce"], "classes.rows.communicator"),
        (["--library", "nccl", "--network", "roce", "--set", "classes.rows.service_level=9"], "service level"),
        (
            SLINGSHOT,
            "--traffic-class: service level 0 has none",
        ),
        (
            [*SLINGSHOT, "--traffic-class", "0=DEDICATED_ACCESS", "--profile", "LL_BE_BD_ET"],
            "unknown traffic class of profile LL_BE_BD_ET",
        ),
        (
            [*SLINGSHOT, "--traffic-class", "0=LOW_LATENCY", "--traffic-class", "0=BULK_DATA"],
            "each level once",
        ),
    ],
)
def test_what_cannot_be_spelled_is_named(
    options: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.toml"
    file.write_text(FILE)
    assert execute(["qos", "classes", str(file), *options, "--out", str(tmp_path / "stack")]) == 2
    assert expected in " ".join(capsys.readouterr().err.split())


def test_the_command_prints_what_is_set_and_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "job.toml"
    file.write_text(FILE)
    options = ["--library", "nccl", "--network", "infiniband", "--out", str(tmp_path / "stack")]
    assert execute(["qos", "classes", str(file), *options, "--json"]) == 0
    rows = {row["communicators"][0]: row for row in json.loads(capsys.readouterr().out)["messages"]}
    assert {name: (row["setting"], row["reached"]) for name, row in rows.items()} == {
        "world": ("trafficClass = 0", [0]),
        "row": ("trafficClass = 1", [1]),
    }
    assert json.loads((tmp_path / "stack" / "communicators.json").read_text()) == {"job": {"world": 0, "row": 1}}
