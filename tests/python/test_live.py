"""The live folder of a run: state, lock and stop request; that it changes no result, and what is left after a kill."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

import fairlane
from fairlane import Run, Scenario, load
from fairlane.cli.main import execute
from fairlane.core.errors import ResultsError, RunError
from fairlane.results import live
from fairlane.results.live import Found, LiveFolder, State, live_folder, read_live, request_stop, stored_name
from fairlane.sim.runner import live as recorder
from fairlane.sim.runner.live import Pace, _Times
from live_runs import LONG, SHORT, running
from waiting import wait_for

STATE = State(version="1", scenario="x", seed=1, started=datetime(2026, 1, 1, tzinfo=UTC), pid=1, machine="here")


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """States after every slice, however long they take."""
    monkeypatch.setattr(recorder, "EVERY_S", 0.0)
    monkeypatch.setattr(recorder, "SHARE", 1e9)


@contextmanager
def states(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[State]]:
    """All states that are written within."""
    kept: list[State] = []
    write = LiveFolder.write

    def remember(self: LiveFolder, state: State) -> None:
        kept.append(state)
        write(self, state)

    with monkeypatch.context() as patched:
        patched.setattr(LiveFolder, "write", remember)
        yield kept


def simulated(folder: Path, text: str = SHORT, *, shown: bool = True) -> Run:
    file = folder.with_suffix(".toml")
    file.write_text(text)
    return fairlane.run(Scenario.load(file), out=folder, live=shown)


@pytest.mark.usefixtures("often")
def test_what_is_shown_last_is_what_is_measured_and_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = simulated(tmp_path / "plain", shown=False)
    with states(monkeypatch) as seen:
        watched = simulated(tmp_path / "watched")
    assert watched.meta.digest == plain.meta.digest
    assert watched.jobs.equals(plain.jobs)
    assert len(seen) > 4
    assert [one.phase for one in seen] == ["simulating"] * (len(seen) - 1) + ["storing"]
    shares = [one.progress.share for one in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    last = seen[-1]
    assert last.jobs.name == tuple(plain.jobs["name"])
    assert last.jobs.ranks == tuple(plain.jobs["ranks"])
    shown = {
        (last.jobs.name[victim], last.jobs.name[aggressor]): delay
        for victim, aggressor, delay in zip(
            last.matrix.victim, last.matrix.aggressor, last.matrix.queueing_s, strict=True
        )
    }
    final = {(row["victim"], row["aggressor"]): row["queueing_s"] for row in plain.interference.iter_rows(named=True)}
    assert shown
    # Delays only grow, and the last state is of an instant near the end.
    assert all(0 < delay <= final[pair] * 1.00001 for pair, delay in shown.items())
    assert last.links.active_share[0] == max(last.links.active_share)
    assert set(last.links.name) <= set(plain.ports["link_name"])
    assert not live_folder(tmp_path / "watched").exists()


@pytest.mark.usefixtures("often")
def test_w_so_far_is_w_of_the_iterations_so_far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with states(monkeypatch) as seen:
        run = simulated(tmp_path / "run", LONG.replace('"1000 s"', '"10 ms"'))
    last = next(one for one in reversed(seen) if any(w is not None for w in one.jobs.w))
    final = dict(run.jobs.select("name", "w").iter_rows())
    iterations = dict(run.jobs.select("name", "iterations").iter_rows())
    for name, w, count in zip(last.jobs.name, last.jobs.w, last.jobs.iterations, strict=True):
        assert count <= iterations[name]
        assert w is None or w == pytest.approx(final[name], abs=0.25)
    for name, at, each in zip(last.jobs.name, last.jobs.at_s, last.jobs.time_s, strict=True):
        assert len(at) == len(each) <= 60
        completed = run.completions.filter(name=name)["at_ps"].to_numpy() * 1e-12
        assert all(np.abs(completed / one - 1).min() < 1e-5 for one in at)


def test_w_and_times_by_hand() -> None:
    """Iterations 2, 4, 6 of one run against 1, 2, 3, 4, 5 of the other: the fourth is the last that both have."""
    together = _Times(2, np.array([30.0, 50.0, 80.0]))
    isolated = _Times(1, np.array([8.0, 16.0, 24.0, 40.0, 48.0]))
    assert together.change_against(isolated) == 40 / 50 - 1
    assert isolated.change_against(together) == 50 / 40 - 1
    assert together.per_iteration == pytest.approx((80 - 30) / 4 * 1e-12)
    assert _Times(1, np.array([8.0])).per_iteration is None
    assert _Times(4, np.array([8.0])).change_against(_Times(1, np.array([1.0]))) is None


def test_names() -> None:
    assert live_folder(Path("/a/run")) == Path("/a/.run.live")
    assert stored_name(".run.live") == "run"
    assert [stored_name(name) for name in ("run.live", ".live", ".run", "..live", ".run.lives")] == [None] * 5


def test_a_state_is_read_while_its_process_is_there_and_after(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert read_live(folder) is None
    assert not request_stop(folder)
    held = LiveFolder.create(folder)
    assert held is not None
    assert read_live(folder) is None
    held.write(STATE)
    assert read_live(folder) == Found(STATE, alive=True)
    before = held.stop_requested
    assert request_stop(folder)
    assert (before, held.stop_requested) == (False, True)
    with pytest.raises(ResultsError, match="another process simulates a run into it; choose another"):
        LiveFolder.create(folder)
    held.close(keep=True)
    assert read_live(folder) == Found(STATE, alive=False)
    assert not request_stop(folder)
    again = LiveFolder.create(folder)
    assert again is not None
    assert not again.stop_requested, "a request to a process that is gone"
    again.close()
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_is_none_is_refused(tmp_path: Path) -> None:
    folder = live_folder(tmp_path / "run")
    folder.mkdir()
    for text in ("", "[]", '{"format": 2}', "\x00"):
        (folder / live.STATE).write_text(text)
        with pytest.raises(ResultsError, match=r"state\.json"):
            read_live(tmp_path / "run")
    with pytest.raises(ValidationError):
        State.model_validate({"format": 1})


def test_a_run_without_a_place_for_its_state_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    live_folder(tmp_path / "run").write_text("a file is in its place")
    assert not simulated(tmp_path / "run").meta.partial
    monkeypatch.setattr(Path, "replace", _full)
    held = LiveFolder.create(tmp_path / "other")
    assert held is not None
    held.write(STATE)
    held.close()


def _full(*_arguments: object) -> None:
    raise OSError(28, "No space left on device")


def test_an_error_stays_in_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise RunError("rank 3 waits forever", slug="stuck")

    monkeypatch.setattr("fairlane.sim.runner.experiment.drive", fail)
    with pytest.raises(RunError):
        simulated(tmp_path / "run")
    found = read_live(tmp_path / "run")
    assert found is not None
    assert (found.alive, found.state.phase, found.state.error) == (False, "failed", "rank 3 waits forever")
    monkeypatch.undo()
    assert not simulated(tmp_path / "run").meta.partial, "the folder is free for another try"
    assert not live_folder(tmp_path / "run").exists()


def test_a_pace_takes_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    now, used = [100.0], [5.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "thread_time", lambda: used[0])
    pace = Pace()
    assert not pace.due
    with pace.measured():
        used[0] += 0.5
    now[0] += 0.5 / recorder.SHARE - 0.001
    assert not pace.due
    now[0] += 0.002
    assert pace.due


def test_a_request_stops_a_run_and_what_it_measured_is_stored(tmp_path: Path) -> None:
    with running(tmp_path / "run") as process:
        first = wait_for(lambda: _share(tmp_path / "run", 0.0))
        assert wait_for(lambda: _share(tmp_path / "run", first)) > first
        assert execute(["run", str(tmp_path / "run.toml"), "-o", str(tmp_path / "run"), "-q"]) == 2
        assert request_stop(tmp_path / "run")
        assert process.wait() == 130, "as after Ctrl-C"
    run = load(tmp_path / "run")
    assert isinstance(run, Run)
    assert run.meta.partial
    assert 0 < run.meta.simulated_ps < run.meta.duration_ps
    assert run.jobs["iterations"].min() != 0
    assert not live_folder(tmp_path / "run").exists()


@pytest.mark.long("sim/runner", "results")
def test_a_run_that_was_killed_is_not_alive_and_its_folder_is_free(tmp_path: Path) -> None:
    with running(tmp_path / "run") as process:
        wait_for(lambda: _share(tmp_path / "run", 0.0))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    found = read_live(tmp_path / "run")
    assert found is not None
    assert not found.alive
    assert found.state.pid == process.pid
    assert not request_stop(tmp_path / "run")
    assert not simulated(tmp_path / "run").meta.partial
    assert not live_folder(tmp_path / "run").exists()


def test_no_live_shows_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(LiveFolder, "create")
    (tmp_path / "s.toml").write_text(SHORT)
    assert execute(["run", str(tmp_path / "s.toml"), "-o", str(tmp_path / "run"), "--no-live", "-q"]) == 0


def _share(folder: Path, more: float) -> float | None:
    """How much of a run is done, if it is more than this."""
    found = read_live(folder)
    share = found.state.progress.share if found and found.alive else 0.0
    return share if share > more else None
