"""Orchestration: which simulations a run consists of, progress, Ctrl-C, errors, determinism."""

from __future__ import annotations

import _thread
import io
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from rich.console import Console

from fairlane.core.errors import ResultsError, RunError
from fairlane.results.run import Run, load_run
from fairlane.sim import runner
from fairlane.sim.runner import experiment
from fairlane.sim.runner.progress import Bars, Gauge, Lines
from fake_engine import MS, FakeEngine, fake_links
from waiting import HANG_S

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario

JOBS = [{"name": "flood", "hosts": [0, 1], "pace": MS}, {"name": "pairs", "hosts": [0, 1, 1], "pace": 2 * MS}]
OBSERVE = {"counters": False, "interference_by_port": False}
DURATION = 17 * MS


@dataclass
class FakeScenario:
    """A scenario, and what it resolves to; ``opened`` lists the simulations."""

    specs: list[dict[str, Any]] = field(default_factory=lambda: JOBS)
    build: Callable[[str], FakeEngine] = FakeEngine
    opened: list[FakeEngine] = field(default_factory=list)
    duration: int = DURATION
    until: None = None
    name: str = "fake"
    seed: int = 3
    text: str = 'name = "fake"\n'
    tables: dict[str, Any] = field(
        default_factory=lambda: {"fabric": {}, "observe": {"counters": False, "interference_by_port": False}}
    )
    sample_interval: int | None = None
    marked_jobs: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()

    def resolve(self) -> FakeScenario:
        return self

    switch_counters: None = None
    calibration_s: float = 0.25

    @property
    def jobs(self) -> list[Any]:
        common = {"marks": False, "power": None, "background": False, "start": 0, "iterates": True, "measures": False}
        return [
            SimpleNamespace(
                name=job["name"], workload=f"{job['name']} pattern", ranks=len(job["hosts"]), stop=None, **common
            )
            for job in self.specs
        ]

    @property
    def fabric(self) -> Any:
        raw, classes = fake_links()
        return SimpleNamespace(link_rows=lambda: raw, classes=classes, host_names=["host0", "host1"])

    @property
    def spec(self) -> dict[str, Any]:
        return {**self.tables, "jobs": self.specs}

    leave_one_out: bool = False

    @property
    def aggressors(self) -> dict[str, tuple[int, ...]]:
        return {job["name"]: (number,) for number, job in enumerate(self.specs)}

    def only(self, jobs: Sequence[int]) -> FakeScenario:
        return replace(self, specs=[self.specs[job] for job in jobs])

    def engine(self, threads: int = 1, *, automatic: bool = False) -> FakeEngine:  # noqa: ARG002
        self.opened.append(self.build(json.dumps(self.spec)))
        return self.opened[-1]


@pytest.fixture(autouse=True)
def _version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane.results.tables.version", lambda _name: "0.0.1")


def simulate(scenario: FakeScenario, out: Path, **options: Any) -> Run:
    options = {"progress": False, "figures": False} | options
    return runner.run(cast("Scenario", scenario), out=out, **options)


def test_all_together_then_each_alone(tmp_path: Path) -> None:
    scenario = FakeScenario()
    run = simulate(scenario, tmp_path / "run")
    together = [[job["name"] for job in engine.jobs] for engine in scenario.opened]
    assert sorted(together) == [["flood"], ["flood", "pairs"], ["pairs"]]
    assert all(engine.now == DURATION for engine in scenario.opened)
    # The fake's first job marks at half its pace beside others: 1 + 16 / 2 instead of 1 + 16 iterations.
    assert run.jobs["w"].to_list() == pytest.approx([9 / 17 - 1, 0])
    assert run.jobs["workload"].to_list() == ["flood pattern", "pairs pattern"]
    assert not run.meta.partial
    assert (run.meta.seed, run.meta.version, run.meta.duration_ps) == (3, "0.0.1", DURATION)


def test_the_folder_holds_all_of_it(tmp_path: Path) -> None:
    run = simulate(FakeScenario(), tmp_path / "run", figures=True)
    again = load_run(tmp_path / "run")
    # What comes after storing is known of the returned run only.
    assert run.meta.timings is not None
    stored = run.meta.timings.model_copy(update={"writing_s": None, "figures_s": None})
    assert again.meta == run.meta.model_copy(update={"timings": stored})
    assert run.meta.timings.calibration_s == FakeScenario.calibration_s
    assert None not in run.meta.timings.model_dump().values()
    assert again.jobs.equals(run.jobs)
    assert (tmp_path / "run" / "scenario.toml").read_text() == FakeScenario().text
    assert json.loads((tmp_path / "run" / "resolved.json").read_text()) == FakeScenario().spec
    pictures = sorted(path.name for path in (tmp_path / "run").glob("*.png"))
    assert pictures == [f"{name}.png" for name in ("calls", "interference", "iterations", "slowdown", "utilisation")]


def test_without_isolated_runs_w_is_unknown(tmp_path: Path) -> None:
    scenario = FakeScenario()
    run = simulate(scenario, tmp_path / "run", isolated=False)
    assert len(scenario.opened) == 1
    assert run.jobs["w"].to_list() == [None, None]
    assert not run.meta.partial


