"""Marks of progress in C, Fortran and Python: they count in every thread and process, and never disturb the program."""

from __future__ import annotations

import csv
import os
import re
import signal
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import marking
from fairlane import progress
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.progress import layout
from fairlane.progress.layout import build
from marking import marks, python, snapshot
from pages import ROOT
from possible import fortran, no_compiler

Command = Callable[[], list[str]]
JOB = {"SLURM_JOB_ID": "4711", "SLURM_PROCID": "3"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("progress") / "build"


def c_program(folder: Path) -> list[str]:
    if reason := no_compiler():
        pytest.skip(reason)
    return [str(folder / "marks" if (folder / "marks").exists() else marking.compiled(folder))]


def fortran_program(folder: Path) -> list[str]:
    if fortran() is None:
        pytest.skip("no Fortran compiler (gfortran)")
    return [str(marking.compiled_fortran(folder))]


@pytest.fixture(params=["c", "python"])
def command(request: pytest.FixtureRequest, folder: Path) -> list[str]:
    return c_program(folder) if request.param == "c" else python()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "pages"


@pytest.mark.parametrize("language", ["c", "fortran", "python"])
def test_marks_and_fractions_are_read_as_they_are_made(language: str, folder: Path, place: Path) -> None:
    programs: dict[str, Command] = {
        "c": lambda: c_program(folder),
        "fortran": lambda: fortran_program(folder),
        "python": python,
    }
    with marking.marking(programs[language](), place, **JOB) as program:
        assert not place.exists()
        program.do("mark", 5)
        assert marks(place) == {("4711", 3): 5}
        program.do("fraction", 0.25)
        assert marks(place) == {("4711", 3): 5.25}
        program.do("mark", 1)
        assert marks(place) == {("4711", 3): 6}
        (one,) = snapshot(place).processes
        assert (one.pid, one.user, one.started) == (program.process.pid, os.geteuid(), layout.start_of(one.pid))
        assert one.marked is not None
        assert one.marked <= one.at
        program.do("close")
        assert list(place.iterdir()) == []
        program.do("mark", 7)
        assert list(place.iterdir()) == []
        program.do("open")
        assert marks(place) == {("4711", 3): 0}
        assert program.end() == ""
    assert list(place.iterdir()) == []


def test_the_lines_of_the_page_build_programs_that_mark(tmp_path: Path, place: Path) -> None:
    if reason := no_compiler():
        pytest.skip(reason)
    built = [library.target for library in build(tmp_path / "progress") if library.missing is None]
    (tmp_path / "solver.c").write_text(marking.C)
    (tmp_path / "solver.f90").write_text(marking.FORTRAN)
    lines = re.findall(r"^(?:cc|gfortran) .*$", (ROOT / "docs" / "progress.md").read_text("utf-8"), re.MULTILINE)
    assert len(lines) == 3
    for number, line in enumerate(lines):
        if line.startswith("gfortran") and "fairlane_progress_fortran.o" not in built:
            continue
        subprocess.run(line, shell=True, cwd=tmp_path, check=True)
        with marking.marking([str(tmp_path / "solver")], place, **JOB) as program:
            program.do("mark", 5 + number)
            assert marks(place) == {("4711", 3): 5 + number}


@pytest.mark.parametrize(("given", "read"), [(-1, 0), (0, 0), (0.5, 0.5), (1, 1 - 2**-32), (7, 1 - 2**-32), ("nan", 0)])
def test_a_fraction_stays_within_its_iteration(given: float, read: float, command: list[str], place: Path) -> None:
    with marking.marking(command, place, **JOB) as program:
        program.do("fraction", given)
        assert marks(place) == {("4711", 3): read}


def test_threads_lose_no_mark(command: list[str], place: Path) -> None:
    with marking.marking(command, place, **JOB) as program:
        program.do("threads", 20_000)
        assert marks(place) == {("4711", 3): 80_000}


def test_processes_of_many_jobs_have_a_page_each(command: list[str], place: Path) -> None:
    with (
        marking.marking(command, place, SLURM_JOB_ID="1", SLURM_PROCID="0") as first,
        marking.marking(command, place, SLURM_JOB_ID="1", SLURM_PROCID="1") as second,
        marking.marking(command, place, PBS_JOBID="1.server", PMI_RANK="1") as other,
    ):
        for count, program in enumerate((first, second, other), 1):
            program.do("mark", count)
        assert marks(place) == {("1", 0): 1, ("1", 1): 2, ("1.server", 1): 3}


@pytest.mark.parametrize("reaped", [True, False])
def test_the_page_of_a_killed_process_is_removed(reaped: bool, command: list[str], place: Path) -> None:
    with marking.marking(command, place, **JOB) as program:
        program.do("mark", 5)
        os.kill(program.process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, program.process.pid, os.WEXITED | os.WNOWAIT)
        if reaped:
            program.process.wait()
        assert len(list(place.iterdir())) == 1
        found = snapshot(place)
        assert (found.processes, found.skipped) == ((), ())
        assert list(place.iterdir()) == []


def test_a_child_has_a_page_of_its_own(command: list[str], place: Path) -> None:
    with marking.marking(command, place, **JOB) as program:
        program.do("mark", 3)
        marked, child = program.do("fork", 2)
        assert marked == 2
        found = snapshot(place)
        assert {key: one.marks for key, one in found.by_rank.items()} == {("4711", 3): 3}
        words = f"process {child} has job 4711 and rank 3 too, like process {program.process.pid}"
        assert [one.reason for one in found.skipped] == [words]
        os.kill(child, signal.SIGKILL)
        program.do("wait")
        program.do("mark", 1)
        assert (marks(place), snapshot(place).skipped) == ({("4711", 3): 4}, ())


@pytest.mark.parametrize("count", [0, 2])
def test_a_child_that_ends_takes_its_own_page_along_only(count: int, command: list[str], place: Path) -> None:
    with marking.marking(command, place, **JOB) as program:
        program.do("mark", 3)
        program.do("child", count)
        assert marks(place) == {("4711", 3): 3}
        assert [path.name.split(".")[0] for path in place.iterdir()] == [f"4711-3-{program.process.pid}"]


def test_a_program_that_another_one_replaces_begins_anew(folder: Path, place: Path) -> None:
    with marking.marking(c_program(folder), place, **JOB) as program:
        program.do("mark", 5)
        assert program.process.stdin is not None
        program.process.stdin.write("exec 0\n")
        program.do("mark", 2)
        assert marks(place) == {("4711", 3): 2}


ENVIRONMENTS: list[tuple[dict[str, str], str, int]] = [
    ({}, "pid-{pid}", 0),
    ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "4"}, "7", 4),
    ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "OMPI_COMM_WORLD_RANK": "5", "PMIX_RANK": "5"}, "7", 5),
    ({"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "PMI_RANK": "6"}, "7", 6),
    ({"PMIX_NAMESPACE": "prterun@n1@1", "PMIX_RANK": "2"}, "prterun_n1_1", 2),
    ({"FAIRLANE_JOB": "7.1", "SLURM_JOB_ID": "7", "FAIRLANE_RANK": "9", "SLURM_PROCID": "4"}, "7.1", 9),
    ({"FAIRLANE_JOB": "", "LSB_JOBID": "8", "FAIRLANE_RANK": "x", "PMI_RANK": "4"}, "8", 4),
    ({"FLUX_JOB_ID": "ƒ12", "PMI_RANK": "-1", "SLURM_PROCID": "3"}, "__12", 3),
    ({"PMI_JOBID": "a/../b", "PMI_RANK": "4294967296", "SLURM_PROCID": "2147483647"}, "a_.._b", 2**31 - 1),
    ({"PBS_JOBID": "j" * 100, "PMI_RANK": "99999999999999999999", "SLURM_PROCID": "00012"}, "j" * 63, 12),
]


@pytest.mark.parametrize(("variables", "job", "rank"), ENVIRONMENTS)
def test_job_and_rank_are_those_of_the_launcher(
    variables: dict[str, str], job: str, rank: int, command: list[str], place: Path
) -> None:
    with marking.marking(command, place, SLURMD_NODENAME="node 7", **variables) as program:
        program.do("mark", 1)
        (one,) = snapshot(place).processes
        assert (one.job, one.rank, one.host) == (job.format(pid=one.pid), rank, "node_7")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("relative", "has to be an absolute path"),
        ("file", "Not a directory"),
        ("absent/below", "No such file or directory"),
        ("open", "others may write to it"),
    ],
)
def test_without_a_place_for_the_page_a_program_goes_on(
    name: str, reason: str, command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    given = Path(name) if name == "relative" else tmp_path / name
    for rank, lines in (("0", 1), ("1", 0)):
        with marking.marking(command, given, SLURM_PROCID=rank) as program:
            program.do("mark", 3)
            program.do("fraction", 0.5)
            error = program.end()
        assert error.count("progress is not recorded") == lines
        assert error.count(reason) == lines
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "open"]
    assert list((tmp_path / "open").iterdir()) == []


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A directory on a full disk."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(disk)]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        (disk / "fill").write_bytes(bytes(4096))
        yield disk
    finally:
        subprocess.run(["umount", disk], check=True)


