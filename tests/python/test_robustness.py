"""Robustness maps: the file and its errors, the points, resuming, what is written, and the files of all papers."""

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import ScenarioError
from fairlane.cli.main import execute
from fairlane.inputs.code import allow_code
from fairlane.papers.folder import Folder
from fairlane.papers.reproduce import folder_of
from fairlane.papers.robustness import Mapped, planned, points_of, run_points
from fairlane.papers.robustness_output import CLAUSES, INDICES, LEVELS, POINTS, combine, results_of, store
from fairlane.papers.running import stored_as
from fairlane.papers.shares import _chance, by_point
from fairlane.papers.space import FILE, Parameter, space_of
from fairlane.results.reproduction import DEPENDS, RARE, ROBUST, TOO_FEW
from fairlane.results.schemas import MAP, types
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.store import Store
from pictures import assert_drawn
from replicated import answers
from small_study import Here, Interrupted

WITH_MAPS = ("patki2016", "savoie2020", "smith2018", "wilke2020", "yang2016")
PAPER = """
title = "A paper, 2020"
citation = "Nobody: Nothing, 2020."
[[study]]
name = "sizes"
file = "sizes.toml"
quick = { scenario = { duration = "20 us" }, note = "scaled" }
"""
STUDY = """
seeds = [1]
[scenario]
duration = "40 us"
fabric = { topology = "fat_tree", hosts = 8, levels = 2, radix = 4, bandwidth = "100 Gb/s" }
[[scenario.jobs]]
name = "ring"
ranks = 2
workload = { name = "ring", message_size = "1 KiB", compute = "1 us" }
[factors.kind]
one = {}
[measure]
function = "method.py:measure"
"""
METHOD = """
def measure(scenario, arguments, watch):
    if scenario.mpi.eager_threshold > 100_000:
        raise ValueError("too large a limit")
    found = {"size": [scenario.jobs[0].workload.message_size], "lanes": [scenario.network.switch.name],
             "duration": [scenario.duration], "ranks": [scenario.jobs[0].ranks]}
    return {"tables": {"sizes": found}}
"""
CLAIMS = """
[[claim]]
id = "size"
where = "I"
setup = "a ring"
claim = "messages are small"
check = "size"
studies = ["sizes"]
sql = 'SELECT * FROM "sizes".sizes'
[[claim.clause]]
says = "size {size} of a message"
value = "size"
band = "<= 8192"
[[claim.clause]]
says = "duration {duration}"
value = "duration"
band = "= 20000000"
[[claim.clause]]
says = "{lanes} with {ranks}"
value = "ranks"
band = "> 2"
[[claim]]
id = "other"
where = "II"
setup = "a ring"
claim = "nothing"
check = "nothing"
studies = ["sizes"]
sql = 'SELECT size AS value FROM "sizes".sizes'
[[claim.clause]]
says = "{value}"
band = "> 0"
"""
ROBUSTNESS = """
system = "a ring of two ranks"
repeats = 3
left_out = { other = "it is not asked" }
titles = { size = ["messages are small", "the duration is that of --quick", "more than two ranks"] }
[[parameter]]
name = "size"
title = "message size"
range = ["1 KiB", "64 KiB"]
scale = "log"
default = "2 KiB"
source = "nobody says"
of."sizes.toml".rules = [{ where = { kind = "one" }, set = { "jobs[0].workload.message_size" = "{value}" } }]
[[parameter]]
name = "switch"
title = "where packets wait"
default = "outputs"
source = "nobody says"
levels.outputs.scenario = { "network.switch" = "output_queued" }
levels.inputs.of.sizes.scenario = { "network.switch" = "input_queued" }
[[parameter]]
name = "limit"
title = "eager limit, in KiB"
range = [1, 16]
whole = true
default = 16
source = "nobody says"
scenario = { "mpi.eager_threshold" = "{value} * 1 KiB" }
"""
FILES = {
    "paper.toml": PAPER,
    "claims.toml": CLAIMS,
    "sizes.toml": STUDY,
    "method.py": METHOD,
    FILE: ROBUSTNESS,
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    found = tmp_path / "paper"
    found.mkdir()
    for name, text in FILES.items():
        (found / name).write_text(text)
    return found


def change(place: Path, before: str, after: str, file: str = FILE) -> Folder:
    text = (place / file).read_text()
    assert before in text
    (place / file).write_text(text.replace(before, after, 1))
    return folder_of(place)


def run(folder: Folder, out: Path, points: int, pool: Any = None, **options: Any) -> Mapped:
    with allow_code(), Executor(pool or Here(), Store(out, stored_as), attempts=1) as executor:
        return run_points(folder, space_of(folder), executor, points, **options)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "system =",
            "sytem =",
            r'robustness.toml:2: sytem = "a ring of two ranks": unknown key.*did you mean "system"',
        ),
        ('scale = "log"', 'scale = "lg"', r'parameter\[0\].scale = "lg": unknown name; allowed: linear, log'),
        ('"64 KiB"]', '"64 ns"]', r"parameter\[0\].range = .*two numbers, or two quantities of one kind"),
        ('["1 KiB", "64 KiB"]', '["64 KiB", "1 KiB"]', "is empty"),
        ('["1 KiB", "64 KiB"]', '["0 B", "64 KiB"]', "has no logarithm"),
        ('default = "2 KiB"', 'default = "2 MiB"', r'default = "2 MiB": is not in the range; allowed: 1 KiB to 64 KiB'),
        (
            'default = "outputs"',
            'default = "output"',
            'unknown level; allowed: outputs, inputs; did you mean "outputs"',
        ),
        ('name = "limit"', 'name = "size"', r'parameter\[2\].name = "size": duplicate parameter name'),
        ('"{value} * 1 KiB"', '"{valu} * 1 KiB"', "sets nothing to the value"),
        ('"{value} * 1 KiB"', '"{value} of 1 KiB"', r'is no text with a value; allowed: "\{value\}"'),
        ('of."sizes.toml"', 'of."size.toml"', r"unknown study or study file; allowed: sizes, sizes.toml; did you mean"),
        ("other = ", "othr = ", r'left_out.othr = "othr": unknown claim; allowed: size, other; did you mean "other"'),
        (
            '"more than two ranks"]',
            "]",
            r"titles.size = \[.*\]: has 2 texts; allowed: 3, one for each clause of claims.toml",
        ),
        ("range = [1, 16]", "levels = {}", "needs one of both; allowed: range or levels"),
        ('source = "nobody says"', "", r"parameter\[0\].source: missing"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(place: Path, before: str, after: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        space_of(change(place, before, after))


def test_a_paper_without_the_file_has_no_map() -> None:
    with pytest.raises(ScenarioError, match=r"kim2008 has no robustness\.toml"):
        space_of(folder_of("kim2008"))


SHARED_SEEDS = """
title = "what does not matter"
system = "a ring of two ranks"
shared_seeds = true
repeats = 2
left_out = { other = "it is not asked" }
[[parameter]]
name = "nothing"
title = "nothing"
default = "one"
source = "nobody says"
levels = { one = {}, other = {} }
"""


@pytest.mark.long("papers", "study/tasks")
def test_points_of_a_further_space_can_share_the_simulations_of_the_repeats(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "robustness-more.toml").write_text(SHARED_SEEDS)
    command = ["reproduce", str(place), "--robustness", "--space", "more", "--points", "8", "--workers", "1"]
    assert execute([*command, "--out", str(tmp_path / "out"), "--allow-code"]) == 0
    shown = capsys.readouterr().out
    assert "8 points and 2 repeats of the defaults" in shown
    assert "size: 7 of 8 points have the same results as another, bit for bit" in shown
    assert len(answers(tmp_path / "out")) == 2, "one for each repeat, which the points share"
    page = (tmp_path / "out" / "robustness.md").read_text(encoding="utf-8")
    assert page.startswith("# A paper, what does not matter: robustness")
    store(run(folder_of(place), tmp_path / "main", 4), tmp_path / "main")
    combine([tmp_path / "main", tmp_path / "out"], tmp_path / "all")
    assert_drawn(tmp_path / "all" / "robustness.png")


@pytest.mark.parametrize("parameter", range(3))
def test_shared_seeds_are_not_confounded_with_a_parameter(parameter: int) -> None:
    space = space_of(folder_of("smith2018"), "models")
    name = space.parameter[parameter].name
    points = [point for point in points_of(space, 64) if point.number > 0]
    ordered = sorted(points, key=lambda point: float(point.values[name]))
    for part in (ordered[:32], ordered[32:]):
        found = [point.replicate(space.repeats) for point in part]
        assert len(set(found)) == space.repeats
        # Four of each, but for values that are equal as they are rounded to whole numbers.
        assert {found.count(replicate) for replicate in set(found)} <= {3, 4, 5}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"input_queued"', '"input_qeued"', r"robustness.toml: scenario.network.switch.name = .*mean \"input_queued\""),
        (
            '"mpi.eager_threshold"',
            '"mpi.eager_treshold"',
            r"robustness.toml: scenario.mpi.eager_treshold = .*unknown key",
        ),
    ],
)
def test_what_no_point_with_a_level_could_run_is_known_before_the_first(
    place: Path, tmp_path: Path, before: str, after: str, words: str
) -> None:
    with pytest.raises(ScenarioError, match=words):
        run(change(place, before, after), tmp_path / "out", 1)
    assert not (tmp_path / "out").exists()


