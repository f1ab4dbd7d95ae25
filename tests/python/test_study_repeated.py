"""Points of a study that are one simulation: jobs' own placements vary, and what changes nothing counts once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane.results.study import StudyResults
from fairlane.study.cells import Cell
from fairlane.study.plan import plan
from fairlane.study.replicates import distinct, estimate, outer_unit
from fairlane.study.running import run
from fairlane.study.study import Study
from fairlane.views.kinds import view_of

pytestmark = pytest.mark.usefixtures("here")

SCENARIO = """
{head}
[scenario]
duration = "100 us"
fabric = {{ topology = "fat_tree", hosts = 16, levels = 2, leaf_down = 4, leaf_up = 2 }}
[[scenario.jobs]]
name = "a"
ranks = 4
placement = {own}
workload = {{ name = "all_to_all", message_size = "4 KiB", compute = "{compute}" }}
[[scenario.jobs]]
name = "b"
ranks = 4
workload = {{ name = "all_to_all", message_size = "16 KiB", compute = "{compute}" }}
"""
TREATED = """
[treatments.level.set]
"jobs[0].service_level" = 1
[treatments.spread.set]
placement = "spread"
[treatments.own.set]
"jobs[1].placement" = "random"
"""


def study(folder: Path, head: str, own: str = '"random"', compute: str = "0 us") -> Study:
    file = folder / "study.toml"
    file.write_text(SCENARIO.format(head=head, own=own, compute=compute))
    return Study.load(file)


def hosts(cell: Cell, job: int, treatment: str | None = None) -> tuple[int, ...]:
    pinned = cell.pinned if treatment is None else cell.treated[treatment]
    found: list[int] = pinned.scenario["jobs"][job]["placement"]["hosts"]
    return tuple(found)


def computed(folder: Path, *given: Any, **options: Any) -> StudyResults:
    return run(study(folder, *given, **options), out=folder / "out", workers=1)


def test_own_random_placements_vary_with_the_placement_and_are_the_same_under_treatments(tmp_path: Path) -> None:
    cells = plan(study(tmp_path, f"placements = 5\nseeds = [1, 2]\n{TREATED}")).cells
    by_placement: dict[int, set[tuple[int, ...]]] = {}
    for cell in cells:
        by_placement.setdefault(cell.point.placement, set()).add(hosts(cell, 0))
        # Treated and default runs are on the same hosts, also where others are placed by another policy.
        assert {hosts(cell, 0, name) for name in ("level", "spread", "own")} == {hosts(cell, 0)}
    # One placement for each number, whatever the scenario's seed is, and no two alike.
    assert [len(found) for found in by_placement.values()] == [1] * 5
    assert len(set().union(*by_placement.values())) == 5
    # A random placement that only a treatment has varies as well.
    assert len({hosts(cell, 1, "own") for cell in cells}) == 5


def test_replicates_vary_own_random_placements_too(tmp_path: Path) -> None:
    cells = plan(study(tmp_path, 'repeat = { precision = "1%", at_most = 9 }')).cells
    assert len({hosts(cell, 0) for cell in cells}) == 5


def test_a_seed_of_its_own_keeps_a_job_where_it_is(tmp_path: Path) -> None:
    cells = plan(study(tmp_path, "placements = 4", '{ name = "random", seed = 3 }')).cells
    assert len({hosts(cell, 0) for cell in cells}) == 1
    assert len({hosts(cell, 1) for cell in cells}) == 4


def test_a_factor_may_name_the_policy_of_placements_that_have_a_number(tmp_path: Path) -> None:
    head = 'placements = 2\nfactors.policy = { packed = { placement = "packed" }, random = { placement = "random" } }'
    cells = plan(study(tmp_path, head, "{ hosts = [0, 4, 8, 12] }")).cells
    found = {
        level: len({hosts(cell, 1) for cell in cells if cell.point.parameters["policy"] == level})
        for level in ("packed", "random")
    }
    assert found == {"packed": 1, "random": 2}


HERE = "{ hosts = [0, 4, 8, 12] }"
STILL = (
    f'placements = 3\nseeds = [1, 2]\nset = {{ "jobs[1].placement" = {HERE.replace("0, 4, 8, 12", "1, 5, 9, 13")} }}'
)


def test_placements_and_seeds_that_change_nothing_are_one_replicate(tmp_path: Path) -> None:
    levels = '\nparameters = { "network.buffer" = ["64 KiB", "65536 B"] }'
    levels += '\ntreatments.on.set = { "mpi.send_overhead" = "5 us" }'
    found = computed(tmp_path, STILL + levels, own=HERE)
    assert found.meta.notes == [
        "10 of 12 points repeat another of the same condition, bit for bit, and count once: placements and seeds "
        "change nothing there.",
        "network.buffer changes nothing: results are the same, bit for bit, at all its values.",
    ]
    # Each of the two conditions has the first of its six points, for each treatment and job.
    assert found.work["same_as"].unique().sort().to_list() == [0, 6]
    assert found.work["seed"].unique().to_list() == [1, 2]
    assert distinct(found.work).height == 2 * 2 * 2
    assert outer_unit(found.work) == "seed"
    mean = estimate(found.work.filter(pl.col("treatment") == "on"), "improvement", outer_unit(found.work))
    assert mean is not None
    assert mean.value < 0
    assert mean.half_width is None
    table = view_of([found]).tables[0]
    assert {row["jobs"] for row in table.rows if row} == {2}  # two jobs, each once


def test_effects_that_do_not_vary_are_precise_with_the_fewest_replicates(tmp_path: Path) -> None:
    still = f'set = {{ "jobs[1].placement" = {HERE.replace("0, 4, 8, 12", "1, 5, 9, 13")} }}'
    found = computed(tmp_path, f'repeat = {{ precision = "0.1%", at_most = 9 }}\n{still}', own=HERE)
    assert found.meta.notes == [
        "Mean effects over jobs are precise to ±0.1%, with 5 replicates in all.",
        "4 of 5 points repeat another of the same condition, bit for bit, and count once: placements and seeds "
        "change nothing there.",
    ]


def test_only_the_runs_that_repeat_count_once(tmp_path: Path) -> None:
    treated = '\ntreatments.moved.set = { "jobs[1].placement" = "random" }'
    found = computed(tmp_path, STILL.replace("[1, 2]", "[1]") + treated, own=HERE)
    assert found.meta.notes == [
        "2 of 3 points in default runs repeat another of the same condition, bit for bit, and count once: placements "
        "change nothing there."
    ]
    same = {name: rows["same_as"].n_unique() for (name,), rows in found.work.group_by("treatment")}
    assert same == {"default": 1, "moved": 3}
    # The study's results are read as they were written.
    assert StudyResults.load(tmp_path / "out").work.equals(found.work)


def test_treatments_that_change_nothing_are_named(tmp_path: Path) -> None:
    same, other = '"network.buffer" = "64 KiB"', '"mpi.send_overhead" = "5 us"'
    treatments = f"\ntreatments.same.set = {{ {same} }}\ntreatments.other.set = {{ {other} }}"
    found = computed(tmp_path, STILL.replace("placements = 3\n", "").replace("[1, 2]", "[1]") + treatments, own=HERE)
    words = "same changes nothing: its results are those of the default runs, bit for bit, at all points."
    assert found.meta.notes == [words]


def test_seeds_that_change_something_are_replicates(tmp_path: Path) -> None:
    found = computed(tmp_path, STILL, own=HERE, compute="2 us")
    assert found.work["same_as"].n_unique() == 2  # by seed; placements still change nothing
    assert found.meta.notes == [
        "4 of 6 points repeat another of the same condition, bit for bit, and count once: placements change nothing "
        "there."
    ]
    assert outer_unit(found.work) == "seed"


def test_seeds_that_change_nothing_are_no_repetitions_of_a_designed_experiment(tmp_path: Path) -> None:
    factor = '\ndesign = {}\nparameters = { "mpi.send_overhead" = ["1 us", "5 us"] }'
    found = computed(tmp_path, STILL.replace("placements = 3\n", "") + factor, own=HERE)
    data = pl.read_parquet(tmp_path / "out" / "dataset.parquet")
    assert found.work["seed"].n_unique() == 2
    assert data["seed"].unique().to_list() == [1]
    assert data.height == 2 * 2 * 2  # overheads, jobs, interference


def test_runs_that_are_measured_are_named_if_they_repeat(tmp_path: Path) -> None:
    measured = '\n[measure]\ntables.hops = "SELECT packet_hops AS hops FROM run"\n[factors.size]\n'
    levels = '4 = { "jobs[1].workload.message_size" = "4 KiB" }\n16 = { "jobs[1].workload.message_size" = "16 KiB" }'
    found = computed(tmp_path, STILL + measured + levels, own=HERE)
    assert found.meta.notes == [
        "10 of 12 points repeat another of the same condition, bit for bit, and count once: placements and seeds "
        "change nothing there."
    ]


@pytest.mark.parametrize(
    ("placements", "words"),
    [('["linear", "packed", "spread"]', ["placements differ in more than their seed and are no sample"]), ("3", [])],
)
def test_policies_side_by_side_are_no_sample(placements: str, words: list[str], tmp_path: Path) -> None:
    found = computed(tmp_path, f"placements = {placements}\nseeds = [1]")
    assert [note.partition(":")[0] for note in found.meta.notes] == words