def test_on_a_full_disk_a_program_goes_on(command: list[str], full: Path) -> None:
    with marking.marking(command, full) as program:
        program.do("mark", 3)
        assert "No space left on device" in program.end()
    assert [path.name for path in full.iterdir()] == ["fill"]


def test_a_sticky_directory_is_for_all_users(command: list[str], place: Path) -> None:
    place.mkdir()
    place.chmod(0o1777)
    with marking.marking(command, place, **JOB) as program:
        program.do("mark", 3)
        (page,) = place.iterdir()
        assert (marks(place), page.stat().st_mode & 0o777) == ({("4711", 3): 3}, 0o600)


@pytest.fixture
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Job and rank of this process, whose page goes with the test."""
    for name in [name for name in os.environ if name.startswith(marking.LAUNCHERS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FAIRLANE_PROGRESS_DIR", str(place))
    monkeypatch.setenv("FAIRLANE_JOB", "here")
    progress.open_progress()
    yield ("here", 0)
    progress.close_progress()


def test_a_loop_is_marked_after_each_item(here: tuple[str, int], place: Path) -> None:
    seen = [(item, marks(place)[here]) for item in progress.iterations("abc")]
    assert seen == [("a", 0), ("b", 1), ("c", 2)]
    for _ in progress.iterations("abc"):
        break
    assert marks(place) == {here: 3}


def test_a_block_is_marked_unless_it_fails(here: tuple[str, int], place: Path) -> None:
    with progress.iteration():
        assert marks(place) == {here: 0}
    with pytest.raises(KeyError), progress.iteration():
        raise KeyError
    assert marks(place) == {here: 1}


def test_the_layout_is_that_of_the_page() -> None:
    """Offsets and bytes of the table in docs/progress.md, and of the format that Python reads."""
    kinds = {"8s": "text", "64s": "text", "I": "u32", "i": "i32", "Q": "u64"}
    parts = re.findall(r"\d+s|\d+x|[IiQ]", (layout.HEADER.format + layout.WORDS.format[1:])[1:].replace("QQQ", "Q Q Q"))
    at, expected = 0, []
    for part in parts:
        if not part.endswith("x"):
            expected.append((at, struct.calcsize(f"={part}"), kinds[part]))
        at += struct.calcsize(f"={part}")
    with (ROOT / "docs" / "data" / "progress-page.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["offset"]), int(row["bytes"]), row["type"]) for row in rows] == expected


@pytest.mark.skipif(bool(no_compiler()), reason=no_compiler())
def test_build_writes_sources_and_libraries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert execute(["progress", "build", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert f"{out / 'libfairlane-progress.so'}\n" in printed
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", out / "libfairlane-progress.so"], capture_output=True, text=True, check=True
    )
    declared = set(re.findall(r"^\w+ (fairlane_\w+)\(", (out / "fairlane_progress.h").read_text(), re.MULTILINE))
    assert {line.split()[-1] for line in exported.stdout.splitlines()} == declared
    assert execute(["progress", "build", "--out", str(out)]) == 0, "again, as after an update"


def test_build_says_what_it_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(ScenarioError, match="not empty"):
        build(tmp_path)
    with pytest.raises(ScenarioError, match="is not a folder"):
        build(tmp_path / "mine")
    with pytest.raises(ScenarioError, match='--fc = "no-such-compiler": is not installed'):
        build(tmp_path / "new", FC="no-such-compiler")
    assert not (tmp_path / "new").exists()
    monkeypatch.setenv("PATH", "")
    assert {one.missing for one in build(tmp_path / "new")} == {"make"}
    assert (tmp_path / "new" / "Makefile").exists()
