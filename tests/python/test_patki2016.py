"""The reproduction of Patki et al. 2016: its cells at their own size, and small ones run, judged and drawn."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from fairlane.reproduce.frames import plan, reproduce
from fairlane.reproduce.frames.patki2016.checks import CHECKS, variation
from fairlane.reproduce.frames.patki2016.experiments import (
    APPLICATIONS,
    BALANCES,
    EXPERIMENTS,
    FULL,
    QUICK,
    Cell,
    Scale,
    cells_of,
    share_of,
    written,
)
from fairlane.reproduce.frames.patki2016.measured import Measured
from fairlane.reproduce.frames.patki2016.selection import Selection
from fairlane.scenario import Scenario
from fairlane.scenario.resolve import decide
from fairlane.tasks.progress import TaskProgress

TINY = replace(
    QUICK,
    ranks=96,
    hosts=8,
    workloads={
        "ft": {"name": "ft", "points": 1024, "compute": "0.1 ms"},
        "kripke": {"name": "kripke", "group_sets": 1, "compute": "40 us"},
    },
    iterations={"ft": 1, "kripke": 1},
    balances=((3, 0), (0, 3)),
)


def test_catalyst_is_filled_as_in_the_paper() -> None:
    jobs = decide(Scenario(**written(Cell("ft", "0", 0, 0, 65, "packed"), FULL))).jobs
    application, interference = (sorted(set(job.hosts)) for job in jobs)
    assert (len(jobs[0].hosts), len(application), len(interference)) == (2048, 86, 170)
    assert len({*application, *interference}) == 256
    assert max(jobs[0].hosts.count(host) for host in application) == 24
    assert application == list(range(86)), "packed: five leaves of 18"
    leaves = [
        host // 18 for host in decide(Scenario(**written(Cell("ft", "0", 0, 0, 65, "spread"), FULL))).jobs[0].hosts
    ]
    assert len(set(leaves)) == 18
    caps = [job.power.cap for job in jobs if job.power]
    assert caps == [65.0, 115.0], "nobody caps the interference"


def test_bandwidth_moves_to_the_application() -> None:
    shares = [share_of(*balance) for balance in BALANCES]
    assert shares == pytest.approx([1 / 9, 1 / 3, 1 / 2, 2 / 3, 8 / 9])


def test_both_adapters_are_dealt_to_the_processes_of_a_host() -> None:
    jobs = decide(Scenario(**written(Cell("ft", "both", 0, 0, 115, "packed"), FULL))).jobs
    dealt = jobs[0].rails or {}
    for host in range(85):
        assert sum(dealt["ranks"][24 * host : 24 * host + 24]) == 12
    assert {job.rails["policy"] for job in jobs if job.rails} == {"by_source"}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bool | None]]:
    folder = tmp_path_factory.mktemp("patki")
    chosen = replace(plan("patki2016", quick=True), selection=Selection(["rails", "power"], TINY))
    found = reproduce(chosen, folder, TaskProgress(wanted=False), workers=1)
    assert not found.failed
    return folder, [one.holds for one in found.judged]


def test_a_reproduction_leaves_tables_figures_and_claims(small: tuple[Path, list[bool | None]]) -> None:
    folder, holds = small
    assert None not in holds
    runs = pl.read_csv(folder / "runs.csv", schema_overrides={"rails": pl.String})
    assert runs.height == 2 * (3 * 2 + 2 * 3 * 3)
    assert (runs["run_time_ms"] > runs["computing_ms"]).all()
    alone = runs.filter(pl.col("interference_level").is_null())
    assert (alone["waits_for_interference_ms"] == 0).all()
    # Under 65 W everything is computed at a lower frequency: no run is shorter, and none draws more power.
    keys = ["application", "service_level", "interference_level", "placement"]
    power = runs.filter(pl.col("experiment") == "power")
    low, high = (power.filter(pl.col("cap_w") == cap) for cap in (65, 115))
    both = low.join(high, on=keys, nulls_equal=True)
    assert both.height == low.height
    assert (both["computing_ms"] > both["computing_ms_right"]).all()
    assert (both["energy_j"] / both["run_time_ms"] < both["energy_j_right"] / both["run_time_ms_right"]).all()
    for name in ("rails", "power"):
        assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_each_condition_has_its_interference_alone() -> None:
    tasks = Selection(EXPERIMENTS, FULL).tasks
    alone = [cell for cell in tasks if cell.application == "interference"]
    assert {cell.rails for cell in alone} == {"both", "0", "1"}
    assert {cell.cap for cell in tasks if cell.placement == "packed"} == {65, 80, 95, 115}
    for cell in alone:
        (job,) = Scenario(**written(cell, FULL)).jobs
        assert (job.name, job.ranks) == ("interference", 4080)
    assert len({task.digest for task in tasks.values()}) == len(tasks)


def test_seeds_of_a_condition_are_averaged() -> None:
    cells = {
        Cell("ft", "both", level, 0, 115, "random", seed): {"run_time": 1e9 * time}
        for level, seed, time in ((3, 1, 2.0), (3, 2, 4.0), (0, 1, 1.0), (0, 2, 1.0))
    }
    assert variation(Measured(cells, FULL), "ft", "both") == pytest.approx(3.0)


def made_up(scale: Scale, **times: float) -> Measured:
    """Run times by what a cell's name begins with, and 1 ms for all others."""
    cells = {}
    for cell in [*cells_of("rails", scale), *cells_of("power", scale)]:
        name = str(cell).replace("-", "_")
        found = [time for key, time in times.items() if name.startswith(key)]
        answer = {"run_time": 1e9 * (found[-1] if found else 1.0)}
        cells[cell] = answer
    return Measured(cells, scale)


def judged(claim: str, **times: float) -> list[bool]:
    return [held for _, held in CHECKS[claim].judge(made_up(FULL, **times))]


def test_greatest_over_least_decides_about_adapters() -> None:
    claim = "patki.dual-rail"
    assert judged(claim, ft_rails_both_level_3=3.0) == [True, True, True]
    assert judged(claim, ft_rails_both_level_3=2.9) == [False, True, True]
    assert judged(claim, ft_rails_both_level_3=4.0, ft_rails_0_level_1=2.0, ft_rails_1_level_1=2.1) == [
        True,
        True,
        False,
    ]


def test_each_part_decides_about_placements() -> None:
    claim = "patki.placement"
    assert judged(claim) == [False, False, False]
    spread = "kripke_rails_0_level_3_beside_0_on_both_spread_65W"  # both seeds
    assert judged(claim, **{spread: 0.99}) == [True, False, True]
    assert judged(claim, lu_rails_0_level_0_beside_0_on_both_random_65W=1.01) == [False, True, False]
    assert set(APPLICATIONS) == set(FULL.workloads)
    assert made_up(QUICK).missing("rails") == []
    assert Measured({}, QUICK).missing("power") == ["FT in power", "LU in power", "Kripke in power"]
