"""OTF2 archives are read by a process with limits before this one reads anything of them."""

import sys
from pathlib import Path

import pytest

from fairlane import RunError, Scenario, ScenarioError, Simulation
from fairlane.cli.command import ExitCode
from fairlane.cli.main import execute
from fairlane.model.workload import recorded
from fairlane.model.workload.trace import Trace, read_trace

DATA = Path(__file__).parents[1] / "data"
WHOLE = DATA / "traces" / "stencil4d-32.otf2"
HANG = DATA / "reproducers" / "otf2-hang"


def test_an_archive_that_makes_the_library_loop_is_refused_after_others(capsys: pytest.CaptureFixture[str]) -> None:
    """In the process in which the library has read other archives before, it loops forever on this one."""
    for _ in range(2):
        assert execute(["trace", "describe", str(WHOLE)]) == ExitCode.DONE
        assert execute(["trace", "describe", str(HANG)]) == ExitCode.WRONG_INPUT
        assert "traces.otf2: reading the definitions: Invalid or inconsistent record data" in capsys.readouterr().err
    jobs = [{"trace": {"path": str(WHOLE)}}, {"trace": {"path": str(HANG)}}]
    with pytest.raises(ScenarioError, match="reading the definitions"):
        Scenario(fabric={"topology": "fat_tree", "hosts": 64, "levels": 1}, jobs=jobs).resolve()


@pytest.mark.parametrize(
    ("limit", "value", "words"),
    [
        ("HANG_S", 0.001 - recorded.CPU_S, "reading it takes more than 0.001 s"),
        ("MEMORY", 1 << 20, "the OTF2 library fails on it within 1 MiB of memory"),
    ],
)
def test_limits_end_the_process_with_a_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: str, value: float, words: str
) -> None:
    import shutil

    monkeypatch.setattr(recorded, limit, value)
    copy = Path(shutil.copytree(WHOLE, tmp_path / "copy"))  # descriptions are kept by file
    with pytest.raises(ScenarioError, match=words) as raised:
        read_trace(copy).describe()
    assert str(copy) in str(raised.value)


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("kill -SEGV $$", "within 1024 MiB of memory (signal SIGSEGV)"),
        ("kill -ABRT $$", "within 1024 MiB of memory (signal SIGABRT)"),
        ("exit 3", "within 1024 MiB of memory (exit code 3)"),
        ("echo malloc failed >&2; exit 3", "within 1024 MiB of memory (malloc failed)"),
        ("kill -XCPU $$", "takes more than 10 s of processor time"),
        ("kill -KILL $$", "takes more than 10 s of processor time"),
    ],
)
def test_a_process_that_crashes_is_a_message(
    end: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child"
    child.write_text(f"#!/bin/sh\n{end}\n")
    child.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(child))
    with pytest.raises(RunError) as raised:
        recorded.describe_apart(str(WHOLE), "{}", size=0)
    assert words in str(raised.value)


def test_what_the_other_process_has_read_is_replayed() -> None:
    trace = Trace(path=WHOLE)
    assert trace.describe()["ranks"] == 32
    simulation = Simulation(
        Scenario(fabric={"topology": "fat_tree", "hosts": 64, "levels": 1}, jobs=[{"trace": trace}])
    )
    simulation.run_for("1 ms")
    assert simulation.packet_hops > 0
