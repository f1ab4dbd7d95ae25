"""How studies are computed: the same tables with any number of workers, after deaths, and after going on."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlane.cli.command import ExitCode
from fairlane.cli.main import execute
from fairlane.core.errors import ResultsError
from fairlane.results.study import StudyResults
from fairlane.study import treatments
from fairlane.study.running import run
from fairlane.study.study import Study
from fake_treatment import Fake
from small_study import CONTROLLED, SCENARIO, STUDY, Here

TESTS = Path(__file__).parent.parent
SIMULATIONS = 28
"""Of the small study with a controller."""
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}


def started(script: str, folder: Path, **options: Any) -> subprocess.Popen[bytes]:
    """A process that computes the study in ``levels.toml`` with one worker.

    Its output ends when it and its worker have ended, which have it open.
    """
    command = [sys.executable, "-c", script, "study", str(folder / "levels.toml"), "--out", str(folder / "out")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **options}
    return subprocess.Popen([*command, "--workers", "1", "--quiet"], env=ENVIRONMENT, **pipes)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(treatments, "KINDS", [Fake, *treatments.KINDS])
    (tmp_path / "small.toml").write_text(SCENARIO)
    (tmp_path / "notes").mkdir()
    return tmp_path


def computed(folder: Path, text: str, out: str, workers: int = 2, *, resume: bool = False) -> StudyResults:
    (folder / "levels.toml").write_text(text)
    study = Study.load(folder / "levels.toml")
    return run(study, out=folder / out, workers=workers, resume=resume)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> StudyResults:
    """The small study as this process alone computes it."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "small.toml").write_text(SCENARIO)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("fairlane.study.tasks.pools.Processes", Here)
        return computed(folder, STUDY + CONTROLLED, "whole")


def fake(folder: Path, name: str, **how: object) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in how.items()]
    return "\n".join([f"\n[treatments.{name}]", f'notes = "{folder}/notes"', *lines, ""])


@pytest.mark.parametrize("workers", [1, 2])
def test_any_number_of_workers_makes_the_same_tables(folder: Path, whole: StudyResults, workers: int) -> None:
    found = computed(folder, STUDY + CONTROLLED, "out", workers)
    assert found.meta.digest == whole.meta.digest
    assert all(table.equals(whole.tables()[name]) for name, table in found.tables().items())


@pytest.mark.long("study/tasks", "study")
def test_a_worker_that_dies_is_replaced_and_its_cell_retried(folder: Path) -> None:
    text = 'scenario = "small.toml"\n'
    found = computed(folder, text + fake(folder, "mortal", deaths=1) + fake(folder, "shy", errors=1), "out", 1)
    assert sorted(path.name for path in (folder / "notes").iterdir()) == [
        *("mortal-1.0", "mortal-1.1", "shy-1.0", "shy-1.1")
    ]
    assert found.failures.is_empty()
    # Once it lives, the fake treatment is the default run.
    for name in ("mortal", "shy"):
        assert found.work.filter(found.work["treatment"] == name)["improvement"].to_list() == [0.0] * 3


@pytest.mark.long("study/tasks", "study")
def test_what_fails_twice_is_reported_and_the_others_go_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = STUDY + fake(folder, "doomed", deaths=9) + fake(folder, "wrong", errors=9)
    (folder / "levels.toml").write_text(text.replace("seeds = [1, 2]", "seeds = [1]").replace("placements = 2", ""))
    assert execute(["study", str(folder / "levels.toml"), "--out", str(folder / "out"), "--workers", "1"]) == 1
    told = capsys.readouterr().out
    found = StudyResults.load(folder / "out")
    failures = {row["treatment"]: row for row in found.failures.iter_rows(named=True)}
    assert set(failures) == {"doomed", "wrong"}
    assert "its worker died" in failures["doomed"]["error"]
    assert failures["wrong"]["error"] == "ArithmeticError: no such luck"
    assert sorted(path.name for path in (folder / "notes").iterdir()) == [
        *("doomed-1.0", "doomed-1.1", "wrong-1.0", "wrong-1.1")
    ]
    assert set(found.work["treatment"]) == {"default", "first"}
    for row in failures.values():
        assert row["scenario"] in told
        assert execute(["check", str(folder / "out" / row["scenario"])]) == 0, "it can be run by itself"


@pytest.mark.long("study/tasks", "study")
def test_a_killed_study_goes_on(folder: Path, whole: StudyResults) -> None:
    (folder / "levels.toml").write_text(STUDY + CONTROLLED)
    out = folder / "out"
    study = started("from paused_study import paused; paused(3)", folder)
    assert study.stdout is not None
    assert study.stdout.readline() == b"3 stored\n"
    study.kill()
    study.communicate()
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("answers/[!.]*.json")}
    assert len(before) == 3
    assert not (out / "study.json").exists()
    again = computed(folder, STUDY + CONTROLLED, "out", 1, resume=True)
    after = {path.name: path.stat().st_mtime_ns for path in out.glob("answers/[!.]*.json")}
    assert again.meta.digest == whole.meta.digest
    assert len(after) == SIMULATIONS
    assert {name: after[name] for name in before} == before, "what was finished is not computed again"


