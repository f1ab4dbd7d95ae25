"""Counters of flits and stalls at receiving switches, after each iteration of a job, against the counters of ports."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairlane
from fairlane import Run, Scenario, ScenarioError
from fairlane.runner.counters import FEATURES

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
