"""The time of an iteration is the same wherever it is printed, and throughput counts what is not timed."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import tomlkit

import fairlane
from fairlane import Scenario, Simulation, run
from fairlane.lab.timeline.build import timelines
from fairlane.results.live import Jobs
from fairlane.results.views import spread_of_iterations
from fairlane.sim.analysis.analyze import analyze
from fairlane.sim.runner.live import Snapshot, jobs_so_far
from fairlane.study.running import run as run_study
from fairlane.study.study import Study
from report_runs import shown_times
from small_study import Here

RANKS, ITERATIONS, SIZE, COMPUTE = 8, 24, 2048, 200
LATENCY, SWITCH, HEADER, RATE = 100, 90, 26, 100
"""Times in ns and a rate in Gb/s: all hosts are at one switch, and nothing takes the CPU any time but computation."""


def trip(size: int) -> int:
    """From the first bit of a message to its last at the receiver, ps."""
    return 1000 * (2 * LATENCY + SWITCH) + (size + HEADER) * 8 * 1000 // RATE


RING, BARRIER = (RANKS - 1) * trip(SIZE // RANKS), 3 * trip(0)


def tables(*, barrier: bool, compute: int = COMPUTE, **keys: Any) -> dict[str, Any]:
    workload = {"name": "ring_allgather", "message_size": f"{SIZE} B", "barrier": barrier, "compute": f"{compute} us"}
    workload |= {"jitter": 0, "imbalance": {"kind": "uniform", "low": 1}}
    return {
        "fabric": {
            "topology": "fat_tree",
            "hosts": RANKS,
            "levels": 1,
            "bandwidth": f"{RATE} Gb/s",
            "latency": "100 ns",
        },
        "network": {"switch_latency": f"{SWITCH} ns", "header": f"{HEADER} B"},
        "mpi": {"send_overhead": "0 s", "receive_overhead": "0 s"},
        "placement": "linear",
        "duration": "1 s",
        "jobs": [{"name": "job", "ranks": RANKS, "workload": workload, "start": "1 ms", "stop": ITERATIONS}],
        **keys,
    }


def printed(given: dict[str, Any], folder: Path) -> Iterator[tuple[str, set[float]]]:
    """The times of iterations, s, by the place that prints them."""
    found = run(Scenario(**given))
    found.save(folder)
    yield "jobs", set(found.jobs["seconds_per_iteration"])
    yield "spread", set(spread_of_iterations(found.completions).drop("name").row(0))
    yield "page", set(shown_times(found))
    assert found.iterations is not None
    yield "iterations", set(found.iterations["time_s"].drop_nulls())
    counters = found.counters
    assert counters is not None
    assert counters.height == ITERATIONS
    yield "counters", set(counters["time_s"])
    yield "analysis", set(analyze(folder).iterations["seconds"])
    shown = timelines(folder).completions(0)
    yield "timeline", {(end - begin) * 1e-12 for _, begin, end, _ in shown}
    yield "timeline's value", {elapsed * 1e-12 for *_, elapsed in shown if elapsed is not None}
    compared = fairlane.compare(found, found).table
    yield "compare", {compared["before"][0], compared["after"][0]}
    simulation = Simulation(Scenario(**given))
    assert simulation.run_for("1 s")
    live = jobs_so_far([10**9], Jobs(), Snapshot.of(simulation.engine, network=False), {})
    yield "live", {*filter(None, live.seconds_per_iteration), *live.time_s[0]}


@pytest.mark.parametrize("barrier", [True, False])
def test_every_place_prints_the_same_time_of_an_iteration(barrier: bool, tmp_path: Path) -> None:
    """All ranks do the same at the same time; with the barrier, it and the computation before it are not timed."""
    observe = {"iterations": ["job"], "switch_counters": "job"}
    expected = (RING if barrier else COMPUTE * 10**6 + RING) * 1e-12
    for place, times in printed(tables(barrier=barrier, observe=observe), tmp_path / "run"):
        if place != "timeline's value" or barrier:
            assert times, place
        assert all(time == pytest.approx(expected, rel=1e-4) for time in times), place


def test_throughput_counts_what_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More computation before the barrier leaves the time of an iteration as it is, and makes them fewer a second."""
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    whole = {compute: compute * 10**6 + BARRIER + RING for compute in (COMPUTE, 2 * COMPUTE)}
    change = pytest.approx(whole[COMPUTE] / whole[2 * COMPUTE] - 1)
    runs, studies = [run(Scenario(**tables(barrier=True, compute=compute))) for compute in whole], []
    for compute, spacing in whole.items():
        file, out = tmp_path / f"{compute}.toml", tmp_path / str(compute)
        file.write_text(tomlkit.dumps({"scenario": tables(barrier=True, compute=compute)}), encoding="utf-8")
        run_study(Study.load(file), out=out, workers=1)
        [row] = pl.read_parquet(out / "work.parquet").iter_rows(named=True)
        assert row["seconds_per_iteration"] == pytest.approx(RING * 1e-12)
        assert row["iterations_per_second"] == pytest.approx(1e12 / spacing)
        studies.append(out)
    for one, other in (runs, studies):
        [row] = fairlane.compare(one, other).table.iter_rows(named=True)
        assert (row["of"], row["change"]) == ("throughput", change)
        assert (row["before"], row["after"]) == (pytest.approx(RING * 1e-12), pytest.approx(RING * 1e-12))


@pytest.mark.parametrize("burst", [None, "0 s", "300 us"])
def test_a_share_of_computation_leaves_out_the_pauses_between_bursts(
    burst: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where calibrations are kept
    given = tables(barrier=False)
    rest = {} if burst is None else {"burst": burst, "pause": "1 ms"}
    del given["jobs"][0]["workload"]["compute"]
    given["jobs"][0]["workload"] |= {"name": "nearest_neighbor", "compute_share": 0.5, **rest}
    del given["jobs"][0]["workload"]["barrier"]
    assert run(Scenario(**given)).jobs["compute_share"][0] == pytest.approx(0.5, abs=0.02)