@pytest.mark.parametrize(("isolated", "opened"), [(True, 7), (False, 4)])
def test_all_without_each_where_that_is_asked_for(tmp_path: Path, *, isolated: bool, opened: int) -> None:
    scenario = FakeScenario([*JOBS, {"name": "ring", "hosts": [1, 0], "pace": MS}])
    run = simulate(scenario, tmp_path / "run", isolated=isolated, leave_one_out=True)
    assert len(scenario.opened) == opened
    assert run.lost_time is not None
    pairs = sorted(run.lost_time.select("victim", "aggressor").iter_rows())
    names = ["flood", "pairs", "ring"]
    assert pairs == [(one, other) for one in names for other in names if one != other]
    assert run.lost_time["w_without"].null_count() == (0 if isolated else 6)
    # The fake's first job marks at half its pace beside others; without it that is the next one.
    lost = {(row["victim"], row["aggressor"]): row["lost_share"] for row in run.lost_time.iter_rows(named=True)}
    assert lost["flood", "pairs"] == lost["ring", "pairs"] == 0
    assert lost["pairs", "flood"] < 0


def test_a_single_job_is_alone_already(tmp_path: Path) -> None:
    scenario = FakeScenario(JOBS[:1])
    run = simulate(scenario, tmp_path / "run")
    assert len(scenario.opened) == 1
    assert run.jobs["w"].to_list() == [0.0]
    assert run.jobs["isolated_iterations"].to_list() == run.jobs["iterations"].to_list() == [17]


def test_results_do_not_depend_on_the_number_of_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for cores in (1, 4):
        monkeypatch.setattr("os.sched_getaffinity", lambda _process, cores=cores: set(range(cores)), raising=False)
        runs.append(simulate(FakeScenario(), tmp_path / str(cores)))
    assert runs[0].meta.digest == runs[1].meta.digest
    assert all(table.equals(runs[1].tables()[name]) for name, table in runs[0].tables().items())


def test_a_folder_in_use_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    scenario = FakeScenario()
    with pytest.raises(ResultsError, match="exists and is not an empty directory"):
        simulate(scenario, tmp_path)
    assert scenario.opened == []


def test_an_interrupt_keeps_what_was_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes during the second slice of the co-run, which ends when the simulations have been told to stop."""
    stop, watched, slices = Event(), Event(), list[int]()

    def watching(*futures: Any, **options: Any) -> Any:
        watched.set()
        return wait(*futures, **options)

    monkeypatch.setattr(experiment, "Event", lambda: stop)
    monkeypatch.setattr("fairlane.sim.runner.experiment.wait", watching)

    class Interrupted(FakeEngine):
        def run_window_budget(self, picoseconds: int, max_hops: int) -> bool:
            reached = super().run_window_budget(picoseconds, max_hops)
            if len(self.jobs) == 2:
                slices.append(self.now)
                if len(slices) == 2:
                    assert watched.wait(HANG_S)
                    _thread.interrupt_main()
                    assert stop.wait(HANG_S)
            return reached

    run = simulate(FakeScenario(build=Interrupted), tmp_path / "run", figures=True)
    assert [run.meta.simulated_ps] == slices[1:], "no slice comes after it"
    assert run.meta.partial
    assert load_run(tmp_path / "run").meta.partial
    assert 0 < run.meta.simulated_ps < DURATION
    assert run.ranks["compute_ps"].to_list() == [run.meta.simulated_ps * 6 // 10] * 5
    assert run.jobs["w"].to_list() == [None, None], "nothing comparable was measured"
    assert list((tmp_path / "run").glob("*.png")) == []


@pytest.mark.parametrize("jobs", [1, 2], ids=["alone", "together"])
def test_an_error_of_one_simulation_ends_all(tmp_path: Path, jobs: int) -> None:
    class Stuck(FakeEngine):
        def run_window_budget(self, picoseconds: int, max_hops: int) -> bool:
            if len(self.jobs) == jobs and self.now >= 5 * MS:
                raise RunError("rank 1 of flood waits for ever", slug="stuck")
            return super().run_window_budget(picoseconds, max_hops)

    with pytest.raises(RunError, match="waits for ever") as caught:
        simulate(FakeScenario(build=Stuck), tmp_path / "run")
    assert caught.value.slug == "stuck"
    assert [path.name for path in tmp_path.iterdir()] == [".run.live"], "no results; the state has the error"


class Clock:
    """The time that progress is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def gauges() -> tuple[Gauge, dict[str, list[Gauge]]]:
    """Together a quarter done in 2 s; the first of two jobs alone is done, the second has not begun."""
    first, done = Gauge(60 * MS, 15 * MS, 4_000_000), Gauge(60 * MS, 60 * MS, 10, finished=True)
    for gauge in (first, done):
        gauge.started = 98.0
    first.since, done.spent = 98.0, 2.0
    return first, {"isolated": [done, Gauge(60 * MS)], "leave-one-out": [Gauge(60 * MS)]}


def test_lines_come_now_and_then(clock: Clock) -> None:
    console = Console(file=io.StringIO(), width=60)
    assert isinstance(console.file, io.StringIO)
    lines = Lines(console, *gauges())
    lines.update()
    assert console.file.getvalue() == "", "the first seconds need no line"
    clock.now += 3
    lines.update()
    lines.update()
    # 4 million packet-hops in 5 s. Of four simulations 1.25 are done after 5 s, so 2.75 take 11 s.
    others = "isolated: 1 of 2 jobs; leave-one-out: 0 of 1 job"
    text = f"co-run: 15.0 of 60 ms, 0.80 M packet-hops/s; {others}; about 11.0 s left\n"
    assert console.file.getvalue() == text


@pytest.mark.usefixtures("clock")
def test_bars_show_time_speed_and_jobs() -> None:
    console = Console(file=io.StringIO(), width=140, force_terminal=True, _environ={"TERM": "xterm"})
    with Bars(console, *gauges()) as bars:
        bars.update()
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for words in ("15.0 of 60 ms", "2.00 M packet-hops/s", "1 of 2 jobs", "leave-one-out", "0 of 1 job"):
        assert words in text
