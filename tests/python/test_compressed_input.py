"""Compressed and nested input is read within stated limits, and what is damaged is refused by name."""

import errno
import gzip
import io
import os
import socket
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from fairlane.cli.command import ExitCode
from fairlane.cli.main import execute
from fairlane.core.errors import ResultsError, ScenarioError, writing
from fairlane.inputs import files
from fairlane.inputs.document import Document
from fairlane.learn.scheduler.log import LoggedJob, read_log
from fairlane.model.workload import trace
from packing import zstd
from waiting import HANG_S, LOOP_S

REPRODUCERS = Path(__file__).parents[1] / "data" / "reproducers"
JOB = "1 0 -1 60 4 -1 -1 4 120 -1 1 1 1 -1 1 -1 -1 -1\n"


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _archive(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with (
        zstd.open(path, "wb") as plain,
        tarfile.open(fileobj=plain, mode="w|") as tar,
    ):
        for member, data in members:
            tar.addfile(member, io.BytesIO(data))
    return path


def _member(name: str, data: bytes = b"") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    return member, data


def _refused(archive: Path, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["trace", "describe", str(archive)]) == ExitCode.WRONG_INPUT
    told = capsys.readouterr().err
    assert str(archive) in told
    assert words in told


def test_an_archive_of_zeros_does_not_fill_the_cache(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bomb = _archive(tmp_path / "bomb.tar.zst", _member("a-0000.bin", bytes(files.FREE + (1 << 20))))
    assert bomb.stat().st_size < 100_000
    _refused(bomb, "expands to more than 64 MiB, 200 times its size", capsys)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_an_archive_with_a_path_of_3000_levels_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    _refused(REPRODUCERS / "tar-deep" / "longname.tar.zst", "a path with more than 32 levels", capsys)


def test_links_devices_and_endless_headers_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    link, _ = _member("a-0000.bin")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    _refused(_archive(tmp_path / "link.tar.zst", (link, b"")), "neither a plain file nor a folder", capsys)
    long, data = _member("x" * 4000)
    monkeypatch.setattr(trace, "MOST_HEADER", 2048)
    _refused(_archive(tmp_path / "long.tar.zst", (long, data)), "a header that is longer than any real one", capsys)
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(trace, "MOST_MEMBERS", 3)
    many = _archive(tmp_path / "many.tar.zst", *[_member(f"f{number}") for number in range(5)])
    _refused(many, "more than 3 members", capsys)


def test_a_damaged_gzip_log_is_refused_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    log = REPRODUCERS / "swf-x-1003" / "l.swf"
    assert execute(["schedule", str(log), "--set", "sides=[4,4,8]"]) == ExitCode.WRONG_INPUT
    told = capsys.readouterr().err
    assert f"{log}: cannot be read: is damaged" in told


def test_a_gzip_log_of_zeros_takes_little_time_and_no_memory(tmp_path: Path) -> None:
    log = tmp_path / "bomb.swf.gz"
    with gzip.open(log, "wb", compresslevel=1) as out:
        for _ in range(80):
            out.write(bytes(1 << 20))
    with pytest.raises(ScenarioError, match="is longer than 65536 characters"):
        read_log(log)
    with gzip.open(log, "wb", compresslevel=1) as out:
        out.write((JOB * 1000).encode())
    assert [job.number for job in read_log(log).jobs] == [1] * 1000


def test_a_log_expands_to_the_limit_and_no_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log.swf.gz"
    log.write_bytes(gzip.compress(b"; comment\n" * 100_000 + JOB.encode()))
    assert read_log(log).jobs[0] == LoggedJob(1, 0, 60, 4, 120, 100_001)
    monkeypatch.setattr(files, "FREE", 1000)
    with pytest.raises(ScenarioError, match="expands to more than 0 MiB, 200 times its size"):
        read_log(log)


def test_lines_that_are_no_jobs_do_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.learn.scheduler.log.MAX_PROBLEMS", 50)
    log = tmp_path / "log.swf"
    log.write_text("not a job\n" * 100)
    with pytest.raises(ScenarioError, match="50 lines cannot be read: not a job log"):
        read_log(log)
    log.write_text(JOB.replace("60", "1e300"))
    with pytest.raises(ScenarioError, match=r"field 4 = .*1e300.*out of range; allowed: up to 10000"):
        read_log(log)


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 3000 + "]" * 3000, f"[{'.'.join('a' * 3000)}]\nb = 1", "a=" + "{b=" * 99]
)
def test_toml_nested_3000_deep_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "deep.toml"
    file.write_text(text)
    assert execute(["check", str(file)]) == ExitCode.WRONG_INPUT
    assert execute(["study", str(file)]) == ExitCode.WRONG_INPUT
    value = "[" * 3000 + "]" * 3000
    assert execute(["check", "examples/quickstart.toml", "--set", f"name={value}"]) == ExitCode.WRONG_INPUT


