"""Studies that choose the length of their runs by a pilot: what they simulate, record and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import RunError, ScenarioError
from fairlane.cli.main import execute
from fairlane.results.study import StudyResults
from fairlane.study.length import FEW, SHIFTED, sentence
from fairlane.study.running import run
from fairlane.study.study import Study
from small_study import Here

pytestmark = pytest.mark.usefixtures("here")

STUDY = """
{head}
[scenario]
duration = "{duration}"
seed = 3
fabric = {{ topology = "fat_tree", hosts = 16, levels = 2 }}
jobs = [ {{ name = "a", ranks = 4, count = 2, workload = {{ {work}, compute = "10 us" }}{job} }} ]
"""
WORK = 'name = "all_to_all", message_size = "16 KiB"'
WIDE = 'precision = "1%", bias = "20%", at_most = 16, length = "choose"'
SLOW = 'treatments.slow.set."mpi.send_overhead" = "4 us"'


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)


def text(repeat: str, head: str = "", *, duration: str = "10 ms", work: str = WORK, job: str = "") -> str:
    return STUDY.format(head=f"repeat = {{ {repeat} }}\n{head}", duration=duration, work=work, job=job)


def study(folder: Path, *of: str, **options: str) -> Study:
    (folder / "study.toml").write_text(text(*of, **options))
    return Study.load(folder / "study.toml")


def effects(found: StudyResults, column: str) -> pl.DataFrame:
    """The mean over jobs for each of the first five replicates."""
    rows = found.work.filter(pl.col("placement") < 5, pl.col(column).is_not_null())
    return rows.group_by("treatment", "placement").agg(pl.col(column).mean())


@pytest.mark.parametrize(
    ("head", "column", "asked"),
    [
        ("", "w", WIDE),
        pytest.param(SLOW, "improvement", WIDE.replace("1%", "0.5%"), marks=pytest.mark.long("study", "results")),
    ],
)
def test_runs_are_as_short_as_the_pilot_allows_and_its_shift_is_that_of_the_short_runs(
    head: str, column: str, asked: str, tmp_path: Path
) -> None:
    found = run(study(tmp_path, asked, head), out=tmp_path / "out", workers=1)
    choice = found.meta.length
    assert choice is not None
    assert choice.length_ps < choice.duration_ps == 10**10, choice
    assert found.work.select((pl.col("iterations") >= 10).all()).item()
    assert found.meta.notes[0] == sentence(choice)
    assert f"with {found.meta.points} replicates in all" in found.meta.notes[1]
    assert choice.reached_half_width is not None
    assert (choice.reached_half_width <= float(asked[13:].partition("%")[0]) / 100) == (
        "not" not in found.meta.notes[1]
    )
    assert StudyResults.load(tmp_path / "out").meta.length == choice
    # The replicates are those of a study with that duration, and the pilot is one with the scenario's.
    plain = f"{asked.partition(', bias')[0]}, at_most = 16"
    short = run(study(tmp_path, plain, head, duration=f"{choice.length_ps} ps"), out=tmp_path / "short", workers=1)
    assert short.work.equals(found.work)
    long = run(study(tmp_path, plain, head), out=tmp_path / "long", workers=1)
    both = effects(short, column).join(effects(long, column), on=["treatment", "placement"], suffix="_long")
    shifts = both.group_by("treatment").agg((pl.col(column) - pl.col(f"{column}_long")).mean().alias("shift"))
    recorded = {of.treatment: of.shift for of in choice.effects}
    assert recorded == pytest.approx(dict(shifts.iter_rows()))


@pytest.mark.long("study")
def test_the_choice_is_the_same_with_two_workers_and_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = study(tmp_path, WIDE)
    whole = run(asked, out=tmp_path / "whole", workers=1)
    with pytest.raises(RunError):
        run(asked, out=tmp_path / "part", workers=1, cpu_limit_s=0.05)
    rest = run(asked, out=tmp_path / "part", resume=True, workers=1)
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    two = run(asked, out=tmp_path / "two", workers=2)
    for again, name in ((rest, "part"), (two, "two")):
        assert (again.meta.digest, again.meta.length) == (whole.meta.digest, whole.meta.length)
        for file in ("work.parquet", "cells.json"):
            assert (tmp_path / name / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()


def test_a_shift_beyond_what_is_accepted_leaves_the_study_as_it_would_be_without_a_choice(tmp_path: Path) -> None:
    plain = run(study(tmp_path, 'precision = "1%", at_most = 16'), out=tmp_path / "plain", workers=1)
    asked = study(tmp_path, WIDE.replace("20%", "0.001%"))
    # What was simulated is not simulated again.
    found = run(asked, out=tmp_path / "plain", resume=True, workers=1)
    choice = found.meta.length
    assert found.meta.digest == plain.meta.digest
    assert choice is not None
    assert (choice.kept_because, choice.length_ps) == (SHIFTED, choice.duration_ps)
    assert SHIFTED in found.meta.notes[0]
    assert "±0.001% is accepted" in found.meta.notes[0]


def test_runs_with_few_iterations_are_not_shortened(tmp_path: Path) -> None:
    found = run(study(tmp_path, WIDE, duration="300 us"), out=tmp_path / "out", workers=1)
    assert found.meta.length is not None
    assert found.meta.length.kept_because == FEW
    assert found.meta.notes[0] == (f"Runs last for the scenario's duration, 300 µs, by a pilot of 5 replicates: {FEW}.")


@pytest.mark.parametrize(
    ("repeat", "head", "job", "words"),
    [
        (WIDE, "", ", stop = 20", ["repeat.length", "job a-0 ends after 20 iterations", 'length = "duration"']),
        (WIDE, "", ', start = "1 ms"', ["repeat.length", "start of job a-0 takes effect at a given time"]),
        (WIDE, "", ', stop = "2 ms"', ["repeat.length", "stop of job a-0"]),
        (WIDE, 'parameters.duration = ["2 ms", "3 ms"]', "", ["repeat.length", "differ in their duration"]),
        (WIDE, 'set.until = { precision = "1%", at_most = "3 ms" }', "", ["repeat.length", "until"]),
        (WIDE, 'treatments.slack = { controller = "slack", period = "1 ms", periods = 3 }', "", ["slack has periods"]),
        (WIDE.replace("choose", "shorter"), "", "", ["repeat.length", "shorter", "choose"]),
        ('precision = "1%", at_most = 40, bias = "1%"', "", "", ["repeat.bias", 'length = "choose"']),
        (WIDE.replace("20%", "140%"), "", "", ["repeat.bias"]),
    ],
)
def test_wrong_studies_are_refused(
    repeat: str, head: str, job: str, words: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = text(repeat, head, job=job)
    (tmp_path / "study.toml").write_text(given.replace('duration = "10 ms"\n', "") if "set.until" in head else given)
    assert execute(["check", str(tmp_path / "study.toml")]) == 2
    error = capfd.readouterr().err
    assert all(word in error for word in words), error
    assert "study.toml" in error


def test_check_says_what_follows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study(tmp_path, WIDE)
    assert execute(["check", str(tmp_path / "study.toml"), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found["points"] == 5
    assert found["pilot"] == (
        "this is the pilot: it chooses the length of all further runs, at most 16 replicates of 10 ms or shorter"
    )
    study(tmp_path, WIDE.partition(", bias")[0] + ", at_most = 16")
    assert execute(["check", str(tmp_path / "study.toml")]) == 0
    assert "pilot" not in capsys.readouterr().out


def test_a_study_that_measures_has_no_precision_and_so_no_length(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="repeat: an effect has a precision"):
        study(tmp_path, WIDE, 'measure.tables.hops = "SELECT packet_hops AS hops FROM run"')
