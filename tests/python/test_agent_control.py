"""Controllers in the agent: real processes mark their progress, and what the controller decides is in force by rank."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

import agents
from fairlane.cli.main import execute
from fairlane.cluster.agent.backends import DryRun
from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.control import Period, Steered
from fairlane.cluster.agent.jobs import NEUTRAL, Setting
from fairlane.cluster.agent.journal import Journal, status_of
from fairlane.cluster.agent.system import AgentError, BackendError
from marking import marking, python
from steered_jobs import BOTH, CONFIG, RANKS, Jobs


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    found = Jobs(tmp_path, RANKS)
    yield found
    found.close()


def config(folder: Path, text: str = CONFIG, jobs: Any = BOTH) -> AgentConfig:
    return agents.config(folder, text, jobs)


def levels(settings: tuple[Setting, ...]) -> dict[tuple[str, int | None], tuple[int, tuple[str, ...], float | None]]:
    return {(one.job, one.rank): (one.level, one.hosts, one.weight) for one in settings if one.hosts}


def test_the_controller_learns_what_ranks_have_marked_and_its_levels_are_in_force_by_rank(
    jobs: Jobs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    periods: list[Period] = []
    with Journal(tmp_path / "agent.db") as journal:
        agent = Steered(config(tmp_path), journal, SimpleQueue(), observe=periods.append)
        agent.start()
        agent.period()
        assert not periods, "a first reading is the beginning of a period"
        jobs.mark({("12", 0): 4, ("12", 1): 6, ("13", 0): 9, ("13", 1): 7})
        agent.period()
        assert {job: work.iterations for job, work in periods[0].work.jobs.items()} == {"12": (4, 6), "13": (9, 7)}
        assert (periods[0].state, periods[0].settings) == ("DEFAULT", (NEUTRAL,))
        # With T = 1 the slowest rank of each job is a candidate: one of them has level 1 now.
        (tried,) = levels(journal.in_force("dry_run")).items()
        assert tried in ((("12", 0), (1, ("host0",), 1.0)), (("13", 1), (1, ("host5",), 1.0)))
        jobs.mark({("12", 0): 5, ("12", 1): 6, ("13", 0): 9, ("13", 1): 8})
        agent.period()
        assert periods[1].accepted, "both jobs did more than without it"
        assert levels(periods[1].settings) == dict([tried])
        built = levels(journal.in_force("dry_run"))
        assert tried[0] in built, "the next trial builds on it"
        assert built != dict([tried])
        # A job that ends loses its levels, and the other one begins anew.
        agents.slurm_has(tmp_path, BOTH[:1])
        agent._poll()
        states = []
        for _ in range(2):
            jobs.mark({("12", 0): 5, ("12", 1): 6})
            agent.period()
            assert {one.job for one in journal.in_force("dry_run")} <= {"12", NEUTRAL.job}
            states.append(agent._controller.state)
        assert "DEFAULT" in states
    found = status_of(tmp_path / "agent.db")
    assert found.decisions[-1].reason == "process_prioritization, period 0: DEFAULT"
    assert {entry.state for entry in found.decisions} == {"verified"}
    assert execute(["agent", "status", "--config", str(tmp_path / "agent.toml")]) == 0
    (job, rank), _ = tried
    assert f"{job}.{rank}: 1" in capsys.readouterr().out


def test_a_rank_that_is_missing_is_reported_and_its_job_left_alone(jobs: Jobs, tmp_path: Path) -> None:
    said: list[str] = []
    periods: list[Period] = []
    jobs.ranks["12", 0].do("close")
    with Journal(tmp_path / "agent.db") as journal:
        agent = Steered(config(tmp_path), journal, SimpleQueue(), report=said.append, observe=periods.append)
        agent.start()
        agent.period()
        jobs.mark({("13", 0): 2, ("13", 1): 3})
        agent.period()
    assert set(periods[0].work.jobs) == {"13"}
    assert said.count("job 12 is not controlled: no progress of rank 0 is known") == 1


def after_a_period(folder: Path, nodes: dict[tuple[str, int], str]) -> tuple[Any, Any]:
    """Iterations of job 12, whose ranks have marked 5, 4, ... each, and the levels that it has then."""
    jobs = Jobs(folder, nodes)
    periods: list[Period] = []
    try:
        with Journal(folder / "agent.db") as journal:
            agent = Steered(config(folder, jobs=BOTH[:1]), journal, SimpleQueue(), observe=periods.append)
            agent.start()
            agent.period()
            jobs.mark({rank: 5 - rank[1] for rank in nodes})
            agent.period()
            return periods[0].work.jobs["12"].iterations, levels(journal.in_force("dry_run"))
    finally:
        jobs.close()


def test_ranks_that_the_network_cannot_tell_apart_count_as_one(tmp_path: Path) -> None:
    iterations, given = after_a_period(tmp_path, {("12", rank): ("n1", "n5")[rank // 2] for rank in range(4)})
    assert iterations == (4, 2)
    assert given == {("12", 2): (1, ("host4",), 1.0)}


def test_ranks_of_a_host_are_apart_where_each_has_an_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DryRun, "endpoints", lambda _, host, ranks: [f"{host}/{rank}" for rank in range(ranks)])
    iterations, given = after_a_period(tmp_path, {("12", rank): "n1" for rank in range(3)})
    assert iterations == (5, 4, 3)
    assert given == {("12", 2): (1, ("host0/2",), 1.0)}


def test_jobs_on_one_host_are_left_alone(tmp_path: Path) -> None:
    said: list[str] = []
    nodes = {("12", 0): "n1", ("13", 0): "n1"}
    jobs = Jobs(tmp_path, nodes)
    try:
        with Journal(tmp_path / "agent.db") as journal:
            agent = Steered(config(tmp_path), journal, SimpleQueue(), report=said.append)
            agent.start()
            agent.period()
    finally:
        jobs.close()
    words = "shares host0 with another job: a level set for one would apply to both"
    assert [line for line in said if "not controlled" in line] == [
        f"job {job} is not controlled: {words}" for job in ("12", "13")
    ]


def test_a_restarted_agent_takes_back_what_it_finds(jobs: Jobs, tmp_path: Path) -> None:
    with Journal(tmp_path / "agent.db") as journal:
        agent = Steered(config(tmp_path), journal, SimpleQueue())
        agent.start()
        agent.period()
        jobs.mark(dict.fromkeys(RANKS, 5))
        agent.period()
        assert journal.in_force("dry_run")
    with Journal(tmp_path / "agent.db") as journal:
        Steered(config(tmp_path), journal, SimpleQueue()).start()
        assert journal.in_force("dry_run") == ()


def test_an_agent_that_is_killed_is_taken_back_by_the_next_one(jobs: Jobs, tmp_path: Path) -> None:
    file = agents.config_file(tmp_path, CONFIG.replace('period = "1 s"', 'period = "50 ms"'), BOTH)
    command = [sys.executable, "-m", "fairlane", "agent", "--config", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    while "would set job 1" not in (line := process.stdout.readline()):
        assert line or process.poll() is None
        jobs.mark(dict.fromkeys(RANKS, 3))
    process.kill()
    process.communicate()
    with Journal(tmp_path / "agent.db") as journal:
        agent = Steered(AgentConfig.from_file(file), journal, SimpleQueue())
        agent.start()
        assert journal.in_force("dry_run") == ()
    reasons = [entry.reason for entry in status_of(tmp_path / "agent.db").decisions]
    assert reasons[0] == "a controller begins without settings"


def test_a_change_that_is_undone_is_tried_again_and_its_period_not_judged(
    jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    periods: list[Period] = []
    with Journal(tmp_path / "agent.db") as journal:
        agent = Steered(config(tmp_path), journal, SimpleQueue(), observe=periods.append)
        agent.start()
        agent.period()
        jobs.mark(dict.fromkeys(RANKS, 5))
        with monkeypatch.context() as broken:
            broken.setattr(DryRun, "verify", _refuse)
            with pytest.raises(AgentError, match="the change was undone"):
                agent.period()
        assert agent.failed
        assert journal.in_force("dry_run") == (NEUTRAL,)
        undone = journal.entry(2).settings
        jobs.mark(dict.fromkeys(RANKS, 9))
        agent.period()
        assert [one.number for one in periods] == [0], "that before, and not the one without the settings"
        assert journal.in_force("dry_run") == undone


def _refuse(*_: object) -> None:
    raise BackendError("refused")


def test_while_slurm_does_not_answer_nothing_is_decided(jobs: Jobs, tmp_path: Path) -> None:
    text = CONFIG.replace('period = "1 s"', 'period = "1 ms"')
    periods: list[Period] = []
    with Journal(tmp_path / "agent.db") as journal:
        agent = Steered(config(tmp_path, text), journal, SimpleQueue(), observe=periods.append)
        agent.start()
        (tmp_path / "jobs.json").unlink()
        agent._polled = None
        agent._poll_in_time()
        before = journal.in_force("dry_run")
        agent._report = lambda _: agent.stop()
        agent._polled = None
        agent.run()
        assert journal.in_force("dry_run") == before
        assert not periods
    assert jobs.ranks


def test_a_process_that_is_another_one_begins_anew(jobs: Jobs, tmp_path: Path) -> None:
    periods: list[Period] = []
    with Journal(tmp_path / "agent.db") as journal:
        agent = Steered(config(tmp_path), journal, SimpleQueue(), observe=periods.append)
        agent.start()
        agent.period()
        jobs.ranks["12", 0].do("close")
        names = {"FAIRLANE_JOB": "12", "FAIRLANE_RANK": "0", "SLURMD_NODENAME": "n1"}
        with marking(python(), tmp_path / "pages", **names) as other:
            other.do("mark", 3)
            agent.period()
    assert set(periods[0].work.jobs) == {"13"}


def test_a_slack_controller_runs_without_times_in_mpi_calls(jobs: Jobs, tmp_path: Path) -> None:
    text = CONFIG.replace(
        '{ name = "process_prioritization", threshold = 1.0, progress = "whole", service_levels = 3 }',
        '{ name = "slack", mpi_times = false, default_periods = 1 }',
    )
    with Journal(tmp_path / "agent.db") as journal:
        agent = Steered(config(tmp_path, text), journal, SimpleQueue())
        agent.start()
        for ahead in (5, 10, 40):
            jobs.mark({key: ahead if key == ("12", 1) else 5 for key in RANKS})
            agent.period()
        assert agent._controller.state == "YIELD"
        settings = levels(journal.in_force("dry_run"))
        assert settings["12", 1][0] != settings.get(("12", 0), (0,))[0], "the rank that is ahead has another level"
