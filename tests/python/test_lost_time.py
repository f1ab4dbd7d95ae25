"""Lost time by leave-one-out runs: against runs of scenarios without the job; every sentence names the same culprit."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import fairlane
from fairlane.cli.main import execute
from fairlane.core.drive import Engine
from fairlane.model.scenario.resolved import BACKGROUND
from fairlane.results.culprit import HINT, LostTime, headline, largest
from fairlane.results.run import Run, load_run
from fairlane.sim.runner.experiment import Experiment
from fairlane.study.running import _without_effect
from fairlane.views.kinds import view_of
from fairlane.views.run.interference import lost_list
from report_runs import printed

FABRIC = {
    "topology": "fat_tree",
    "hosts": 16,
    "levels": 2,
    "leaf_down": 4,
    "leaf_up": 2,
    "bandwidth": "100 Gb/s",
}
WORKLOADS = ("flood_pairs", "nearest_neighbor", "random_pairs", "all_to_all", "incast")


def random_scenario(seed: int) -> dict[str, Any]:
    """Three jobs of random workloads, sizes and hosts."""
    rng = np.random.default_rng(seed)
    hosts = rng.permutation(16)[:12].reshape(3, 4).tolist()
    jobs = [
        {
            "name": name,
            "ranks": 4,
            "stream": number,  # random numbers stay when a job before it is left out
            "placement": {"name": "list", "hosts": of},
            "workload": {
                "name": str(rng.choice(WORKLOADS)),
                "message_size": f"{rng.choice([16, 64, 256])} KiB",
                "messages_per_iteration": int(rng.integers(1, 4)),
                "compute": f"{rng.integers(5, 40)} us",
            },
        }
        for number, (name, of) in enumerate(zip("abc", hosts, strict=True))
    ]
    return {"name": "random", "duration": "2 ms", "seed": int(seed), "fabric": FABRIC, "jobs": jobs}


def simulated(data: dict[str, Any], **options: Any) -> Run:
    return fairlane.run(fairlane.Scenario.model_validate(data), **options)


def rows_of(run: Run) -> pl.DataFrame:
    assert run.lost_time is not None
    return run.lost_time


def texts(run: Run) -> list[str]:
    """What the terminal, the picture and the page say of ``run``."""
    view = view_of([run])
    ((chart, *_),) = [charts for name, charts in view.pictures.items() if name == "interference"]
    return [printed(run, 400), f"{chart.sentence} {chart.note}", f"{view.headline} {' '.join(view.remarks)}"]


@pytest.mark.parametrize("seed", range(3))
def test_the_culprit_is_the_job_without_which_the_victim_is_fastest(seed: int) -> None:
    data = random_scenario(seed)
    run = simulated(data, leave_one_out=True)
    lost = LostTime.of(run)
    assert lost is not None
    ended = {key: run.completions.filter(pl.col("name") == key).select("iteration", "at_ps") for key in "abc"}
    truth: dict[tuple[str, str], float] = {}
    for aggressor in "abc":
        jobs = [job for job in data["jobs"] if job["name"] != aggressor]
        there = simulated({**data, "jobs": jobs}, isolated=False).completions
        for row in rows_of(run).filter(pl.col("aggressor") == aggressor).iter_rows(named=True):
            victim = row["victim"]
            both = ended[victim].join(there.filter(pl.col("name") == victim), on="iteration").sort("iteration")
            first, last = row["warm_up"], row["warm_up"] + row["compared_iterations"]
            begin = [both[name][first - 1] if first else 0 for name in ("at_ps", "at_ps_right")]
            spans = [both[name][last - 1] - at for name, at in zip(("at_ps", "at_ps_right"), begin, strict=True)]
            truth[victim, aggressor] = (spans[0] - spans[1]) / row["compared_iterations"] * 1e-12
            assert row["lost_s"] == pytest.approx(truth[victim, aggressor], rel=1e-9, abs=1e-15)
            assert row["lost_share"] == pytest.approx(1 - spans[1] / spans[0], abs=1e-12)
    words = headline(run)
    assert words is not None
    assert all(words in text for text in texts(run)), "terminal, picture and page say the same"
    worst = run.jobs.filter(pl.col("ten_iterations_ps").is_null(), pl.col("w_high") < 0, pl.col("w") < -0.005).sort("w")
    if worst.is_empty():
        assert words == "No job is slowed down by the others"
        return
    victim = worst["name"][0]
    culprit = max((name for name in "abc" if name != victim), key=lambda name: truth[victim, name])
    assert f" {victim} loses" in f" {words}" or f"that {victim} loses" in words
    assert words.endswith((f"due to {culprit}", f"because of {culprit}", "any one of the other jobs"))
    blind = headline(replace(run, lost_time=None))
    assert blind is not None
    assert blind.startswith(f"{victim} loses most to other jobs: W −")
    assert f"is behind {culprit}: " in blind, "here the victim's largest queueing delay is the culprit's, too"


def test_of_two_jobs_nothing_more_is_simulated_and_the_loss_is_w(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_scenario(1)
    data["jobs"] = data["jobs"][:2]
    built: list[int] = []
    build = Experiment._some_jobs

    def counted(experiment: Experiment, jobs: Sequence[int]) -> Engine:
        built.append(len(jobs))
        return build(experiment, jobs)

    monkeypatch.setattr(Experiment, "_some_jobs", counted)
    run = simulated(data, leave_one_out=True)
    assert built == [1, 1]
    w = dict(run.jobs.select("name", "w").iter_rows())
    for row in rows_of(run).iter_rows(named=True):
        assert row["lost_share"] == pytest.approx(-w[row["victim"]])
        assert row["w_without"] == 0, "without the only other job it is isolated"


def test_without_leave_one_out_runs_no_job_is_called_a_cost() -> None:
    run = simulated(random_scenario(3))
    assert run.lost_time is None
    words = headline(run)
    assert words is not None
    assert "largest queueing delay is behind" in words
    assert all(HINT in text for text in (texts(run)[0], texts(run)[2]))
    worst = run.jobs.sort("w")["name"][0]
    assert words.startswith(f"{worst} loses most to other jobs: W −")
    blind = replace(run, jobs=run.jobs.with_columns(w=pl.lit(None, pl.Float64)))
    cells = run.interference.filter(pl.col("victim") != pl.col("aggressor")).sort("share_of_time")
    behind = f"{cells['victim'][-1]}'s largest queueing delay is behind {cells['aggressor'][-1]}"
    assert (headline(blind) or "").startswith(behind)


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_headlines_say_which_jobs_they_are_about(leave_one_out: bool) -> None:
    run = simulated(random_scenario(3), leave_one_out=leave_one_out)
    ranked = run.jobs.sort("w")["name"].to_list()

    def said(w: list[float], few: str = "") -> str:
        values = dict(zip(ranked, w, strict=True))
        jobs = run.jobs.with_columns(
            *(pl.col("name").replace_strict(values).alias(column) for column in ("w", "w_low", "w_high")),
            ten_iterations_ps=pl.when(pl.col("name").is_in(list(few))).then(10**9),
        )
        return headline(replace(run, jobs=jobs)) or ""

    first, second, _ = ranked
    if leave_one_out:
        assert f"{second} loses" in said([-0.5, -0.3, 0.0], few=first)
    else:
        words = f"Of the jobs with enough iterations, {second} loses most to other jobs: W −30.0%. Its"
        assert said([-0.5, -0.3, 0.0], few=first).startswith(words)
        assert said([-0.303, -0.301, 0.0]).startswith(
            f"{first} and {second} lose most to other jobs: W −30.3%. {first}'s"
        )
    assert said([-0.5, 0.0, 0.0], few=first).startswith("No job with enough iterations is slowed down")
    assert said([0.0, 0.0, 0.0], few=first).startswith("No job is slowed down by the others")


def test_results_are_those_without_leave_one_out_runs_and_the_key_asks_for_them(tmp_path: Path) -> None:
    data = random_scenario(5)
    plain = simulated(data)
    asked = simulated({**data, "observe": {"leave_one_out": True}}, out=tmp_path / "run")
    assert asked.meta.digest == plain.meta.digest
    assert asked.jobs.equals(plain.jobs)
    assert rows_of(load_run(tmp_path / "run")).equals(rows_of(asked))
    assert simulated({**data, "observe": {"leave_one_out": True}}, leave_one_out=False).lost_time is None


def test_jobs_of_the_background_are_left_out_together(tmp_path: Path) -> None:
    data = random_scenario(2)
    kind = {"workload": {"name": "random_pairs", "message_size": "64 KiB", "compute": "10 us"}}
    data |= {"background": {"fill": 1.0, "hosts": 2, "jobs": [kind]}}
    run = simulated(data, leave_one_out=True, out=tmp_path / "run")
    assert run.jobs["name"].to_list() == [*"abc", "background-0", "background-1"]
    assert set(rows_of(run)["aggressor"]) == {*"abc", BACKGROUND}
    assert set(rows_of(run)["victim"]) == set("abc"), "background jobs are compared with nothing"
    lost, matrix = LostTime.of(load_run(tmp_path / "run")), run.interference
    assert lost is not None
    delay = matrix.filter(pl.col("victim") == "a", pl.col("aggressor").str.starts_with("background"))
    at = lost.victims.index("a"), lost.aggressors.index(BACKGROUND)
    assert lost.queueing[at] == pytest.approx(delay["queueing_s"].sum())


def test_the_command_prints_the_table_and_its_json_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(fairlane.Scenario.model_validate(random_scenario(3)).text)
    assert execute(["run", str(file), "--leave-one-out", "--json", "-q", "-o", str(tmp_path / "run")]) == 0
    answer = json.loads(capsys.readouterr().out)
    rows = rows_of(load_run(tmp_path / "run"))
    assert [row["lost_s"] for row in answer["lost_time"]] == rows["lost_s"].to_list()
    lost = LostTime.of(load_run(tmp_path / "run"))
    assert lost is not None
    places = largest(lost, 3)
    shares = [float(lost.share[at]) for at in places]
    assert shares == sorted(rows["lost_share"], reverse=True)[:3]
    assert [row["share"] for row in lost_list(lost).rows if row][:3] == shares


def test_a_study_says_that_it_leaves_no_job_out() -> None:
    (note,) = _without_effect([{"scenario": {"observe": {"leave_one_out": True}}}, {"scenario": {}}])
    assert note.startswith("observe.leave_one_out has no effect")