def test_a_function_that_fails_at_a_point_leaves_it_out(place: Path, tmp_path: Path) -> None:
    with (place / "paper.toml").open("a") as file:
        file.write('[[table]]\nname = "fitted"\ncall = "method.py:fitted"\n')
    with (place / "method.py").open("a") as file:
        file.write(
            "\n\ndef fitted(tables):\n"
            "    if tables.ask('SELECT size FROM sizes').item() > 8192:\n"
            "        raise RuntimeError('no convergence')\n"
            "    return tables.ask('SELECT 1 AS one')\n"
        )
    found = run(folder_of(place), tmp_path / "out", 8)
    assert found.failed
    where = "table fitted: call: fitted fails at method.py:12: RuntimeError: no convergence"
    assert all(where in words for words in found.failed)
    assert results_of(found).frames["robustness-clauses"]["points"].to_list() == [8 - len(found.failed)] * 3


def test_a_space_that_is_not_there_is_refused(place: Path) -> None:
    with pytest.raises(ScenarioError, match=r'--space = "more": paper has one space only; allowed: no --space'):
        space_of(folder_of(place), "more")
    (place / "robustness-more.toml").write_text(SHARED_SEEDS)
    with pytest.raises(ScenarioError, match=r'--space = "mor": unknown space; allowed: more; did you mean "more"'):
        space_of(folder_of(place), "mor")
    (place / "robustness-more.toml").write_text(SHARED_SEEDS.replace("system", "systm"))
    with pytest.raises(ScenarioError, match=r"robustness-more.toml:3: systm = .*unknown key"):
        space_of(folder_of(place), "more")


