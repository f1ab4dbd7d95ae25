"""Replicates by precision: where they are added, when they end, and what is said of the rest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
import polars as pl
import pytest

from fairlane import RunError, ScenarioError
from fairlane.cli.main import execute
from fairlane.results.study import StudyResults
from fairlane.study.repetition import Repeat
from fairlane.study.replicates import Allocation, effects, key_of
from fairlane.study.running import run
from fairlane.study.study import Study
from small_study import Here

pytestmark = pytest.mark.usefixtures("here")

STUDY = """
{replicates}
treatments.slow = {{ set = {{ "mpi.send_overhead" = "10 us" }} }}
{more}
[parameters]
"network.buffer" = ["16 KiB", "64 KiB"]
[scenario]
duration = "500 us"
seed = 3
fabric = {{ topology = "fat_tree", hosts = 16, levels = 2 }}
jobs = [ {{ name = "flood", ranks = 4, count = 2, workload = {{ name = "flood_pairs", compute = "20 us" }} }} ]
"""


def study(folder: Path, replicates: str, more: str = "") -> Study:
    file = folder / "study.toml"
    file.write_text(STUDY.format(replicates=f"repeat = {{ {replicates} }}" if replicates else "", more=more))
    return Study.load(file)


@dataclass(frozen=True)
class Replicate:
    """A point of a made-up study."""

    case: str | None
    placement: int
    parameters: Any = ()


def work(points: list[Replicate], values: dict[str, list[float]]) -> pl.DataFrame:
    """The table of treated runs with the next of the values of their case."""
    drawn = {name: iter(of) for name, of in values.items()}
    rows = [
        (number, point.placement, 1, "treated", next(drawn[str(point.case)])) for number, point in enumerate(points)
    ]
    table = pl.DataFrame(rows, schema=["point", "placement", "seed", "treatment", "improvement"], orient="row")
    return table.with_columns(improvement_low=None, improvement_high=None, w=pl.lit(None, pl.Float64))


def allocated(values: dict[str, list[float]], **asked: Any) -> tuple[Allocation, dict[str, int]]:
    """Adds replicates of made-up cases until there is nothing to add; how many each has."""
    allocation = Allocation(Repeat(**asked))
    counts = dict.fromkeys(values, 5)
    while True:
        points = [Replicate(name, at, {}) for name, count in counts.items() for at in range(count)]
        made_up: Any = points
        if not allocation.further(work(points, values), made_up):
            return allocation, counts
        counts = {name: allocation.counts[key_of(name, {})] for name in values}


def test_conditions_whose_effect_is_least_certain_get_the_replicates() -> None:
    rng = numpy.random.default_rng(1)
    values = {"calm": rng.normal(0.1, 0.001, 400).tolist(), "wild": rng.normal(0.1, 0.05, 400).tolist()}
    allocation, counts = allocated(values, precision="1%", at_most=300)
    assert counts["calm"] == 5
    assert 60 <= counts["wild"] <= 200, "(1.98 * 0.05 / 0.01)^2 = 98"
    assert allocation.words().startswith("Mean effects over jobs are precise to ±1.0% under every condition")


def test_what_the_others_would_need_is_said_when_the_replicates_are_used_up() -> None:
    rng = numpy.random.default_rng(2)
    values = {"calm": rng.normal(0.1, 0.001, 400).tolist(), "wild": rng.normal(0.1, 0.05, 400).tolist()}
    allocation, counts = allocated(values, precision="1%", at_most=30)
    assert counts == {"calm": 5, "wild": 25}
    words = allocation.words()
    assert words.startswith(
        "Mean effects over jobs are not precise to ±1.0% under 1 of 2 conditions, with 30 replicates in all: wild (±"
    )
    needed = int(words.split("about ")[1].split()[0])
    assert 60 <= needed <= 160


@pytest.mark.long("study", "core/statistics")
def test_ending_at_a_precision_costs_little_of_the_coverage() -> None:
    rng = numpy.random.default_rng(3)
    covered, runs = 0, 150
    for _ in range(runs):
        values = {"only": rng.normal(0.1, 0.03, 200).tolist()}
        _, counts = allocated(values, precision="1%", at_most=200)
        points = [Replicate("only", at, {}) for at in range(counts["only"])]
        found = effects(work(points, values), None)["treated"]
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.1 <= found.high
    assert covered / runs >= 0.88


@pytest.mark.long("study", "core/statistics")
def test_a_study_adds_replicates_with_seeds_of_their_own_until_it_is_precise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = "precision = '5%', at_most = 20, at_least = 3"
    found = run(study(tmp_path, asked), out=tmp_path / "out", workers=1)
    points = found.work.select("point", "network.buffer", "placement", "seed").unique("point").sort("point")
    for _, of_condition in points.group_by("network.buffer"):
        count = of_condition.height
        assert count >= 3
        assert of_condition["placement"].to_list() == list(range(count))
        assert of_condition["seed"].to_list() == list(range(3, 3 + count))
    [note] = found.meta.notes
    assert f"with {points.height} replicates in all" in note
    assert found.meta.placements[:2] == ["seed 1", "seed 2"]
    # The same with workers in processes of their own, and once more from what was stored.
    monkeypatch.undo()
    again = run(study(tmp_path, asked), out=tmp_path / "again", workers=2)
    assert again.meta.digest == found.meta.digest
    assert StudyResults.load(tmp_path / "out").meta.notes == [note]


def test_an_interrupted_study_goes_on_to_the_same_end(tmp_path: Path) -> None:
    asked = study(tmp_path, "precision = '0.1%', at_most = 8, at_least = 3")
    whole = run(asked, out=tmp_path / "whole", workers=1)
    assert whole.meta.points == 8
    assert "not precise to ±0.1%" in whole.meta.notes[0]
    folder = tmp_path / "part"
    with pytest.raises(RunError):
        run(asked, out=folder, workers=1, cpu_limit_s=0.05)
    rest = run(asked, out=folder, resume=True, workers=1)
    assert rest.meta.digest == whole.meta.digest


def test_a_study_is_resumed_with_more_replicates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    few = run(study(tmp_path, "precision = '0.1%', at_most = 10"), out=tmp_path / "grown", workers=1)
    answers = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "grown" / "answers").iterdir()}
    more = study(tmp_path, "precision = '0.01%', at_most = 14")
    grown = run(more, out=tmp_path / "grown", resume=True, workers=1)
    assert (few.meta.points, grown.meta.points) == (10, 14)
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "grown" / "answers").iterdir()}
    assert answers.items() < after.items(), "what was stored is not computed again"
    assert grown.meta.digest == run(more, out=tmp_path / "whole", workers=1).meta.digest
    assert "at_most = 14" in (tmp_path / "grown" / "study.toml").read_text()
    assert "±0.01%" in grown.meta.notes[0]


@pytest.mark.parametrize(
    ("replicates", "more", "words"),
    [
        ("precision = '1%', at_most = 20", "placements = 4", ["placements", "placements or repeat"]),
        ("precision = '1%', at_most = 20", "seeds = [1, 2]", ["seeds", "seeds or repeat"]),
        ("precision = '1%', at_most = 2", "", ["repeat.at_most", "at least 3"]),
        (
            "precision = '1%', at_most = 4",
            "",
            ["repeat.at_most = 4: is too few", "at least 10, 5 for each of 2 cond"],
        ),
        ("precision = 'x', at_most = 20", "", ["repeat.precision", "1%"]),
        ("0", "", ["repeat = 0", "1 to"]),
        ("'often'", "", ["repeat", "often", "a number, as 20"]),
        ("precision = '1%', at_most = 20, of = 'v'", "", ["repeat.of", "improvement"]),
    ],
)
def test_wrong_tables_are_refused(
    replicates: str, more: str, words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "study.toml"
    given = f"{{ {replicates} }}" if "=" in replicates else replicates
    file.write_text(STUDY.format(replicates=f"repeat = {given}", more=more))
    assert execute(["study", str(file), "--out", str(tmp_path / "out")]) == 2
    error = capfd.readouterr().err
    assert all(word in error for word in words), error
    assert not (tmp_path / "out").exists()


def test_the_command_shows_the_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study(tmp_path, "precision = '30%', at_most = 8, at_least = 3")
    assert execute(["study", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--workers", "1"]) == 0
    assert (
        "Mean effects over jobs are precise to ±30.0% under every condition, with 6 replicates"
        in capsys.readouterr().out
    )
    assert json.loads((tmp_path / "out" / "study.json").read_text())["notes"]


def test_a_study_says_that_its_simulations_do_not_end_at_a_precision(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    ends = ('duration = "500 us"', 'until = { precision = "5%", at_most = "300 us" }')
    file.write_text(STUDY.format(replicates="", more="").replace(*ends))
    found = run(Study.load(file), out=tmp_path / "out", workers=1)
    [note] = found.meta.notes
    assert note.startswith("every simulation lasted until.at_most, 300 us: only fairlane run ends at a precision")


def test_a_number_of_replicates_is_the_same_for_all_conditions_and_grows_by_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)

    def repeated(count: int, more: str = "") -> Study:
        (tmp_path / "study.toml").write_text(STUDY.format(replicates=f"repeat = {count}", more=more))
        return Study.load(tmp_path / "study.toml")

    written = "placements = 3\nseeds = { per_placement = 1, first = 3 }"
    (tmp_path / "written.toml").write_text(STUDY.format(replicates=written, more=""))
    same = [str(point) for point in Study.load(tmp_path / "written.toml").points()]
    assert [str(point) for point in repeated(3).points()] == same
    run(repeated(2), out=tmp_path / "grown", workers=1)
    grown = run(repeated(3), out=tmp_path / "grown", resume=True, workers=1)
    assert grown.meta.points == 6
    assert grown.meta.digest == run(repeated(3), out=tmp_path / "whole", workers=1).meta.digest


def test_a_study_that_measures_is_repeated_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    measured = 'measure.tables.hops = "SELECT packet_hops AS hops FROM run"'
    text = STUDY.format(replicates="repeat = 2", more=measured).replace("treatments.slow", "# treatments.slow")
    (tmp_path / "study.toml").write_text(text)
    found = run(Study.load(tmp_path / "study.toml"), out=tmp_path / "out", workers=1)
    assert found.query("SELECT placement, seed FROM hops").rows() == 2 * [(0, 3), (1, 4)]
    (tmp_path / "study.toml").write_text(text.replace("repeat = 2", "repeat = { precision = '1%', at_most = 9 }"))
    with pytest.raises(ScenarioError, match="repeat: an effect has a precision"):
        Study.load(tmp_path / "study.toml")
