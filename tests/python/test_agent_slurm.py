"""What the agent hears of Slurm: squeue's JSON of several versions, and events over the socket."""

import grp
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slurm
from fairlane.cli.main import execute
from fairlane.cluster.agent.jobs import Listener, from_environment, notify, read_event, read_jobs, running
from fairlane.cluster.agent.system import AgentError
from fairlane.core.errors import ScenarioError
from fairlane.inputs.hosts import SlurmJob
from fairlane.inputs.slurm_jobs import read_job_list
from possible import no_slurm
from waiting import FOREVER, HANG, HANG_S, wait_for

COMMON = {"name": "lammps", "account": "phys", "partition": "all", "user_name": "ada"}
JOB = SlurmJob("7", ("n1", "n2"), "lammps", "phys", "all", "ada")
SHAPES: dict[str, dict[str, Any]] = {
    "22.05": {"job_id": 7, "job_state": "RUNNING", "nodes": "n[1-2]", "job_resources": {"nodes": "n[1-2]"}},
    "22.05, nodes in the resources": {"job_id": 7, "job_state": "RUNNING", "job_resources": {"nodes": "n[1-2]"}},
    "23.11": {"job_id": 7, "job_state": ["RUNNING"], "nodes": "n[1-2]", "job_resources": {}},
    "24.05": {"job_id": 7, "job_state": ["RUNNING"], "nodes": "", "job_resources": {"nodes": {"list": "n[1-2]"}}},
    "a number in a table": {"job_id": {"set": True, "number": 7}, "job_state": ["RUNNING"], "nodes": "n[1-2]"},
    "in its prolog": {"job_id": 7, "job_state": ["RUNNING", "CONFIGURING"], "nodes": "n1,n2"},
}
ABSENT: list[dict[str, Any]] = [
    {"job_id": 8, "job_state": "PENDING", "nodes": ""},
    {"job_id": 9, "job_state": ["COMPLETING"], "nodes": "n3"},
    {"job_id": 10, "job_state": ["RUNNING", "COMPLETING"], "nodes": "n3"},
    {"job_id": 11, "job_state": "COMPLETED", "nodes": "n3"},
    {"job_id": 12, "job_state": ["PENDING"], "nodes": None, "job_resources": None},
]


def printing(folder: Path, text: str, code: int = 0) -> list[str]:
    """A command that prints a text."""
    (folder / "out").write_text(text)
    script = f"import sys; sys.stdout.write(open({str(folder / 'out')!r}).read()); sys.exit({code})"
    return [sys.executable, "-c", script]


@pytest.mark.parametrize("version", SHAPES)
def test_running_jobs_are_those_with_nodes(version: str, tmp_path: Path) -> None:
    jobs = [*ABSENT, {**COMMON, **SHAPES[version]}]
    found = running(printing(tmp_path, json.dumps({"jobs": jobs, "errors": [], "meta": {}})), 10)
    assert found == {"7": JOB}


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("slurm_load_jobs error: Unable to contact slurm controller", 1, "ended with code 1: slurm_load_jobs error"),
        ("JOBID PARTITION", 0, "printed no JSON"),
        ("{}", 0, "without a list `jobs`"),
        ('{"jobs": [], "errors": [{"error": "Unable to contact", "errno": 1}]}', 0, "Slurm reports Unable to contact"),
        ('{"jobs": [], "errors": [{"description": "no controller"}]}', 0, "Slurm reports no controller"),
        ('{"jobs": [{"job_state": "RUNNING"}], "errors": []}', 0, "without `job_id`"),
        ('{"jobs": [{"job_id": 1, "job_state": "RUNNING", "nodes": "n[1"}]}', 0, "no list of hosts"),
        ("[" * 10_000, 0, "nested"),
    ],
)
def test_a_slurm_that_does_not_answer_as_expected_is_an_error(text: str, code: int, words: str, tmp_path: Path) -> None:
    with pytest.raises(AgentError) as raised:
        running(printing(tmp_path, text, code), 10)
    assert words in str(raised.value)
    assert sys.executable in str(raised.value) or "squeue" in str(raised.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@given(
    key=st.sampled_from(["job_id", "job_state", "nodes", "job_resources", "name", "account", "jobs", "errors"]),
    value=JSON,
)
def test_whatever_a_key_holds_jobs_or_an_error_are_found(key: str, value: Any) -> None:
    job = {**COMMON, **SHAPES["24.05"], "nodes": "n[1-2]"}
    whole: dict[str, Any] = {"jobs": [job], "errors": []}
    if key in whole:
        whole[key] = value
    else:
        job[key] = value
    try:
        found = read_jobs(json.dumps(whole))
    except AgentError:
        return
    assert all(one.nodes and number == one.id for number, one in found.items())


@given(value=JSON, key=st.sampled_from(["event", "job", "nodes", "name"]))
def test_whatever_an_event_holds_it_is_read_or_refused(key: str, value: Any) -> None:
    event = {"event": "begin", "job": "7", "nodes": "n[1-2]", "name": "x", key: value}
    try:
        found = read_event(json.dumps(event).encode())
    except ValueError:
        return
    assert found.job.nodes


def test_a_slurm_that_hangs_or_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"no answer within 0.2 s"):
        running(FOREVER, 0.2)
    with pytest.raises(AgentError, match="cannot be started: No such file"):
        running([str(tmp_path / "squeue")], HANG_S)


