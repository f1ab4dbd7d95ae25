"""Tasks: pure functions of plain data, which can be sent to any process and are recognised when they come again.

``Computable`` is what an executor needs of a task; its digest says which answer it has: two tasks with the same digest
are one. A ``Task`` is the usual kind. It names a function and a scenario in which all is written out. Of files that
a scenario refers to, size and time of change are part of its digest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from pkgutil import resolve_name
from threading import Event
from typing import Any, Protocol

from fairlane.core.drive import Engine, Watcher, drive
from fairlane.core.errors import FairlaneError, RunError, ScenarioError
from fairlane.core.units import DURATION
from fairlane.inputs.document import Document
from fairlane.model.scenario import Resolved, Scenario
from fairlane.study.tasks.closure import beside, sources

ANCHORS = (".meta", ".otf2")
"""Suffixes of files that name a recording; its other files are in the same folder."""
RECORDED = (*ANCHORS, ".bin", ".def")
"""Suffixes of files of recordings; events of OTF2 are in a folder with the name of its anchor."""
SCENARIO = "scenario.toml"
"""File name of a task's scenario in errors while it is read; there is no such file."""
Answer = dict[str, Any]
"""The JSON object that a task returns, the same wherever it was computed."""


class Computable(Protocol):
    """A task; workers in other processes get it pickled."""

    @property
    def label(self) -> str:
        """Name in progress and errors."""

    @property
    def cost(self) -> float:
        """Estimated time, relative to other tasks."""

    @property
    def digest(self) -> str:
        """Identifier of the answer: tasks with equal digests are one."""

    @property
    def description(self) -> Mapping[str, Any]:
        """The tables of a TOML file with which a failed task can be repeated."""

    def compute(self, watch: Stopwatch) -> Answer:
        """Compute the answer. Raises ``FairlaneError``, or whatever a user's own code raises."""


@dataclass(frozen=True)
class Task:
    """A function of a scenario, which has paths relative to ``folder``, and of other arguments.

    Without a function it is only a scenario, of which tasks are made.
    """

    function: str
    """``module:name`` of a function that takes the scenario, the arguments and a ``Stopwatch``, and returns JSON."""
    scenario: Mapping[str, Any]
    """The scenario's data, as in its TOML."""
    folder: str
    label: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cost: float = 1.0

    @cached_property
    def digest(self) -> str:
        """Digest of function, scenario, arguments and the files that these name."""
        key = {"function": self.function, "scenario": self.scenario, "arguments": self.arguments}
        return digest_of([key, sorted(set(files_of([self.scenario, self.arguments], Path(self.folder))))])

    @property
    def description(self) -> Mapping[str, Any]:
        """Its scenario, which can be run by itself."""
        return self.scenario

    def compute(self, watch: Stopwatch) -> Answer:
        """Calls the function."""
        try:
            with watch.lap("set-up"):
                function, scenario = resolve_name(self.function), read(self)
            answer: Answer = function(scenario, self.arguments, watch)
        except ScenarioError as error:  # its scenario is in no file
            file = str(Path(self.folder) / SCENARIO)
            problems = (replace(problem, file=None) if problem.file == file else problem for problem in error.problems)
            raise ScenarioError(problems) from error
        return answer

    @property
    def names(self) -> list[str]:
        """The jobs' names."""
        return [job["name"] for job in self.scenario["jobs"]]

    def of(self, function: str, label: str, arguments: Mapping[str, Any] | None = None, runs: int = 1) -> Task:
        """A task on this scenario, in which about ``runs`` simulations of its duration are made."""
        words, cost = f"{self.label}: {label}", runs * cost_of(self.scenario)
        return replace(self, function=function, label=words, arguments=arguments or {}, cost=cost)

    def changed(self, **tables: Any) -> Task:
        """Replace tables of the scenario."""
        return replace(self, scenario={**self.scenario, **tables})

    def with_compute_times(self, compute: Sequence[int | None]) -> Task:
        """Set the compute time of each job, ps; None leaves a trace as it is."""
        jobs = []
        for job, span in zip(self.scenario["jobs"], compute, strict=True):
            workload = {key: value for key, value in job.get("workload", {}).items() if key != "compute_share"}
            jobs.append(job if span is None else {**job, "workload": {**workload, "compute": f"{span} ps"}})
        return self.changed(jobs=jobs)

    def isolated(self, job: int) -> Task:
        """One job by itself: on its hosts, with its random numbers, on a fabric with the lanes of all jobs."""
        return self.only([job])

    def only(self, jobs: Sequence[int]) -> Task:
        """Some jobs, on their hosts, with their random numbers, on a fabric with the lanes of all."""
        kept = [self.scenario["jobs"][job] for job in jobs]
        names = {job["name"] for job in kept}
        tables = {"observe": _observing, "classes": _selecting}
        return self.changed(
            jobs=kept, **{key: of(self.scenario[key], names) for key, of in tables.items() if key in self.scenario}
        )


def _observing(observe: Mapping[str, Any], jobs: Set[str]) -> dict[str, Any]:
    """The table ``observe`` without the keys that refer to absent jobs."""
    of_job = ("record", "switch_counters")
    kept = {key: value for key, value in observe.items() if key not in of_job or value["job"] in jobs}
    return {**kept, "iterations": [name for name in observe.get("iterations", ()) if name in jobs]}


