"""The agent killed at every step of a change, and its restart killed at every step: the state is repaired."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import agents
from fairlane.agent import status_of, steps_of


@pytest.mark.timeout(120)
def test_a_dry_run_is_repaired(tmp_path: Path) -> None:
    # Four lines of the journal and one file, killed before and after each.
    agents.check_killed(agents.killed(tmp_path, {"name": "dry_run"}, stride=2), 10)


@pytest.mark.timeout(120)
def test_opensm_is_repaired_and_has_read_what_the_file_has(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as backend:
        rows = agents.killed(tmp_path, backend, stride=4)
    # Four lines of the journal, the file and the one beside it, a signal.
    agents.check_killed(rows, 14)
    for row in rows:
        assert row["loaded"] == row["file"], row["kills"]
        assert row["state"] == "verified" or row["file"] == agents.POLICY


@pytest.mark.timeout(60)
def test_a_whole_agent_that_is_killed_while_opensm_is_silent_undoes_its_change(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as backend:
        table = "\n[backend]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in backend.items())
        file = agents.config_file(tmp_path, agents.CONFIG + table)
        (tmp_path / "deaf").touch()
        command = [sys.executable, "-m", "fairlane", "agent", "--config", str(file), "--apply", "--once"]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 25
        while not ((tmp_path / "agent.db").exists() and b"fairlane-job" in (tmp_path / "qos-policy.conf").read_bytes()):
            assert time.monotonic() < deadline
            assert first.poll() is None
            time.sleep(0.02)
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert [entry.state for entry in status_of(tmp_path / "agent.db").decisions] == ["writing"]
        # It still does not answer: the old file is back, and the change stays to be undone.
        agents.slurm_has(tmp_path, [])
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode == 2
        assert "OpenSM does not answer" in second.stderr
        assert (tmp_path / "qos-policy.conf").read_text() == agents.POLICY
        (tmp_path / "deaf").unlink()
        third = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (third.returncode, third.stderr) == (0, "")
        assert "decision 1 was interrupted: undone" in third.stdout
    steps = [state for _, state, _ in steps_of(tmp_path / "agent.db", 1)]
    assert steps[:3] == ["planned", "writing", "undoing"]
    assert steps[-1] == "undone"
    assert (tmp_path / "loaded.conf").read_text() == agents.POLICY
