"""Tasks: single things to compute, in plain data: they can be sent anywhere and are recognised when they come again.

``Computable`` is what can be performed and stored; its digest says which result it has: two with the same digest are
one. A ``Task`` is the usual kind. It names a function and a scenario in which all is written out. Of files that
a scenario refers to, size and time of change are part of its digest.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Protocol

from fairlane.engine import Engine, Watcher, drive

if TYPE_CHECKING:
    from fairlane.scenario import Resolved, Scenario

__all__ = ["Answer", "Computable", "Recognised", "Stopwatch", "Task", "files_of", "perform"]

ANCHORS = (".meta", ".otf2")
"""A recording can be named by a file of these; what it consists of is beside it."""
RECORDED = (*ANCHORS, ".bin", ".def")
"""Files of recordings; events of OTF2 are in a folder that is called as its anchor."""
Answer = dict[str, Any]
"""What comes of a task: JSON, the same wherever it was computed."""


class Recognised(Protocol):
    """What can be stored with its result, and recognised when it comes again."""

    @property
    def label(self) -> str:
        """What it is, for people."""

    @property
    def cost(self) -> float:
        """About how long it takes, compared with others."""

    @property
    def digest(self) -> str:
        """The same for those that have the same result."""


class Computable(Recognised, Protocol):
    """What workers can perform: an object that can be pickled."""

    @property
    def written(self) -> Mapping[str, Any]:
        """What it computes, as tables of a TOML file."""

    def compute(self, watch: Stopwatch) -> Answer:
        """Computes it, in whatever process this is."""


@dataclass(frozen=True)
class Task:
    """A function of a scenario."""

    function: str
    """``module:name`` of a function that takes the scenario, the arguments and a ``Stopwatch``, and returns JSON."""
    scenario: Mapping[str, Any]
    """The scenario's data, as in its TOML."""
    folder: str
    """What relative paths in it are relative to."""
    label: str
    """What it is, for people."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """What else the function takes."""
    cost: float = 1.0
    """About how long it takes, compared with others."""

    @cached_property
    def digest(self) -> str:
        """The same for tasks that have the same result."""
        key = {"function": self.function, "scenario": self.scenario, "arguments": self.arguments}
        text = json.dumps([key, sorted(set(files_of(self.scenario, Path(self.folder))))], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:32]

    @property
    def written(self) -> Mapping[str, Any]:
        """Its scenario, which can be run by itself."""
        return self.scenario

    def compute(self, watch: Stopwatch) -> Answer:
        """Calls the function."""
        with watch.lap("set-up"):
            function, scenario = resolve_name(self.function), read(self)
        answer: Answer = function(scenario, self.arguments, watch)
        return answer


def files_of(value: Any, folder: Path) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of every file that a string in the data names; of a recording of many files, of all."""
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
        yield from _stamp(folder / (name if colon and name.endswith(".py") else value))


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
    """Where the time of a task goes, s, and how far it is."""

    laps: dict[str, float] = field(default_factory=dict)
    told: Callable[[float], None] | None = None
    """Is told which share of the task is done."""

    def reached(self, share: float) -> None:
        """So much of the task is done, from 0 to 1."""
        if self.told is not None:
            self.told(share)

    def drive(
        self,
        resolved: Resolved,
        done: Callable[[Engine], bool] | None = None,
        watchers: Sequence[Watcher] = (),
    ) -> Engine:
        """Simulates a scenario for its duration, or until ``done``, and reports how far it is. Raises ``RunError``."""
        engine: Engine = resolved.engine()

        def report(engine: Engine) -> None:
            self.reached(min(1.0, engine.now / resolved.duration))

        drive(engine, resolved.duration, done=done, watchers=watchers, progress=report)
        return engine

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Counts what happens within as ``name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.laps[name] = self.laps.get(name, 0.0) + time.perf_counter() - start


def perform(task: Computable, told: Callable[[float], None] | None = None) -> dict[str, Any]:
    """Computes a task in whatever process this is; ``told`` is called with the share of it that is done.

    The outcome has ``answer`` or ``error`` in words, ``laps``, and the processor time ``cpu``, s. An error is data, to
    come home from anywhere.
    """
    from fairlane.errors import FairlaneError

    watch, begun, used = Stopwatch(told=told), time.perf_counter(), time.process_time()
    found: dict[str, Any]
    try:
        found = {"answer": task.compute(watch)}
    except FairlaneError as error:
        found = {"error": str(error)}
    except Exception as error:  # of a user's own workload, or of a controller
        found = {"error": f"{type(error).__name__}: {error}"}
    rest = time.perf_counter() - begun - sum(watch.laps.values())
    laps = {**watch.laps, "set-up": watch.laps.get("set-up", 0.0) + max(0.0, rest)}
    return {**found, "laps": laps, "cpu": time.process_time() - used}


def read(task: Task) -> Scenario:
    """The task's scenario."""
    from fairlane.inputs.document import Document, current_document
    from fairlane.scenario import Scenario

    data = json.loads(json.dumps(dict(task.scenario)))
    # Whoever made the task has read the scenario that it is of, with permission for the code in it.
    token = current_document.set(Document(data, Path(task.folder) / "scenario.toml", allow_code=True))
    try:
        return Scenario(**data)
    finally:
        current_document.reset(token)
