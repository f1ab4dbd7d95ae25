"""Two runs, studies or treatments compared by job: in pairs, beyond noise or not, and what cannot be compared."""

import json
from pathlib import Path

import numpy
import polars as pl
import pytest
from scipy import stats

import fairlane
from fairlane import Scenario, ScenarioError
from fairlane.cli.main import execute
from fairlane.sim.runner import run
from fairlane.study.comparison import side_of
from fairlane.study.running import run as run_study
from fairlane.study.study import Study
from samples import TREE
from small_study import Here

STUDY = """
placements = 4
scenario = {{ duration = "{duration}", fabric = {{ topology = "fat_tree", hosts = 16, levels = 2 }}, {more}jobs = [
    {{ name = "flood", ranks = 4, count = 2, workload = {{ name = "flood_pairs", compute = "20 us", jitter = 0.2 }} }}
] }}
treatments.slow = {{ set = {{ "mpi.send_overhead" = "40 us" }} }}
"""


def scenario(duration: str = "30 ms", **more: object) -> Scenario:
    flood = {"name": "flood_pairs", "compute": "20 us", "jitter": 0.2}
    jobs = [{"name": "flood", "ranks": 4, "count": 3, "workload": flood}]
    return Scenario(fabric=TREE, placement="random", duration=duration, jobs=jobs, **more)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    file = folder / "study.toml"
    file.write_text(STUDY.format(duration="12 ms", more=""))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlane.study.tasks.pools.Processes", Here)
        run_study(Study.load(file), out=folder / "out", workers=1)
    return folder / "out"


def test_a_run_compared_with_itself_has_no_difference_and_no_doubt() -> None:
    found = fairlane.compare(first := run(scenario()), first)
    assert found.table["change"].to_list() == [0.0] * 3
    assert found.table["beyond_noise"].to_list() == [False] * 3
    assert found.table["p"].to_list() == [1.0] * 3


def test_runs_are_compared_over_the_iterations_that_both_completed() -> None:
    """With larger overheads every iteration takes longer: the change is that of their times, and beyond noise."""
    first, second = run(scenario()), run(scenario(mpi={"send_overhead": "40 us"}))
    found = fairlane.compare(first, second)
    assert found.replicates == "iterations"
    for row, name in zip(found.table.iter_rows(named=True), first.jobs["name"], strict=True):
        times = [
            numpy.diff(one.completions.filter(pl.col("name") == name)["at_ps"].to_numpy().astype(float))
            for one in (first, second)
        ]
        count = min(map(len, times))
        assert row["change"] == pytest.approx(times[0][:count].mean() / times[1][:count].mean() - 1, rel=0.05)
        assert row["change_low"] <= row["change"] <= row["change_high"] < 0
        assert row["beyond_noise"]
    back = fairlane.compare(second, first)
    assert (back.table["change"] > 0).all()


def test_treatments_are_compared_at_the_same_points_and_the_interval_is_over_placements(study: Path) -> None:
    found = fairlane.compare(f"{study}:default", f"{study}:slow")
    assert found.replicates == "placement"
    work = pl.read_parquet(study / "work.parquet")
    for row in found.table.iter_rows(named=True):
        of_job = work.filter(pl.col("name") == row["name"]).sort("placement")
        default, slow = (
            of_job.filter(pl.col("treatment") == name)["seconds_per_iteration"].to_numpy()
            for name in ("default", "slow")
        )
        interval = stats.ttest_1samp(default / slow - 1, 0).confidence_interval()
        assert (row["change_low"], row["change_high"]) == pytest.approx((interval.low, interval.high))
        assert row["beyond_noise"]
    assert found.overall is not None
    assert found.overall.value == pytest.approx(found.table["change"].mean())


