"""The reader of progress pages: what counts, what does not and why, over files, a socket and other hosts."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane.cli.main import execute
from fairlane.cluster.agent.progress import Progress, Snapshot, gained, own_directories, read, scan, server, slurm_job
from fairlane.cluster.agent.system import AgentError
from fairlane.progress import layout
from waiting import wait_for

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of other users")
HEADER = layout.Header(os.getpid(), layout.start_of(os.getpid()) or 0, layout.pid_namespace(), 5, 3, "4711", "n1")


def page(count: int = 8, fraction: float = 0.0, tag: int | None = None, **changed: Any) -> bytes:
    """A page of this process, with changes of its header."""
    word = ((count if tag is None else tag) & 0xFFFFFFFF) << 32 | int(fraction * 2**32)
    used = replace(HEADER, **changed).packed() + struct.pack("=QQQ", count, word, 7_000_000_000)
    return used.ljust(4096, b"\0")


def put(folder: Path, data: bytes, name: str = f"4711-3-{os.getpid()}.progress") -> Path:
    (folder / name).write_bytes(data)
    return folder / name


def reasons(folder: Path) -> list[str]:
    found = scan([folder])
    assert found.processes == ()
    return [one.reason for one in found.skipped]


@pytest.mark.parametrize(
    ("data", "marks"),
    [
        (page(), 8.0),
        (page(8, 0.75), 8.75),
        (page(8, 0.75, tag=7), 8.0),
        (page(2**32 + 8, 0.5), 2**32 + 8.5),
        (page(2**32 + 8, 0.5, tag=9), 2**32 + 8.0),
        (page(2**53), float(2**53)),
        (page()[: layout.USED_BYTES], 8.0),
    ],
)
def test_marks_are_the_count_and_the_fraction_of_the_current_iteration(
    data: bytes, marks: float, tmp_path: Path
) -> None:
    put(tmp_path, data)
    before = time.monotonic()
    found = scan([tmp_path, tmp_path / "absent"])
    (one,) = found.processes
    assert (one.marks, one.job, one.rank, one.host, one.marked) == (marks, "4711", 3, "n1", 7.0)
    assert before <= one.at <= found.at
    assert found.by_rank == {("4711", 3): one}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "has 0 bytes, not 216 or more"),
        (page()[:215], "has 215 bytes"),
        (bytes(8) + page()[8:], "is not complete"),
        (b"FAIRLANE" + page()[8:], "is no page of progress"),
        (page()[:8] + struct.pack("=I", 2) + page()[12:], "has version 2 of the layout; this reader knows 1"),
        (page(rank=-1), "impossible"),
        (page(job=""), "impossible"),
        (page(job="../x"), "impossible"),
        (page(job="x" * 64), "impossible"),
        (page(host="a\x1b[2J"), "impossible"),
        (page(pid=1), "is about process 1, not "),
        (page(pid_namespace=1), "another PID namespace"),
    ],
)
def test_what_is_wrong_with_a_page_is_said_and_it_stays(data: bytes, reason: str, tmp_path: Path) -> None:
    file = put(tmp_path, data)
    (found,) = reasons(tmp_path)
    assert reason in found
    assert file.exists()


def test_pages_of_ended_processes_are_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    names = {
        "4711-3-{}.progress": page(pid=ended.pid),
        "4711-4-{}.progress": b"",
        "a-0-{}.python.progress": page()[:20],
    }
    files = [put(tmp_path, data, name.format(ended.pid)) for name, data in names.items()]
    reused = put(tmp_path, page(started=HEADER.started - 1))
    foreign = put(tmp_path, page(pid=ended.pid, pid_namespace=1), f"4711-5-{ended.pid}.progress")
    assert len(reasons(tmp_path)) == 1, "the one from another namespace, about whose process nothing is known"
    assert [path.exists() for path in (*files, reused, foreign)] == [False] * 4 + [True]


def test_files_that_are_no_pages_are_left_alone(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    target = put(outside, page())
    place = tmp_path / "pages"
    place.mkdir()
    (place / target.name).symlink_to(target)
    os.mkfifo(place / "4711-4-1.progress")
    (place / "4711-5-1.progress").mkdir()
    (place / "notes.progress").write_text("mine")
    (place / "notes.txt").write_text("mine")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(place / "4711-6-1.progress"))
    before = sorted(place.iterdir())
    assert sorted(reasons(place)) == [
        "No such device or address",
        "Too many levels of symbolic links",
        "is no regular file",
        "is no regular file",
        "is not named JOB-RANK-PID.progress",
    ]
    assert sorted(place.iterdir()) == before
    (tmp_path / "link").symlink_to(outside)
    assert reasons(tmp_path / "link") == ["Not a directory"]


@ROOT
def test_a_page_of_another_user_cannot_stand_for_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = put(tmp_path, page())
    os.chown(file, 12345, 12345)
    assert reasons(tmp_path) == [f"belongs to user 12345, process {os.getpid()} to 0"]
    monkeypatch.setattr(os, "geteuid", lambda: 999)
    assert reasons(tmp_path) == ["belongs to user 12345"]
    os.chown(file, 0, 0)
    assert len(scan([tmp_path]).processes) == 1


CGROUPS = {
    "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n": "4711",
    "11:memory:/slurm/uid_1000/job_12/step_batch/task_0\n1:name=systemd:/x\n": "12",
    "3:cpuset:/slurm_n1/uid_0/job_5\n": "5",
    "0::/user.slice/user-1000.slice/job_4711/x\n": None,
    "0::/\n": None,
    "": None,
}


@pytest.mark.parametrize(("text", "job"), CGROUPS.items())
def test_the_job_of_a_process_is_that_of_its_control_group(text: str, job: str | None) -> None:
    assert slurm_job(text.encode()) == job


@pytest.mark.parametrize(("claimed", "counts"), [("4711", True), ("4711.1", True), ("47110", False), ("471", False)])
def test_a_process_cannot_claim_the_job_of_another(
    claimed: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlane.cluster.agent.progress.slurm_job", lambda _: "4711")
    put(tmp_path, page(job=claimed))
    found = scan([tmp_path])
    words = f"is about job {claimed}; process {os.getpid()} is in Slurm's job 4711"
    assert ([one.reason for one in found.skipped], len(found.processes)) == (([], 1) if counts else ([words], 0))


def test_a_rank_counts_once(tmp_path: Path) -> None:
    put(tmp_path, page(8))
    put(tmp_path, page(9), f"4711-3-{os.getpid()}.python.progress")
    found = scan([tmp_path])
    assert [one.marks for one in found.processes] == [8]
    assert "has job 4711 and rank 3 too" in found.skipped[0].reason


def test_a_directory_with_too_many_files_is_read_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.cluster.agent.progress.MOST_FILES", 2)
    for name in "abc":
        put(tmp_path, b"", f"{name}.progress")
    assert reasons(tmp_path)[-1] == "has 3 files; 2 are read"


Edit = tuple[int, bytes]


@given(
    edits=st.lists(st.tuples(st.integers(0, layout.USED_BYTES), st.binary(min_size=1, max_size=9)), max_size=4),
    length=st.one_of(st.just(4096), st.integers(0, 300)),
    name=st.sampled_from([f"4711-3-{os.getpid()}.progress", f"x-0-{os.getpid()}.python.progress", "4711-3-1.progress"]),
)
def test_a_damaged_page_harms_no_other(edits: list[Edit], length: int, name: str) -> None:
    data = bytearray(page())
    for at, change in edits:
        data[at : at + len(change)] = change
    damaged = bytes(data[:length])
    with TemporaryDirectory() as folder:
        put(Path(folder), page(5, job="sound"), f"sound-3-{os.getpid()}.progress")
        put(Path(folder), damaged, name)
        found = scan([Path(folder)])
        assert found.by_rank["sound", 3].marks == 5
        others = [one for one in found.processes if one.job != "sound"]
        gone = not (Path(folder) / name).exists()
        assert len(others) + len(found.skipped) + gone == 1, "it counts, is skipped with a reason, or is removed"
        for one in others:  # then it is a whole page about a living process, and its words are read as they stand
            count, part, _ = struct.unpack_from("=QQQ", damaged, 192)
            same = part >> 32 == count & 0xFFFFFFFF
            assert one.marks == count + (part & 0xFFFFFFFF) / 2**32 * same
            assert damaged[:16] == page()[:16]


def snapshot(at: float, **marks: tuple[int, float]) -> Snapshot:
    """Pids and marks of ranks 0 of jobs."""
    found = [Progress(job, 0, count, at, None, pid, pid, 0, "n1") for job, (pid, count) in marks.items()]
    return Snapshot("n1", at, tuple(found))


def test_iterations_between_two_snapshots_are_of_the_same_process() -> None:
    before = snapshot(1, a=(10, 5.5), b=(11, 7), gone=(12, 1))
    after = snapshot(2, a=(10, 7.0), b=(13, 2), new=(14, 3))
    assert gained(before, after) == {("a", 0): 1.5}


def test_a_server_answers_for_the_pages(tmp_path: Path) -> None:
    put(tmp_path, page(8, 0.5))
    path = tmp_path / "socket"
    with server(path, [tmp_path]):
        assert path.stat().st_mode & 0o777 == 0o600
        found = read(socket=path)
        assert found.processes == tuple(replace(one, at=found.processes[0].at) for one in scan([tmp_path]).processes)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"write\n")
            assert client.makefile("rb").readline() == b'refused: expected the line "read"\n'
        with pytest.raises(AgentError, match="another agent has this socket; choose another path for --socket"):
            server(path, [tmp_path]).__enter__()
    assert not path.exists()
    with pytest.raises(AgentError, match="does not answer"):
        read(socket=path)


def test_other_hosts_are_read_by_a_command(tmp_path: Path) -> None:
    put(tmp_path, page(8, 0.5))
    here = "fairlane", "agent", "progress", "--interval", "0s", "--json", "--dir", str(tmp_path)
    found = read("n7", through=[sys.executable, "-m", *here])
    assert [(one.job, one.rank, one.marks) for one in found.processes] == [("4711", 3, 8.5)]
    with pytest.raises(AgentError, match="no snapshot of progress: host: Field required"):
        read("n7", through=[sys.executable, "-c", "print('{}')"])
    with pytest.raises(AgentError, match="ended with code 3: n7 is down"):
        read("n7", through=[sys.executable, "-c", "import sys; print(sys.argv[1] + ' is down'); sys.exit(3)", "{host}"])
    with pytest.raises(AgentError, match="is no name of a host"):
        read("-oProxyCommand=x", through=["echo", "{host}"])


def test_default_directories_are_those_of_the_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for environment in ({}, {"XDG_RUNTIME_DIR": "/run/user/1000"}, {"FAIRLANE_PROGRESS_DIR": "/var/x"}):
        for usable in (True, False):
            monkeypatch.setattr(os, "access", lambda *_, usable=usable: usable)
            assert layout.directory(environment)[0] in own_directories(environment)
    with pytest.raises(OSError, match="absolute"):
        layout.directory({"FAIRLANE_PROGRESS_DIR": "x"})


def test_agent_progress_prints_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path, page(8, 0.5))
    put(tmp_path, b"", "x.progress")
    words = ["agent", "progress", "--dir", str(tmp_path)]
    assert execute([*words, "--interval", "1 ms"]) == 0
    text = capsys.readouterr().out
    assert ["4711", "3", str(os.getpid()), str(os.geteuid()), "8.5", "0"] in [
        line.split() for line in text.splitlines()
    ]
    assert f"{tmp_path / 'x.progress'}: is not named JOB-RANK-PID.progress" in text
    assert execute([*words, "--interval", "0s", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["marks"], one["rate"]) for one in found["processes"]] == [(8.5, None)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--serve"], "--serve: needs --socket PATH"),
        (["--group", "x"], "--group: is for the server: --serve"),
        (["--socket", "s", "--dir", "."], "--dir: not together with --socket"),
        (["--socket", "absent"], "absent: the agent does not answer"),
        (["--interval", "1"], '--interval = "1"'),
    ],
)
def test_options_that_do_not_fit_are_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    assert execute(["agent", "progress", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_server_runs_until_it_is_ended(tmp_path: Path) -> None:
    put(tmp_path, page(8))
    path = tmp_path / "socket"
    words = ["agent", "progress", "--serve", "--socket", str(path), "--dir", str(tmp_path)]
    with subprocess.Popen([sys.executable, "-m", "fairlane", *words], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"fairlane: answers at {path}\n".encode()
        assert [one.marks for one in read(socket=path).processes] == [8]
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: process.poll() is not None, "the end of the server")
        assert (process.returncode, path.exists()) == (0, False)
