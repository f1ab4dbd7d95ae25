"""Studies that measure: queries and functions of one's own, by the command that runs any study."""

import json
from pathlib import Path

import polars as pl
import pytest

import fairlane
from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.results.study import StudyResults
from fairlane.sim import runner
from fairlane.study.running import run
from fairlane.study.study import Study
from small_study import SCENARIO

pytestmark = pytest.mark.usefixtures("here")

QUERIES = """
scenario = "small.toml"
seeds = [1, 2]
[parameters]
"jobs[0].service_level" = [0, 1]
[measure]
tables.done = "SELECT name, sum(iterations) AS iterations FROM ranks GROUP BY name ORDER BY name"
tables.run_again = "SELECT digest, packet_hops FROM run"
"""
FUNCTION = """
scenario = "small.toml"
[measure]
function = "method.py:counted"
arguments = { factor = 3 }
"""
METHOD = """
def counted(scenario, arguments, watch):
    engine = watch.drive(scenario.resolve())
    return {"tables": {"work": {"hops": [arguments["factor"] * engine.packet_hops]}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("small", SCENARIO), ("queries", QUERIES), ("function", FUNCTION)):
        (tmp_path / f"{name}.toml").write_text(text)
    (tmp_path / "method.py").write_text(METHOD)
    return tmp_path


def test_each_point_is_one_run_and_its_queries_are_the_tables(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert execute(["study", "queries.toml", "--out", "out", "--workers", "1"]) == 0
    shown = capsys.readouterr().out
    assert "queries: 4 points, 4 runs" in shown
    found = fairlane.load("out")
    assert isinstance(found, StudyResults)
    assert list(found.tables()) == ["runs", "failures", "done", "run_again"]
    for point, (level, seed) in enumerate([(0, 1), (0, 2), (1, 1), (1, 2)]):
        scenario = Scenario.load("small.toml", set=[f"jobs[0].service_level={level}", f"seed={seed}"])
        single = runner.run(scenario, out=folder / f"run-{point}", isolated=False)
        done = single.ranks.group_by("name").agg(pl.col("iterations").sum()).sort("name").rows()
        here = found.query(f"SELECT * FROM done WHERE point = {point}")
        assert here.select("name", "iterations").rows() == [(name, int(count)) for name, count in done]
        assert here["seed"].to_list() == [seed] * 3
        assert here["jobs[0].service_level"].to_list() == [level] * 3
        digests = found.query(
            f"SELECT r.digest, a.digest FROM runs r JOIN run_again a USING (point) WHERE point = {point}"
        )
        assert set(digests.row(0)) == {single.meta.digest}
    (line,) = [line for line in shown.splitlines() if line.split()[:3] == ["1", "2", "ring"]]
    ring = found.query("SELECT iterations FROM done WHERE point = 3 AND name = 'ring'").item()
    assert line.split()[-1].replace(",", "") == str(ring)
    # Nothing is computed again, and the tables are the same.
    again = run(Study.load("queries.toml"), out=Path("out"), resume=True, workers=1)
    assert again.meta.digest == found.meta.digest
    assert again.meta.profile["simulating"] == 0


def test_a_function_beside_the_study_measures_with_permission(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["study", str(folder / "function.toml"), "--workers", "1", "--quiet", "--json", "--out"]
    assert execute([*words, str(folder / "refused")]) == 2
    assert 'function.toml:4: measure.function = "method.py:counted": runs code' in capsys.readouterr().err
    assert not (folder / "refused").exists()
    assert execute([*words, str(folder / "out"), "--allow-code"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["work"]
    single = runner.run(Scenario.load(folder / "small.toml"), out=folder / "run", isolated=False)
    assert row["hops"] == 3 * single.meta.packet_hops
    # A function that is another one is another measurement.
    (folder / "method.py").write_text(METHOD.replace("arguments[", "2 * arguments["))
    assert execute([*words, str(folder / "out"), "--allow-code", "--resume"]) == 0
    assert json.loads(capsys.readouterr().out)["work"][0]["hops"] == 6 * single.meta.packet_hops


def test_a_run_that_fails_is_a_failure(folder: Path) -> None:
    (folder / "method.py").write_text(
        "def counted(scenario, arguments, watch):\n    raise ValueError('no such counter')"
    )
    found = run(Study.load(folder / "function.toml", allow_code=True), out=folder / "out", workers=1)
    assert found.failures["error"].to_list() == ["ValueError: no such counter"]
    assert found.runs["failed"].to_list() == [True]
    assert list(StudyResults.load(folder / "out").tables()) == ["runs", "failures"]


@pytest.mark.parametrize(
    ("file", "before", "after", "words"),
    [
        ("queries.toml", "tables.done", "tables.runs", "measure.tables"),
        ("queries.toml", "tables.done", 'tables."../done"', "cannot be the name of a table"),
        (
            "queries.toml",
            "[measure]",
            '[measure]\nuntil = "rnig"',
            'queries.toml:7: measure.until = "rnig": unknown job',
        ),
        ("queries.toml", "[0, 1]", "[0, 7]", "service_level"),
        ("function.toml", "method.py", "methods.py", 'measure.function = "methods.py:counted": no such file'),
        ("function.toml", "function", 'tables.a = "SELECT 1"\nfunction', "needs queries, or a function instead"),
        ("function.toml", "[measure]", '[treatments.a.set]\n"seed" = 2\n[measure]', "treatments"),
    ],
)
def test_wrong_measurements_are_refused_before_anything_runs(
    folder: Path, file: str, before: str, after: str, words: str
) -> None:
    text = (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after, 1))
    with pytest.raises(ScenarioError) as error:
        run(Study.load(folder / file, allow_code=True), out=folder / "out", workers=1)
    assert words in str(error.value)
    assert not (folder / "out").exists()
