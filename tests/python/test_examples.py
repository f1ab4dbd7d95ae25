"""Every example runs, and prints what is stored beside it."""

import runpy
from pathlib import Path

import pytest

import fairlane
from fairlane import Scenario
from fairlane.cli.main import execute
from fairlane.results.run import load_run
from fairlane.study.running import run
from fairlane.study.study import Study
from pictures import assert_drawn
from small_study import Here

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_a_python_example_prints_what_is_stored(
    file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [str(file)])
    runpy.run_path(str(file), run_name="__main__")
    printed = capfd.readouterr()
    assert printed.err == ""
    assert printed.out == file.with_suffix(".out").read_text(encoding="utf-8"), "if this is meant to be: make readme"


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("studies/*.toml")), ids=lambda file: file.stem)
def test_a_study_says_something_about_every_treatment(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    study = Study.load(file, set=['set.duration="3 ms"', "seeds=[1]", "placements=1"])
    found = run(study, out=tmp_path / "out")
    found.draw()
    assert set(found.work["treatment"]) == {"default", *study.treatments}
    assert found.work["w"].is_between(-0.9, 0.9).all(ignore_nulls=False)
    picture = "work.png" if study.treatments else "conditions.png"
    assert_drawn(tmp_path / "out" / picture)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_a_scenario_runs_and_shows_every_job(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for job in Scenario.load(file).jobs for name in job.names()]
    assert execute(["run", str(file), "--duration", "6 ms", "--out", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith(f"{file.stem}: 6.00 ms simulated, {len(names)} jobs, ") for line in lines[:4])
    rows = [line.split() for line in lines]
    jobs = lines.index("Jobs")
    title = next(number for number, line in enumerate(lines) if line.startswith("Who delays whom"))
    for key, name in zip("ABCDEFGHIJKL", names, strict=False):
        job = next(row for row in rows[jobs:title] if row[:1] == [name])
        assert int(job[3]) >= 2, "iterations"
        assert job[-1].endswith("%"), "W"
        assert [key, name] in [row[:2] for row in rows[title:]]
    assert lines[-1] == f"Everything is in {tmp_path / 'run'}."

    run = load_run(tmp_path / "run")
    assert run.jobs["name"].to_list() == names
    assert run.jobs["w"].is_between(-0.9, 0.9).all(ignore_nulls=False)
    for figure in ("slowdown", "interference", "utilisation"):
        assert_drawn(tmp_path / "run" / f"{figure}.png")


SMALL = {"modern": "1 ms", "coming-from": "300 us", "ai": "50 us"}
"""Folders of scenarios, and how much of them is simulated."""


@pytest.mark.parametrize(
    "file",
    [file for folder in SMALL for file in sorted(EXAMPLES.glob(f"{folder}/*.toml")) if "[fabric]" in file.read_text()],
    ids=lambda file: file.stem,
)
def test_a_scenario_of_the_pages_runs(file: Path) -> None:
    run = fairlane.run(Scenario.load(file, duration=SMALL[file.parent.name]), isolated=False)
    assert run.meta.scenario == file.stem
    assert run.meta.packet_hops > 1000
    assert f"examples/{file.parent.name}/{file.name}" in file.read_text(), "the command that runs it"


@pytest.mark.parametrize(
    "file",
    [
        file
        for folder in ("modern", "questions")
        for file in sorted(EXAMPLES.glob(f"{folder}/*.toml"))
        if "placements =" in file.read_text()
    ],
    ids=lambda file: file.stem,
)
def test_a_study_of_the_pages_has_every_condition_and_treatment(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    full = Study.load(file)
    assert sum(1 for _ in full.points()) >= 5, "no verdict from one placement"
    small = 'set={ duration = "400 us", "observe.iterations" = [] }'
    found = run(Study.load(file, set=[small, "placements=1"]), out=tmp_path / "out")
    assert found.failures.is_empty()
    if found.measured is None:
        assert set(found.work["treatment"]) == {"default", *full.treatments}
    else:
        assert all(table.height for table in found.measured.values())


def test_tables_and_figures_of_the_pages_are_those_of_the_studies() -> None:
    """Every study has its place on a page, between the markers of ``tools/update_pages.py``."""
    docs = EXAMPLES.parent / "docs"
    pages = [docs / "examples.md", *sorted((docs / "questions").glob("*.md"))]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for file in [*EXAMPLES.glob("modern/*.toml"), *EXAMPLES.glob("questions/*.toml")]:
        assert f"examples/{file.parent.name}/{file.name}" in text
        if "placements =" in file.read_text():
            assert f"<!-- study:start {file.parent.name}/{file.stem} -->" in text
    assert "±" in text
