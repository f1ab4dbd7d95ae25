"""Studies: what a file means, what is computed once, the tables, and controllers as treatments."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import fairlane
from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.core.tables import marks
from fairlane.results.study import StudyResults
from fairlane.sim import runner
from fairlane.study.plan import plan
from fairlane.study.running import run
from fairlane.study.setting import changes
from fairlane.study.study import Study
from fairlane.study.tasks.task import files_of
from pictures import assert_drawn
from small_study import SCENARIO, STUDY

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SCENARIO)
    return tmp_path


def study(folder: Path, text: str, name: str = "levels") -> Study:
    (folder / f"{name}.toml").write_text(text)
    return Study.load(folder / f"{name}.toml", allow_code=True)


def computed(folder: Path, text: str, out: str = "out") -> StudyResults:
    return run(study(folder, text), out=folder / out, workers=1)


def simulations(folder: Path, text: str) -> tuple[int, int]:
    """How many runs a study has, and how many of them differ."""
    planned = plan(study(folder, text))
    for cell in planned.cells:
        cell.decide([None] * len(cell.jobs), planned.study.treatments)
    tasks = [task.digest for task in planned.tasks()]
    return len(tasks), len(set(tasks))


def treated_by_times(folder: Path, placement: int, seed: int) -> list[float]:
    """The improvement of each job, from the marks of all ranks of a default and a treated run."""
    times: list[dict[int, list[int]]] = []
    for level in ("jobs[0].service_level=0", "jobs[0].service_level=1"):
        sets = [f"placement.seed={placement}", f"seed={seed}", level]
        scenario = Scenario.load(folder / "small.toml", set=sets)
        resolved = scenario.resolve()
        engine = replace(resolved, jobs=tuple(replace(job, marks=True) for job in resolved.jobs)).engine()
        engine.run_until(resolved.duration)
        found: dict[int, list[int]] = {}
        for (job, _), at in marks(engine).group_by(["job", "iteration"]):
            if at.height == resolved.jobs[job].ranks:
                found.setdefault(job, []).append(max(at["at"].to_list()))
        times.append({job: sorted(of) for job, of in sorted(found.items())})
    default, treated = times
    last = {job: min(len(default[job]), len(treated[job])) - 1 for job in default}
    return [default[job][at] / treated[job][at] - 1 for job, at in last.items()]


def test_runs_are_those_of_fairlane_run(folder: Path) -> None:
    found = computed(folder, STUDY)
    assert found.meta.points == 4
    for point, (placement, seed) in enumerate([(1, 1), (1, 2), (2, 1), (2, 2)]):
        scenario = Scenario.load(folder / "small.toml", set=[f"placement.seed={placement}", f"seed={seed}"])
        single = runner.run(scenario, out=folder / f"run-{point}")
        rows = found.work.filter(pl.col("point") == point)
        default = rows.filter(pl.col("treatment") == "default").sort("job")
        for column in ("w", "w_iterations", "compared_iterations", "compared_ps", "seconds_per_iteration"):
            assert default[column].to_list() == single.jobs[column].to_list()
        # By times: up to an iteration that both completed, so it is no multiple of one part in their number.
        assert treated_by_times(folder, placement, seed) == pytest.approx(
            rows.filter(pl.col("treatment") == "first").sort("job")["improvement"].to_list()
        )
        assert default["isolated_iterations"].to_list() == single.jobs["isolated_iterations"].to_list()
        digests = found.runs.filter((pl.col("point") == point) & (pl.col("treatment") == "default"))["digest"]
        assert digests.to_list() == [single.meta.digest]

        scenario = Scenario.load(
            folder / "small.toml", set=[f"placement.seed={placement}", f"seed={seed}", "jobs[0].service_level=1"]
        )
        other = runner.run(scenario, out=folder / f"other-{point}", isolated=False)
        treated = rows.filter(pl.col("treatment") == "first").sort("job")
        assert treated["iterations"].to_list() == other.jobs["iterations"].to_list()
        changes = [mine / its - 1 for mine, its in zip(treated["iterations"], default["iterations"], strict=True)]
        assert treated["improvement_iterations"].to_list() == pytest.approx(changes)
    assert default["improvement"].null_count() == default.height


@pytest.mark.parametrize(
    "observe",
    [
        'iterations = ["ring"]',
        'record = { job = "ring", stop = "20 us" }',
        'switch_counters = "ring"',
        'iterations = ["flood-0", "ring"]',
    ],
)
def test_what_is_observed_of_a_job_is_not_asked_of_others_alone(folder: Path, observe: str) -> None:
    """Isolated runs of background jobs have not the job whose iterations are kept."""
    idle = '[background]\nhosts = 2\nseed = 1\nfill = 1.0\njobs = [{ workload = "flood_pairs" }]\n'
    text = SCENARIO.replace("[fabric]", f"[observe]\n{observe}\n[fabric]", 1).replace("hosts = 16", "hosts = 18")
    (folder / "small.toml").write_text(f"{text.replace('radix = 8', 'radix = 12')}\n{idle}")
    found = computed(folder, 'scenario = "small.toml"\n[treatments.first]\nset = { "jobs[0].service_level" = 1 }\n')
    assert found.failures.is_empty(), found.failures["error"].to_list()
    assert "background-0" in found.work["name"].to_list()
    assert found.work["isolated_iterations"].null_count() == 0


def test_compute_times_are_those_of_the_default_run(folder: Path) -> None:
    """Calibration on a treated fabric would change the programs that are compared."""
    text = SCENARIO.replace('compute = "5 us"', "compute_share = 0.5")
    (folder / "small.toml").write_text(text)
    found = computed(folder, 'scenario = "small.toml"\n[treatments.slow.set]\n"network.switch_latency" = "5 us"\n')
    cells = json.loads((found.folder or folder).joinpath("cells.json").read_text())
    answers = [json.loads(path.read_text()) for path in (found.folder or folder).glob("answers/*.json")]
    times = [answer["answer"]["compute"] for answer in answers if "compute" in answer["answer"]]
    assert len(times) == 3, "one for each job, and none for the treatment"
    assert len(cells) == 1
    default = Scenario.load(folder / "small.toml").resolve()
    assert sorted(time for (time,) in times) == sorted(job.compute or 0 for job in default.jobs)


def test_a_compute_time_that_cannot_be_found_is_a_failure(folder: Path) -> None:
    text = SCENARIO.replace('compute = "5 us", messages_per_iteration = 4', "compute_share = 0.5, message_size = 0")
    silent = "class Silent(Workload):\n    def communicate(self, rank, iteration):\n        pass\n"
    (folder / "own.py").write_text(f"from fairlane import Workload\n\n{silent}")
    (folder / "small.toml").write_text(text.replace('name = "flood_pairs"', 'name = "own.py:Silent"'))
    found = computed(folder, STUDY.replace("[1, 2]", "[1]"))
    assert found.failures["job"].to_list() == ["flood-0", "flood-1"] * 2
    assert all("does not communicate" in error for error in found.failures["error"])
    assert found.work.is_empty(), "there is nothing to compare at these points"


SLOW = """
scenario = "small.toml"
[treatments.slow]
{kind}
set = {{ "network.switch_latency" = "2 us" }}
[treatments.isolated_too]
{kind}
own_isolation = true
set = {{ "network.switch_latency" = "2 us" }}
"""


@pytest.mark.parametrize("kind", ["", 'controller = "none"\nperiod = "100 us"\nperiods = 3'])
def test_w_can_be_against_isolated_runs_with_the_same_settings(folder: Path, kind: str) -> None:
    found = computed(folder, SLOW.format(kind=kind))
    (folder / "slow.toml").write_text(f'{SCENARIO}\n[network]\nswitch_latency = "2 us"\n')
    of_slow = "\n".join(line for line in SLOW.splitlines() if "own_isolation" not in line).replace("small", "slow")
    slow = computed(folder, of_slow.format(kind=kind), "all-slow")

    def isolated(work: pl.DataFrame, treatment: str) -> list[int]:
        return work.filter(pl.col("treatment") == treatment).sort("job")["isolated_iterations"].to_list()

    assert isolated(found.work, "slow") == isolated(found.work, "default")
    assert isolated(found.work, "isolated_too") == isolated(slow.work, "default")
    assert isolated(found.work, "isolated_too") != isolated(found.work, "slow")
    done = {name: part["iterations"].to_list() for (name,), part in found.work.group_by("treatment")}
    assert done["slow"] == done["isolated_too"], "it is the same run"
    if kind:
        assert found.periods["isolated_iterations"].null_count() == 0
        sums = found.periods.filter(treatment="isolated_too").group_by("name", maintain_order=True)
        assert sums.agg(pl.col("isolated_iterations").sum())["isolated_iterations"].to_list() == isolated(
            found.work, "isolated_too"
        )


def test_what_is_the_same_is_computed_once(folder: Path) -> None:
    # A default run, three isolated runs and a treated one at each of four points: all different.
    assert simulations(folder, STUDY) == (20, 20)
    # A treatment that changes nothing is the default run; one under two names is one.
    twins = STUDY + '[treatments.none]\n[treatments.second]\nset = { "jobs[0].service_level" = 1 }\n'
    assert simulations(folder, twins) == (28, 20)
    # Nor does one that says what would be so anyway.
    same = STUDY + '[treatments.same.set]\n"fabric.routing" = "d_mod_k"\n"network.mtu" = "4096 B"\n'
    assert simulations(folder, same) == (24, 20)
    # Another size of the first job's messages leaves the other job alone what it was: 2 x (1 + 3) runs, one less.
    sizes = 'scenario = "small.toml"\n[parameters]\n"jobs[0].workload.message_size" = ["8 KiB", "16 KiB"]\n'
    assert simulations(folder, sizes) == (8, 7)
    # Seeds are part of the programs, unless placement is all that differs and happens to be the same.
    same = 'scenario = "small.toml"\nplacements = ["linear", { name = "linear", ranks_per_host = 1 }]'
    assert simulations(folder, same) == (8, 4)


def test_as_many_simulations_are_performed_as_differ(folder: Path) -> None:
    text = STUDY + '[treatments.second]\nset = { "jobs[0].service_level" = 1 }\n'
    found = computed(folder, text)
    assert (found.meta.runs, found.meta.simulations) == (24, 20)
    assert len(list((folder / "out" / "answers").glob("*.json"))) == 20
    both = found.work.filter(pl.col("treatment") != "default").partition_by("treatment", include_key=False)
    assert both[0].equals(both[1])


def test_points_are_the_cross_product(folder: Path) -> None:
    text = """
    scenario = "small.toml"
    seeds = [3, 4]
    placements = ["packed", { name = "random", seed = 9 }]
    [parameters]
    network.buffer = ["16 KiB", "64 KiB"]
    "qos.arbiter.weights" = [[1, 7], [1, 3]]
    [[cases]]
    name = "short"
    set = { duration = "100 us" }
    [[cases]]
    name = "long"
    """
    read = study(folder, text)
    points = list(read.points())
    assert len(points) == 2 * 2 * 2 * 2 * 2
    scenario = read.scenario(points[0])
    assert (scenario.duration, scenario.seed, scenario.network.buffer) == (100 * 10**6, 3, 16384)
    assert scenario.placement.name == "packed"
    last = read.scenario(points[-1])
    assert (last.duration, last.seed, last.network.buffer) == (300 * 10**6, 4, 65536)
    assert (last.placement.name, last.placement.seed) == ("random", 9)
    assert last.qos.arbiter.parameters["weights"] == [1, 3]


def test_tables_name_the_points(folder: Path) -> None:
    text = 'scenario = "small.toml"\n[parameters]\n"network.buffer" = ["16 KiB"]\n"qos.arbiter.weights" = [[1, 7]]\n'
    found = computed(folder, text)
    row = found.work.row(0, named=True)
    assert (row["network.buffer"], row["qos.arbiter.weights"], row["seed"]) == ("16 KiB", "[1, 7]", 1)
    assert found.work["improvement"].null_count() == found.work.height == 3


def test_a_study_is_loaded_queried_and_drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "levels.toml").write_text(STUDY)
    out = str(folder / "out")
    assert execute(["study", str(folder / "levels.toml"), "--out", out, "--workers", "1", "--profile"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("levels: 4 points, 20 runs, 20 simulations, ") for line in lines)
    assert f"Everything is in {out}." in lines
    assert any(line.split()[:1] == ["simulating"] for line in lines)
    found = fairlane.load(out)
    assert isinstance(found, StudyResults)
    assert found.digest_of(found.tables()) == found.meta.digest
    assert found.headline() == "levels: 4 points, 20 runs"
    assert (found._repr_html_() or "").count("<tr>") > found.work.select("treatment", "workload").n_unique()
    assert execute(["query", out, "select list(distinct seed order by seed) as seeds from work"]) == 0
    assert capsys.readouterr().out.splitlines() == ["seeds", '"[1, 2]"']
    assert execute(["query", out, "select count(*) as jobs from work where treatment = 'first'"]) == 0
    assert capsys.readouterr().out.split() == ["jobs", "12"]
    (folder / "out" / "work.png").unlink()
    assert execute(["plot", out]) == 0
    assert_drawn(folder / "out" / "work.png")


def test_the_profile_adds_up(folder: Path) -> None:
    found = computed(folder, STUDY).meta
    spent = {name: found.profile[name] for name in ("simulating", "set-up", "waiting")}
    assert sum(spent.values()) == pytest.approx(found.profile["spent"] * found.profile["workers"])
    assert all(value > 0 for value in spent.values())
    assert found.profile["planning"] + found.profile["spent"] <= found.profile["wall"] == found.wall_s


def test_a_number_of_placements_are_seeds_of_a_strategy_by_name_too(folder: Path) -> None:
    named = SCENARIO.replace("[fabric]", 'placement = "random"\n[fabric]', 1)
    assert named != SCENARIO
    (folder / "small.toml").write_text(named)
    found = plan(study(folder, 'scenario = "small.toml"\nplacements = 3'))
    assert len({str(cell.pinned.scenario["jobs"][0]["placement"]) for cell in found.cells}) == 3


def test_placements_from_a_first_seed_on(folder: Path) -> None:
    counted = study(folder, 'scenario = "small.toml"\nplacements = { count = 3, first = 201 }')
    listed = study(folder, 'scenario = "small.toml"\nplacements = [{ seed = 201 }, { seed = 202 }, { seed = 203 }]')
    assert [counted.scenario(point) for point in counted.points()] == [listed.scenario(at) for at in listed.points()]
    one = study(folder, 'scenario = "small.toml"\nplacements = { count = 3 }')
    assert one.table == study(folder, 'scenario = "small.toml"\nplacements = 3').table


def test_placements_have_seeds_of_their_own(folder: Path) -> None:
    one = study(folder, 'scenario = "small.toml"\nplacements = 3\nseeds = { per_placement = 2, first = 7 }')
    assert [(point.placement, point.seed) for point in one.points()] == [
        (0, 7),
        (0, 8),
        (1, 9),
        (1, 10),
        (2, 11),
        (2, 12),
    ]
    assert [one.scenario(point).seed for point in one.points()] == [7, 8, 9, 10, 11, 12]
    whole = study(folder, 'scenario = "small.toml"\nseeds = { per_placement = 2 }')
    assert [point.seed for point in whole.points()] == [1, 2], "without placements there is one"


def test_a_policy_of_rails_replaces_another_with_its_keys() -> None:
    given = {"jobs[0].rails": {"policy": "only", "only": 1}, "network": {"mtu": "2 KiB"}}
    found = [(path, value) for path, value, _ in changes(given)]
    assert found == [(("jobs", 0, "rails"), {"policy": "only", "only": 1}), (("network", "mtu"), "2 KiB")]


def test_a_recordings_files_are_part_of_what_is_computed(tmp_path: Path) -> None:
    """Those of a folder, and those beside the file that stands for them."""
    for name in ("dumpi/dumpi-0.bin", "dumpi/dumpi.meta", "otf2/traces.def", "otf2/traces/0.evt", "otf2/traces.otf2"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "dumpi" / "one.toml").write_text("x")
    (tmp_path / "dumpi" / "other.meta").write_text("x")
    for named, changed in [
        ("dumpi", "dumpi/dumpi-0.bin"),
        ("dumpi/other.meta", "dumpi/dumpi-0.bin"),
        ("dumpi/one.toml", "dumpi/one.toml"),
        ("dumpi/dumpi.meta", "dumpi/dumpi-0.bin"),
        ("otf2/traces.otf2", "otf2/traces/0.evt"),
        ("otf2", "otf2/traces.def"),
    ]:
        data = {"jobs": [{"trace": {"path": named}}]}
        before = sorted(files_of(data, tmp_path))
        (tmp_path / changed).write_text((tmp_path / changed).read_text() + "x")
        after = sorted(files_of(data, tmp_path))
        assert after != before, named
        (tmp_path / "dumpi" / "runs").mkdir(exist_ok=True)
        (tmp_path / "dumpi" / "runs" / f"{len(after)}.json").write_text("x")
        (tmp_path / "dumpi" / "study.toml").write_text(named)
        assert sorted(files_of(data, tmp_path)) == after, "what a study leaves beside it is no part of it"
    assert list(files_of({"path": "a" * 5000}, tmp_path)) == []


def test_jobs_of_the_background_may_come_after_the_end(folder: Path) -> None:
    """Nobody has chosen their times."""
    drawn = """
    [background]
    hosts = 2
    start = "5 ms"
    [[background.jobs]]
    workload = { name = "ring", compute = "5 us" }
    """
    (folder / "small.toml").write_text(SCENARIO + drawn)
    (cell,) = plan(study(folder, 'scenario = "small.toml"')).cells
    assert [job.workload for job in cell.jobs] == ["flood_pairs", "flood_pairs", "nearest_neighbor", "ring"]


def test_tables_do_not_depend_on_where_files_are(folder: Path) -> None:
    text = SCENARIO.replace('name = "flood_pairs"', 'name = "own.py:Own"').replace("count = 2\n", "")
    own = "from fairlane.model.workload import FloodPairs\n\nclass Own(FloodPairs):\n    pass\n"
    digests = []
    for place in ("here", "there"):
        (folder / place).mkdir()
        (folder / place / "own.py").write_text(own)
        (folder / place / "small.toml").write_text(text)
        digests.append(computed(folder / place, STUDY).meta.digest)
    assert digests[0] == digests[1]


CONTROLLED = """
scenario = "small.toml"
set = { qos = { service_levels = 2, lanes = 2 } }
[treatments.a]
periods = 3
period = "200 us"
"""
BAD_CONTROLLERS: list[tuple[dict[str, Any], str]] = [
    (
        {"name": "process_prioritization", "threshold": 1.5, "service_levels": 2},
        "threshold = 1.5: out of range; allowed: at most 1",
    ),
    (
        {"name": "process_prioritization", "threshold": 0, "service_levels": 2},
        "threshold = 0: out of range; allowed: above 0",
    ),
    ({"name": "process_prioritization", "service_levels": 4}, "qos.service_levels = 2: "),
    ({"name": "fixed", "service_levels": 2, "weights": [1, 2, 3]}, "weights = [1, 2, 3]: has 3 of them; allowed: 2"),
    ({"name": "process_priority", "service_levels": 2}, 'did you mean "process_prioritization"?'),
]


@pytest.mark.parametrize(
    ("lines", "place", "words"),
    [
        ('mode = "online"\ndraws = 5', 9, "treatments.a.draws = 5: has an effect in episodes only"),
        ('periods = "3"', 7, 'treatments.a.periods = "3"'),
        ('draws = "3"', 8, 'treatments.a.draws = "3"'),
        ('set = { "jobs[0].start" = "401 us" }', 8, "starts after the end of the run; allowed: at most 400 us"),
        ('set = { "jobs[0].start" = "600 us" }\nmode = "online"', 8, "of the run; allowed: before 600 us"),
        ('set = { "jobs[0].stop" = "100 us", "jobs[1].stop" = "100 us" }', 8, "jobs: none is there in period 1"),
    ],
)
def test_what_a_controllers_run_cannot_have_is_refused(folder: Path, lines: str, place: int, words: str) -> None:
    table = 'controller = { name = "process_prioritization", service_levels = 2 }'
    text = CONTROLLED.replace("periods = 3\n", "") if "periods" in lines else CONTROLLED
    with pytest.raises(ScenarioError) as caught:
        plan(study(folder, f"{text}{table}\n{lines}\n"))
    assert words in str(caught.value)
    assert f"levels.toml:{place}: " in str(caught.value)


@pytest.mark.parametrize(("controller", "words"), BAD_CONTROLLERS)
def test_a_wrong_controller_is_refused(folder: Path, controller: dict[str, Any], words: str) -> None:
    table = ", ".join(f"{key} = {json.dumps(value)}" for key, value in controller.items())
    read = study(folder, f"{CONTROLLED}controller = {{ {table} }}\n")
    with pytest.raises(ScenarioError) as caught:
        plan(read)
    assert words in str(caught.value)
    assert "levels.toml:" in str(caught.value)


@pytest.mark.parametrize("mode", ["episodes", "online"])
def test_a_controller_is_a_treatment(folder: Path, mode: str) -> None:
    text = f'{CONTROLLED}mode = "{mode}"\ncontroller = {{ name = "process_prioritization", service_levels = 2 }}\n'
    found = computed(folder, text)
    assert found.periods.height == 3 * 3
    of = found.periods.group_by("name").agg(pl.col("iterations").sum())
    treated = found.work.filter(pl.col("treatment") == "a")
    assert dict(of.iter_rows()) == dict(treated.select("name", "iterations").iter_rows())
    assert found.periods["default_iterations"].sum() == treated["default_iterations"].sum()
    assert treated["isolated_iterations"].min() > 0  # type: ignore[operator]
    assert all(row["improvement"] is not None for row in found.periods.iter_rows(named=True))
    if mode == "episodes":  # short ones have few iterations, so that parts of them count
        sums = found.periods.group_by("name").agg(pl.col("^.*advance$").sum())
        both = sums.join(treated, on="name").with_columns(
            w_of_parts=pl.col("advance") / pl.col("isolated_advance") - 1,
            improvement_of_parts=pl.col("advance") / pl.col("default_advance") - 1,
        )
        for column in ("w", "improvement"):
            assert both[column].to_list() == pytest.approx(both[f"{column}_of_parts"].to_list())
        by_period = found.periods.select(pl.col("advance") / pl.col("default_advance") - 1).to_series()
        assert found.periods["improvement"].to_list() == pytest.approx(by_period.to_list())
    assert treated["default_iterations"].to_list() == (
        found.work.filter(pl.col("treatment") == "default")["iterations"].to_list()
    )


def test_however_it_is_computed_it_is_the_same(folder: Path) -> None:
    """A whole run and one cut into periods; levels that the scenario has, and a controller that sets the same."""
    text = """
    scenario = "small.toml"
    set = { duration = "2 ms", qos = { service_levels = 2 }, "jobs[1].start" = "150 us", "jobs[1].stop" = 6 }
    [treatments.whole.set]
    "jobs[1].service_level" = 1
    "qos.arbiter.weights" = [1, 9]
    [treatments.cut]
    mode = "online"
    period = "100 us"
    periods = 20
    [treatments.cut.controller]
    name = "fixed"
    service_levels = 2
    weights = [1, 9]
    levels = { LATE = LEVELS }
    """
    late = Scenario.load(folder / "small.toml").jobs[1]
    levels = ", ".join(f"{rank} = 1" for rank in range(late.ranks or 0))
    found = computed(folder, text.replace("LATE", late.names()[0]).replace("LEVELS", f"{{ {levels} }}"))
    kept = ("name", "iterations", "span_ps", "w", "w_iterations", "improvement", "improvement_iterations")
    for whole, cut in (("default", "default"), ("whole", "cut")):
        sides = [
            found.work.filter(pl.col("treatment") == name, (pl.col("baseline") == "") != online).select(kept)
            for name, online in ((whole, False), (cut, True))
        ]
        assert_frame_equal(*sides)
    there = found.work.filter(name=late.names()[0])
    assert (there["iterations"] == 6).all()
    assert (there["span_ps"] < 2_000_000_000 - 150_000_000).all()
    # Nobody has an iteration in the half period that it begins in. It ends sooner with levels of its own: in the
    # period in which it does there is no improvement, and the rows go on.
    own = found.periods.filter(name=late.names()[0]).sort("period")
    ends = own["iterations"].is_not_null().sum() - 1
    assert own["default_iterations"].is_not_null().sum() == own.height >= ends + 2
    assert own["improvement"].is_null().to_list() == [not 0 < at < ends for at in range(own.height)]
    assert found.periods["period"].is_sorted()
    parts = found.periods.group_by("name").agg(pl.col("iterations", "default_iterations").sum())
    sums = found.work.filter(treatment="cut").select("name", "iterations", "default_iterations")
    assert_frame_equal(parts, sums, check_row_order=False, check_dtypes=False)