def test_studies_are_compared_by_treatment_and_without_replicates_have_no_verdict(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    same = fairlane.compare(study, study)
    assert sorted(set(same.table["treatment"])) == ["default", "slow"]
    assert same.table["change"].to_list() == [0.0] * 4
    file = tmp_path / "one.toml"
    file.write_text(STUDY.format(duration="12 ms", more="").replace("placements = 4", "placements = 1"))
    run_study(Study.load(file), out=tmp_path / "one", workers=1)
    few = fairlane.compare(f"{tmp_path / 'one'}:default", f"{tmp_path / 'one'}:slow")
    assert few.table["change_low"].null_count() == few.table["beyond_noise"].null_count() == few.table.height


def test_only_runs_with_the_same_default_runs_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The change from the default runs to a treatment is its improvement, although there are other default runs."""
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    controller = 'controller = {{ name = "slack", service_levels = 2 }}, period = "1 ms", periods = 3'
    file = tmp_path / "two.toml"
    file.write_text(
        (
            STUDY
            + f"treatments.fresh = {{{{ mode = 'episodes', {controller}, draws = 2 }}}}\n"
            + f"treatments.whole = {{{{ mode = 'online', {controller} }}}}\n"
        ).format(duration="3 ms", more="")
    )
    run_study(Study.load(file), out=tmp_path / "two", workers=1)
    work = pl.read_parquet(tmp_path / "two" / "work.parquet")
    assert work["baseline"].n_unique() == 3
    for name in ("slow", "whole"):
        found = fairlane.compare(f"{tmp_path / 'two'}:default", f"{tmp_path / 'two'}:{name}")
        treated = (
            work.filter(treatment=name)
            .group_by("name", maintain_order=True)
            .agg(
                pl.col("default_seconds_per_iteration").mean().alias("before"),
                pl.col("seconds_per_iteration").mean().alias("after"),
            )
        )
        assert found.table["before"].to_list() == pytest.approx(treated["before"].to_list())
        assert found.table["after"].to_list() == pytest.approx(treated["after"].to_list())
    assert execute(["compare", f"{tmp_path / 'two'}:fresh", f"{tmp_path / 'two'}:whole"]) == 2
    error = capfd.readouterr().err
    assert "is compared with other default runs (3 x 1 ms online) than" in error
    assert "(3 x 1 ms episodes, 2 draws)" in error


def test_jobs_that_moved_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in (1, 2):
        run(scenario("5 ms").model_copy(update={"seed": seed}), out=tmp_path / str(seed), isolated=False)
    assert execute(["compare", str(tmp_path / "1"), str(tmp_path / "1")]) == 0
    assert "On other hosts" not in capsys.readouterr().out
    assert execute(["compare", str(tmp_path / "1"), str(tmp_path / "2")]) == 0
    assert "On other hosts in B: flood-0, flood-1 and flood-2." in capsys.readouterr().out


def test_what_differs_between_the_scenarios_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = scenario("5 ms")
    data = scenario("5 ms", seed=2, mpi={"send_overhead": "40 us"}).model_dump(mode="json", exclude_none=True)
    data["jobs"][0]["workload"]["message_size"] = "2 KiB"
    second = Scenario(**data)
    for name, one in (("1", first), ("2", second)):
        run(one, out=tmp_path / name, isolated=False)
    keys = {"seed", "mpi.send_overhead", "jobs[flood].workload.message_size"}
    assert keys <= {*fairlane.compare(tmp_path / "1", tmp_path / "2").differs}
    assert fairlane.compare(tmp_path / "1", run(first, isolated=False)).differs == []
    assert execute(["compare", str(tmp_path / "1"), str(tmp_path / "2")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "The scenarios differ in " in shown
    assert "jobs[flood].workload.message_size" in shown


def test_jobs_with_nothing_in_common_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def with_a_slow_one(duration: str) -> Scenario:
        slow = {"name": "slow", "ranks": 4, "workload": {"name": "ring", "compute": "50 ms"}}
        flood = {"name": "flood", "ranks": 4, "workload": {"name": "flood_pairs", "compute": "20 us"}}
        return Scenario(fabric=TREE, placement="linear", duration=duration, jobs=[flood, slow])

    for name, duration in (("1", "5 ms"), ("2", "6 ms")):
        run(with_a_slow_one(duration), out=tmp_path / name, isolated=False)
    assert fairlane.compare(tmp_path / "1", tmp_path / "2").without == ["slow"]
    assert execute(["compare", str(tmp_path / "1"), str(tmp_path / "2")]) == 0
    assert "Nothing to compare, no iterations or messages in common: slow." in capsys.readouterr().out


def test_placements_of_two_studies_are_matched_by_what_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    for name, placements in (
        ("a", "{{ count = 4, first = 1 }}"),
        ("b", "{{ count = 4, first = 3 }}"),
        ("c", "['linear']"),
    ):
        file = tmp_path / f"{name}.toml"
        file.write_text(STUDY.replace("placements = 4", f"placements = {placements}").format(duration="2 ms", more=""))
        run_study(Study.load(file), out=tmp_path / name, workers=1)
    a, b, c = (str(tmp_path / name) for name in "abc")
    found = fairlane.compare(f"{a}:default", f"{b}:default")
    assert found.points == (2, 4, 4)
    assert found.table["change"].to_list() == [0.0, 0.0], "seeds 3 and 4 are in both"
    assert execute(["compare", a, b]) == 0
    assert "Compared at the 2 points that both have; A has 4, B 4." in capsys.readouterr().out
    with pytest.raises(ScenarioError, match="no job in common"):
        fairlane.compare(a, c)


def test_a_treatment_is_not_compared_with_a_mixture(study: Path) -> None:
    for sides, option in (((f"{study}:default", study), "B"), ((study, f"{study}:slow"), "A")):
        words = rf"{option} = .*has several treatments, and . is one; allowed: {study}:default, {study}:slow"
        with pytest.raises(ScenarioError, match=words):
            fairlane.compare(*sides)


def test_jobs_without_iterations_are_compared_by_latency() -> None:
    def loaded(load: float) -> fairlane.Run:
        job = {"name": "load", "ranks": 4, "workload": {"name": "open_loop", "load": load}}
        return run(Scenario(fabric=TREE, placement="linear", duration="1 ms", jobs=[job]), isolated=False)

    found = fairlane.compare(loaded(0.3), loaded(0.9))
    [row] = found.table.to_dicts()
    assert (row["of"], row["beyond_noise"]) == ("latency", True)
    assert row["change"] == pytest.approx(row["before"] / row["after"] - 1)
    assert row["change_high"] < 0


def test_the_command_prints_a_verdict_for_each_job(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["compare", f"{study}:default", f"{study}:slow"]) == 0
    text = capsys.readouterr().out
    assert "slower" in text
    assert "2 of 2 differences are beyond noise: 0 faster, 2 slower" in text
    assert execute(["compare", f"{study}:default", f"{study}:slow", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["replicates"] == "placement"
    assert [row["beyond_noise"] for row in facts["changes"]] == [True, True]


def test_what_cannot_be_compared_is_refused(study: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stored = tmp_path / "run"
    run(scenario("200 us"), out=stored)
    for arguments, words in (
        ([str(study), str(stored)], ["B", "same kind", "two runs"]),
        ([f"{study}:slw", str(study)], ["unknown treatment", "slw", 'did you mean "slow"']),
        ([f"{stored}:slow", str(stored)], ["a run has no treatments"]),
        ([str(tmp_path / "none"), str(stored)], ["none: there is no such folder"]),
        ([str(stored / "run.json"), str(stored)], ["run.json: is a file; results are in folders"]),
    ):
        assert execute(["compare", *arguments]) == 2, arguments
        error = capfd.readouterr().err
        assert all(word in error for word in words), error


def test_jobs_of_only_one_side_are_named() -> None:
    other = scenario("1 ms").model_dump(mode="json", exclude_none=True)
    other["jobs"][0]["name"] = "other"
    first, second = run(scenario("1 ms")), run(Scenario(**other))
    with pytest.raises(ScenarioError, match="no job in common"):
        fairlane.compare(first, second)
    assert side_of(first).results is first
