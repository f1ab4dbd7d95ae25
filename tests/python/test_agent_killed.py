"""The agent killed at every step of a change, and its restart killed at every step: the state is repaired."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import agents
import steered_jobs
from fairlane.cluster.agent.agent import Agent
from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.jobs import notify
from fairlane.cluster.agent.journal import Journal, status_of, steps_of
from fairlane.cluster.agent.system import BackendError
from waiting import wait_for


def _file(folder: Path, backend: dict[str, Any], text: str = agents.CONFIG, jobs: Any = agents.BOTH) -> Path:
    """The configuration of an agent with this backend."""
    table = "\n[backend]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in backend.items())
    return agents.config_file(folder, text + table, jobs)


@pytest.mark.long("cluster/agent")
def test_a_dry_run_is_repaired(tmp_path: Path) -> None:
    # Four lines of the journal and one file, killed before and after each.
    agents.check_killed(agents.killed(tmp_path, {"name": "dry_run"}, stride=2), 10)


def test_opensm_is_repaired_and_has_read_what_the_file_has(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as backend:
        rows = agents.killed(tmp_path, backend, stride=4)
    # Four lines of the journal, the file and the one beside it, a signal.
    agents.check_killed(rows, 14)
    for row in rows:
        assert row["loaded"] == row["file"], row["kills"]
        assert row["state"] == "verified" or row["file"] == agents.POLICY


@pytest.mark.long("cluster/agent")
def test_a_whole_agent_that_is_killed_while_opensm_is_silent_undoes_its_change(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as backend:
        file = _file(tmp_path, backend)
        (tmp_path / "deaf").touch()
        command = [sys.executable, "-m", "fairlane", "agent", "--config", str(file), "--apply", "--once"]
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        policy = tmp_path / "qos-policy.conf"
        wait_for(lambda: b"fairlane-job" in policy.read_bytes(), "a job in the policy", first)
        first.send_signal(signal.SIGKILL)
        first.wait()
        assert [entry.state for entry in status_of(tmp_path / "agent.db").decisions] == ["writing"]
        # It still does not answer: the old file is back, and the change stays to be undone.
        _file(tmp_path, {**backend, "timeout": agents.IMPATIENT}, jobs=[])
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert second.returncode == 2
        assert "OpenSM does not answer" in second.stderr
        assert (tmp_path / "qos-policy.conf").read_text() == agents.POLICY
        (tmp_path / "deaf").unlink()
        _file(tmp_path, backend, jobs=[])
        third = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (third.returncode, third.stderr) == (0, "")
        assert "decision 1 was interrupted: undone" in third.stdout
    steps = [state for _, state, _ in steps_of(tmp_path / "agent.db", 1)]
    assert steps[:3] == ["planned", "writing", "undoing"]
    assert steps[-1] == "undone"
    assert (tmp_path / "loaded.conf").read_text() == agents.POLICY


@pytest.mark.long("cluster/agent")
def test_an_agent_hears_of_jobs_ends_on_sigterm_and_is_undone(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as backend:
        file = _file(tmp_path, backend, jobs=[agents.WRITER])
        fairlane = [sys.executable, "-m", "fairlane", "agent"]
        running = subprocess.Popen([*fairlane, "--config", str(file), "--apply"], stdout=subprocess.PIPE, text=True)
        try:
            assert running.stdout is not None
            assert running.stdout.readline().startswith("decision 1: no change. ")
            assert status_of(tmp_path / "agent.db").runs
            notify(tmp_path / "agent.socket", {"event": "begin", "job": 12, "name": "solver", "nodes": "n[1,5,9,13]"})
            assert running.stdout.readline().startswith("decision 2: job 12 level 1. ")
            assert "port-name: host0/P1, host4/P1, host8/P1, host12/P1" in (tmp_path / "loaded.conf").read_text()
            running.send_signal(signal.SIGTERM)
            assert running.wait() == 0
        finally:
            running.kill()
            running.wait()
            if running.stdout is not None:
                running.stdout.close()
        assert not (tmp_path / "agent.socket").exists()
        assert [one.job for one in status_of(tmp_path / "agent.db").settings] == ["12"]
        undone = subprocess.run([*fairlane, "undo", "--config", str(file)], capture_output=True, text=True, check=True)
        assert "no job has a level. withdrawn by the operator" in undone.stdout
        assert (tmp_path / "loaded.conf").read_text() == agents.POLICY
        again = subprocess.run([*fairlane, "undo", "--config", str(file)], capture_output=True, text=True, check=True)
        assert again.stdout == "no setting is in force\n"


def test_what_opensm_does_not_take_is_undone_and_tried_again(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as backend, Journal(tmp_path / "agent.db") as journal:
        text = agents.CONFIG.replace("max_loss = 0.5", "max_loss = 0.5\nchanges_per_minute = 60")
        impatient = AgentConfig.from_file(_file(tmp_path, {**backend, "timeout": agents.IMPATIENT}, text))
        config = AgentConfig.from_file(_file(tmp_path, backend, text))
        agent = Agent(config, journal, SimpleQueue(), apply=True, report=str)
        agent.start()
        # OpenSM refuses whatever is new, and takes what was there before.
        (tmp_path / "refuses").touch()
        with pytest.raises(BackendError, match="cannot be undone yet"):
            agent.run(once=True)
        (tmp_path / "refuses").unlink()
        agent._poll_again()
        agent.run(once=True)
        assert [entry.kind for entry in status_of(config.journal).decisions] == ["keep", "change", "change"]
        assert [one.job for one in journal.in_force("opensm")] == ["12"]
        agents.slurm_has(tmp_path, [agents.WRITER])
        (tmp_path / "deaf").touch()
        other = Agent(impatient, journal, SimpleQueue(), apply=True, report=str)
        other.start()
        with pytest.raises(BackendError, match="OpenSM does not answer"):
            other.run(once=True)
        (tmp_path / "deaf").unlink()
        agent._poll_again()
        agent.run(once=True)
        assert journal.in_force("opensm") == ()
        assert (tmp_path / "loaded.conf").read_text() == agents.POLICY
        states = [(entry.kind, entry.state) for entry in reversed(status_of(config.journal).decisions)]
    assert states[:2] == [("change", "undone"), ("change", "verified")]
    assert states[-3:] == [("end", "undone"), ("end", "verified"), ("keep", "kept")]


def _killed_controller(file: Path, how: str, stride: int) -> list[dict[str, Any]]:
    """Whatever step a controller is killed at, each change is complete or undone after a restart, and taken back."""
    rows = agents.reported("killed_controller.py", file, how, stride)
    for row in rows:
        assert set(row["states"]) <= {"verified", "undone"}, row
        assert row["in_force"] == row["journal"], row
        assert row["after"] == {}, row
    # Two periods have two changes: of each there are kills that undo it and kills that complete it.
    assert {state for row in rows for state in row["states"][:1]} == {"verified", "undone"}
    assert {state for row in rows for state in row["states"][1:2]} == {"verified", "undone"}
    assert len({json.dumps(row["in_force"]) for row in rows}) >= 2, "levels in force and none"
    assert len({row["kills"][0] for row in rows}) >= 24, "ten of each change, two of each cost, two of squeue"
    assert rows[-1]["ended"]
    return rows


def _of_controller(folder: Path, text: str) -> Path:
    reads = f'"cat", {json.dumps(str(folder / "jobs.json"))}'
    return agents.config_file(folder, text.replace('"@python", "squeue.py"', reads), steered_jobs.BOTH)


@pytest.mark.long("cluster/agent")
def test_a_controller_in_a_dry_run_is_repaired_and_taken_back(tmp_path: Path) -> None:
    _killed_controller(_of_controller(tmp_path, steered_jobs.CONFIG), "dry", 9)


@pytest.mark.long("cluster/agent")
def test_a_controller_that_writes_to_opensm_is_repaired_and_taken_back(tmp_path: Path) -> None:
    with agents.opensm(tmp_path) as backend:
        conf = tmp_path / "opensm.conf"
        policy = tmp_path / "qos-policy.conf"
        before = f"qos TRUE\nqos_policy_file {policy}\nmax_op_vls 3\nqos_sl2vl 0,1,2,3\nqos_vlarb_low 0:1,1:2,2:3\n"
        conf.write_text(before)
        rows = {**backend, "conf": str(conf), "weights": True}
        table = "\n[backend]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items())
        text = steered_jobs.CONFIG.replace("[fabric]", "qos = { sl2vl = [0, 1, 2, 3] }\n[fabric]")
        text = text.replace("threshold = 1.0", 'levels = "static", step = 2')
        for row in _killed_controller(_of_controller(tmp_path, text + table), "apply", 15):
            assert row["files"] == {
                "loaded.conf": agents.POLICY,
                "opensm.conf": before,
                "qos-policy.conf": agents.POLICY,
            }, row["kills"]
