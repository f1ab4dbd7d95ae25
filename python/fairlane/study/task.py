"""A task: one thing to compute, in plain data, so that it can be sent anywhere and is recognised when it comes again.

A task names a function by its module and a scenario in which all is written out. Its digest says which result it has:
two tasks with the same digest are one. Of files that a scenario refers to, size and time of change are part of it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane.scenario import Scenario

__all__ = ["Stopwatch", "Task", "perform"]

Answer = dict[str, Any]
"""What a task's function returns: JSON, the same wherever it was computed."""


@dataclass(frozen=True)
class Task:
    """What to compute."""

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
        text = json.dumps([key, sorted(set(_files(self.scenario, Path(self.folder))))], sort_keys=True)
        return sha256(text.encode()).hexdigest()[:32]


def _files(value: Any, folder: Path) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of every file that a string in the data names."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _files(inner, folder)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _files(inner, folder)
    elif isinstance(value, str) and ("/" in value or "." in value):
        name, colon, _ = value.rpartition(":")  # file.py:ClassName
        path = folder / (name if colon and name.endswith(".py") else value)
        try:
            stat = path.stat()
        except (OSError, ValueError):
            return
        yield str(path), stat.st_size, stat.st_mtime_ns


@dataclass
class Stopwatch:
    """Where the time of a task goes, s."""

    laps: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def lap(self, name: str) -> Iterator[None]:
        """Counts what happens within as ``name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.laps[name] = self.laps.get(name, 0.0) + time.perf_counter() - start


def perform(task: Task) -> dict[str, Any]:
    """Computes a task in whatever process this is.

    The outcome has ``answer``, or ``error`` in words, and ``laps``. An error is data, to come home from anywhere.
    """
    from fairlane.errors import FairlaneError

    watch, begun = Stopwatch(), time.perf_counter()
    found: dict[str, Any]
    try:
        with watch.lap("set-up"):
            function, scenario = resolve_name(task.function), read(task)
        found = {"answer": function(scenario, task.arguments, watch)}
    except FairlaneError as error:
        found = {"error": str(error)}
    except Exception as error:  # of a user's own workload, or of a controller
        found = {"error": f"{type(error).__name__}: {error}"}
    rest = time.perf_counter() - begun - sum(watch.laps.values())
    return {**found, "laps": {**watch.laps, "set-up": watch.laps.get("set-up", 0.0) + max(0.0, rest)}}


def read(task: Task) -> Scenario:
    """The task's scenario."""
    from fairlane.inputs.document import Document, current_document
    from fairlane.scenario import Scenario

    data = json.loads(json.dumps(dict(task.scenario)))
    token = current_document.set(Document(data, Path(task.folder) / "scenario.toml"))
    try:
        return Scenario(**data)
    finally:
        current_document.reset(token)