@pytest.mark.long("study/tasks", "study")
def test_a_killed_study_leaves_no_worker(folder: Path) -> None:
    gate = folder / "gate"
    os.mkfifo(gate)
    text = 'scenario = "small.toml"\n' + fake(folder, "long") + f'gates."{gate}" = 0.5\n'
    (folder / "levels.toml").write_text(text)
    study = started(
        "import fairlane.study.treatments as t; from fake_treatment import Fake; t.KINDS.insert(0, Fake); "
        "from fairlane.cli import main; main()",
        folder,
    )
    with gate.open("wb"):  # open once the worker waits at it, which goes on only when it is closed
        study.kill()
        output, _ = study.communicate()
    assert output == b"", "the output has ended, so the worker has"


def test_ctrl_c_keeps_what_is_finished(folder: Path, whole: StudyResults) -> None:
    (folder / "levels.toml").write_text(STUDY + CONTROLLED)
    script = "from paused_study import paused; paused(1)"
    study = started(script, folder, stderr=subprocess.PIPE, start_new_session=True)
    assert study.stdout is not None
    assert study.stdout.readline() == b"1 stored\n"
    os.killpg(study.pid, signal.SIGINT)
    _, errors = study.communicate()
    assert study.returncode == ExitCode.INTERRUPTED
    assert b"continue with --resume --out" in errors
    assert b"Traceback" not in errors
    assert list((folder / "out" / "answers").iterdir())
    assert computed(folder, STUDY + CONTROLLED, "out", 1, resume=True).meta.digest == whole.meta.digest


@pytest.mark.parametrize("left", [b'{"label": "x", "answ', b'{"label": "x"}', b"[]", b'{"answer": null}', b""])
def test_half_an_answer_is_computed_again(
    folder: Path, whole: StudyResults, monkeypatch: pytest.MonkeyPatch, left: bytes
) -> None:
    """A machine that goes down may leave files cut off."""
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    computed(folder, STUDY + CONTROLLED, "out")
    for path in list((folder / "out" / "answers").glob("*.json"))[:2]:
        path.write_bytes(left)
    (folder / "out" / "study.json").unlink()
    assert computed(folder, STUDY + CONTROLLED, "out", resume=True).meta.digest == whole.meta.digest


def test_a_folder_that_cannot_be_written_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on a full disk: no traceback, no scratch file, and what was found stays."""
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    replace = Path.replace

    def full(self: Path, target: Path) -> Path:
        if target.parent.name == "answers" and len(list(target.parent.glob("*.json"))) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, target)

    (folder / "levels.toml").write_text(STUDY)
    monkeypatch.setattr(Path, "replace", full)
    command = ["study", str(folder / "levels.toml"), "--out", str(folder / "out"), "--workers", "1", "--quiet"]
    assert execute(command) == ExitCode.DISK_FULL
    assert f"{folder}/out/answers/" in (told := capsys.readouterr().err)
    assert "cannot be written: No space left on device" in told
    assert len(list((folder / "out" / "answers").iterdir())) == 2

    def no_table(self: Path, target: Path) -> Path:
        if target.suffix == ".parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", no_table)
    assert execute([*command, "--resume"]) == ExitCode.DISK_FULL
    assert f"{folder}/out/runs.parquet: cannot be written: No space left on device" in capsys.readouterr().err
    assert not [path for path in (folder / "out").iterdir() if "parquet" in path.name]
    monkeypatch.setattr(Path, "replace", replace)
    shutil.rmtree(folder / "out" / "answers")
    (folder / "out" / "answers").write_text("")
    assert execute([*command, "--resume"]) == 2
    assert "cannot be read: Not a directory" in capsys.readouterr().err


def test_going_on_without_a_folder_takes_the_studys_own(
    folder: Path, whole: StudyResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not that of a study whose name begins alike; and a name may have any letters."""
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    monkeypatch.chdir(folder)
    named = {name: f'name = "{name}"\n{STUDY}{CONTROLLED}' for name in ("a[1]", "a[1]-two")}
    for name, text in named.items():
        computed(folder, text, f"runs/{name}-20260101-000000-2")
        (folder / f"runs/{name}-20260101-000000-2" / "study.json").unlink()
    (folder / "levels.toml").write_text(named["a[1]"])
    found = run(Study.load(folder / "levels.toml"), resume=True, workers=1)
    assert found.folder == Path("runs/a[1]-20260101-000000-2")
    assert found.meta.digest == whole.meta.digest


def test_another_study_does_not_go_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.study.tasks.pools.Processes", Here)
    computed(folder, STUDY, "out")
    with pytest.raises(ResultsError, match=r"the study has changed: seeds\[1\] was 2, is 3"):
        computed(folder, STUDY.replace("[1, 2]", "[1, 3]"), "out", resume=True)
    with pytest.raises(ResultsError, match=r"treatments\.second was not there, is "):
        computed(folder, f"{STUDY}[treatments.second]\n", "out", resume=True)
    (folder / "small.toml").write_text(SCENARIO.replace("300 us", "400 us"))
    with pytest.raises(ResultsError, match=r'scenario\.duration was "300 us", is "400 us"'):
        computed(folder, STUDY, "out", resume=True)
    with pytest.raises(ResultsError, match=r"no study to resume"):
        computed(folder, STUDY, "elsewhere", resume=True)