def test_points_are_the_same_for_the_same_seed_and_a_part_is_the_beginning_of_all(place: Path) -> None:
    space = space_of(folder_of(place))
    every = points_of(space, 128)
    assert points_of(space, 128) == every
    assert points_of(space, 50) == every[: 3 + 50]
    assert points_of(space, 128, seed=2)[3:] != every[3:]
    assert [point.number for point in every] == [0, -1, -2, *range(1, 129)]
    assert len({point.replicate() for point in every}) == len(every), "every point has seeds of its own"
    assert 1 not in {point.replicate() for point in every}
    assert every[0].values == {"size": 2048, "switch": "outputs", "limit": 16}


def test_values_are_spread_over_ranges_and_levels(place: Path) -> None:
    points = points_of(space_of(folder_of(place)), 128)[3:]
    sizes = sorted(float(point.values["size"]) for point in points)
    assert 1024 <= sizes[0] < 1100
    assert 60_000 < sizes[-1] <= 65536
    assert 7000 < sizes[64] < 9400, "the median is the geometric mean, 8 KiB"
    assert sum(point.values["switch"] == "inputs" for point in points) == 64
    assert {point.values["limit"] for point in points} == {float(number) for number in range(1, 17)}


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("{value}", 1536.4, "1536 B"),
        ("{value} * 16 KiB", 0.5, "8192 B"),
        ("{value} * 3", 0.6, 2),
        ("{value} * 1", 0.2, 1),
        ("{value} * 0.5", 3.0, 1.5),
        ("as it is", 3.0, "as it is"),
    ],
)
def test_values_are_filled_into_texts(text: str, value: float, expected: object) -> None:
    quantity = text == "{value}"
    one = Parameter.model_validate(
        {
            "name": "one",
            "title": "one",
            "range": ["1 B", "1 MiB"] if quantity else [0, 10],
            "default": "1 KiB" if quantity else 1,
            "source": "nobody",
            "scenario": {"key": {"inner": [text]}, "other": "{value}"},
        }
    )
    assert one.change(value, ("study",)).scenario["key"] == {"inner": [expected]}


