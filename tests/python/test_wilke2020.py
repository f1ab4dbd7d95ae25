"""The reproduction of Wilke and Kenny 2020: its cells at their own size, run, stored, judged and drawn when small."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import fairlane.reproduce.frames.wilke2020.experiments as wilke
from fairlane import required_virtual_lanes
from fairlane.reproduce.frames import plan, reproduce
from fairlane.reproduce.frames.paper import Done
from fairlane.reproduce.frames.running import perform_all
from fairlane.reproduce.frames.wilke2020.checks import CHECKS, lanes_needed
from fairlane.reproduce.frames.wilke2020.experiments import EXPERIMENTS, FULL, QUICK, STRATEGIES, Cell, Scale
from fairlane.reproduce.frames.wilke2020.figures import draw
from fairlane.reproduce.frames.wilke2020.measured import Measured, Outcome
from fairlane.reproduce.frames.wilke2020.selection import Selection, task
from fairlane.scenario.resolve import decide
from fairlane.tasks.progress import TaskProgress
from fairlane.tasks.store import Store
from small_study import Here

TREE = Cell("fat-tree", "allreduce", "halo3d", "none")
SMALL = replace(
    QUICK,
    workloads={**QUICK.workloads, "halo3d": {"message_size": "32 KiB"}},
    iterations={**QUICK.iterations, "halo3d": 2, "allreduce": 5},
    warm_up="20 us",
)


@pytest.mark.parametrize(("fabric", "switches"), [("fat-tree", 640), ("fat-tree-taper", 480)])
def test_the_paper_has_8192_hosts_that_are_all_in_use(fabric: str, switches: int) -> None:
    from fairlane import Fabric

    for size, background in ((1, 7), (2, 6), (4, 4)):
        resolved = decide(wilke.scenario(Cell(fabric, "halo3d", "halo3d", "isolate", size), FULL))
        assert [job.ranks for job in resolved.jobs] == [1024] * background + [1024 * size]
        assert len({host for job in resolved.jobs for host in job.hosts}) == 8192
        assert resolved.tables["qos"]["arbiter"]["params"]["weights"] == [1] * background + [size]
    assert Fabric.build(resolved.tables["fabric"]).switches == switches


def test_the_foreground_has_the_same_hosts_whatever_runs_beside_it() -> None:
    hosts = {
        decide(wilke.scenario(Cell("fat-tree", "fft", background, strategy), QUICK)).jobs[-1].hosts
        for background in ("halo3d", "fft", wilke.NOBODY, wilke.NO_CONTENTION)
        for strategy in ("none", *(STRATEGIES if background == "fft" else ()))
    }
    assert len(hosts) == 1
    assert len(set(np.diff(next(iter(hosts))).tolist())) > 1, "what is left is fragmented"


def test_without_contention_only_the_hosts_links_are_of_this_world() -> None:
    resolved = decide(wilke.scenario(Cell("fat-tree", "fft", wilke.NO_CONTENTION, "none"), QUICK))
    from fairlane import Fabric

    links = Fabric.build(resolved.tables["fabric"]).links
    rates = {role: set(links["bandwidth"][links["role"] == role].tolist()) for role in ("host", "up", "down")}
    assert rates == {"host": {10**11}, "up": {10**14}, "down": {10**14}}


def run(cells: list[Cell], folder: Path, scale: Scale = SMALL) -> dict[Cell, Done]:
    return perform_all({cell: task(cell, scale) for cell in cells}, Here(), Store(folder), TaskProgress(wanted=False))


def test_a_cell_depends_on_nothing_but_itself(tmp_path: Path) -> None:
    first, second = (run([TREE], tmp_path / name)[TREE] for name in ("first", "second"))
    assert first.answer is not None
    assert first.answer == second.answer
    rows = Outcome.of(first.answer).iterations
    assert rows["rank"].n_unique() == SMALL.ranks
    assert rows["iteration"].max() == 5
    assert (rows["at_ps"] > 20_000_000).all(), "after the warm-up"


def test_a_cell_that_cannot_be_run_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    wrong = replace(SMALL, fabrics={**SMALL.fabrics, "odd": {"topology": "fat_tree", "hosts": 128, "routing": "no"}})
    odd = Cell("odd", "fft", "halo3d", "none")
    done = run([odd, TREE], tmp_path, wrong)
    assert done[TREE].answer is not None
    assert "routing" in (done[odd].error or "")


def test_background_slows_the_foreground_down(tmp_path: Path) -> None:
    cells = [Cell("fat-tree-taper", "halo3d", background, "none") for background in (wilke.NOBODY, "halo3d")]
    alone, beside = (one.answer or {} for one in run(cells, tmp_path).values())
    assert alone["packet_hops"] * 3 < beside["packet_hops"]
    medians = [np.median(Outcome.of(one).iterations["time_s"].drop_nulls().to_numpy()) for one in (alone, beside)]
    assert medians[0] <= medians[1]


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("fabric", list(QUICK.fabrics))
def test_each_job_can_have_a_lane_of_its_own(fabric: str, size: int) -> None:
    wilke.scenario(Cell(fabric, "fft", "halo3d", "isolate", size), QUICK).resolve().engine()


def test_isolate_on_the_dragonfly_takes_the_fewest_channels() -> None:
    fabric = wilke.written(Cell("dragonfly-par", "fft", "halo3d", "isolate"), FULL)["fabric"]
    dragonfly, routing = {key: fabric[key] for key in ("topology", "preset")}, fabric["routing"]
    assert len(required_virtual_lanes(dragonfly, routing, {"service_levels": 8})) == 32
    assert len(required_virtual_lanes(dragonfly, "progressive", {"service_levels": 8})) == 48


def test_fat_trees_need_a_lane_for_each_level() -> None:
    assert lanes_needed("fat-tree", QUICK) == 4


def test_a_reproduction_leaves_cells_figures_and_claims(tmp_path: Path) -> None:
    trees = {name: fabric for name, fabric in SMALL.fabrics.items() if name in wilke.FAT_TREES}
    chosen = plan("wilke2020", only="wilke.allreduce", quick=True)
    small = replace(chosen, selection=Selection(["allreduce"], replace(SMALL, fabrics=trees)))
    judged = reproduce(small, tmp_path, TaskProgress(wanted=False), workers=1).judged
    assert [one.claim.id for one in judged] == ["wilke.allreduce"]
    assert judged[0].holds is None, "nothing was run on dragonflies"
    dragonflies = [str(cell) for cell in EXPERIMENTS["allreduce"].cells if cell.fabric in wilke.DRAGONFLIES]
    assert judged[0].missing == dragonflies
    assert len(judged[0].findings) == 1 + 2 * 3
    assert (tmp_path / "allreduce.png").is_file()
    rows = pl.read_csv(tmp_path / "claims.csv").row(0, named=True)
    assert rows["holds"] == "- (scaled)"
    assert "fat-tree, none: max / median" in rows["measured"]
    times = pl.read_csv(tmp_path / "times.csv")
    assert set(times["fabric"]) == set(wilke.FAT_TREES)
    assert (times["q50"] <= times["q99"]).all()


def outcome(seconds: list[float], active: list[float] | None = None) -> Outcome:
    """Made-up measurements of one rank."""
    shares = active or [0.5]
    return Outcome(
        iterations=pl.DataFrame(
            {"rank": 0, "iteration": range(1, len(seconds) + 2), "at_ps": 0, "time_s": [None, *seconds]}
        ),
        ports=pl.DataFrame({"port_active_share": shares, "port_stalled_share": [0.1 * one for one in shares]}),
    )


def test_outliers_decide_about_allreduce() -> None:
    cells = {
        Cell(fabric, "allreduce", "halo3d", strategy): outcome([1e-5] * 99 + [reach * 1e-5])
        for fabric in (*wilke.DRAGONFLIES, *wilke.FAT_TREES)
        for strategy in STRATEGIES
        for reach in [8 if strategy == "none" and fabric in wilke.DRAGONFLIES else 2]
    }
    measured = Measured(cells, QUICK)
    found = list(CHECKS["wilke.allreduce"].judge(measured))
    assert len(found) == 3 + 4 * 3
    assert all(held for _, held in found)
    assert measured.missing("allreduce") == [str(cell) for cell in EXPERIMENTS["allreduce"].cells if cell not in cells]
    cells[Cell("fat-tree", "allreduce", "halo3d", "isolate")] = outcome([1e-5] * 99 + [4e-5])
    found = list(CHECKS["wilke.allreduce"].judge(Measured(cells, QUICK)))
    assert [words for words, held in found if not held] == ["fat-tree, isolate: max / median 4.0 (<= 3)"]


def test_throughput_is_told_apart_by_size() -> None:
    sizes = [int(size.split()[0]) for size in wilke.PING_PONG_SIZES]
    # Every message takes 1 us a way and 1 us more for each KiB; each size is sent four times.
    times = [2e-6 * (1 + sizes[iteration // 4]) for iteration in range(1, 4 * len(sizes))]
    cell = Cell("dragonfly-par", "ping_pong", "halo3d", "none")
    found = Measured({cell: outcome(times)}, QUICK).throughput(cell)
    assert list(found) == sorted(1024 * size for size in sizes)
    for size, rates in found.items():
        assert rates == pytest.approx(size / (1e-6 * (1 + size / 1024)))


def test_what_was_not_run_is_missing_and_not_judged() -> None:
    measured = Measured({}, QUICK)
    assert list(CHECKS["wilke.port-counters"].judge(measured)) == []
    assert len(measured.missing("port-counters")) == 4


def test_every_experiment_is_drawn_from_what_is_there(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    times = (1e-3 * (1 + rng.random(60))).tolist()
    for name, experiment in EXPERIMENTS.items():
        cells = {cell: outcome(times, rng.random(50).tolist()) for cell in experiment.cells[:-1]}
        assert draw(name, Measured(cells, QUICK), tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert not draw("fft", Measured({}, QUICK), tmp_path / "none.png")
