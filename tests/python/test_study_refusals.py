"""Study files that are refused before anything runs: the place, and what is said about it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.results.schemas import STUDY
from fairlane.study.setting import Point
from fairlane.study.tables import points_table, with_points
from small_study import SCENARIO


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SCENARIO)
    return tmp_path


BAD = [
    ('scenario = "smal.toml"', "levels.toml:1", 'scenario = "smal.toml": there is no file'),
    ("seeds = [1]", "levels.toml", "scenario: missing; allowed: The scenario"),
    ('scenario = "small.toml"\nseed = [1]', "levels.toml:2", "unknown key; allowed: name, scenario, set, seeds"),
    ('scenario = "small.toml"\nseeds = []', "levels.toml:2", "seeds: list should have at least 1 item"),
    (
        'scenario = "small.toml"\n[parameters]\n"jobs[0].ranks" = [4, 40]',
        "levels.toml:3",
        "parameters.jobs[0].ranks = 40: more ranks than hosts: at one time the jobs need 86 hosts; allowed: what 16",
    ),
    (
        'scenario = "small.toml"\n[parameters]\n"jobs[1].workload.name" = ["nearest_neighbour"]',
        "levels.toml:3",
        'did you mean "nearest_neighbor"?',
    ),
    (
        'scenario = "small.toml"\n[treatments.a.set]\n"qos.service_levels" = 8',
        "small.toml:12",
        "qos.lanes = 2: service level 7 is mapped to lane 7: more service levels than lanes; allowed: at least 8",
    ),
    (
        'scenario = "small.toml"\nplacements = ["packed", { name = "list", hosts = [1, 2, 1] }]',
        "levels.toml:2",
        "placements[1].hosts: host 1 is listed twice; allowed: each host once",
    ),
    (
        'scenario = "small.toml"\n[parameters]\n"network.mtu" = ["17 parsecs"]',
        "levels.toml:3",
        'parameters.network.mtu = "17 parsecs"',
    ),
    (
        'scenario = "small.toml"\n[parameters]\n"qos.arbiter" = [{ name = "weighted_round_robin", weights = ["x"] }]',
        "levels.toml:3",
        "parameters.qos.arbiter.weights = ",
    ),
    (
        'scenario = "small.toml"\n[treatments.a.set]\n"jobs[0].ranks.more" = 2',
        "levels.toml:3",
        "treatments.a.set.jobs[0].ranks.more: ",
    ),
    (
        'scenario = "small.toml"\nplacements = 100001',
        "levels.toml:2",
        "placements = 100001: out of range; allowed: 1 to",
    ),
    ('scenario = "small.toml"\nplacements = 0', "levels.toml:2", "placements = 0: out of range; allowed: 1 to 100000"),
    ('scenario = "small.toml"\nplacements = ["packd"]', "levels.toml:2", 'did you mean "packed"?'),
    ('scenario = "small.toml"\n[parameters]\n"network.bufer" = ["1 KiB"]', "levels.toml:3", 'did you mean "buffer"?'),
    ('scenario = "small.toml"\n[parameters]\n"jobs[7].ranks" = [1]', "levels.toml:3", "there is no 7 to go into"),
    ('scenario = "small.toml"\n[parameters]\n"network.mtu" = "2 KiB"', "levels.toml:3", "needs a list of values"),
    (
        'scenario = "small.toml"\n[treatments.default]',
        "levels.toml:2",
        "is reserved: every study has runs of this name",
    ),
    ('scenario = "small.toml"\n[treatments.a]\nsett = {}', "levels.toml:3", 'did you mean "set"?'),
    (
        'scenario = "small.toml"\n[treatments.a]\ncontroler = "none"\nperiods = 2',
        "levels.toml:3",
        'did you mean "controller"?',
    ),
    ('scenario = "small.toml"\nset = { seed = 5 }', "levels.toml:2", "set.seed = 5: is what the study's `seeds` says"),
    (
        'scenario = "small.toml"\n[[cases]]\nname = "a"\nset = { seed = 5 }',
        "levels.toml:4",
        "cases[0].set.seed = 5: is what the study's `seeds` says",
    ),
    ('scenario = "small.toml"\n[parameters]\nseed = [1, 2]', "levels.toml:3", "allowed: seeds = [...]"),
    (
        'scenario = "small.toml"\n[parameters]\nplacement = ["packed"]',
        "levels.toml:3",
        'parameters.placement = ["packed"]: has a column of its own in the tables; allowed: placements = [...]',
    ),
    ('scenario = "small.toml"\n[parameters]\nname = ["a"]', "levels.toml:3", "has a column of its own"),
    (
        'scenario = "small.toml"\n[parameters]\n"" = [1]',
        "levels.toml:2",
        "names no scenario key; allowed: a dotted path",
    ),
    ('scenario = "small.toml"\n[treatments.a.set]\n"..." = 1', "levels.toml:2", "names no scenario key"),
    ('scenario = "small.toml"\nset = { "" = { name = "x" } }', "levels.toml:2", "names no scenario key"),
    ('scenario = "small.toml"\n[parameters]\n".placement" = [1]', "levels.toml:2", "has a column of its own"),
    ('scenario = "small.toml"\nset = { "[]" = 1 }', "levels.toml:2", "names no scenario key"),
    ("scenario = 3", "levels.toml:1", "scenario = 3: neither a file nor a table; allowed: a file"),
    (f'scenario = "{"a" * 5000}"', "levels.toml:1", "File name too long"),
    ('scenario = "small.toml"\nseeds = [18446744073709551616]', "levels.toml:2", "out of range"),
    ('scenario = "small.toml"\nseeds = ["1"]', "levels.toml:2", 'seeds[0] = "1": '),
    ('scenario = "small.toml"\nseeds = 3', "levels.toml:2", "seeds = 3: neither a list nor a table; allowed: a list"),
    (
        'scenario = "small.toml"\nseeds = { per_placement = 0 }',
        "levels.toml:2",
        "seeds.per_placement = 0: out of range",
    ),
    (
        'scenario = "small.toml"\nplacements = { count = 0 }',
        "levels.toml:2",
        "placements.count = 0: out of range; allowed: at least 1",
    ),
    (
        'scenario = "small.toml"\nplacements = { number = 2 }',
        "levels.toml:2",
        "placements.number = 2: unknown key; allowed: count, first",
    ),
    (
        'scenario = "small.toml"\nplacements = { count = 3, first = 18446744073709551614 }',
        "levels.toml:2",
        "placements.first = 18446744073709551614: the seed of the last placement would be out of range; "
        "allowed: at most 18446744073709551613",
    ),
    ('scenario = "small.toml"\nseeds = { per_place = 2 }', "levels.toml:2", 'did you mean "per_placement"?'),
    (
        'scenario = "small.toml"\nplacements = 3\nseeds = { per_placement = 2, first = 18446744073709551611 }',
        "levels.toml:3",
        "seeds.first = 18446744073709551611: the last placement would have larger seeds than there are; "
        "allowed: at most 18446744073709551610",
    ),
    ('scenario = "small.toml"\nseeds = [1, 2, 1]', "levels.toml:2", "seeds[2] = 1: is listed twice; allowed: every"),
    (
        'scenario = "small.toml"\n[parameters]\n"network.mtu" = ["2 KiB"]\n[parameters.network]\nmtu = ["4 KiB"]',
        "levels.toml:3",
        'parameters.network.mtu = ["4 KiB"]: is given twice; allowed: every key once',
    ),
    (
        'scenario = "small.toml"\n[set]\n"network.mtu" = "2 KiB"\n[set.network]\nmtu = "4 KiB"',
        "levels.toml:3",
        'set.network.mtu = "4 KiB": is given twice',
    ),
    (
        'scenario = "small.toml"\n[parameters]\n"network.mtu" = ["2 KiB"]\n'
        '[[cases]]\nname = "a"\nset = { "network.mtu" = "4 KiB" }',
        "levels.toml:6",
        'cases[0].set.network.mtu = "4 KiB": is lost: parameters.network.mtu is set after it; allowed: one of the two',
    ),
    (
        'scenario = "small.toml"\nplacements = ["packed"]\n[parameters]\n"placement.name" = ["linear"]',
        "levels.toml:4",
        'parameters.placement.name = ["linear"]: is lost: placements[0] is set after it',
    ),
    (
        'scenario = "small.toml"\nplacements = 2\n[parameters]\n"placement.seed" = [7, 8]',
        "levels.toml:4",
        "parameters.placement.seed = [7, 8]: is lost: placements[0] is set after it",
    ),
    (
        'scenario = "small.toml"\nplacements = ["packed"]\n[[cases]]\nname = "a"\nset = { placement = "linear" }',
        "levels.toml:5",
        'cases[0].set.placement = "linear": is lost: placements[0] is set after it',
    ),
    (
        'scenario = "small.toml"\n[parameters]\n"jobs[0].workload" = ["ring"]\n'
        '[[cases]]\nname = "a"\nset = { "jobs[0].workload.message_size" = "8 KiB" }',
        "levels.toml:6",
        'cases[0].set.jobs[0].workload.message_size = "8 KiB": is lost: parameters.jobs[0].workload is set after it',
    ),
    (
        'scenario = "small.toml"\n[parameters]\n"jobs[0].workload.message_size" = ["8 KiB"]\n'
        '"jobs[0].workload" = ["ring"]',
        "levels.toml:3",
        "is lost: parameters.jobs[0].workload is set after it",
    ),
    (
        'scenario = "small.toml"\nplacements = [{ name = "random", seed = 3 }, { seed = 3, name = "random" }]',
        "levels.toml:2",
        "placements[1] = ",
    ),
    (
        'scenario = "small.toml"\n[design]\n[treatments.a.set]\n"network.mtu" = "2 KiB"\n'
        '[treatments.b]\ncontroller = "none"\nperiods = 2\nperiod = "1 ms"',
        "levels.toml:2",
        "design: has treatments that are compared with different default runs: whole; 2 x 1 ms episodes",
    ),
    (
        'scenario = "small.toml"\nplacements = ["packed", { name = "packed" }]',
        "levels.toml:2",
        'placements[1] = {"name": "packed"}: is listed twice',
    ),
    (
        'scenario = "small.toml"\n[parameters]\n"network.mtu" = ["2 KiB", "4 KiB", "2 KiB"]',
        "levels.toml:3",
        'parameters.network.mtu[2] = "2 KiB": is listed twice',
    ),
    ('scenario = "small.toml"\nset = { duration = "1e400 s" }', "levels.toml:2", "too large: at most 4611686 s"),
    (
        'scenario = "small.toml"\nset = { "jobs[0].start" = "300 us" }',
        "levels.toml:2",
        'set.jobs[0].start = "300 us": starts after the end of the run; allowed: before 300 us',
    ),
    (
        'scenario = "small.toml"\nplacements = [{ name = "list", hosts = [1, 2] }]',
        "levels.toml:2",
        "placements[0].hosts = [1, 2]: job ",
    ),
    ('scenario = "small.toml"\n[cluster]\nmemory = "lots"', "levels.toml:3", 'cluster.memory = "lots"'),
    (
        'scenario = "small.toml"\n[treatments.a]\nset = { seed = 3 }',
        "levels.toml:3",
        "treatments.a.set.seed = 3: is what the study's `seeds` says; allowed: seeds = [...]",
    ),
    (
        'scenario = "small.toml"\n[treatments.a]\nset = { "jobs[0].workload.variant" = 3 }',
        "levels.toml:3",
        "changes workload of job 0: then nothing can be compared",
    ),
    (
        'scenario = "small.toml"\n[cluster]\njobs = 0',
        "levels.toml:3",
        "jobs = 0: out of range; allowed: at least 1",
    ),
]


@pytest.mark.parametrize(("text", "place", "words"), BAD)
def test_wrong_input_is_refused_before_anything_runs(
    folder: Path, text: str, place: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "levels.toml").write_text(text)
    assert execute(["study", str(folder / "levels.toml"), "--out", str(folder / "out")]) == 2
    told = capsys.readouterr().err
    assert f"fairlane: {folder / place}: " in told
    assert words in told
    assert not (folder / "out").exists()


FACTORS = """
[scenario]
duration = "50 us"
fabric = { topology = "fat_tree", hosts = 16, levels = 2, radix = 8 }
jobs = [{ name = "a", ranks = 4, workload = { name = "ring", compute = "1 us" } }]
"""
MEASURED = '[measure]\ntables.t = "SELECT rank, iterations FROM ranks"\n'


def refused(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    (folder / "levels.toml").write_text(text)
    assert execute(["study", str(folder / "levels.toml"), "--out", str(folder / "out")]) == 2
    assert not (folder / "out").exists()
    return capsys.readouterr().err


@pytest.mark.parametrize(("more", "compared"), [(MEASURED, False), ("", True)])
def test_no_factor_has_the_name_of_a_column_of_a_study(
    folder: Path, more: str, compared: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = ("runs", "failures", *(("work", "periods", "effects") if compared else ()))
    names = sorted({column for table in tables for column in STUDY[table]} | {"point", "Treatment", "JOB"})
    factors = "\n".join(f'[factors."{name}"]\nx = {{ "jobs[0].ranks" = 4 }}' for name in names)
    words = refused(folder, f"{more}{factors}\n{FACTORS}", capsys)
    for name in names:
        line = next(line for line in words.splitlines() if f"factors.{name}: is a column that the tables have" in line)
        assert name.casefold() in line.partition("allowed: another name than ")[2].split(", ")


def test_a_query_is_not_refused_because_of_a_factor_that_is(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factor = '[measure]\ntables.t = "SELECT * FROM ranks"\n[factors.job]\nx = { "jobs[0].ranks" = 4 }'
    (line,) = refused(folder, f"{factor}\n{FACTORS}", capsys).splitlines()
    assert "factors.job: is a column" in line


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM ranks", 'measure.tables.t = "rank": is a column of every table of the study; allowed: another'),
        ("SELECT rank AS Seed FROM ranks", 'measure.tables.t = "Seed": is a column of every table of the study'),
        ("SELEC rank FROM ranks", "measure.tables.t: Parser Error"),
        ("DROP TABLE ranks", "measure.tables.t: give one SELECT"),
    ],
)
def test_queries_that_cannot_work_are_refused_before_the_first_simulation(
    folder: Path, query: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    factor = '[factors.rank]\nx = { "jobs[0].ranks" = 4 }'
    assert words in refused(folder, f'[measure]\ntables.t = "{query}"\n{factor}\n{FACTORS}', capsys)


def test_columns_of_a_controller_that_are_factors_are_an_error_and_no_traceback() -> None:
    points = points_table([Point(None, {"reward": "x"}, 0, 1, ())])
    periods = pl.DataFrame({"point": [0], "reward": [1.0]}, schema_overrides={"point": pl.UInt32})
    with pytest.raises(ScenarioError, match=r"factors\.reward: is a column of the table periods, too"):
        with_points(periods, points)