def test_only_the_owner_may_write_to_the_socket(tmp_path: Path) -> None:
    path = tmp_path / "agent.socket"
    before = os.umask(0)
    try:
        with Listener(path):
            mode = path.stat().st_mode
            assert stat.S_ISSOCK(mode)
            assert stat.S_IMODE(mode) == 0o600
        assert os.umask(0) == 0, "the mask of the process is as it was"
    finally:
        os.umask(before)
    assert not path.exists()


def test_a_group_may_write_to_the_socket_too(tmp_path: Path) -> None:
    path = tmp_path / "agent.socket"
    own = grp.getgrgid(os.getgid()).gr_name
    with Listener(path, own):
        found = path.stat()
        assert stat.S_IMODE(found.st_mode) == 0o660
        assert found.st_gid == os.getgid()
    with (
        pytest.raises(AgentError, match=r'slurm\.socket_group = "nobody-has-this": .* no such group'),
        Listener(path, "nobody-has-this"),
    ):
        pass
    assert not path.exists()


def test_events_arrive_in_order_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.socket"
    with Listener(path) as listener:
        environment = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_NAME": "lammps"}
        assert from_environment("begin", environment | {"SLURM_JOB_ACCOUNT": "(null)"})["account"] == ""
        environment |= {"SLURM_JOB_ACCOUNT": "phys", "SLURM_JOB_PARTITION": "all", "SLURM_JOB_USER": "ada"}
        notify(path, from_environment("begin", environment))
        for wrong, words in (
            ({"event": "begins", "job": "7"}, '"event"'),
            ({"event": "begin", "job": "7"}, '"nodes"'),
            ({"event": "begin", "job": "x", "nodes": "n1"}, '"job"'),
            ({"event": "begin", "job": "7", "nodes": "n[1"}, "no list of hosts"),
        ):
            with pytest.raises(AgentError, match="refuses the event") as raised:
                notify(path, wrong)
            assert words in str(raised.value)
        notify(path, {"event": "end", "job": 7})
        first, second = listener.events.get(timeout=HANG_S), listener.events.get(timeout=HANG_S)
        assert (first.what, first.job) == ("begin", JOB)
        assert (second.what, second.job.id) == ("end", "7")
        assert listener.events.empty()


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"null", b'{"event": "end", "job": "1' + b"0" * 5000 + b'"}'])
def test_what_is_no_event_is_a_value_error(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_event(line)


def test_a_socket_that_was_left_is_replaced_and_another_file_is_not(tmp_path: Path) -> None:
    path = tmp_path / "agent.socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with Listener(path):
        notify(path, {"event": "end", "job": 1})
    path.write_text("precious")
    with pytest.raises(AgentError, match="is not a socket"), Listener(path):
        pass
    assert path.read_text() == "precious"
    with pytest.raises(AgentError, match="cannot be made"), Listener(tmp_path / "no" / "agent.socket"):
        pass


def test_a_prolog_is_not_held_up_by_a_missing_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n[1-2]")
    arguments = ["agent", "notify", "begin", "--socket", str(tmp_path / "agent.socket")]
    assert execute(arguments) == 0
    assert "the agent does not answer" in capsys.readouterr().err
    assert execute([*arguments, "--strict"]) == 2
    capsys.readouterr()
    with Listener(tmp_path / "agent.socket") as listener:
        assert execute([*arguments, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["sent"] is True
        assert listener.events.get(timeout=HANG_S).job.nodes == ("n1", "n2")
    monkeypatch.delenv("SLURM_JOB_ID")
    assert execute(arguments) == 2
    assert "SLURM_JOB_ID" in capsys.readouterr().err
    with pytest.raises(ScenarioError, match="SLURM_JOB_ID"):
        from_environment("end", {"SLURM_JOB_ID": "7; rm"})


@pytest.mark.live("cluster/agent", "inputs", absent=no_slurm)
def test_a_real_slurm_reports_jobs_by_prolog_epilog_and_squeue(tmp_path: Path) -> None:
    folder, path, started = tmp_path / "slurm", tmp_path / "agent.socket", tmp_path / "started"
    folder.mkdir()
    for what in ("begin", "end"):
        script = tmp_path / what
        paths = os.environ.get("PYTHONPATH", "")
        command = f"{sys.executable} -m fairlane agent notify {what} --strict --wait '{HANG}' --socket {path}"
        script.write_text(f"#!/bin/sh\nPYTHONPATH={paths} exec {command} > {script}.out 2>&1\n")
        script.chmod(0o755)
    more = f"PrologSlurmctld={tmp_path / 'begin'}\nEpilogSlurmctld={tmp_path / 'end'}"
    with Listener(path) as listener, slurm.slurm(folder, 2, more) as environment:
        squeue = ["env", f"SLURM_CONF={environment['SLURM_CONF']}", "squeue", "--json"]
        assert running(squeue, HANG_S) == {}
        submit = [
            "sbatch",
            "--parsable",
            "-N2",
            "-J",
            "solver",
            "-o",
            "/dev/null",
            "--wrap",
            f"touch {started}; sleep infinity",
        ]
        number = subprocess.run(submit, env=environment, check=True, capture_output=True, text=True).stdout.strip()
        begun = listener.events.get(timeout=HANG_S)
        assert (begun.what, begun.job.id, begun.job.nodes) == ("begin", number, ("n1", "n2"))
        assert (begun.job.name, begun.job.partition) == ("solver", "all")
        found = running(squeue, HANG_S)[number]
        assert (found.nodes, found.name, found.partition) == (begun.job.nodes, begun.job.name, begun.job.partition)
        assert found == begun.job, "the same job is no news"
        wait_for(started.exists, started)  # a job that is cancelled before its processes run may take long to end
        for options in (["--json"], [], ["-h", "-o", "%i %N"]):
            printed = subprocess.run([*squeue[:-1], *options], check=True, capture_output=True, text=True).stdout
            (tmp_path / "jobs").write_text(printed)
            (listed,) = read_job_list(tmp_path / "jobs").jobs
            assert (listed.id, listed.nodes) == (number, found.nodes)
        subprocess.run(["scancel", number], env=environment, check=True)
        ended = listener.events.get(timeout=HANG_S)
        assert (ended.what, ended.job.id) == ("end", number)
        assert number not in running(squeue, HANG_S)
    conf = Path(environment["SLURM_CONF"])
    conf.write_text(conf.read_text().replace("MessageTimeout=100", "MessageTimeout=2"))  # how long squeue asks for it
    with pytest.raises(AgentError, match="squeue --json: "):
        running(squeue, HANG_S)


def test_the_socket_of_an_agent_that_runs_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "agent.socket"
    with Listener(path) as listener:
        with pytest.raises(AgentError, match="another agent has this socket"), Listener(path):
            pass
        notify(path, {"event": "end", "job": "7"})
        assert listener.events.get(timeout=HANG_S).job.id == "7"
    assert not path.exists()


def test_names_that_users_give_their_jobs_reach_no_terminal(tmp_path: Path) -> None:
    job = {"job_id": 7, "name": "a\x1b[31m\ud800\n", "job_state": "RUNNING", "nodes": "n1"}
    assert read_jobs(json.dumps({"jobs": [job]}))["7"].name == "a\ufffd[31m\ufffd\ufffd"
    event = {"event": "begin", "job": "7", "nodes": "n1", "name": "a\x1b\udcff"}
    assert read_event(json.dumps(event).encode()).job.name == "a\ufffd\ufffd"
    environment = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n1", "SLURM_JOB_NAME": "a\udcff"}
    assert from_environment("begin", environment)["name"] == "a\ufffd"
    more = os.environ | environment
    command = [
        sys.executable,
        "-m",
        "fairlane",
        "agent",
        "notify",
        "begin",
        "--socket",
        str(tmp_path / "none"),
        "--json",
    ]
    done = subprocess.run(command, env=more, capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["name"]) == (0, "a\ufffd")