def test_a_value_over_thousands_of_lines_is_read_in_time(tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    file.write_text("a = [\n" + "1234567890,\n" * 40_000 + "]\nb = 2\n")
    begun = time.process_time()
    assert Document.read(file).data["b"] == 2
    assert time.process_time() - begun < LOOP_S


def test_an_output_folder_with_300_letters_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    folder = "x" * 300
    for command in ("run", "control"):
        options = ["--controller", "none"] if command == "control" else []
        assert execute([command, "examples/quickstart.toml", *options, "--out", folder]) == ExitCode.WRONG_INPUT
        assert "File name too long" in capsys.readouterr().err


def test_control_leaves_a_full_folder_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    command = ["control", "examples/quickstart.toml", "--controller", "none", "--out", str(tmp_path)]
    assert execute(command) == ExitCode.WRONG_INPUT
    assert "not an empty directory" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_full_disk_has_its_own_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "x"))

    monkeypatch.setattr(Path, "write_text", full)
    run = ["run", "examples/quickstart.toml", "--duration", "50 us", "--no-isolated", "--out", str(tmp_path / "out")]
    assert execute(run) == ExitCode.DISK_FULL
    told = capsys.readouterr().err
    assert "No space left on device" in told
    assert "the disk is full" in told
    assert not (tmp_path / "out").exists()
    with pytest.raises(ResultsError), writing(tmp_path):
        full()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_device_is_told_as_such(tmp_path: Path) -> None:
    picture = tmp_path / "fabric.svg"
    picture.symlink_to("/dev/full")
    command = ["fabric", "draw", "--topology", "fat_tree", "--set", "hosts=4", "--set", "levels=1"]
    assert execute([*command, "-o", str(picture)]) == ExitCode.DISK_FULL


def test_a_dead_dask_port_is_reported_without_waiting_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for wait, longer_than_a_test in (("FIRST_WAIT_S", f"{2 * HANG_S} s"), ("PORT_WAIT_S", 2 * HANG_S)):
        monkeypatch.setattr(f"fairlane.study.tasks.cluster.{wait}", longer_than_a_test)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    study = ["study", "examples/studies/service-levels.toml", "--dask", address, "--out", str(tmp_path / "out")]
    assert execute(study) == ExitCode.WRONG_INPUT
    assert execute(["reproduce", "wilke2020", "--quick", "--dask", address, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert f"connecting to the Dask scheduler at {address}" in told
    assert f'--dask = "{address}": no scheduler answers: Connection refused' in told
    assert not (tmp_path / "out").exists()


def test_place_prints_slurm_lists_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert execute(["place", "examples/quickstart.toml", "--slurm"]) == ExitCode.DONE
    lines = dict(line.split(" ") for line in capsys.readouterr().out.splitlines())
    assert execute(["place", "examples/quickstart.toml", "--slurm", "--json"]) == ExitCode.DONE
    assert json.loads(capsys.readouterr().out) == lines


def test_a_reader_that_has_enough_is_no_traceback() -> None:
    command = f"{sys.executable} -m fairlane list | head -1"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("damage", ["change", "remove", "add", "sums"])
def test_an_unpacked_trace_that_has_changed_is_unpacked_again(tmp_path: Path, damage: str) -> None:
    archive = _archive(tmp_path / "t.tar.zst", _member("d/a-0000.bin", b"first"), _member("d/a-0001.bin", b"second"))
    folder = trace.unpack(archive)
    file = folder / "a-0000.bin"
    if damage == "change":
        file.write_bytes(b"fir5t")
    elif damage == "remove":
        file.unlink()
    elif damage == "add":
        (folder / "a-0002.bin").write_bytes(b"third")
    else:
        next((tmp_path / "cache").rglob("sha256.json")).write_text("[" * 3000)
    assert trace.unpack(archive) == folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        "a-0000.bin": b"first",
        "a-0001.bin": b"second",
    }
    assert [path.name for path in (tmp_path / "cache" / "fairlane" / "traces").iterdir()] == [folder.parents[1].name]


@pytest.mark.parametrize(
    ("key", "value"),
    [("size", "1e308"), ("size", "-1"), ("mtime", "1e308"), ("GNU.sparse.map", "x"), ("path", "../x"), ("path", "/x")],
)
def test_headers_of_an_archive_that_make_no_sense_are_refused(
    key: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    member, data = _member("a-0000.bin", b"data")
    member.pax_headers = {key: value}
    archive = _archive(tmp_path / "t.tar.zst", (member, data))
    assert execute(["trace", "describe", str(archive)]) == ExitCode.WRONG_INPUT
    assert str(tmp_path) in capsys.readouterr().err
    assert all("files" in path.parts for path in tmp_path.rglob("x"))
    assert not Path("/x").exists()


def test_headers_about_headers_without_end_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    header = tarfile.TarInfo("x")
    header.type = tarfile.GNUTYPE_LONGNAME
    header.size = 1
    chain = (header.tobuf(tarfile.GNU_FORMAT) + b"x".ljust(tarfile.BLOCKSIZE, b"\0")) * 1000
    with zstd.open(tmp_path / "t.tar.zst", "wb") as plain:
        plain.write(chain)
    _refused(tmp_path / "t.tar.zst", "cannot be unpacked", capsys)
