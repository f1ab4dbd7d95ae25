"""Machines that do not answer: the others are controlled, and these again when they answer."""

import json
import sys
from pathlib import Path
from queue import SimpleQueue
from typing import ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import agents
from fairlane.cluster.agent.absent import AGAIN_S, Absent
from fairlane.cluster.agent.agent import Agent
from fairlane.cluster.agent.backends import DryRun
from fairlane.cluster.agent.backends.places import Places
from fairlane.cluster.agent.control import Period, Steered
from fairlane.cluster.agent.jobs import Setting
from fairlane.cluster.agent.journal import Journal
from fairlane.cluster.agent.system import AgentError, BackendError, NoAnswerError
from steered_jobs import BOTH, CONFIG, RANKS, Jobs

NAMES = ("a", "b", "c")


class Machines:
    """Machines of which some do not answer, and which of them were asked."""

    def __init__(self) -> None:
        self.down: set[str] = set()
        self.asked: list[str] = []
        self.now = 0.0
        self.absent = Absent(NoAnswerError, lambda: self.now)

    def answer(self, name: str) -> str:
        self.asked.append(name)
        if name in self.down:
            raise NoAnswerError(f"{name} is down")
        return name.upper()

    def ask(self, *names: str, others: bool = False) -> dict[str, str]:
        """Which answer, with what."""
        self.asked.clear()
        found = self.absent.ask(self.answer, names, others=others)
        assert sorted(self.asked) == sorted({*self.asked}), "each once"
        return found


def test_a_machine_that_does_not_answer_is_asked_again_after_some_time() -> None:
    machines = Machines()
    machines.down.add("b")
    assert machines.ask(*NAMES) == {"a": "A", "c": "C"}
    assert {name: str(error) for name, error in machines.absent.errors.items()} == {"b": "b is down"}
    machines.down.clear()
    machines.now = AGAIN_S - 1
    assert machines.ask(*NAMES) == {"a": "A", "c": "C"}
    assert sorted(machines.asked) == ["a", "c"]
    machines.now = AGAIN_S
    assert machines.ask(*NAMES) == {"a": "A", "b": "B", "c": "C"}
    assert not machines.absent.errors


def test_where_none_answers_no_machine_is_to_blame() -> None:
    machines = Machines()
    machines.down |= {*NAMES}
    for _ in range(2):
        with pytest.raises(NoAnswerError, match="a is down"):
            machines.ask(*NAMES)
        assert sorted(machines.asked) == list(NAMES), "all, at once"
        assert not machines.absent.errors
    assert machines.ask("b", others=True) == {}, "unless others do"
    assert [*machines.absent.errors] == ["b"]


def test_other_errors_are_those_of_the_caller() -> None:
    def refuse(name: str) -> str:
        raise BackendError(name)

    with pytest.raises(BackendError, match="a"):
        Machines().absent.ask(refuse, NAMES)


class Written(RuleBasedStateMachine):
    """Places with numbers, some of which do not answer at times: what is read and written is what is there."""

    SOME: ClassVar = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 3))

    def __init__(self) -> None:
        super().__init__()
        self.real = dict.fromkeys(NAMES, 0)
        self.down: set[str] = set()
        self.places: Places[int] = Places(NAMES, self.read, self.write)
        self.places.absent = Absent(NoAnswerError, lambda: 0.0)

    def read(self, name: str) -> int:
        if name in self.down:
            raise NoAnswerError(name)
        return self.real[name]

    def write(self, name: str, before: int, wanted: int) -> None:
        if name in self.down:
            raise BackendError(name)
        assert before == self.real[name]
        self.real[name] = wanted

    @rule(name=st.sampled_from(NAMES))
    def goes(self, name: str) -> None:
        if len(self.down) < len(NAMES) - 1:
            self.down.add(name)

    @rule(name=st.sampled_from(NAMES))
    def comes(self, name: str) -> None:
        self.down.discard(name)
        self.places.absent = Absent(NoAnswerError, lambda: 0.0)  # as if its time was over

    @rule(some=SOME, restoring=st.booleans())
    def written(self, some: dict[str, int], restoring: bool) -> None:
        wanted, before = {**dict.fromkeys(NAMES, 0), **some}, dict(self.real)
        self.places.states(anew=True)
        absent = {*self.places.absent.errors}
        assert absent >= self.down
        try:
            self.places.write(wanted, restoring=restoring)
        except BackendError:
            assert any(wanted[name] for name in absent)
            assert not restoring
            assert self.real == before, "nothing was written"
        else:
            assert restoring or not any(wanted[name] for name in absent)
            assert self.real == {name: before[name] if name in absent else wanted[name] for name in NAMES}

    @rule(name=st.sampled_from(NAMES), wanted=st.integers(1, 3))
    def dies_while_it_is_written(self, name: str, wanted: int) -> None:
        self.places.states(anew=True)
        if name in self.down or len(self.down) == len(NAMES) - 1 or self.real[name] == wanted:
            return
        everywhere = {**self.real, name: wanted, **dict.fromkeys(self.places.absent.errors, 0)}
        self.down.add(name)
        if name not in self.places.absent.errors:
            with pytest.raises(BackendError):
                self.places.write(everywhere)

    @invariant()
    def what_is_read_is_there(self) -> None:
        states = self.places.states(anew=True)
        assert states == {name: self.real[name] for name in NAMES if name in states}
        assert states.keys() | self.places.absent.errors.keys() == {*NAMES}


