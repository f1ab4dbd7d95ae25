"""Presets of production machines: Leonardo node by node, LUMI-G as its documentation says."""

import csv
import lzma
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fairlane import Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.view import Fabric

NODES = Path(__file__).parent.parent.parent / "examples" / "leonardo" / "nodes.csv.xz"
SPINES = 18


def built(topology: str, preset: str, routing: str = "minimal") -> Fabric:
    return Fabric.build({"topology": topology, "params": {"preset": preset}, "routing": routing})


@pytest.fixture(scope="module")
def leonardo() -> Fabric:
    return built("dragonfly_plus", "leonardo")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str]]:
    with lzma.open(NODES, "rt", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_node_of_leonardo_is_at_its_leaf_in_its_cell(leonardo: Fabric, rows: list[dict[str, str]]) -> None:
    size = leonardo.plan["switches"]
    known = {row["node"]: (row["cell"], row["leaf_switch"]) for row in rows}
    assert len(known) == 4992
    names = leonardo.switch_names
    there = {
        node: (str(leaf // size + 1), names[leaf])
        for node, leaf in zip(leonardo.host_names, leonardo.leaf_of, strict=True)
    }
    assert there == known


def test_booster_nodes_have_two_hundred_gigabits_and_others_one_hundred(leonardo: Fabric) -> None:
    rates = dict(zip(leonardo.host_names, leonardo.bandwidths_of_hosts().tolist(), strict=True))
    assert Counter(rates.values()) == {200e9: 3456, 100e9: 1536}
    # The Booster is lrdn0001 to lrdn3456.
    assert {rate for name, rate in rates.items() if name <= "lrdn3456"} == {200e9}


def test_spines_of_leonardo_join_their_leaves_and_one_spine_of_each_other_cell(leonardo: Fabric) -> None:
    size, links = leonardo.plan["switches"], leonardo.links
    spine = np.array(list(leonardo.levels)) == 2
    assert spine.sum() == 22 * SPINES
    begin, end = links["from_switch"], links["to_switch"]
    between = (begin >= 0) & (end >= 0)
    beyond: Counter[tuple[int, int]] = Counter()
    for a, b in zip(begin[between].tolist(), end[between].tolist(), strict=True):
        if a // size == b // size:
            assert spine[a] != spine[b]
        else:
            assert spine[a]
            assert spine[b]
            assert a % size == b % size
            beyond[a, b // size] += 1
    assert set(beyond.values()) == {1}
    assert len(beyond) == 22 * SPINES * 21
    assert (between & ~spine[begin]).sum() == 22 * 18 * SPINES


@pytest.mark.parametrize("routing", ["minimal", "ugal_l", "progressive"])
def test_jobs_run_on_named_nodes_of_different_cells(routing: str) -> None:
    hosts = ["lrdn0898", "lrdn0001", "lrdn[3421,3483]", "lrdn[4991-4992]"]
    job = {
        "name": "all",
        "ranks": 6,
        "workload": {"name": "all_to_all", "compute": "1 us", "message_size": "1 KiB"},
        "placement": {"hosts": hosts},
    }
    fabric = {"topology": "dragonfly_plus", "preset": "leonardo", "routing": routing}
    simulation = Simulation(Scenario(duration="100 us", fabric=fabric, jobs=[job]))
    simulation.run_until("100 us")
    assert simulation.work()["all"] > 0


def test_an_export_with_leaves_without_hosts_says_that_numbers_change(
    leonardo: Fabric, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "leonardo.csv"
    parameters = ["--topology", "dragonfly_plus", "--set", "preset=leonardo"]
    assert execute(["fabric", "export", *parameters, "--csv", "--out", str(file)]) == 0
    assert "switches and links have other numbers when the file is read again" in capsys.readouterr().err
    again = read_wiring(file).fabric()
    assert again.host_names == leonardo.host_names
    names = again.switch_names
    assert names != leonardo.switch_names
    assert [names[leaf] for leaf in again.leaf_of] == [leonardo.switch_names[leaf] for leaf in leonardo.leaf_of]
    ends = [sorted(zip(one.links["from_name"], one.links["to_name"], strict=True)) for one in (leonardo, again)]
    assert ends[0] == ends[1]


def test_lumi_is_twenty_groups_whose_switches_are_joined_all_to_all() -> None:
    lumi = built("dragonfly", "lumi")
    assert (lumi.hosts, lumi.switches, lumi.plan["switches"]) == (10_240, 640, 32)
    begin, end = lumi.links["from_switch"], lumi.links["to_switch"]
    between = (begin >= 0) & (end >= 0)
    local = between & (begin // 32 == end // 32)
    assert local.sum() == 640 * 31
    pairs = Counter(zip((begin[between & ~local] // 32).tolist(), (end[between & ~local] // 32).tolist(), strict=True))
    assert len(pairs) == 20 * 19
    assert set(pairs.values()) == {28}
    assert set(lumi.links["bandwidth"].tolist()) == {200_000_000_000}


def test_endpoints_of_lumi_make_nodes_with_four_adapters_at_four_switches() -> None:
    spec = {"topology": "dragonfly", "params": {"preset": "lumi"}, "routing": "minimal"}
    rails = {"count": 4, "wiring": "rail_optimised", "adapters": []}
    lumi = Fabric.build({**spec, "rails": rails})
    assert lumi.hosts == 2560
    assert [len(set(lumi.adapter_switches(host).tolist())) for host in (0, 1, 2559)] == [4, 4, 4]