def test_of_few_points_there_is_no_verdict(place: Path, tmp_path: Path) -> None:
    found = run(folder_of(place), tmp_path / "out", 2)
    assert results_of(found).frames["robustness-clauses"]["verdict"].unique().to_list() == [TOO_FEW]


def test_chance_is_the_spread_of_repetitions_over_that_of_all_points() -> None:
    def chance(repeated: list[int]) -> float | None:
        return _chance(*(pl.DataFrame({"margin": margins}) for margins in (list(range(100)), repeated)))

    assert chance([50, 50, 50]) == 0
    assert chance(list(range(100))) == 1
    assert chance(list(range(25, 75))) == pytest.approx(1 / 4, abs=0.01), "half the range"
    assert chance([50, 50]) is None, "too few"


def test_a_map_has_shares_and_what_decides_them(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = run(folder_of(place), out, 64)
    tables = store(found, out).frames
    assert found.failed == []
    clauses = tables["robustness-clauses"]
    assert clauses["claim"].to_list() == ["size"] * 3, "a claim that is left out is not asked"
    rows = {row["says"]: row for row in clauses.iter_rows(named=True)}
    small = rows["messages are small"]
    # Half of the logarithmic range from 1 to 64 KiB is below 8 KiB.
    assert (small["held"], small["points"], small["verdict"]) == (32, 64, DEPENDS)
    assert small["share_low"] < 0.5 < small["share_high"]
    assert small["decided_by"] == "size"
    # The seed changes nothing of what is measured, and the switch and the limit nothing of the size.
    assert (small["default_held"], small["default_points"], small["chance"]) == (1, 1, 0.0)
    index = tables["robustness-indices"].filter(clause=1, parameter="size").row(0, named=True)
    assert index["index"] > 0.9, "four bins of equal width of a rank leave a sixteenth of its variance"
    assert rows["the duration is that of --quick"]["verdict"] == ROBUST
    assert rows["more than two ranks"]["verdict"] == RARE
    levels = tables["robustness-levels"].filter(clause=1, parameter="size").sort("share", descending=True)
    assert levels["share"].to_list()[::2] == [1.0, 0.0]
    points = pl.read_csv(out / POINTS)
    assert points.height == (3 + 64) * 3
    assert {"point", "size", "switch", "limit", "claim", "clause", "value", "low", "high", "holds"} <= {*points.columns}
    assert (points.filter(clause=1)["value"] == points.filter(clause=1)["size"]).all(), "the value is the parameter's"
    page = (out / "robustness.md").read_text(encoding="utf-8")
    assert "| messages are small | 32 of 64 (50.0%) |" in page
    assert "64 points and 3 repeats of the defaults" in page
    assert "size: 2 of 3 repeats of the defaults repeat another of the same condition, bit for bit" in page
    assert "| `limit` | eager limit, in KiB | 1 to 16 | 16 | nobody says |" in page
    assert_drawn(out / "robustness.png")
    for name in (CLAUSES, INDICES, LEVELS):
        assert pl.read_csv(out / name).height


def test_a_point_at_which_nothing_was_measured_does_not_count() -> None:
    rows = [
        (1, "a", 1, "x", 2.0, 1.0, None, 1.0, True),
        (1, "a", 1, "y", 0.5, 1.0, None, -0.5, False),
        (2, "a", 1, "x", 2.0, 1.0, None, 1.0, True),
        (2, "a", 1, "y", float("nan"), 1.0, None, float("nan"), False),
        (3, "a", 1, "x", float("inf"), 1.0, None, float("inf"), True),
    ]
    found = by_point(pl.DataFrame(rows, types(MAP["robustness"]), orient="row"))
    assert found.rows() == [("a", 1, 1, False, -0.5), ("a", 1, 3, True, float("inf"))]


@pytest.mark.long("papers", "study/tasks")
def test_an_interrupted_map_goes_on_where_it_was_and_ends_as_one_in_one_go(place: Path, tmp_path: Path) -> None:
    folder = folder_of(place)
    with pytest.raises(KeyboardInterrupt):
        run(folder, tmp_path / "out", 24, Interrupted(10))
    before = answers(tmp_path / "out")
    assert len(before) == 10
    again = run(folder, tmp_path / "out", 24)
    after = answers(tmp_path / "out")
    assert len(after) == 3 + 24
    assert before.items() <= after.items(), "what was stored is not computed again"
    whole = run(folder, tmp_path / "whole", 24)
    assert again.found.equals(whole.found)


def test_points_of_another_run_are_taken_from_its_table(place: Path, tmp_path: Path) -> None:
    folder = folder_of(place)
    store(run(folder, tmp_path / "first", 9), tmp_path / "first")
    both = run(folder, tmp_path / "both", 24, earlier=[tmp_path / "first"])
    assert len(answers(tmp_path / "both")) == 24 - 9, "neither the defaults nor the first points are run again"
    whole = run(folder, tmp_path / "whole", 24)
    columns = ["point", "claim", "clause", "measured", "holds"]
    assert both.found.select(columns).equals(whole.found.select(columns))
    assert both.found["value"].to_list() == pytest.approx(whole.found["value"].to_list(), rel=1e-5)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("size,", "sise,", "columns: size is missing; allowed: size, switch, limit, error"),
        ("\n1,", "\n1,9", "size = .*point 1 has another value: the map is of another space"),
        (",,size,1,", ",,sizes,1,", 'claim = "sizes": unknown claim .*did you mean "size"'),
    ],
)
def test_points_of_another_map_are_refused(place: Path, tmp_path: Path, before: str, after: str, words: str) -> None:
    folder = folder_of(place)
    store(run(folder, tmp_path / "first", 2), tmp_path / "first")
    table = tmp_path / "first" / POINTS
    text = table.read_text()
    assert before in text, text
    table.write_text(text.replace(before, after))
    with pytest.raises(ScenarioError, match=words):
        run(folder, tmp_path / "both", 4, earlier=[table])