TestWritten = Written.TestCase


THROUGH = """
import sys
from dataclasses import asdict, replace
from pathlib import Path
from pydantic_core import to_json
from fairlane.cluster.agent.progress import scan

folder, host = Path(sys.argv[1]), sys.argv[2]
if (folder / f"{host}.down").exists():
    sys.exit("no route to host")
found = scan([folder / "pages"])
here = [one for one in found.processes if one.host == host]
print(to_json(asdict(replace(found, host=host, processes=here))).decode())
"""


def test_a_job_on_a_node_that_does_not_answer_is_left_out_and_the_others_are_controlled(tmp_path: Path) -> None:
    (tmp_path / "through.py").write_text(THROUGH)
    command = json.dumps([sys.executable, str(tmp_path / "through.py"), str(tmp_path), "{host}"])
    config = agents.config(tmp_path, CONFIG.replace("through = []", f"through = {command}"), BOTH)
    periods: list[Period] = []
    said: list[str] = []
    jobs = Jobs(tmp_path, RANKS)
    try:
        with Journal(tmp_path / "agent.db") as journal:
            agent = Steered(config, journal, SimpleQueue(), report=said.append, observe=periods.append)
            agent._nodes = Absent(AgentError, lambda: 0.0)

            def period(counts: tuple[int, int, int, int]) -> set[str]:
                jobs.mark(dict(zip(RANKS, counts, strict=True)))
                agent.period()
                return {setting.job for setting in journal.in_force("dry_run") if setting.hosts}

            agent.start()
            agent.period()
            assert period((4, 6, 9, 9)) == {"12"}, "its slowest rank is the candidate"
            # The node of its last rank ceases to answer: its other ranks alone are no job.
            (tmp_path / "n5.down").touch()
            assert "12" not in period((5, 6, 9, 9))
            assert set(periods[-1].work.jobs) == {"13"}
            assert {job for _ in range(3) for job in period((5, 6, 7, 9))} == {"13"}
            (reason,) = (line for line in said if "not controlled" in line)
            assert reason.startswith("job 12 is not controlled: n5 does not answer: ")
            assert "ended with code 1: no route to host" in reason
            # It answers again.
            (tmp_path / "n5.down").unlink()
            agent._nodes = Absent(AgentError)
            period((5, 6, 7, 9))
            period((5, 6, 7, 9))
            assert set(periods[-1].work.jobs) == {"12", "13"}
            for node in ("n1", "n2", "n5", "n6"):
                (tmp_path / f"{node}.down").touch()
            with pytest.raises(AgentError, match="no route to host"):
                agent.period()
            assert not agent._nodes.errors
    finally:
        jobs.close()


def test_a_job_on_a_host_that_does_not_answer_the_backend_loses_its_level_and_gets_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    absent: dict[str, BackendError] = {}
    monkeypatch.setattr(DryRun, "absent", absent)
    text = agents.CONFIG.replace("levels = [1, 2]", "levels = [1]")
    with Journal(tmp_path / "agent.db") as journal:
        agent = Agent(agents.config(tmp_path, text), journal, SimpleQueue(), report=said.append)
        agent.start()
        assert agent.consider() == 0.0
        (setting,) = journal.in_force("dry_run")
        assert setting == Setting("12", 1, ("host0", "host4", "host8", "host12"))
        absent["host8"] = NoAnswerError("ssh host8 nft: no answer within 5 s")
        agent._poll()
        agent._poll()
        while agent.consider() is not None:
            assert "12" not in {setting.job for setting in journal.in_force("dry_run")}
        assert any("1 job ended or cannot be reached: 12" in line for line in said)
        words = "host8 does not answer: ssh host8 nft: no answer within 5 s; its jobs get no level"
        assert [line.startswith(words) for line in said].count(True) == 1
        with pytest.raises(BackendError, match="host8: no answer; what is set there stays: undo again"):
            Agent(agents.config(tmp_path, text), journal, SimpleQueue()).withdraw()
        absent.clear()
        agent._poll()
        assert said[-1] == "host8 answers again"
        assert agent._considered is None, "so it decides anew"
