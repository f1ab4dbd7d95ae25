"""Progress of a study: what is done, how long the rest takes, and how far a worker is with its task."""

from __future__ import annotations

import io
import os
import tomllib
from pathlib import Path

import pytest
from rich.console import Console

from fairlane.study.tasks.pools import Processes
from fairlane.study.tasks.progress import TaskProgress
from fairlane.study.tasks.task import Task
from small_study import SCENARIO


def test_while_there_is_no_worker_progress_says_so_and_estimates_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("fairlane.study.tasks.executor.time.monotonic", lambda: now[0])
    shown = TaskProgress(wanted=False)
    task = Task("any:thing", {}, "", "one")
    shown.begin([task] * 10, [])
    now[0] = 3600.0
    shown.update(0)
    assert shown.text(0) == "0 of 10, no worker is there"
    shown.update(1)
    now[0] += 60.0
    shown.done(task)
    assert shown.text(1) == "1 of 10, about 540 s left"


def test_progress_counts_what_is_done_of_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before one is completed nothing is estimated: a first share of a millionth would make it years."""
    now = [0.0]
    monkeypatch.setattr("fairlane.study.tasks.executor.time.monotonic", lambda: now[0])
    shown = TaskProgress(wanted=False)
    task = Task("any:thing", {}, "", "one")
    shown.begin([task] * 10, [])
    now[0] = 60.0
    shown.update(2, [(task, 1e-6), (task, None)])
    assert shown.text(2) == "0 of 10, running: 0%"
    shown.update(2, [(task, 0.3), (task, 0.2), (task, None)])
    assert shown.text(2) == "0 of 10, running: 30%, 20%"
    shown.done(task)
    shown.update(2, [(task, 0.5)])
    assert shown.text(2) == "1 of 10, running: 50%, about 340 s left"


@pytest.mark.parametrize(("wanted", "terminal"), [(True, True), (True, False), (False, True)])
def test_progress_is_a_bar_on_terminals_and_lines_elsewhere(
    monkeypatch: pytest.MonkeyPatch, wanted: bool, terminal: bool
) -> None:
    now = [0.0]
    monkeypatch.setattr("fairlane.study.tasks.executor.time.monotonic", lambda: now[0])
    console = Console(file=io.StringIO(), width=100, force_terminal=terminal, _environ={"TERM": "xterm"})
    task = Task("any:thing", {}, "", "one")
    with TaskProgress(wanted=wanted, console=console) as shown:
        shown.begin([task] * 4, [])
        now[0] = 60.0
        shown.done(task)
        shown.update(1)
    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert ("1 of 4, about 180 s left" in printed) == wanted
    hidden, visible = "\x1b[?25l", "\x1b[?25h"  # of the cursor: Rich hides it while it shows a bar
    assert (hidden in printed) == (visible in printed) == (wanted and terminal)


def test_a_worker_reports_how_far_its_task_is(tmp_path: Path) -> None:
    gates = {str(tmp_path / name): share for name, share in (("first", 0.25), ("second", 0.75))}
    for gate in gates:
        os.mkfifo(gate)
    arguments = {"name": "gated", "notes": str(tmp_path), "deaths": 0, "errors": 0, "gates": gates}
    task = Task("fake_treatment:misbehave", tomllib.loads(SCENARIO), str(tmp_path), "gated", arguments)
    pool = Processes(1)
    try:
        future = pool.submit(task)
        for gate, share in gates.items():
            with Path(gate).open("wb"):  # open once the task waits at it, which goes on when it is closed
                assert pool.share(future) == share
        assert future.result().answer
        assert pool.share(future) == 1.0
    finally:
        pool.close()
