"""The agent as a whole, without a network: configuration, twin, journal, dry runs, and what it prints."""

import json
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import agents
from fairlane.cli.main import execute
from fairlane.cluster.agent.agent import Agent
from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.decision import Candidate, decide
from fairlane.cluster.agent.jobs import Event, Setting, running
from fairlane.cluster.agent.journal import Journal, status_of
from fairlane.cluster.agent.system import AgentError
from fairlane.cluster.agent.twin import Twin
from fairlane.core.errors import ScenarioError
from fairlane.inputs.hosts import SlurmJob
from fairlane.model.fabric.wiring import Cable, Wiring
from waiting import HANG

SOLVER = Setting("12", 1, ("host0", "host4", "host8", "host12"))


class Running:
    """An agent that is driven by hand."""

    def __init__(self, folder: Path, text: str = agents.CONFIG, jobs: Any = (agents.SOLVER, agents.WRITER)) -> None:
        self.config = agents.config(folder, text, jobs)
        self.lines: list[str] = []
        self.events: SimpleQueue[Event] = SimpleQueue()
        self.journal = Journal(self.config.journal)
        self.agent = Agent(self.config, self.journal, self.events, report=self.lines.append)

    def settle(self) -> None:
        """Lets it decide until nothing is left to do."""
        self.agent.run(once=True)


@contextmanager
def settled(folder: Path, text: str = agents.CONFIG, jobs: Any = (agents.SOLVER, agents.WRITER)) -> Iterator[Running]:
    """An agent that has started and decided."""
    one = Running(folder, text, jobs)
    with one.journal:
        one.agent.start()
        one.settle()
        yield one


def twin_of(config: AgentConfig) -> tuple[Twin, list[Any]]:
    """A twin of all jobs that run, and these."""
    twin = Twin(config)
    modelled, _ = twin.model(running(config.slurm.squeue, 10))
    return twin, modelled


def other_writer(what: str) -> str:
    """The configuration with something else in place of the workload of the jobs that write."""
    begin, name, end = agents.CONFIG.partition('[[profile]]\nname = "io*"\n')
    return begin + name + what + "\n" + end.partition("\n")[2]


def test_it_gives_a_level_and_takes_it_back_when_the_job_ends(tmp_path: Path) -> None:
    with settled(tmp_path) as one:
        assert one.journal.in_force("dry_run") == (SOLVER,)
        first = one.journal.entry(1)
        assert (first.kind, first.state, first.jobs) == ("change", "verified", ("12", "13"))
        assert first.gain is not None
        assert first.gain.low is not None
        assert first.gain.low > 0
        assert "best of 4 candidates" in first.reason
        assert set(first.effects) == {"12", "13"}
        kept = status_of(one.config.journal).decisions[0]
        assert (kept.kind, kept.state, kept.settings) == ("keep", "kept", (SOLVER,))
        # Nothing is decided twice for the same jobs and settings.
        assert one.agent.consider() is None
        one.events.put(Event("end", SlurmJob("12", ())))
        one.settle()
        last = status_of(one.config.journal)
        assert last.settings == ()
        assert [entry.kind for entry in last.decisions if entry.state == "verified"] == ["end", "change"]
        assert "1 job ended: 12" in next(entry.reason for entry in last.decisions if entry.kind == "end")
        assert set(last.jobs) == {"13"}
    assert any(line.startswith("decision 1: dry run, would set job 12 level 1. ") for line in one.lines)


def test_the_twin_sees_who_gains_and_who_pays(tmp_path: Path) -> None:
    config = agents.config(tmp_path)
    twin = Twin(config)
    modelled, left_out = twin.model(running(config.slurm.squeue, 10))
    assert left_out == {}
    twin.update(modelled, ())
    candidates = twin.candidates()
    assert candidates == [Candidate(job, level) for job in ("12", "13") for level in (1, 2)]
    found = {one.candidate: one for one in twin.predict(candidates)}
    # Level 1 has four times the weight of the others, so its job gains what the other loses.
    for job, other in (("12", "13"), ("13", "12")):
        effects = found[Candidate(job, 1)].effects
        assert (effects[job].low or 0) > 0.1
        assert (effects[other].high or 0) < -0.1
    assert {one.candidate: one.gain for one in twin.predict(candidates)} == {
        candidate: one.gain for candidate, one in found.items()
    }, "forks leave the twin as it was"
    # With the level in force, the way back is a candidate that loses what was gained.
    twin.update(modelled, (SOLVER,))
    assert Candidate("12", None) in twin.candidates()
    (back,) = twin.predict([Candidate("12", None)])
    assert (back.effects["12"].high or 0) < -0.1


