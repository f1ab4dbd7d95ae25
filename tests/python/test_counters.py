"""Counters of flits and stalls at receiving switches, after each iteration of a job, against the counters of ports."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairlane
from fairlane import Run, Scenario, ScenarioError
from fairlane.sim.runner.counters import FEATURES

FABRIC = {"topology": "dragonfly", "groups": 3, "switches_per_group": 2, "hosts_per_switch": 2, "global_links": 1}
JOBS: list[dict[str, Any]] = [
    {
        "name": "halo",
        "ranks": 4,
        "workload": {"name": "halo3d", "message_size": "64 KiB", "compute": "20 us"},
        "stop": 5,
        "placement": {"name": "list", "hosts": [0, 1, 4, 5]},
    },
    {"name": "ring", "ranks": 4, "workload": {"name": "ring", "message_size": "64 KiB"}},
]


def simulated(folder: Path, asked: Any) -> Run:
    scenario = Scenario(
        fabric=FABRIC, jobs=JOBS, duration="2 ms", observe={"switch_counters": asked, "iterations": ["halo"]}
    )
    return fairlane.run(scenario, out=folder, isolated=False)


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> Run:
    asked = {"job": "halo", "all_switches": True, "flit": "32 B", "cycle": "1 ns", "poll_interval": "1 us"}
    return simulated(tmp_path_factory.mktemp("run") / "all", asked)


def test_a_row_for_each_iteration_with_its_time_and_all_features(everywhere: Run) -> None:
    counters = everywhere.counters
    assert counters is not None
    assert counters["iteration"].to_list() == [1, 2, 3, 4, 5]
    assert counters["iterations"].to_list() == [1] * 5
    assert counters.columns == ["iteration", "iterations", "time_s", "at_ps", *FEATURES]
    assert len(FEATURES) == 48
    assert everywhere.iterations is not None
    # Over is an iteration when two of the four ranks have done it.
    ends = everywhere.iterations.sort("at_ps").group_by("iteration", maintain_order=True).agg(pl.col("at_ps").get(1))
    assert counters["time_s"].to_numpy() * 1e12 == pytest.approx(np.diff(ends["at_ps"].to_numpy(), prepend=0))
    late = counters["at_ps"].to_numpy().astype(np.int64) - ends["at_ps"].to_numpy().astype(np.int64)
    assert late.min() >= 0
    assert late.max() < 1_000_000 + 100_000, "looked at every microsecond, at the end of a window"


def test_sums_are_what_came_over_links_into_switches(everywhere: Run) -> None:
    counters = everywhere.counters
    assert counters is not None
    # Up to the last iteration, and the ring goes on: so no more than at the end, and nearly as much of the first job.
    into = everywhere.ports.filter(pl.col("to_vertex").str.starts_with("switch"))
    for lane in into["lane"].unique().to_list():
        own = into.filter(pl.col("lane") == lane)
        for counter, column, unit in (("flits", "bytes", 32), ("stalls", "input_queueing_ps", 1000)):
            found, whole = counters[f"{counter}_sum_vc{lane}"].to_numpy(), own[column].to_numpy().sum() / unit
            assert 0 <= found.sum() <= whole
            assert counters[f"{counter}_mean_vc{lane}"].to_numpy() * own.height == pytest.approx(found)
    assert counters["flits_sum_vc0"].to_numpy().min() > 0
    assert counters["stalls_sum_vc0"].to_numpy().sum() > 0
    unused = [f"{counter}_max_vc{lane}" for counter in ("flits", "stalls") for lane in range(2, 8)]
    assert not counters.select(unused).to_numpy().any()


def test_a_job_sees_the_switches_at_its_hosts_only(everywhere: Run, tmp_path: Path) -> None:
    own = simulated(tmp_path / "own", {"job": "halo", "cycle": "1 ns", "poll_interval": "1 us"})
    assert own.counters is not None
    assert everywhere.counters is not None
    assert own.meta.digest == everywhere.meta.digest
    assert own.counters["time_s"].equals(everywhere.counters["time_s"])
    sums = [name for name in FEATURES if "_sum_" in name]
    assert (own.counters.select(sums).to_numpy() <= everywhere.counters.select(sums).to_numpy()).all()
    # The switches at hosts 0, 1, 4 and 5: everything that these hosts send comes in there.
    sent = own.ports.filter(pl.col("from_vertex").is_in([f"host {host}" for host in (0, 1, 4, 5)]))["bytes"].to_numpy()
    flits = sums[:8]
    seen, whole = (
        float(run.counters.select(flits).to_numpy().sum()) for run in (own, everywhere) if run.counters is not None
    )
    assert 32 * seen > 0.9 * sent.sum()
    assert seen < whole


@pytest.mark.parametrize(
    ("asked", "words"),
    [("hallo", "observe.switch_counters.job.*halo"), ({"job": "halo", "flit": 0}, "flit"), ({"jobs": "halo"}, "jobs")],
)
def test_what_cannot_be_counted_is_refused(asked: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=words):
        simulated(tmp_path / "none", asked)


STEP, POLL, SLACK = 20_000_000, 2_000_000, 200_000
"""Sampling step and polling interval, and how far simulations go beyond an instant at most, ps."""


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Run:
    asked = {"job": "halo", "all_switches": True, "poll_interval": "2 us"}
    windows = {"windows": ["20 us", "60 us"], "window_step": "20 us"}
    jobs = [JOBS[0] | {"stop": 8}, JOBS[1]]
    observe = {"switch_counters": {**asked, **windows}, "iterations": ["halo"], "interval": "20 us"}
    scenario = Scenario(fabric=FABRIC, jobs=jobs, duration="3 ms", observe=observe)
    return fairlane.run(scenario, out=tmp_path_factory.mktemp("run") / "windows", isolated=False)


def test_windows_end_before_their_iteration_and_have_their_length(sampled: Run) -> None:
    windows, counters = sampled.counters_before, sampled.counters
    assert windows is not None
    assert counters is not None
    assert windows.columns == ["iteration", "window_ps", "from_ps", "to_ps", *FEATURES]
    ends = dict(zip(counters["iteration"], (counters["time_s"] * 1e12).round().cum_sum(), strict=True))
    for iteration, length, begin, end in windows.select(windows.columns[:4]).iter_rows():
        started = ends[iteration - 1]
        assert 0 < started - end < STEP + POLL + SLACK, "the last sample before the iteration"
        assert abs(end - begin - length) < SLACK
    # There is room for a window where it fits between the beginning and the last sample before the iteration.
    room = {it + 1: start - POLL - SLACK for it, start in ends.items() if it + 1 in ends}
    expected = {(it, size) for it, space in room.items() for size in (STEP, 3 * STEP) if space >= size + STEP}
    found = windows.select("iteration", "window_ps").rows()
    assert expected <= set(found)
    assert len(expected) > 8
    assert max(windows["iteration"]) == 8
    assert 1 not in windows["iteration"]


def test_a_window_has_what_samples_of_ports_have(sampled: Run) -> None:
    windows, samples = sampled.counters_before, sampled.samples
    assert windows is not None
    assert samples is not None
    to_switches = sampled.ports.filter(pl.col("to_vertex").str.starts_with("switch"))["link"].unique()
    into = samples.filter(pl.col("link").is_in(to_switches.implode()))
    assert {*into["to_ps"]} >= {*windows["to_ps"]}, "sampled at the same instants"
    for row in windows.iter_rows(named=True):
        inside = into.filter(pl.col("from_ps") >= row["from_ps"], pl.col("to_ps") <= row["to_ps"])
        for lane in range(8):
            sent = int(inside.filter(lane=lane)["bytes"].sum())
            assert row[f"flits_sum_vc{lane}"] == pytest.approx(sent / 32)
            by_link = inside.filter(lane=lane).group_by("link").agg(pl.col("bytes").sum())["bytes"]
            assert row[f"flits_max_vc{lane}"] == pytest.approx((by_link.max() or 0) / 32)  # type: ignore[operator]
    assert windows["flits_sum_vc0"].to_numpy().max() > 0
    assert windows["stalls_sum_vc0"].to_numpy().max() > 0


def test_windows_change_nothing_else(sampled: Run, tmp_path: Path) -> None:
    assert sampled.counters is not None
    asked = {"job": "halo", "all_switches": True, "poll_interval": "2 us"}
    jobs = [JOBS[0] | {"stop": 8}, JOBS[1]]
    plain = Scenario(fabric=FABRIC, jobs=jobs, duration="3 ms", observe={"switch_counters": asked})
    found = fairlane.run(plain, out=tmp_path / "plain", isolated=False)
    assert found.counters_before is None
    assert found.counters is not None
    assert found.counters.drop("at_ps").equals(sampled.counters.drop("at_ps"))
    read = fairlane.load(tmp_path / "plain")
    assert isinstance(read, Run)
    assert read.counters_before is None


def test_windows_are_multiples_of_their_step(tmp_path: Path) -> None:
    asked = {"job": "halo", "windows": ["40 us", "50 us"], "window_step": "20 us"}
    with pytest.raises(ScenarioError, match=r"windows\[1\] = .50 us.: .* multiples of window_step = 20 us"):
        simulated(tmp_path / "none", asked)
