"""What a user of a controller in the agent meets: its defaults, its configuration and what is refused, its example."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agents
from fairlane.cli.main import execute
from fairlane.cluster.agent import control
from fairlane.cluster.agent.backends import Surroundings
from fairlane.cluster.agent.backends.linux import Linux
from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.control import Period, Steered
from fairlane.cluster.agent.cost import KEPT, Cost
from fairlane.cluster.agent.jobs import NEUTRAL
from fairlane.cluster.agent.journal import Journal, status_of
from fairlane.cluster.agent.processes import Hosts
from fairlane.core.errors import ScenarioError
from fairlane.lab.testbed.file import SteerTable
from fairlane.sim.controller import ProcessPrioritization, controller_of
from pages import ROOT
from steered_jobs import BOTH, CONFIG, NAMED, RANKS, Jobs
from waiting import wait_for


def test_real_jobs_are_judged_by_parts_of_iterations_and_simulated_ones_as_printed(tmp_path: Path) -> None:
    configs = [agents.config(tmp_path, text) for text in (CONFIG.replace(', progress = "whole"', ""), CONFIG)]
    steered = SteerTable.model_validate({"controller": "process_prioritization"})
    made = [*(one.controller for one in configs), steered.controller, controller_of("process_prioritization")]
    progress = [one.progress for one in made if isinstance(one, ProcessPrioritization)]
    assert progress == ["fractional", "whole", "fractional", "whole"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"process_prioritization"', '"proces_prioritization"', 'did you mean "process_prioritization"'),
        ("threshold = 1.0", "threshold = 2.0", "controller.threshold = 2.0"),
        (NAMED, '"digital_twin"', "needs a model of the jobs"),
        (NAMED, '"slack"', "times in MPI calls are not known of real jobs"),
        ("[fabric]", "policy = { levels = [1] }\n[fabric]", "policy: has no effect: a controller decides by progress"),
        ("[fabric]", "qos = { service_levels = 1 }\n[fabric]", "= 3: level 1 shares the lane of level 0"),
        (
            "[fabric]",
            "qos = { service_levels = 2 }\n[fabric]",
            "= 3: level 2 shares the lane of level 0: giving it to a job has no effect; allowed: at most 2, or levels",
        ),
        (
            "[fabric]",
            "qos = { lanes = 2 }\n[fabric]",
            "= 3: level 2 needs lane 2, and the switches have 2; allowed: at",
        ),
        ("controller =", "# controller =", "profile: missing; allowed: a table for each kind of jobs, or a controller"),
        ('period = "1 s"', 'period = "0 s"', "progress.period"),
    ],
)
def test_what_does_not_fit_is_refused(old: str, new: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as error:
        agents.config(tmp_path, CONFIG.replace(old, new))
    assert words in str(error.value)


def test_all_levels_of_a_controller_that_have_no_lane_are_one_error(tmp_path: Path) -> None:
    text = CONFIG.replace("service_levels = 3", "service_levels = 16")
    with pytest.raises(ScenarioError) as error:
        agents.config(tmp_path, text.replace("[fabric]", "qos = { service_levels = 3 }\n[fabric]"))
    assert [problem.value for problem in error.value.problems] == [16]


def test_the_example_runs_and_its_backend_has_a_class_for_each_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "agent"
    shutil.copytree(ROOT / "examples" / "agent", folder)
    file = folder / "controller.toml"
    example = AgentConfig.from_file(file)
    monkeypatch.setattr(Linux, "_read_anew", lambda _: None)
    example.backend.check(Surroundings(Hosts(example).fabric.host_names, dict.fromkeys([0, *example.levels], 0)))
    file.write_text(file.read_text().replace('"2 s"', '"200 ms"'))
    python = [sys.executable, "-u"]
    ranks = subprocess.Popen([*python, str(folder / "ranks.py")], start_new_session=True)
    wait_for(lambda: len(list(folder.glob("pages/*.progress"))) == 8, "the ranks", ranks)
    command = [*python, "-m", "fairlane", "agent", "--config", file.name]
    agent = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert agent.stdout is not None
        first = "decision 1: dry run, no job would have a level. process_prioritization, period 0: DEFAULT\n"
        assert agent.stdout.readline() == first
        second = r"decision 2: dry run, would set job 471[12] rank [0-3] level 1 x 1\. process_.*: RUNNING\n"
        assert re.fullmatch(second, agent.stdout.readline())
        assert first in (ROOT / "docs" / "agent.md").read_text()
        agent.send_signal(signal.SIGTERM)
        agent.communicate()
        assert agent.returncode == 0
    finally:
        with agent, ranks:
            agent.kill()
            os.killpg(ranks.pid, signal.SIGKILL)
    assert status_of(folder / "controller.db").decisions[-1].settings == (NEUTRAL,)


def test_a_controller_that_moves_processes_is_refused_where_levels_hold_for_new_connections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with agents.opensm(tmp_path) as backend:
        table = "\n[backend]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in backend.items())
        file = agents.config_file(tmp_path, CONFIG + table, BOTH)
        assert execute(["agent", "--config", str(file), "--apply"]) == 2
        assert "sets weights of levels, which the backend opensm does not change" in capsys.readouterr().err


def test_a_controller_is_never_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["agent", "--config", str(agents.config_file(tmp_path, CONFIG, BOTH)), "--once"]) == 2
    assert "--once: a controller goes on for ever" in capsys.readouterr().err


def test_the_cost_is_measured_and_a_period_that_is_too_short_for_it_is_reported_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = agents.config_file(tmp_path, CONFIG, BOTH)
    said: list[str] = []
    with Journal(tmp_path / "agent.db") as journal:
        agent = Steered(AgentConfig.from_file(file), journal, SimpleQueue(), report=said.append)
        agent.start()
        # Reading takes 10 ms, a change 390 ms in three of five periods: 400 ms are more than a third of the second.
        for change in (0.39, 0, 0.39, 0, 0.39):
            assert said == []
            agent._cost(0.01, change)
        agent._cost(0.01, 0.39)
        warning = "progress.period = 1.00 s is short: reading and changing take 400 ms; allow 1.20 s"
        assert said == [warning]
        assert execute(["agent", "status", "--config", str(file)]) == 0
        shown = capsys.readouterr().out
        for row in (["reading", "all", "ranks", "6", "10.0", "ms", "10.0", "ms"], ["a", "change,", "verified", "4"]):
            assert row in [line.split()[: len(row)] for line in shown.splitlines()]
        assert f"{warning}." in shown
        assert "replicates of the twin" not in shown
        # Of the last 200 periods none had a change: changes cost what they did before.
        for _ in range(KEPT + 1):
            agent._cost(0.02, 0)
        kept = [journal.measured("dry_run", 1.0, 0.02, 0.1) for _ in range(KEPT)]
    assert said == [warning]
    assert kept[0] is not None
    assert (len(kept[0].read_s), kept[0].change_s[1:]) == (KEPT, [0.39] * 4)
    assert kept[0].total_s == pytest.approx(0.41)
    spent = status_of(tmp_path / "agent.db").cost
    assert spent == Cost(1.0, [0.02] * KEPT, [0.1] * KEPT), "the last 200 changes"
    assert spent.warning == ""
    with closing(sqlite3.connect(tmp_path / "agent.db")) as earlier:
        earlier.execute("DROP TABLE periods")
    assert status_of(tmp_path / "agent.db").cost is None, "as in the journal of an agent that did not measure"


def test_the_cost_of_a_period_is_in_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = count()
    monkeypatch.setattr(control, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    jobs = Jobs(tmp_path, RANKS)
    periods: list[Period] = []
    try:
        with Journal(tmp_path / "agent.db") as journal:
            agent = Steered(agents.config(tmp_path, CONFIG, BOTH), journal, SimpleQueue(), observe=periods.append)
            agent.start()
            for _ in range(2):
                agent.period()
                jobs.mark(dict.fromkeys(RANKS, 3))
    finally:
        jobs.close()
    spent = status_of(tmp_path / "agent.db").cost
    assert spent is not None
    # The clock goes on by one whenever it is asked, at the beginning and at the end of each part.
    assert (list(spent.read_s), list(spent.change_s)) == ([1, 1], [1, 1])
    assert (periods[0].read_s, periods[0].change_s) == (1, 1)


@given(st.lists(st.tuples(st.floats(1e-4, 10), st.floats(1e-4, 10)), min_size=5, max_size=40), st.floats(1e-3, 60))
def test_a_period_is_too_short_below_three_times_the_median_cost(
    times: list[tuple[float, float]], period: float
) -> None:
    spent = Cost(period, *map(list, zip(*times, strict=True)))
    ordered = [sorted(part) for part in zip(*times, strict=True)]
    middle = len(times) // 2
    assert spent.total_s == pytest.approx(sum((part[middle] + part[~middle]) / 2 for part in ordered))
    assert bool(spent.warning) == (period < 3 * spent.total_s)
    assert all(row["median_s"] <= row["p95_s"] for row in spent.rows())