def test_after_the_time_limit_no_candidate_is_tried(tmp_path: Path) -> None:
    config = agents.config(tmp_path)
    seconds = count()  # each look at the clock is a second later
    twin = Twin(config, lambda: float(next(seconds)))
    modelled, _ = twin.model(running(config.slurm.squeue, 10))
    with pytest.raises(AgentError, match=r"2 of 3 simulations warmed up within twin\.time_limit"):
        twin.update(modelled, (), 0.5)
    twin.update(modelled, (), 100)
    now, candidates = next(seconds), twin.candidates()
    found = twin.predict(candidates, now + 7)
    assert [one.candidate for one in found] == candidates[:2]
    assert [one.gain for one in found] == [one.gain for one in twin.predict(candidates[:2])]


def test_an_agent_that_has_no_time_says_so_and_changes_nothing(tmp_path: Path) -> None:
    with settled(tmp_path, text=agents.CONFIG.replace(f'time_limit = "{HANG}"', 'time_limit = "1 us"')) as one:
        assert one.journal.in_force("dry_run") == ()
        assert "no prediction: 1 of 3 simulations warmed up within twin.time_limit" in one.lines[-1]


def test_jobs_far_from_each_other_get_no_level(tmp_path: Path) -> None:
    apart = [{**agents.SOLVER, "nodes": "n[1-4]"}, {**agents.WRITER, "nodes": "n[5-8]"}]
    with settled(tmp_path, jobs=apart) as one:
        assert one.journal.in_force("dry_run") == ()
        assert "its interval is not above zero" in one.journal.entry(1).reason


OTHERS = {
    "no profile fits it": {"name": "other", "nodes": "n3"},
    'slurm.hosts = "gpu1": unknown host': {"name": "io", "nodes": "gpu1"},
    "shares host host10 with job 15": {"name": "io", "nodes": "n11"},
    "profile.ranks_per_host = 1: the trace of job 14 has 32 ranks, and its nodes hold 1": {
        "name": "traced",
        "nodes": "n3",
    },
    "profile.workload: has 1 rank in this job; allowed: at least 2 ranks": {"name": "exchange", "nodes": "n3"},
}
TRACED = Path(__file__).parents[1] / "data" / "traces" / "stencil4d-32.otf2"


@pytest.mark.parametrize("reason", OTHERS)
def test_one_job_that_cannot_be_simulated_holds_up_no_other(reason: str, tmp_path: Path) -> None:
    jobs = [agents.SOLVER, agents.WRITER, {"job_id": 14, "job_state": "RUNNING", **OTHERS[reason]}]
    if "job 15" in reason:
        jobs.append({"job_id": 15, "name": "io", "job_state": "RUNNING", "nodes": "n[11-12]"})
    kinds = {"traced": f'trace = "{TRACED}"', "exchange": 'workload = "ring"'}
    profiles = "".join(f'[[profile]]\nname = "{name}"\n{what}\n\n' for name, what in kinds.items())
    text = agents.CONFIG.replace("[policy]", f"{profiles}[policy]")
    with settled(tmp_path, text, jobs) as one:
        first, last = one.journal.entry(1), status_of(one.config.journal).decisions[0]
    assert (first.kind, first.settings) == ("change", (SOLVER,))
    assert set(first.effects) == {"12", "13"}
    for entry in (first, last):  # whoever reads a decision learns of which jobs it says nothing
        assert f"; not simulated, level unchanged: job 14 ({reason}" in entry.reason


def test_with_hold_a_job_that_cannot_be_simulated_holds_all(tmp_path: Path) -> None:
    jobs = [agents.SOLVER, agents.WRITER, {"job_id": 14, "name": "other", "job_state": "RUNNING", "nodes": "n3"}]
    with settled(tmp_path, agents.CONFIG.replace("max_loss = 0.5", 'max_loss = 0.5\nunmodelled = "hold"'), jobs) as one:
        assert one.journal.entry(1).kind == "keep"
        assert (
            "cannot simulate job 14 (no profile fits it), and policy.unmodelled is hold" in one.journal.entry(1).reason
        )


def test_jobs_that_share_a_host_get_no_level(tmp_path: Path) -> None:
    with settled(tmp_path, jobs=[agents.SOLVER, {**agents.WRITER, "nodes": "n[1,2]"}]) as one:
        entry = one.journal.entry(1)
    assert (entry.kind, entry.settings) == ("keep", ())
    assert "no job runs that can be simulated" in entry.reason
    assert "job 12 (shares host host0 with job 13: a level set for one would apply to both)" in entry.reason


