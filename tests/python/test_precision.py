"""Runs that end as soon as their results are precise enough."""

from pathlib import Path
from typing import Any

import numpy
import polars as pl
import pytest

from fairlane import Scenario, ScenarioError
from fairlane.cli.main import execute
from fairlane.core.tables import Work
from fairlane.model.scenario.observe import Until
from fairlane.results.milestones import common, milestones
from fairlane.sim.runner import run
from fairlane.sim.runner.precision import Precision
from samples import TREE

MS = 10**9


def scenario(until: dict[str, Any] | None = None, **more: Any) -> Scenario:
    """Two jobs that share a tree, whose iterations vary."""
    flood = {"name": "flood_pairs", "compute": "40 us", "messages_per_iteration": 4, "jitter": 0.3}
    tables: dict[str, Any] = {"jobs": [{"name": "flood", "ranks": 8, "count": 2, "workload": flood}], **more}
    ends: dict[str, Any] = {"duration": "2 ms"} if until is None else {"until": until}
    return Scenario(fabric=TREE, placement="random", **ends, **tables)


def test_a_run_ends_when_w_of_every_job_is_precise_enough_and_says_which_was_last() -> None:
    found = run(scenario({"precision": "2%", "at_most": "200 ms"}))
    assert found.meta.simulated_ps < 100 * MS
    assert found.meta.duration_ps in Until(precision="2%", at_most="200 ms").instants
    halves = found.jobs.select((pl.col("w_high") - pl.col("w_low")) / 2).to_series()
    assert (halves <= 0.02).all()
    [note] = found.meta.notes
    assert note.startswith("W is precise to ±2.0% for every job after ")
    assert note.endswith(("flood-0 was the last.", "flood-1 was the last."))


def test_it_is_the_run_of_that_duration_bit_for_bit_with_any_number_of_threads() -> None:
    early = run(scenario({"precision": "6%", "at_most": "50 ms"}))
    straight = run(scenario().model_copy(update={"duration": early.meta.duration_ps}))
    assert early.meta.digest == straight.meta.digest
    assert early.jobs.equals(straight.jobs)
    assert early.meta.duration_ps < 50 * MS
    threaded = run(scenario({"precision": "6%", "at_most": "50 ms"}), threads=2)
    assert threaded.meta.duration_ps == early.meta.duration_ps
    assert threaded.meta.digest == early.meta.digest


def test_what_limited_a_run_that_was_not_precise_enough_is_said_with_the_time_that_it_would_need() -> None:
    found = run(scenario({"precision": "0.3%", "at_most": "5 ms"}))
    assert found.meta.duration_ps == 5 * MS
    assert not found.meta.partial
    [note] = found.meta.notes
    assert note.startswith("W is not precise to ±0.3% for 2 of 2 jobs: flood-0 (±")
    assert " needed" in note


def test_a_job_that_has_ended_is_not_waited_for() -> None:
    flood = {"name": "flood_pairs", "compute": "40 us", "jitter": 0.3}
    jobs = [{"name": "short", "ranks": 4, "workload": flood, "stop": "300 us"}, {"ranks": 4, "workload": flood}]
    found = run(scenario({"precision": "3%", "at_most": "500 ms"}, jobs=jobs))
    assert found.meta.duration_ps < 500 * MS
    [note] = found.meta.notes
    assert "short (" in note


def test_open_loop_load_alone_is_simulated_to_the_end() -> None:
    jobs = [{"name": "load", "ranks": 4, "workload": {"name": "open_loop", "load": 0.5}}]
    found = run(scenario({"precision": "1%", "at_most": "300 us"}, jobs=jobs))
    assert found.meta.duration_ps == 300 * 10**6
    assert found.meta.notes[-1].startswith("No job has an interval of W")


def test_w_needs_isolated_runs() -> None:
    with pytest.raises(
        ScenarioError, match=r'until.of = "w": needs isolated runs, .*"time_per_iteration", or isolated'
    ):
        run(scenario({"precision": "2%", "at_most": "2 ms"}), isolated=False)


def test_a_precision_far_below_what_is_reached_is_written_out() -> None:
    [note] = run(scenario({"precision": "0.001%", "at_most": "5 ms"})).meta.notes
    assert note.startswith("W is not precise to ±0.001% for 2 of 2 jobs: flood-0 (±")
    assert "more than 5.00 s needed" in note


def test_the_time_per_iteration_needs_no_isolated_run() -> None:
    until = {"precision": "2%", "of": "time_per_iteration", "at_most": "200 ms"}
    found = run(scenario(until), isolated=False)
    assert found.meta.duration_ps < 200 * MS
    half = (pl.col("seconds_per_iteration_high") - pl.col("seconds_per_iteration_low")) / 2
    assert (found.jobs.select(half / pl.col("seconds_per_iteration")).to_series() <= 0.02).all()


