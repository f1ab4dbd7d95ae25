"""W compares the times of the same iterations: exactly, without steps, and only where there is something to compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairlane
from fairlane import Scenario
from fairlane.core.tables import Work, frame, marks
from fairlane.results.milestones import Milestones, common, enough, milestones
from fairlane.results.notes import few, notes, sufficient
from samples import TREE

MS = 10**9


def every(pace: int, until: int, stride: int = 1) -> Milestones:
    """A job that completes an iteration every ``pace``."""
    count = until // pace
    return Milestones(stride, [n * pace for n in range(stride, count + 1, stride)], count)


def scenario(duration: str, **more: object) -> Scenario:
    flood = {"name": "flood_pairs", "compute": "10 us", "messages_per_iteration": 4}
    tables = {"jobs": [{"name": "flood", "ranks": 8, "count": 2, "workload": flood}], **more}
    return Scenario(fabric=TREE, placement="random", duration=duration, **tables)


@given(st.integers(1000, 3000), st.integers(1000, 3000), st.integers(3000, 100_000))
def test_of_even_iterations_w_is_the_change_of_their_rate(pace: int, alone: int, span: int) -> None:
    """However many of them there are: counted iterations would change it by one part in their number."""
    found = common(every(pace, span), every(alone, span))
    assert found is not None
    assert found.iterations == min(span // pace, span // alone)
    assert found.change == pytest.approx(alone / pace - 1)


@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 8]))
def test_runs_that_keep_every_second_or_eighth_iteration_are_compared_at_one_that_both_kept(
    count: int, other: int, stride: int, another: int
) -> None:
    found = common(every(7, 7 * count, stride), every(5, 5 * other, another))
    larger = max(stride, another)
    expected = min(count, other) // larger * larger
    assert (found.iterations if found else 0) == expected
    if found:
        assert (found.at, found.reference_at) == (7 * expected, 5 * expected)


def test_w_moves_as_the_times_do() -> None:
    """At an iteration that one run has just completed: by as much as the last iterations differ from the others."""
    before, after = common(every(1001, 21_021), every(1000, 21_021)), common(every(1001, 21_020), every(1000, 21_020))
    assert before is not None
    assert after is not None
    assert (before.iterations, after.iterations) == (21, 20)
    assert before.change == after.change == pytest.approx(-1 / 1001)


def run_of(times: Sequence[int], stride: int = 1) -> Milestones:
    """A job whose iterations take these times."""
    return Milestones(stride, np.cumsum(times)[stride - 1 :: stride].tolist(), len(times))


def test_iterations_of_a_warm_up_are_left_out_of_both_runs() -> None:
    """Fifteen slow ones in one run: W and the time per iteration are those of the others, in whole iterations."""
    rng = np.random.default_rng(4)
    alone = rng.integers(990, 1010, 100).tolist()
    run = [time + (3000 if at < 15 else 250) for at, time in enumerate(alone)]
    found = common(run_of(run), run_of(alone))
    assert found is not None
    assert 15 <= found.warm_up < 50, "noise may add some"
    assert found.iterations == 100 - found.warm_up
    assert (found.at, found.reference_at) == (sum(run[found.warm_up :]), sum(alone[found.warm_up :]))
    assert found.change == pytest.approx(-0.2, abs=1e-3)
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(found.change)
    pace = run_of(run).pace
    assert pace is not None
    assert pace.value * 1e12 == pytest.approx(1250, rel=2e-3)
    # A treatment that learns is charged for all of it.
    learnt = common(run_of(run), run_of(alone), warm_up=False)
    assert learnt is not None
    assert (learnt.iterations, learnt.warm_up, learnt.at) == (100, 0, sum(run))


@given(st.integers(0, 10_000), st.sampled_from([1, 2, 4]))
def test_the_interval_of_w_holds_it_and_iterations_that_vary_in_both_runs_do_not_widen_it(
    seed: int, stride: int
) -> None:
    rng = np.random.default_rng(seed)
    work = rng.integers(800, 1200, 160)
    found = common(run_of((2 * work).tolist(), stride), run_of(work.tolist(), stride))
    assert found is not None
    assert found.estimate is not None
    assert found.change is not None
    assert found.change == pytest.approx(-0.5, abs=1e-12)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((-0.5, -0.5))
    noisy = common(run_of((2 * work + rng.integers(-9, 10, 160)).tolist(), stride), run_of(work.tolist(), stride))
    assert noisy is not None
    assert noisy.estimate is not None
    assert noisy.estimate.half_width is not None
    assert 0 < noisy.estimate.half_width < 2e-3


def test_where_programs_end_the_interval_is_that_of_their_iterations_around_the_end() -> None:
    rng = np.random.default_rng(2)
    times, others = rng.integers(900, 1100, 50), rng.integers(900, 1100, 50)
    run, alone = (replace(run_of(of.tolist()), ended=int(of.sum()) + more) for of, more in ((times, 9000), (others, 0)))
    found = common(run, alone)
    assert found is not None
    assert found.estimate is not None
    assert found.estimate.value == found.change == int(others.sum()) / (int(times.sum()) + 9000) - 1
    assert found.estimate.low is not None
    assert found.estimate.low < found.change


def test_where_both_programs_end_the_end_is_compared() -> None:
    run, alone = Milestones(1, [4, 9], 2, ended=12), Milestones(1, [2, 5], 2, ended=9)
    found = common(run, alone)
    assert found is not None
    assert (found.iterations, found.whole, found.change) == (2, True, 9 / 12 - 1)
    # A recording without a single mark has an end all the same.
    ends = common(Milestones(1, [], 0, ended=10), Milestones(1, [], 0, ended=8))
    assert ends is not None
    assert ends.change == pytest.approx(-0.2)
    # If only one of them ended, the last iteration of both is what they have in common.
    partly = common(Milestones(1, [4, 9], 2), alone)
    assert partly is not None
    assert (partly.iterations, partly.change) == (2, 5 / 9 - 1)


def test_without_a_common_iteration_there_is_no_w_but_how_long_it_would_take() -> None:
    assert common(Milestones(1, [], 0), every(10, 100)) is None
    late, none, later = every(20, 60), Milestones(1, [], 0, start=5), Milestones(1, [], 0, later=[42, 45], start=5)
    # By its own pace, else by that of the isolated run, else by the first iterations of the isolated run that went on.
    assert enough(replace(late, start=5), every(10, 60)) == 5 + 200
    assert enough(none, every(10, 30)) == 5 + 100
    assert enough(none, later) == 5 + 42 + 9 * 3
    # Of one iteration alone it is not known how much of it is the job's start: ten take longer than one.
    assert enough(none, replace(later, later=[42])) == 5 + 42
    assert enough(none, none) is enough(none, None) is None
    assert enough(every(10, 100), every(10, 100)) is None, "ten are enough"
    assert enough(every(10, 100), every(11, 100)) == 110, "the slower run decides, also if that is the isolated one"
    assert enough(Milestones(1, [3], 1, ended=4), every(3, 4)) is None, "it has no more"
    # A program of three iterations that has ended in the isolated run only: until its end, at the slower pace.
    assert enough(every(20, 40), replace(every(10, 30), ended=30)) == 60
    # 57 of start-up, then 1 for each iteration: 57 + 10, and not ten times 58. The others are as much slower as one is.
    started = Milestones(1, [58, 59, 60], 3)
    assert enough(started, started) == 67
    assert enough(Milestones(1, [116], 1), started) == 116 + 9 * 2
    slow = replace(every(10, 30), until=500)
    assert enough(slow, every(10, 100)) == 500 + 6 * 10, "the fourth iteration was still under way at 500"
    assert enough(replace(slow, until=35), every(10, 100)) == 100
    assert Milestones.read(json.loads(json.dumps(later.written()))) == later


def test_a_job_completes_an_iteration_when_its_last_rank_marks_it() -> None:
    resolved = scenario("2 ms", observe={"iterations": ["flood-0", "flood-1"]}).resolve()
    engine = resolved.engine()
    engine.run_until(resolved.duration)
    by_rank = marks(engine)
    ranks = 8
    expected = (
        by_rank.group_by("job", "iteration")
        .agg(pl.col("at").max(), pl.len().alias("ranks"))
        .filter(pl.col("ranks") == ranks)
        .sort("job", "iteration")
    )
    found = frame(engine.table("job_marks"))
    assert found.height > 20
    assert found["job"].to_list() == expected["job"].to_list()
    assert found["iteration"].to_list() == expected["iteration"].to_list()
    assert found["time"].to_list() == expected["at"].to_list()
    of = milestones(Work.of(engine))
    assert [of[job].iterations for job in (0, 1)] == [min(counts) for counts in engine.progress()]


def test_a_copy_goes_on_with_its_own_milestones() -> None:
    engine = scenario("2 ms").resolve().engine()
    engine.run_until(MS // 2)
    copy = engine.fork()
    before = frame(engine.table("job_marks"))
    copy.run_until(MS)
    engine.run_until(MS)
    assert frame(copy.table("job_marks")).equals(frame(engine.table("job_marks")))
    assert frame(engine.table("job_marks")).height > before.height


def test_w_of_a_longer_run_is_near_that_of_a_shorter_one() -> None:
    """Steps of an iteration would be of several percent here."""
    found = [run.jobs for run in (simulated("2 ms"), simulated("2.05 ms"))]
    steps = 1 / found[0]["isolated_iterations"].min()  # type: ignore[operator]
    change = np.abs(found[0]["w"].to_numpy() - found[1]["w"].to_numpy())
    assert change.max() < steps / 5
    assert found[0]["w"].min() < -0.01  # type: ignore[operator]


def simulated(duration: str, **more: object) -> fairlane.Run:
    return fairlane.run(scenario(duration, **more))


def test_a_run_too_short_for_an_iteration_names_how_long_it_would_have_to_be() -> None:
    run = simulated("20 us")
    assert run.jobs["iterations"].to_list() == [0, 0]
    assert run.jobs["w"].to_list() == run.jobs["w_iterations"].to_list() == [None, None]
    (words,) = notes(run)
    assert words.startswith("No W for flood-0 and flood-1: no iteration was completed within 20")
    assert words.endswith(f"; 10 iterations take at least {sufficient(run.jobs)}.")
    longest = run.jobs["ten_iterations_ps"].max()
    assert isinstance(longest, int)
    # What it says is true of the isolated runs, and nearly of the co-run.
    again = simulated(f"{longest} ps")
    assert again.jobs["isolated_iterations"].min() in (9, 10, 11)


def test_few_iterations_are_flagged() -> None:
    short, long = simulated("400 us"), simulated("2 ms")
    assert 0 < short.jobs["iterations"].max() < 10  # type: ignore[operator]
    assert few(short.jobs).height == 2
    (words,) = notes(short)
    assert words.startswith("Too few iterations for a reliable W: flood-0 (")
    assert few(long.jobs).is_empty()
    assert list(notes(long)) == []


def test_of_a_job_that_is_stopped_a_longer_run_has_no_more_iterations() -> None:
    flood = {"name": "flood_pairs", "compute": "20 us", "messages_per_iteration": 4}
    job = {"name": "app", "ranks": 8, "workload": flood, "stop": "200 us"}
    run = simulated("2 ms", jobs=[job, {"name": "other", "ranks": 8, "workload": flood}])
    assert run.jobs["stop_ps"].to_list() == [MS // 5, None]
    (words,) = notes(run)
    assert words.startswith("Too few iterations for a reliable W: app (")
    assert words.endswith(f"; 10 take about {sufficient(few(run.jobs))}, but app is stopped before.")


def test_a_job_that_has_sent_nothing_yet_is_named() -> None:
    quiet = {"name": "all_to_all", "compute": "5 ms"}
    run = simulated("20 us", jobs=[{"name": "idle", "ranks": 8, "workload": quiet}])
    silent, without = notes(run)
    assert silent.startswith("idle has not communicated yet within 20")
    # It is alone already: the one simulation goes on to its first iteration.
    assert without.startswith("No W for idle: no iteration was completed within 20")
    assert run.jobs["ten_iterations_ps"].item() >= 50 * MS


def test_open_loop_load_has_no_w() -> None:
    """Its messages are generated whatever becomes of those before: how many there are says nothing of the network."""
    flood = {"name": "flood_pairs", "compute": "10 us", "messages_per_iteration": 4}
    load = {"name": "open_loop", "load": 0.2}
    jobs = [{"name": "app", "ranks": 8, "workload": flood}, {"name": "load", "ranks": 8, "workload": load}]
    run = simulated("2 ms", jobs=jobs)
    assert run.jobs["w"].is_null().to_list() == [False, True]
    assert run.jobs["isolated_iterations"].is_null().to_list() == [False, True]
    assert list(notes(run)) == []
    alone = simulated("1 ms", jobs=jobs[1:])
    assert alone.jobs["w"].to_list() == [None]
    assert list(notes(alone)) == []


def test_shares_of_time_have_what_ranks_are_at_in_the_end() -> None:
    """Ranks compute for 100 us and then wait for a message of 10 ms: within 1 ms none of their calls is over."""
    pair = {"name": "ring", "compute": "100 us", "message_size": "125 MB"}
    run = simulated("1 ms", jobs=[{"name": "pair", "ranks": 8, "workload": pair}])
    ranks = run.ranks
    over = (ranks["compute_ps"] + ranks["communication_ps"]).to_numpy()
    assert over.max() < MS / 2, "the rest of the time is in calls that are not over"
    compute = int(ranks["compute_ps"].sum())
    (row,) = run.jobs.rows(named=True)
    assert row["compute_share"] == pytest.approx(compute / (8 * MS), rel=1e-3)
    assert row["compute_share"] + row["communication_share"] == pytest.approx(1)