def test_without_an_answer_of_slurm_all_stays_as_it_is(tmp_path: Path) -> None:
    with settled(tmp_path) as one:
        (tmp_path / "jobs.json").write_text("slurm is away")
        one.agent._poll_again()
        one.events.put(Event("end", SlurmJob("12", ())))
        one.settle()
        assert one.journal.in_force("dry_run") == (SOLVER,)
        assert "printed no JSON" in one.lines[-1]
        assert "decides nothing" in status_of(one.config.journal).doing
        agents.slurm_has(tmp_path, [agents.WRITER])
        one.agent._poll_again()
        one.settle()
        assert one.journal.in_force("dry_run") == ()
    (tmp_path / "jobs.json").write_text("slurm is away")
    with Journal(one.config.journal) as journal, pytest.raises(AgentError, match="printed no JSON"):
        Agent(one.config, journal, SimpleQueue()).start()


def test_changes_wait_for_their_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = agents.CONFIG.replace("max_loss = 0.5", "max_loss = 0.5\nchanges_per_minute = 1")
    with settled(tmp_path, text) as one:
        one.events.put(Event("end", SlurmJob("12", ())))
        one.agent._hear()
        (begin,) = one.journal.changes_since("dry_run", 0)
        monkeypatch.setattr(time, "time", lambda: begin + 20)
        assert one.agent.consider() == pytest.approx(40)
        assert one.journal.in_force("dry_run") == (SOLVER,)
        assert status_of(one.config.journal).doing == "waits with a change: 1 within the last minute, 1 allowed"
        monkeypatch.setattr(time, "time", lambda: begin + 61)
        one.settle()
        assert one.journal.in_force("dry_run") == ()


def test_a_clock_that_is_set_back_holds_changes_up_for_a_minute_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = agents.CONFIG.replace("max_loss = 0.5", "max_loss = 0.5\nchanges_per_minute = 1")
    with settled(tmp_path, text) as one:
        one.events.put(Event("end", SlurmJob("12", ())))
        one.agent._hear()
        now, elapsed = time.time() - 3600, time.monotonic()
        monkeypatch.setattr(time, "time", lambda: now)
        monkeypatch.setattr(time, "monotonic", lambda: elapsed)
        assert one.agent.consider() == 60
        monkeypatch.setattr(time, "time", lambda: now + 61)
        monkeypatch.setattr(time, "monotonic", lambda: elapsed + 61)
        assert one.agent.consider() == 0
        assert one.journal.in_force("dry_run") == ()


def test_what_somebody_else_has_changed_is_set_again(tmp_path: Path) -> None:
    with settled(tmp_path) as one:
        (tmp_path / "agent.db.dry-run.json").unlink()
        one.agent._poll_again()
        one.settle()
        repair = next(entry for entry in status_of(one.config.journal).decisions if entry.kind == "repair")
        assert repair.state == "verified"
        assert "set again" in repair.reason
        assert one.journal.in_force("dry_run") == (SOLVER,)
        assert json.loads((tmp_path / "agent.db.dry-run.json").read_text()) == [SOLVER.written()]


def test_a_journal_that_cannot_be_written_ends_the_agent_with_a_message(tmp_path: Path) -> None:
    file = tmp_path / "agent.db"
    journal = Journal(file)
    journal._data.execute("PRAGMA query_only = 1")
    with pytest.raises(AgentError, match=r"cannot be written: .*readonly"), journal:
        journal.decided("dry_run", "change", ["12"], (), (), "a test")
    with Journal(file) as journal:
        assert journal.unfinished("dry_run") == []