def test_a_limit_of_processor_time_leaves_the_first_points(place: Path, tmp_path: Path) -> None:
    folder = folder_of(place)
    whole = run(folder, tmp_path / "out", 24)
    part = run(folder, tmp_path / "out", 24, limit_s=whole.cpu_s / 2)
    assert 0 < len(part.runs) < len(whole.runs)
    assert [it.point for it in part.runs] == [it.point for it in whole.runs][: len(part.runs)]


def test_a_point_that_fails_is_reported_and_left_out(place: Path, tmp_path: Path) -> None:
    folder = change(place, '"{value} * 1 KiB"', '"{value} * 10 KiB"')  # above 9.7 the function raises
    change(place, "default = 16", "default = 1")
    found = run(folder, tmp_path / "out", 32)
    assert 8 < len(found.failed) < 20
    assert all("that failed" in words for words in found.failed)
    points = 32 - len(found.failed)
    assert results_of(found).frames["robustness-clauses"]["points"].to_list() == [points] * 3
    change(place, '"jobs[0].workload.message_size"', '"jobs[0].wrkload"')
    with pytest.raises(ScenarioError, match=r"robustness.toml: rules\[0\].set.jobs\[0\].wrkload"):
        run(folder_of(place), tmp_path / "other", 2)


def test_the_command_maps_a_paper_and_draws_several_together(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    with allow_code():
        run(folder_of(place), out, 24)
    command = ["reproduce", str(place), "--robustness", "--out", str(out), "--workers", "1", "--allow-code"]
    assert execute([*command, "--points", "24"]) == 2, "there are answers already"
    assert "--resume goes on with them" in capsys.readouterr().err
    assert execute([*command, "--points", "24", "--resume"]) == 0
    shown = capsys.readouterr().out
    assert "messages are small" in shown
    assert re.search(r"messages are small +depends +12 of 24 \(50.0%\)", shown)
    assert execute(["robustness", str(out), "--out", str(tmp_path / "all")]) == 0
    assert re.search(r"messages are small +depends .* size *\n", capsys.readouterr().out)
    assert_drawn(tmp_path / "all" / "robustness.png")
    assert combine([out], tmp_path / "all")["title"].to_list() == ["A paper, 2020"] * 3
    assert execute(["robustness", str(tmp_path), "--out", str(tmp_path / "all")]) == 2
    assert "no robustness map" in capsys.readouterr().err
    table = out / CLAUSES
    table.write_text(table.read_text().replace(RARE, "fails everywhere"))
    assert execute(["robustness", str(out), "--out", str(tmp_path / "all")]) != 0
    assert f"{CLAUSES}: has changed since it was written" in capsys.readouterr().err
    (out / "manifest.json").unlink()
    assert execute(["robustness", str(out), "--out", str(tmp_path / "all")]) == 2
    assert 'verdict = "fails everywhere": is no verdict of this version' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--points", "0", "--robustness"], "--points = 0: out of range; allowed: 1 to 512"),
        (["--points", "8"], "--points = 8: is the number of points of a robustness map; allowed: with --robustness"),
        (["--space", "models"], '--space = "models": is what a robustness map varies; allowed: with --robustness'),
        (["--robustness", "--quick"], "--quick: does not go with --robustness"),
        (["--robustness", "--deciding"], "--deciding: does not go with --robustness"),
        (["--robustness", "--cpu-hours", "0"], "--cpu-hours = 0.0: out of range"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["reproduce", "patki2016", *options, "--out", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("name", "of"), [*((name, None) for name in WITH_MAPS), ("smith2018", "models")])
def test_every_point_of_a_paper_can_be_prepared(name: str, of: str | None) -> None:
    folder = folder_of(name)
    space = space_of(folder, of)
    points = points_of(space, 128)
    extremes = [points[0], *(points[space.repeats + at] for at in range(0, 128, 4))]
    for point in extremes:
        plan = planned(folder, space, point)
        for prepared in plan.studies.values():
            if prepared.study is not None:
                first = next(iter(prepared.study.points()))
                prepared.study.scenario(first, background=False)
    asked = [claim for claim in folder.claims if claim.id not in space.left_out]
    assert {claim.id for claim in asked} == {*space.titles}, "every clause that is asked has a title"
