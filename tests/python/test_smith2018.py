"""The reproduction of Smith et al. 2018: its runs at their own size, and small ones run, judged and stored."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fairlane.model.scenario.resolve import decide
from fairlane.papers.published.smith2018.method import counted
from fairlane.papers.reproduce import Judged, Reproduction, plan
from fairlane.papers.running import Outcome
from fairlane.sim.runner.counters import FEATURES
from fairlane.study.sql import Database
from fairlane.study.tasks.task import Stopwatch
from papers import judged, performed, scenarios, small, stored_tables, study_of
from pictures import assert_drawn

GROUPS = {1: 3, 2: 2, 3: 1, 4: 3, 5: 1, 6: 2}
"""Of each small run."""
TINY: Mapping[str, Any] = {
    "scenario": {"jobs[0].ranks": 64, "jobs[0].stop": 7, "jobs[0].workload.every": 6},
    "set": {
        "rules": [
            {"where": {"seed": seed}, "set": {"jobs[0].placement.count": count}} for seed, count in GROUPS.items()
        ],
    },
}


STUDIES = ("runs", "traces", "eighth", "long", "long_traces", "kinds", "cabling")


@dataclass(frozen=True)
class Small:
    """A small reproduction and its folder."""

    folder: Path
    found: Reproduction

    def table(self, name: str) -> pl.DataFrame:
        """A table of it, of a study or made of those."""
        return self.found.outcome.tables.ask(f"SELECT * FROM {name}")

    def judged(self, claim: str) -> Judged:
        """The verdict on a claim."""
        return next(one for one in self.found.judged if one.claim.id == claim)


def reproduced(claims: list[str], studies: Mapping[str, Mapping[str, Any]], folder: Path) -> Small:
    """The runs of studies with these changes and no others, and all claims, judged by their results."""
    change = {name: {"skip": True} for name in STUDIES} | {
        study: {
            "scenario": {**TINY["scenario"], **its.get("scenario", {})},
            "set": {**TINY["set"], **its.get("set", {})},
            "skip": False,
        }
        for study, its in studies.items()
    }
    chosen = small("smith2018", claims, change)
    return Small(folder, performed(replace(chosen, claims=chosen.folder.claims), folder))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Small:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlane.learn.models.TREES", 3)
        asked = {"runs": {"set": {"seeds": list(GROUPS)}}}
        found = reproduced(["smith.prediction"], asked, tmp_path_factory.mktemp("smith"))
    assert not found.found.failed
    return found


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """The studies in addition to the paper's, with few trees."""
    long = {"jobs[0].stop": 4, "observe.switch_counters.windows": ["1 ms", "5 ms"]}
    studies: dict[str, dict[str, Any]] = {
        "runs": {"set": {"seeds": [1, 2, 3, 4, 5]}},
        "cabling": {"set": {"seeds": [1, 2]}},
        "eighth": {"set": {"seeds": [1, 2, 3, 4, 5]}},
        "kinds": {"set": {"seeds": [1, 2]}},
        "long": {"set": {"seeds": [1, 2, 3]}, "scenario": long},
    }
    claims = ["smith.variability", "smith.prediction", "smith.local-models"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fairlane.learn.models.TREES", 3)
        found = reproduced(claims, studies, tmp_path_factory.mktemp("others"))
    assert not found.found.failed
    return found


def test_a_run_is_as_large_as_in_the_paper() -> None:
    scenario = scenarios(plan("smith2018"), "runs", seed=38)[0]
    found = decide(scenario)
    milc, others = found.jobs[0], found.jobs[1:]
    assert (milc.ranks, len(set(milc.hosts))) == (6144, 384)
    assert max(milc.hosts.count(host) for host in set(milc.hosts)) == 16
    fabric = found.fabric
    assert fabric.hosts == 5760
    assert len({fabric.leaf_of[host] // 96 for host in milc.hosts}) == 7
    assert len({fabric.leaf_of[host] for host in milc.hosts}) < 120, "whole switches, mostly"
    taken = [host for job in others for host in job.hosts]
    assert len(taken) == len(set(taken))
    assert not {*taken} & {*milc.hosts}


def test_groups_are_drawn_independently_of_the_other_jobs() -> None:
    study = study_of(plan("smith2018"), "runs")
    written = {point.seed: study.written(point).data for point in study.points()}
    groups = {seed: data["jobs"][0]["placement"]["count"] for seed, data in written.items()}
    assert list(groups) == list(range(1, 89))
    assert set(groups.values()) == set(range(2, 15))
    # The table of the background is the same in all, and its stream has nothing to do with that of the groups.
    assert len({str(data["background"]) for data in written.values()}) == 1
    free, few = 5760 - 384, range(1, 21)
    others = [study.scenario(point).jobs[1:] for point in study.points() if point.seed in few]
    filled = [sum(job.ranks or 0 for job in jobs) for jobs in others]
    assert max(filled) < free
    assert abs(np.corrcoef(filled, [groups[seed] for seed in few])[0, 1]) < 0.4


def test_the_traced_runs_are_the_first_ones() -> None:
    for quick, count in ((False, 7), (True, 2)):
        chosen = plan("smith2018", quick=quick)
        traced, all_runs = (
            [study_of(chosen, name).written(point).data for point in study_of(chosen, name).points()]
            for name in ("traces", "runs")
        )
        assert traced == all_runs[:count]


def test_timesteps_have_the_time_and_counters_of_their_run(runs: Small) -> None:
    steps, each = runs.table("timesteps"), runs.table("each_run")
    assert steps.columns == ["run", "timestep", "warmup", "extra", "seconds", *FEATURES]
    assert steps.height == 6 * 7
    assert steps.filter("warmup")["timestep"].unique().to_list() == [1]
    assert steps.filter("extra")["timestep"].unique().to_list() == [7]
    regular = steps.filter(~pl.col("warmup")).group_by("run").agg(pl.col("seconds").sum()).sort("run")
    assert regular["seconds"].to_list() == pytest.approx(each["seconds"].to_list())
    # The last of the six computes more, by a quarter of 0.55 ms; all compute alike, within the jitter of 4%.
    assert (each["compute_max_s"] / each["compute_min_s"]).max() < 1.09  # type: ignore[operator]
    assert each["compute_mean_s"].to_numpy() == pytest.approx(7.25 * 0.55e-3, rel=0.02)
    alike = steps.filter(~pl.col("warmup"), ~pl.col("extra")).group_by("run").agg(pl.col("seconds").max()).sort("run")
    assert each["slowest_timestep_s"].to_list() == alike["seconds"].to_list()
    shares = (each["wait_share"] + each["allreduce_share"]).to_numpy()
    assert (shares > 0.75).all()
    assert (shares <= 1).all()
    assert dict(each.select("run", "groups").iter_rows()) == GROUPS


def test_claims_on_runs_are_judged_without_traces(runs: Small) -> None:
    for claim in ("variability", "groups", "prediction", "local-models"):
        assert runs.judged(f"smith.{claim}").holds is not None
    assert runs.judged("smith.wait-delays").missing == ["traces: not run"]
    assert runs.judged("smith.variability").scaled


def test_a_job_sees_part_of_what_all_switches_count(runs: Small) -> None:
    own, everywhere = runs.table("timesteps"), runs.table("timesteps_everywhere")
    sums = [name for name in FEATURES if "_sum_" in name]
    assert (own.select(sums).to_numpy() <= everywhere.select(sums).to_numpy() + 1e-9).all()
    assert 0 < own.select(sums).to_numpy().sum() < everywhere.select(sums).to_numpy().sum()
    assert own["seconds"].equals(everywhere["seconds"])


def test_the_data_set_is_stored_with_its_sheet(runs: Small) -> None:
    assert pl.read_parquet(runs.folder / "dataset.parquet").equals(runs.table("timesteps"))
    assert pl.read_parquet(runs.folder / "runs.parquet").equals(runs.table("each_run"))
    datasets = {"dataset.parquet", "dataset-all-switches.parquet", "runs.parquet"}
    comparisons = {"table-2.csv", "table-2-differences.csv", "table-3.csv"}
    stored = {"cells.csv", "claims.csv", "clauses.csv", "runs.csv", *datasets, *comparisons}
    assert stored_tables("smith2018", runs.folder) == stored
    sheet = (runs.folder / "dataset.md").read_text(encoding="utf-8")
    assert "42 timesteps of 6 runs of MILC on 64 ranks" in sheet
    slowest = runs.table("each_run").sort("seconds")["run"][-1]
    assert f"the slowest {slowest}" in sheet


def test_a_run_can_be_simulated_again(runs: Small) -> None:
    (scenario,) = scenarios(runs.found.plan, "runs", seed=2)
    again = counted(scenario, {}, Stopwatch())
    assert again["digest"] == runs.table("each_run").filter(run=2)["digest"].item()
    assert again["tables"]["own"] == runs.table("runs.own").filter(seed=2)[:, 4:].to_dict(as_series=False)


def test_errors_are_those_of_timesteps_as_long_as_the_papers(runs: Small) -> None:
    regular = runs.table("timesteps").filter(~pl.col("warmup"))
    truth = runs.table("predictions_2").filter(model="gbm", parts="base", setting="inductive")
    longer = truth.join(regular.select("run", "timestep", once="seconds"), on=["run", "timestep"])
    assert longer.height == regular.height
    assert longer["seconds"].to_numpy() == pytest.approx(2500 * longer["once"].to_numpy())
    stored = pl.read_csv(runs.folder / "table-2.csv").filter(model="gbm", parts="base", setting="inductive")
    squared = (longer["seconds"] - longer["predicted"]) ** 2
    assert stored["mse"].item() == pytest.approx(squared.mean(), rel=1e-5)


def test_a_run_that_failed_is_missed(runs: Small) -> None:
    outcome = runs.found.outcome
    partly = Outcome(outcome.tables, outcome.derived, {"runs": 1})
    assert partly.missing(runs.found.plan, "runs") == ["1 run of runs that failed"]


def test_a_traced_run_is_the_run_and_says_who_waited(runs: Small, tmp_path: Path) -> None:
    found = reproduced(["smith.wait-delays"], {"traces": {"set": {"seeds": [1]}}}, tmp_path)
    assert not found.found.failed
    spans = found.table("traces.spans")
    assert spans["seed"].to_list() == [1, 1]
    steps = runs.table("timesteps").filter(~pl.col("warmup"), run=1).sort("seconds")["timestep"].to_list()
    fastest, slowest = (spans.filter(name=name).row(0, named=True) for name in ("fastest", "slowest"))
    assert {fastest["iteration"], slowest["iteration"]} <= set(steps)
    assert fastest["seconds"] < slowest["seconds"]
    exact, inferred = (found.table("table_1").filter(judged_by=by) for by in ("truth", "inference"))
    # Eight neighbours on a grid of 2 x 2 x 4 x 4: both ways along a side of two are the same rank.
    assert exact["pairs"].sum() == inferred["pairs"].sum() == 2 * 64 * (1 + 1 + 2 + 2)
    assert exact.filter(neighbour="same host").height == 2
    assert (exact["delayed_pairs"] <= exact["pairs"]).all()
    waits = found.table("traces.longest_waits").filter(name="slowest")
    assert waits["rank"].to_list() == sorted(set(waits["rank"])) != []
    assert waits["wait_ps"].to_numpy().min() > 0
    assert waits["wait_ps"].to_numpy().max() * 1e-12 <= slowest["seconds"] * 2
    assert found.judged("smith.wait-delays").holds is not None
    assert found.judged("smith.flits-threshold").holds is not None
    assert found.judged("smith.prediction").missing == ["runs: not run", "hyperparameters: not run"]
    for name in ("figure-5.png", "figure-9.png"):
        assert_drawn(tmp_path / name)
    assert pl.read_csv(tmp_path / "table-1-truth.csv")["pairs"].sum() == exact["pairs"].sum()
    own = {"inference.csv", "link-boxes.csv", "table-1-inference.csv", "table-1-truth.csv"}
    assert stored_tables("smith2018", tmp_path) == {"cells.csv", "claims.csv", "clauses.csv", *own}


@pytest.mark.long("learn/predict", "papers")
def test_windows_before_timesteps_are_compared_with_the_timesteps(others: Small) -> None:
    table = others.table("windows_table").filter(study="eighth", model="gbm")
    lengths = ["0.5 ms before", "1 ms before", "2 ms before"]
    last = "2 ms before, time of the timestep before"
    expected = [("none", "time of the timestep before")]
    expected += [(which, it) for which in ("own", "everywhere") for it in ("the timestep", *lengths, last)]
    assert table.select("switches", "counters").rows() == expected
    differences = others.table("windows_differences").filter(study="eighth")
    mse = {(which, counters): mse for which, counters, mse in table.select("switches", "counters", "mse").iter_rows()}
    found = {row["difference"]: row for row in differences.iter_rows(named=True)}
    one = found["own: 1 ms before - the timestep"]
    assert one["mse"] == pytest.approx(mse["own", "1 ms before"] - mse["own", "the timestep"])
    assert one["low"] < one["mse"] < one["high"]
    assert found["the timestep: everywhere - own"]["mse"] == pytest.approx(
        mse["everywhere", "the timestep"] - mse["own", "the timestep"]
    )
    # All inputs have the same timesteps: those before which there is room for 2 ms, but for those that compute more.
    counted = others.table("eighth.own_before").filter(pl.col("window_s") > 1.9e-3, pl.col("timestep") != 7)
    assert 5 * 2 <= counted.height < 5 * 6
    assert others.table("windows_table").filter(study="long")["counters"].unique().len() == 5


def test_counters_of_windows_are_of_the_time_before(others: Small) -> None:
    steps = others.table("eighth.own").with_columns(end=pl.col("seconds").cum_sum().over("point"))
    windows = others.table("eighth.own_before")
    joined = windows.join(steps.with_columns(pl.col("timestep") + 1), on=["point", "timestep"], suffix="_at")
    assert joined.height == windows.height
    assert (joined["end"] > joined["window_s"]).all()
    # A longer window has no less of anything than a shorter one with the same end.
    wide = windows.pivot("window_s", index=["point", "timestep"], values="flits_sum_vc0").drop_nulls()
    assert wide.height > 10
    assert (wide["0.002"] >= wide["0.001"]).all()
    assert (wide["0.001"] >= wide["0.0005"]).all()


def test_runs_of_one_kind_are_compared_with_mixed_ones(others: Small) -> None:
    table = others.table("kinds_table")
    both = [(count, setting) for setting in ("inductive", "transductive") for count in (1, 2, 3)]
    kinds = table.filter(background="of one kind").select("clusters", "setting").rows()
    assert kinds == [*both, (3, "known kinds")]
    assert table.filter(background="mixed").select("clusters", "setting").rows() == both
    assert table.filter(setting="known kinds")["adjusted_rand"].item() == 1
    assert table.filter(background="mixed")["adjusted_rand"].null_count() == 6
    of_kind = {"halos": "Halo3D", "random": "UniformRandom", "incast": "Incast"}
    for kind, workload in of_kind.items():
        drawn = decide(scenarios(others.found.plan, "kinds", kind=kind, seed=1)[0]).jobs[1:]
        assert {type(job.table.workload).__name__ for job in drawn} == {workload}


def test_longer_timesteps_are_measured_like_the_others(others: Small) -> None:
    found = others.table("lateness")
    assert found["study"].unique(maintain_order=True).to_list() == ["runs", "eighth", "long"]
    value = {(study, measure): value for study, measure, value in found.select("study", "measure", "value").iter_rows()}
    assert found.filter(study="long")["iterations"].unique().to_list() == [20]
    each = others.table("each_run")
    assert value["runs", "slowest over fastest run"] == pytest.approx(
        float(each["seconds"].to_numpy().max() / each["seconds"].to_numpy().min())
    )
    steps = others.table("long.own").filter(~pl.col("warmup"), ~pl.col("extra"))["seconds"].to_numpy()
    assert value["long", "slowest over fastest timestep"] == pytest.approx(steps.max() / steps.min())
    late = others.table("long.run")["late_share"].to_numpy()
    assert (late > 0).all()
    assert (late < 1).all()
    assert value["long", "share of late partners in blocked time"] == pytest.approx(late.mean())
    # 20 iterations of 0.55 ms in each of three timesteps, and one to warm up.
    assert others.table("long.run")["compute_mean_s"].to_numpy() == pytest.approx(61 * 0.55e-3, rel=0.02)


def test_both_cablings_have_the_same_runs(others: Small) -> None:
    each = others.table("cablings")
    assert each["run"].to_list() == [1, 2]
    assert each["ratio"].to_list() == pytest.approx((each["seconds_edison"] / each["seconds"]).to_list())
    summary = others.table("cabling_ratio").row(0, named=True)
    assert summary["low"] < summary["mean_ratio"] < summary["high"]
    ours = {"windows.csv", "windows-differences.csv", "table-3-kinds.csv", "table-3-kinds-differences.csv"}
    ours |= {"lateness.csv", "cablings.csv", "cabling-ratio.csv", "table-2-differences.csv"}
    assert stored_tables("smith2018", others.folder) >= ours


def test_edisons_cabling_remains_where_the_machine_is_smaller() -> None:
    for quick in (True, False):
        usual, cabled = (scenarios(plan("smith2018", quick=quick), it, seed=1)[0].fabric for it in ("runs", "cabling"))
        assert cabled.spec["params"] == {**usual.spec["params"], "arrangement": "absolute", "bundles_by": "row"}


def test_a_trace_of_longer_timesteps_has_an_exchange_of_each_pair(tmp_path: Path) -> None:
    long = {"jobs[0].stop": 3, "jobs[0].workload.every": 12, "jobs[0].workload.iterations": 4}
    traced = {"long_traces": {"set": {"seeds": [3]}, "scenario": {**long, "jobs[0].workload.compute": "2.2 ms"}}}
    found = reproduced(["smith.wait-delays"], traced, tmp_path)
    assert not found.found.failed
    exact = found.table("table_1_long").filter(judged_by="truth")
    assert exact["pairs"].sum() == 2 * 64 * (1 + 1 + 2 + 2)
    assert (tmp_path / "table-1-long-truth.csv").is_file()
    assert found.judged("smith.wait-delays").holds is None, "the claim is judged by the paper's runs"


def values(claim: str, tables: Mapping[str, pl.DataFrame], schema: str = "main") -> list[tuple[float, bool]]:
    """The numbers of a claim by tables that are made up, and whether they are in their bands."""
    database = Database()
    for name, table in tables.items():
        database.put(name, table, schema)
    return [(round(one.value, 6), one.holds) for one in judged("smith2018", claim, database)]


def test_waits_in_the_quarters_of_flits_are_compared() -> None:
    # 20 pairs in order of flits: the lowest quarter are five and so is the highest; waits of 1 and of 100.
    flits = list(range(1, 21))
    waits = [1.0] * 15 + [100.0] * 5
    points = pl.DataFrame({"name": "slowest", "flits": flits, "wait_ps": waits})
    other = points.with_columns(name=pl.lit("fastest"), wait_ps=pl.lit(1000.0))
    r = round(float(np.corrcoef(flits, waits)[0, 1]), 6)
    assert values("smith.flits-threshold", {"points": pl.concat([points, other])}, "traces") == [
        (0.01, True),
        (r, True),
    ]
    high = points.with_columns(wait_ps=pl.col("flits").cast(pl.Float64))
    assert [held for _, held in values("smith.flits-threshold", {"points": high}, "traces")] == [False, False]
    nothing = points.clear()
    assert [held for _, held in values("smith.flits-threshold", {"points": nothing}, "traces")] == [False, False]


def test_the_longest_delays_are_compared_by_neighbour() -> None:
    kinds = ["same host", "same switch", "row link", "column link", "other group"]

    def table(*greatest: float | None) -> pl.DataFrame:
        slow = {"judged_by": "truth", "neighbour": kinds, "delay": "slow communication", "greatest_ms": greatest}
        late = {**slow, "delay": "late partner", "greatest_ms": [9.0] * len(kinds)}
        return pl.concat([pl.DataFrame(slow), pl.DataFrame(late)])

    def held(*greatest: float | None) -> list[bool]:
        return [held for _, held in values("smith.wait-delays", {"table_1": table(*greatest)})]

    assert held(None, None, 0.5, 0.75, 2.0) == [True, True, True]
    assert held(5.0, 0.5, 0.1, 0.25, 2.0) == [True, False, False]
    assert held(None, 0.5, 0.75, 2.0, 1.0) == [False, True, False]