def _selecting(classes: Mapping[str, Any], jobs: Set[str]) -> dict[str, Any]:
    """The classes that select messages of these jobs, whose communicators absent jobs may have had."""
    kept = {}
    for name, table in classes.items():
        selected = None if "job" not in table else [job for job in table["job"] if job in jobs]
        if selected is None or selected:
            kept[name] = {**table, "allow_missing": True} | ({} if selected is None else {"job": selected})
    return kept


def cost_of(scenario: Mapping[str, Any]) -> float:
    """About how long a simulation of a scenario takes, compared with others: ranks times duration."""
    return float(sum(job.get("ranks", 1) for job in scenario["jobs"]) * DURATION.parse(scenario["duration"]) * 1e-9)


def digest_of(data: Any) -> str:
    """A digest of plain data."""
    return sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:32]


def files_of(value: Any, folder: Path) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of every file that a string in the data names; of a recording of many files, of all.

    Of Python files also those beside them that they import, and the digest of what they use of fairlane.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == "path" and isinstance(inner, str):
                yield from _recording(folder / inner)
            else:
                yield from files_of(inner, folder)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from files_of(inner, folder)
    elif isinstance(value, str) and ("/" in value or "." in value):
        name, colon, _ = value.rpartition(":")  # file.py:ClassName
        path = folder / (name if colon and name.endswith(".py") else value)
        yield from _stamp(path)
        if path.suffix == ".py" and path.is_file():
            for other in beside(path):
                yield from _stamp(other)
            yield sources(path), 0, 0


def _recording(path: Path) -> Iterator[tuple[str, int, int]]:
    """As ``files_of``, for a file or the files of a recording, but not for what else is there, as a study's answers."""
    try:
        folder = path if path.is_dir() else path.parent
        alone = not path.is_dir() and path.suffix not in ANCHORS
        files = [path] if alone else [file for file in folder.iterdir() if file.suffix in RECORDED]
    except (OSError, ValueError):
        return
    for file in files:
        yield from _stamp(file)
        if file.suffix == ".otf2":
            for events in file.with_suffix("").glob("*.*"):
                yield from _stamp(events)


def _stamp(path: Path) -> Iterator[tuple[str, int, int]]:
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return
    yield str(path), stat.st_size, stat.st_mtime_ns


@dataclass
class Stopwatch:
    """Time of a task by activity, s, and the share of it that is done, from 0 to 1, which is reported to ``report``.

    ``stop`` is set to end the task early; its answer is then discarded.
    """

    laps: dict[str, float] = field(default_factory=dict)
    share: float = 0.0
    report: Callable[[float], None] | None = None
    stop: Event | None = None

    def reached(self, share: float) -> None:
        """Set the share that is done, from 0 to 1."""
        self.share = share
        if self.report is not None:
            self.report(share)

    def drive(
        self,
        resolved: Resolved,
        done: Callable[[Engine], bool] | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Engine:
        """Simulates a scenario for its duration, or until ``done``, and reports how far it is. Raises ``RunError``."""
        engine: Engine = resolved.engine()
        self.advance(engine, resolved.duration, resolved.duration, done, watchers)
        return engine

    def advance(
        self,
        engine: Engine,
        until: int,
        duration: int,
        done: Callable[[Engine], bool] | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        """Continues a simulation of ``duration`` until an instant, ps. Raises ``RunError``, also if it is stopped."""

        def report(engine: Engine) -> None:
            self.reached(min(1.0, engine.now / duration))

        drive(engine, until, done=done, watchers=watchers, progress=report, stop=self.stop)
        if self.stop is not None and self.stop.is_set():
            raise RunError("stopped", slug="stopped")

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Add the time spent within to the lap ``name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.laps[name] = self.laps.get(name, 0.0) + time.perf_counter() - start


@dataclass(frozen=True)
class Outcome:
    """Outcome of a task: its answer or its error, time by activity and processor time, s."""

    answer: Answer | None = None
    error: str | None = None
    raised: FairlaneError | None = None
    """The error, if it is one of fairlane's own."""
    laps: Mapping[str, float] = field(default_factory=dict)
    cpu: float = 0.0

    @property
    def seconds(self) -> float:
        """Wall time, s."""
        return sum(self.laps.values())


def perform(
    task: Computable, watch: Stopwatch | None = None, clock: Callable[[], float] = time.process_time
) -> Outcome:
    """Compute a task in this process; errors are returned as data. ``clock`` measures processor time, s."""
    watch = watch or Stopwatch()
    begun, used = time.perf_counter(), clock()
    answer, error, raised = None, None, None
    try:
        answer = task.compute(watch)
    except FairlaneError as known:
        error, raised = str(known), known
    except Exception as unknown:  # of a user's own workload, or of a controller
        error = f"{type(unknown).__name__}: {unknown}"
    rest = time.perf_counter() - begun - sum(watch.laps.values())
    laps = {**watch.laps, "set-up": watch.laps.get("set-up", 0.0) + max(0.0, rest)}
    return Outcome(answer, error, raised, laps, clock() - used)


def read(task: Task) -> Scenario:
    """The task's scenario."""
    data = json.loads(json.dumps(dict(task.scenario)))
    # Whoever made the task has read the scenario that it is of, with permission for the code in it.
    return Scenario.of(Document(data, Path(task.folder) / SCENARIO, allow_code=True))