def test_early_runs_have_intervals_of_latencies_and_of_samples_that_end_at_multiples_of_the_interval() -> None:
    found = run(scenario({"precision": "2%", "at_most": "200 ms"}, observe={"interval": "100 us"}))
    assert found.latency is not None
    assert found.latency["p99_low_ps"].null_count() < found.latency.height
    assert found.samples is not None
    ends = found.samples.filter(pl.col("to_ps") < found.meta.simulated_ps)["to_ps"]
    assert (ends % (100 * 10**6) < 10**6).all(), "to the end of a window of the simulator"


def marked(times: "numpy.typing.NDArray[numpy.int64]") -> Work:
    """Jobs that completed iterations one after the other in these times."""
    at = numpy.cumsum(times)
    counts = {"job": pl.UInt64, "iterations": pl.UInt64, "finished": pl.UInt8, "finished_at": pl.UInt64}
    ranks = pl.DataFrame({"job": [0], "iterations": [len(at)], "finished": [0], "finished_at": [0]}, schema=counts)
    marks = pl.DataFrame({"job": [0] * len(at), "iteration": range(1, len(at) + 1), "time": at, "elapsed": times})
    marks = marks.with_columns(timed=pl.lit(0, pl.UInt8))
    return Work(int(at[-1]), ranks, marks.cast({"job": pl.UInt64, "time": pl.UInt64}))


@pytest.mark.long("sim/runner", "core/statistics")
def test_the_interval_at_which_a_run_ends_covers_the_true_change() -> None:
    """Iterations of a correlated process, in a run whose true W is -0.2: ending early costs little of the coverage."""
    from scipy.signal import lfilter

    from fairlane.model.scenario.resolved import ResolvedJob

    [job, *_] = scenario().decide().jobs
    assert isinstance(job, ResolvedJob)
    until = Until(precision=0.02, at_most="1 s")
    covered, runs, enough = 0, 150, 0
    rng = numpy.random.default_rng(7)
    for _ in range(runs):
        noise = lfilter([1], [1, -0.5], rng.normal(0, 0.15, 4000))
        times = (1_250_000 * (1 + noise)).clip(100_000).astype(numpy.int64)
        alone = numpy.full(4000, 1_000_000)
        precision = Precision(until, [job], [0])
        at = 0
        for count in (
            24,
            30,
            38,
            48,
            60,
            75,
            94,
            118,
            148,
            185,
            231,
            289,
            361,
            451,
            564,
            705,
            881,
            1101,
            1376,
            1720,
            2150,
        ):
            at = count
            if precision.reached(marked(times[:count]), {0: marked(alone[:count])}):
                enough += 1
                break
        found = common(milestones(marked(times[:at]))[0], milestones(marked(alone[:at]))[0])
        assert found is not None
        assert found.estimate is not None
        assert found.estimate.low is not None
        assert found.estimate.high is not None
        covered += found.estimate.low <= -0.2 <= found.estimate.high
    assert enough == runs, "every run was precise enough before its end"
    assert covered / runs >= 0.9


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('until = { precision = "1%" }', ["until.at_most", "missing"]),
        ('until = { precision = "two", at_most = "1 s" }', ["until.precision", "two", "1%"]),
        ('until = { precision = 2, at_most = "1 s" }', ["until.precision", "below 1"]),
        ('until = { precision = "1%", at_most = "1 s", of = "v" }', ["until.of", "time_per_iteration"]),
        ('duration = "1 ms"\nuntil = { precision = "1%", at_most = "1 s" }', ["duration", "until"]),
    ],
)
def test_a_wrong_table_is_refused(
    table: str, words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.toml"
    jobs = '[[jobs]]\nranks = 4\nworkload = "flood_pairs"\n'
    file.write_text(f'{table}\n[fabric]\ntopology = "fat_tree"\nhosts = 16\nlevels = 2\n{jobs}')
    assert execute(["run", str(file), "--out", str(tmp_path / "out")]) == 2
    error = capfd.readouterr().err
    assert all(word in error for word in words), error
    assert not (tmp_path / "out").exists()


def test_the_estimate_counts_that_all_simulations_are_kept() -> None:
    flood = {"name": "flood_pairs", "compute": "40 us"}
    jobs = [{"name": "flood", "ranks": 2, "count": 6, "workload": flood}]
    ends = ({"duration": "1 ms"}, {"until": {"precision": "1%", "at_most": "1 ms"}})
    tables = {"fabric": {**TREE, "hosts": 1024, "levels": 3, "radix": 16}, "placement": "random", "jobs": jobs}
    plain, until = (
        next(part.bytes for part in found.parts if part.key == "fabric")
        for end in ends
        if (found := Scenario(**tables, **end).decide().estimate)
    )
    assert until > 2 * plain, "seven engines in place of two, and one graph"


def test_a_scenario_with_until_is_written_and_read_again() -> None:
    first = scenario({"precision": "1%", "at_most": "1 s"})
    assert first.duration == 1000 * MS
    again = Scenario(**first.model_dump(mode="json", exclude_none=True))
    assert again.until == first.until
    with pytest.raises(ScenarioError, match="duration or until"):
        Scenario(**{**first.model_dump(mode="json", exclude_none=True), "duration": "2 s"})
