"""Runs with the same results, bit for bit, are one replicate: in load sweeps, GPCNeT, failures and advice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.results.notes import distinct, repeated
from fairlane.study.shipped.cables import Survey
from fairlane.study.shipped.gpcnet import Benchmark
from fairlane.study.shipped.saturation import LoadSweep
from fairlane.views.kinds import view_of

pytestmark = pytest.mark.usefixtures("here")

SWITCH = {"topology": "fat_tree", "hosts": 10, "levels": 1, "bandwidth": "100 Gb/s", "latency": "100 ns"}
STILL = """
duration = "600 us"
fabric = { topology = "fat_tree", hosts = 8, levels = 2, leaf_down = 4, leaf_up = 2 }
network.sweep_time = "20 us"
network.retransmission_timeout = "10 us"
[[jobs]]
name = "all"
ranks = 4
placement = { hosts = [0, 4, 1, 5] }
workload = { name = "flood_pairs", message_size = "16 KiB", compute = "0 us" }
"""
ADVISED = """
duration = "200 us"
fabric = { topology = "fat_tree", hosts = 8, levels = 1 }
[[jobs]]
name = "application"
ranks = 4
workload = { name = "all_to_all", message_size = "4 KiB", compute = "0 us" }
[[jobs]]
name = "neighbour"
ranks = 4
placement = { hosts = [4, 5, 6, 7] }
workload = { name = "all_to_all", message_size = "4 KiB", compute = "0 us" }
"""
SAME = "another of the same condition, bit for bit, and count once"


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.sampled_from("xyz"))))
def test_as_many_count_as_there_are_results_of_each_condition(rows: list[tuple[str, int, str]]) -> None:
    table = pl.DataFrame(rows, ["load", "seed", "digest"], orient="row")
    once = distinct(table, ("load", "digest"))
    different = list(dict.fromkeys((load, digest) for load, _, digest in rows))
    assert list(once.select("load", "digest").iter_rows()) == different
    words = repeated(table, ("load", "digest"), ["seeds"])
    assert bool(words) == (len(different) < len(rows))
    assert all(one.startswith(f"{len(rows) - len(different)} of {len(rows)} run") for one in words)


def unmoved(plan: type[Any], monkeypatch: pytest.MonkeyPatch, seeds: dict[int, int]) -> None:
    """Makes simulations of some seeds those of others."""
    at: Callable[..., Scenario] = plan.at
    monkeypatch.setattr(plan, "at", lambda self, *condition: at(self, *condition[:-1], seeds[condition[-1]]))


def test_seeds_that_change_nothing_are_one_replicate_of_a_load(monkeypatch: pytest.MonkeyPatch) -> None:
    unmoved(LoadSweep, monkeypatch, {1: 1, 2: 1, 3: 1})
    scenario = Scenario(fabric=SWITCH, jobs=[{"ranks": 2, "workload": "flood_pairs"}])
    found = LoadSweep(scenario, loads=[0.2, 0.5], replicates=3, duration="60 us").run()
    assert found.runs["digest"].n_unique() == 2
    assert found.points["seeds"].to_list() == [3, 3]
    assert found.points["replicates"].to_list() == [1, 1]
    assert found.points["accepted_low"].null_count() == 2
    assert found.points["message_count"].to_list() == found.runs["message_count"].unique(maintain_order=True).to_list()
    # Nothing is random, so the ratio has no uncertainty, and decides.
    assert found.points["saturated"].to_list() == ["no", "no"]
    assert found.repeated() == [f"4 of 6 runs repeat {SAME}: seeds change nothing there."]
    assert {*found.repeated()} <= {*view_of([found]).remarks}


def test_assignments_that_change_nothing_are_one_replicate_of_gpcnet(monkeypatch: pytest.MonkeyPatch) -> None:
    unmoved(Benchmark, monkeypatch, {1: 1, 2: 2, 3: 3, 4: 3})
    scenario = Scenario(fabric=SWITCH, jobs=[{"ranks": 2, "workload": "flood_pairs"}])
    options = {"ranks_per_host": 1, "replicates": 4, "iterations": 25, "warm_up": "20 us"}
    found = Benchmark(scenario, transports=["credits_only"], **options).run()
    assert found.impact["replicates"].to_list() == [3, 3, 3]
    once = found.trials.filter(pl.col("seed") < 4)
    for test, mean in found.impact.select("test", "congested").iter_rows():
        assert mean == pytest.approx(once.filter(pl.col("congested"), test=test)["mean"].mean())
    assert found.repeated() == [f"6 of 24 trials repeat {SAME}: assignments of hosts change nothing there."]
    assert {*found.repeated()} <= {*view_of([found]).remarks}


def test_seeds_that_change_nothing_are_one_replicate_of_a_failure(tmp_path: Path) -> None:
    file = tmp_path / "still.toml"
    file.write_text(STILL)
    found = Survey(Scenario.load(file), replicates=3).run()
    assert found.ranking["replicates"].to_list() == [1] * 4
    assert found.slowdowns["slowdown"].null_count() == 0
    assert found.slowdowns["slowdown_low"].null_count() == found.slowdowns.height
    assert found.alike == 3, "by symmetry the difference of any two cables is zero"
    assert found.repeated() == [f"8 of 12 runs repeat {SAME}: seeds change nothing there."]


def test_seeds_that_change_nothing_give_advice_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "advised.toml"
    file.write_text(ADVISED)
    assert execute(["advise", str(file), "--out", str(tmp_path / "out"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["placement"]: row for row in found["alternatives"]}
    assert [name for name, row in rows.items() if row["low_ms"] is None] == ["packed", "spread"]
    assert execute(["advise", str(file), "--out", str(tmp_path / "shown")]) == 0
    shown = capsys.readouterr().out
    # Of three seeds of two placements, co-running and isolated, two each.
    assert f"8 of 18 simulations repeat {SAME}: seeds change nothing there." in shown