def test_one_agent_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = agents.config_file(tmp_path)
    with Journal(tmp_path / "agent.db") as journal:
        journal.doing("dry_run", "idle", start=True)
        assert status_of(tmp_path / "agent.db").runs
        with pytest.raises(AgentError, match="another agent has this journal open"):
            Journal(tmp_path / "agent.db")
        command = [sys.executable, "-m", "fairlane", "agent", "--config", str(file), "--once"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "another agent has this journal open" in done.stderr
    assert not status_of(tmp_path / "agent.db").runs
    assert stat.S_IMODE((tmp_path / "agent.db").stat().st_mode) == 0o600
    capsys.readouterr()


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("this is no database, and long enough to be read as one" * 20)
    with pytest.raises(AgentError, match="not a journal"):
        Journal(tmp_path / "text.db")
    with pytest.raises(AgentError, match="not a journal"):
        status_of(tmp_path / "text.db")
    with Journal(tmp_path / "later.db"):
        pass
    data = sqlite3.connect(tmp_path / "later.db")
    data.execute("PRAGMA user_version = 99")
    data.close()
    with pytest.raises(AgentError, match="version 99"):
        Journal(tmp_path / "later.db")
    with pytest.raises(AgentError, match="there is no journal"):
        status_of(tmp_path / "none.db")


def test_counters_make_a_load_that_suffers_and_slows_others(tmp_path: Path) -> None:
    rows = ["time_s,host,sent_bytes"]
    # 10 Gb/s are 1.25 GB/s: a fifth of it is 250 MB in a second.
    rows += [f"{at},host{host},{at * 250_000_000}" for at in (0, 1, 2) for host in (1, 5, 9, 13)]
    (tmp_path / "ports.csv").write_text("\n".join(rows) + "\n")
    config = agents.config(tmp_path, other_writer('counters = "ports.csv"'))
    twin, modelled = twin_of(config)
    assert twin._workload(modelled[1]) == {"name": "open_loop", "load": pytest.approx(0.2), "message_size": "65536 B"}
    twin.update(modelled, ())
    (found,) = twin.predict([Candidate("12", 1)])
    assert (found.effects["12"].low or 0) > 0
    assert (found.effects["13"].value) < 0.01
    assert decide([found], config.policy).reason
    for text, words in (
        ("time_s,host\n0,host1\n", "has no column sent_bytes"),
        ("time_s,host,sent_bytes\n0,host1,0\n", "has one sample only"),
        ("time_s,host,sent_bytes\n0,host1,9\n1,host1,2\n", "goes back"),
        ("time_s,host,sent_bytes\n0,host1,0\n1,host1,5\n", "unknown host in the counters"),
        ("\n".join(rows).replace("000000", "000000000"), "times what their links can carry"),
        ("\n".join(rows).replace("250000000", "0").replace("500000000", "0"), "sent nothing"),
    ):
        (tmp_path / "ports.csv").write_text(text)
        with pytest.raises(ScenarioError, match=words):
            twin._workload(modelled[1])


WRONG = [
    ("levels = [1, 2]", "levels = [1, 3]", "policy.levels[1] = 3: shares the lane of level 0"),
    ("levels = [1, 2]", "levels = [0]", "policy.levels[0] = 0: is the level of all other traffic"),
    ("service_levels = 3", "sl2vl = [0, 1, 2]\nlanes = 2", "policy.levels[1] = 2: needs lane 2, and the switches"),
    ("service_levels = 3", 'strategy = "none"', 'qos.strategy = "none": sets the levels of jobs'),
    ("[slurm]", "[slurn]", 'did you mean "slurm"?'),
    ('"host[0-15]"', '"host[0-14]"', "16 nodes have 15 hosts; allowed: lists of the same length"),
    ('"n[1-16]"', '"n[1-16"', "no list of hosts"),
    ('"2 KiB"', '"2 KiX"', "is not a unit"),
    ('name = "io*"', 'name = "io*"\ntrace = "gone.dumpi"', "there is no"),
    ('name = "io*"', 'name = "io*"\ncounters = "ports.csv"', "gives workload and counters"),
    ("replicates = 3", "replicates = 2", "twin.replicates = 2: out of range; allowed: at least 3"),
    ("max_loss", "max_lost", 'did you mean "max_loss"?'),
    ("[twin]", '[backend]\nname = "opensn"\n[twin]', 'unknown backend; allowed: dry_run, linux, opensm'),
    (f'poll = "{HANG}"', "poll = 1", "a duration is a number with its unit in a string"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "words"), WRONG)
def test_a_wrong_configuration_is_refused_with_file_line_and_key(
    old: str, new: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert old in agents.CONFIG
    file = agents.config_file(tmp_path, agents.CONFIG.replace(old, new, 1))
    assert execute(["agent", "--config", str(file), "--once"]) == 2
    out, err = capsys.readouterr()
    assert words in err
    assert f"{file}:" in err
    assert out == ""
    assert not (tmp_path / "agent.db").exists()


def test_status_is_a_table_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = agents.config_file(tmp_path)
    assert execute(["agent", "status", "--config", str(file)]) == 2
    assert "there is no journal" in capsys.readouterr().err
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("signal.signal", lambda *_: None)  # that of the tests stays
        assert execute(["agent", "--config", str(file), "--once"]) == 0
    assert "would set job 12 level 1" in capsys.readouterr().out
    assert execute(["agent", "status", "--config", str(file)]) == 0
    out = capsys.readouterr().out
    assert "agent: does not run" in out
    row = next(line.split() for line in out.splitlines() if line.startswith("12 "))
    assert row == ["12", "solver", "n[1,5,9,13]", "1"]
    assert "verified (dry run)" in out
    assert execute(["agent", "status", "--config", str(file), "--json", "--last", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["runs"] is False
    assert found["settings"] == [SOLVER.written()]
    assert [entry["id"] for entry in found["decisions"]] == [2]
    assert execute(["agent", "status", "--config", str(file), "--decision", "1", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)
    assert [step["state"] for step in steps] == ["planned", "writing", "applied", "verified"]


def test_status_reads_the_journal_and_little_else(tmp_path: Path) -> None:
    # What a scenario needs takes seconds to import: status, which an operator calls again and again, does without it.
    file = agents.config_file(tmp_path)
    with Journal(tmp_path / "agent.db"):
        pass
    script = (
        "import sys; from fairlane.cli.main import execute; code = execute(sys.argv[1:]); "
        "print(sorted({'polars', 'pint', 'scipy', 'fairlane.model.scenario', 'fairlane.model.fabric'}"
        " & set(sys.modules)), code)"
    )
    command = [sys.executable, "-c", script, "agent", "status", "--config", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] 0"
    file.write_text('journal = ["agent.db"]\n')
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[] 2"
    assert f'{file}:1: journal = ["agent.db"]: is not a path' in done.stderr


def test_code_of_a_profile_runs_only_with_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAIRLANE_ALLOW_CODE", raising=False)
    (tmp_path / "own.py").write_text(
        "from fairlane.model.workload import AllToAll\nclass Mine(AllToAll):\n    'A workload of its own.'\n"
    )
    text = agents.CONFIG.replace('name = "all_to_all", message_size = "2 KiB"', 'name = "own.py:Mine"')
    file = agents.config_file(tmp_path, text)
    with pytest.raises(ScenarioError, match="is not permitted"):
        AgentConfig.from_file(file)
    loaded = AgentConfig.from_file(file, allow_code=True)
    assert type(loaded.profile[0].workload).__name__ == "Mine"


def test_a_configuration_without_a_backend_cannot_be_applied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = agents.config_file(tmp_path)
    for arguments in (["--config", str(file), "--apply"], ["undo", "--config", str(file)]):
        assert execute(["agent", *arguments]) == 2
        assert 'backend = "dry_run": names nothing' in capsys.readouterr().err


def test_the_page_shows_what_the_example_prints(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    shutil.copytree(root / "examples" / "agent", tmp_path / "agent")
    command = [sys.executable, "-m", "fairlane", "agent", "--config", "agent.toml", "--once"]
    done = subprocess.run(command, cwd=tmp_path / "agent", capture_output=True, text=True, check=True)
    assert done.stdout.startswith("decision 1: dry run, would set job 4711 level 1. ")
    assert f"$ fairlane agent --config agent.toml --once\n{done.stdout}$ " in (root / "docs" / "agent.md").read_text()


def test_a_trace_is_what_a_job_does(tmp_path: Path) -> None:
    trace = Path(__file__).parents[1] / "data" / "traces" / "testtrace-4.dumpi"
    twin, modelled = twin_of(agents.config(tmp_path, other_writer(f"trace = {json.dumps(str(trace))}")))
    twin.update(modelled, ())
    (found,) = twin.predict([Candidate("12", 1)])
    assert found.unknown == ()
    assert set(found.effects) == {"12", "13"}
    few = SlurmJob("13", ("n2", "n6"), "io")
    modelled, left_out = twin.model({"13": few})
    assert modelled == []
    assert "has 4 ranks, and its nodes hold 2" in left_out["13"]


def test_an_imported_fabric_is_found_beside_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = tuple(f"host{number}" for number in range(16))
    ends = [(host, f"leaf{number // 4}") for number, host in enumerate(hosts)]
    ends += [(f"leaf{number}", "spine") for number in range(4)]
    Wiring(hosts, tuple(map(Cable, ends))).save(tmp_path / "fabric.json")
    begin, _, end = agents.CONFIG.partition("[fabric]")
    text = f'{begin}[fabric]\ntopology = "imported"\nfile = "fabric.json"\n\n[qos]{end.partition("[qos]")[2]}'
    config = agents.config(tmp_path, text)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    twin, modelled = twin_of(config)
    twin.update(modelled, ())
    assert twin.predict([Candidate("12", 1)])
