"""The reproduction of Smith et al. 2018: its runs at their own size, and small ones run, judged and stored."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from fairlane.fabric import Fabric
from fairlane.reproduce.frames import plan, reproduce
from fairlane.reproduce.frames.smith2018.experiments import FULL, QUICK, cells_of, written
from fairlane.reproduce.frames.smith2018.measured import Measured
from fairlane.reproduce.frames.smith2018.selection import Selection
from fairlane.reproduce.frames.smith2018.simulate import simulate
from fairlane.runner.counters import FEATURES
from fairlane.scenario import Scenario
from fairlane.scenario.resolve import decide
from fairlane.tasks.progress import TaskProgress
from fairlane.tasks.task import Stopwatch

pytestmark = pytest.mark.timeout(120)

TINY = replace(QUICK, ranks=64, runs=6, traces=1, timesteps=6, every=6, groups=(1, 3))


def test_a_run_is_as_large_as_in_the_paper() -> None:
    cell = next(cell for cell in cells_of(FULL) if cell.groups == 7)
    found = decide(Scenario(**written(cell, FULL)))
    milc, others = found.jobs[0], found.jobs[1:]
    assert (milc.ranks, len(set(milc.hosts))) == (6144, 384)
    assert max(milc.hosts.count(host) for host in set(milc.hosts)) == 16
    fabric = Fabric.build(found.tables["fabric"])
    assert fabric.hosts == 5760
    assert len({fabric.leaf_of[host] // 96 for host in milc.hosts}) == 7
    assert len({fabric.leaf_of[host] for host in milc.hosts}) < 120, "whole switches, mostly"
    taken = [host for job in others for host in job.hosts]
    assert len(taken) == len(set(taken))
    assert not {*taken} & {*milc.hosts}


def test_groups_are_drawn_independently_of_the_other_jobs() -> None:
    cells = list(cells_of(FULL))
    assert len(cells) >= 87
    assert {cell.groups for cell in cells} == set(range(2, 15))
    assert [cell.run for cell in cells] == list(range(1, 1 + FULL.runs))
    # The table of the background is the same in all, and its stream has nothing to do with that of the groups.
    assert len({str(written(cell, FULL)["background"]) for cell in cells}) == 1
    mix = Scenario(**written(cells[0], FULL)).background
    assert mix is not None
    free = 5760 - 384
    filled = [sum(job.ranks or 0 for job in mix.draw(free, cell.run)) for cell in cells[:20]]
    assert max(filled) < free
    assert abs(np.corrcoef(filled, [cell.groups for cell in cells[:20]])[0, 1]) < 0.4


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Measured]:
    folder = tmp_path_factory.mktemp("smith")
    chosen = replace(plan("smith2018", quick=True), selection=Selection(["runs"], TINY))
    found = reproduce(chosen, folder, TaskProgress(wanted=False), workers=1)
    assert not found.failed
    assert None not in [one.holds for one in found.judged if one.claim.id in ("smith.variability", "smith.groups")]
    assert isinstance(found.measured, Measured)
    return folder, found.measured


def test_timesteps_have_the_time_and_counters_of_their_run(small: tuple[Path, Measured]) -> None:
    _, measured = small
    steps, runs = measured.timesteps(), measured.runs()
    assert steps.columns == ["run", "timestep", "warmup", "extra", "seconds", *FEATURES]
    assert steps.height == 6 * 7
    assert steps.filter("warmup")["timestep"].unique().to_list() == [1]
    assert steps.filter("extra")["timestep"].unique().to_list() == [7]
    regular = steps.filter(~pl.col("warmup")).group_by("run").agg(pl.col("seconds").sum()).sort("run")
    assert regular["seconds"].to_list() == pytest.approx(runs.sort("run")["seconds"].to_list())
    # The last of the six computes more, by a quarter of 0.55 ms; all compute alike, within the jitter of 4%.
    assert (runs["compute_max_s"] / runs["compute_min_s"]).max() < 1.09  # type: ignore[operator]
    assert runs["compute_mean_s"].to_numpy() == pytest.approx(7.25 * 0.55e-3, rel=0.02)
    shares = (runs["wait_share"] + runs["allreduce_share"]).to_numpy()
    assert (shares > 0.75).all()
    assert (shares <= 1).all()
    assert runs["groups"].to_list() == [cell.groups for cell in cells_of(TINY)]


def test_a_job_sees_part_of_what_all_switches_count(small: tuple[Path, Measured]) -> None:
    _, measured = small
    own, everywhere = (measured.timesteps(all_switches=it) for it in (False, True))
    sums = [name for name in FEATURES if "_sum_" in name]
    assert (own.select(sums).to_numpy() <= everywhere.select(sums).to_numpy() + 1e-9).all()
    assert own["seconds"].equals(everywhere["seconds"])


def test_the_data_set_is_stored_with_its_sheet(small: tuple[Path, Measured]) -> None:
    folder, measured = small
    assert pl.read_parquet(folder / "dataset.parquet").equals(measured.timesteps())
    assert pl.read_parquet(folder / "runs.parquet").equals(measured.runs())
    sheet = (folder / "dataset.md").read_text(encoding="utf-8")
    assert "42 timesteps of 6 runs" in sheet
    slowest = measured.runs().sort("seconds")["run"][-1]
    assert f"the slowest {slowest}" in sheet
    assert measured.cell(slowest).run == slowest


def test_a_run_can_be_simulated_again(small: tuple[Path, Measured]) -> None:
    _, measured = small
    cell = measured.cell(2)
    again = simulate(Scenario(**written(cell, TINY)), {}, Stopwatch())
    assert again["digest"] == measured.cells[cell]["digest"]
    assert again["own"] == measured.cells[cell]["own"]


def test_errors_are_those_of_timesteps_as_long_as_the_papers(small: tuple[Path, Measured]) -> None:
    _, measured = small
    regular = measured.timesteps().filter(~pl.col("warmup"))
    truth = measured.prediction.parts.predictions.filter(model="gbm", parts="base", setting="inductive")
    longer = truth.join(regular.select("run", "timestep", once="seconds"), on=["run", "timestep"])
    assert longer.height == regular.height
    assert longer["seconds"].to_numpy() == pytest.approx(2500 * longer["once"].to_numpy())
    table = pl.read_csv(small[0] / "table-2.csv").filter(model="gbm", parts="base", setting="inductive")
    assert table["mse"].item() == pytest.approx(measured.prediction.error("gbm", "base"), rel=1e-5)


def test_a_missing_run_is_named(small: tuple[Path, Measured]) -> None:
    _, measured = small
    part = Measured(dict(list(measured.cells.items())[:5]), TINY)
    assert part.missing("runs") == ["1 of 6 runs"]


def test_a_traced_run_is_the_run_and_says_who_waited(small: tuple[Path, Measured], tmp_path: Path) -> None:
    chosen = replace(plan("smith2018", quick=True), selection=Selection(["traces"], TINY))
    found = reproduce(chosen, tmp_path, TaskProgress(wanted=False), workers=1)
    assert not found.failed
    traced = found.measured
    assert isinstance(traced, Measured)
    assert list(traced.traces) == [1]
    trace = traced.traces[1]
    steps = small[1].timesteps().filter(~pl.col("warmup"), run=1).sort("seconds")["timestep"].to_list()
    periods = {name: trace[name]["period"] for name in ("fastest", "slowest")}
    assert {one["iteration"] for one in periods.values()} <= set(steps)
    assert periods["fastest"]["seconds"] < periods["slowest"]["seconds"]
    exact, inferred = (traced.table_one(by) for by in ("truth", "inference"))
    # Eight neighbours on a grid of 2 x 2 x 4 x 4: both ways along a side of two are the same rank.
    assert exact["pairs"].sum() == inferred["pairs"].sum() == 2 * 64 * (1 + 1 + 2 + 2)
    on_host = exact.filter(pl.col("neighbour") == "same host")
    assert on_host.height == 2
    assert (exact["delayed_pairs"] <= exact["pairs"]).all()
    waits = trace["slowest"]["longest_waits"]
    assert waits["rank"] == sorted(set(waits["rank"])) != []
    assert min(waits["wait_ps"]) > 0
    assert max(waits["wait_ps"]) * 1e-12 <= periods["slowest"]["seconds"] * 2
    judged = {one.claim.id: one for one in found.judged}
    assert judged["smith.wait-delays"].holds is not None
    assert judged["smith.flits-threshold"].holds is not None
    assert judged["smith.prediction"].missing == ["6 of 6 runs"]
    for name in ("figure-5.png", "figure-9.png", "table-1-truth.csv"):
        assert (tmp_path / name).is_file()
