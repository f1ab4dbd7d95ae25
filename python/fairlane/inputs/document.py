"""A TOML file with the line of every key, so that an error can say where it stands."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.files import NestingError, parse_toml, read_text, reading

_T = TypeVar("_T")
KeyPath = tuple[str | int, ...]  # where a value stands: ("jobs", 2, "workload", "message_size")


_MOST_PARSED = 8 << 20  # letters that are parsed to find the lines of keys; what comes later has no lines in messages


def dotted(path: Sequence[str | int]) -> str:
    """The path as people write it: ``jobs[2].workload.message_size``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def undotted(key: str) -> KeyPath:
    """The path behind what ``dotted`` writes."""
    return tuple(int(number) if number else name for number, name in re.findall(r"\[(\d{1,9})\]|([^.\[\]]+)", key))


@dataclass(frozen=True)
class Document:
    """Source of a scenario: its data, and the place of each key."""

    data: dict[str, Any]
    file: Path | None = None
    text: str = ""
    lines: dict[KeyPath, int] = field(default_factory=dict)
    assignments: dict[KeyPath, str] = field(default_factory=dict)  # what the command line set, by path
    places: dict[KeyPath, tuple[str, int | None, KeyPath]] = field(default_factory=dict)
    """File and line of what another file, such as a study, has set, and how it is called there; by path."""
    allow_code: bool = field(default_factory=lambda: current_document.get().allow_code)
    """Whether code that it names may run; without another choice that of the document within which it is read."""

    @classmethod
    def read(cls, file: Path, *, allow_code: bool = False) -> "Document":
        """Reads a TOML file; a ``ScenarioError`` names the file, and the line if the TOML itself is wrong."""
        with reading(file):
            text = read_text(file)
            data = parse_toml(text)
        allowed = allow_code or current_document.get().allow_code
        return cls(data, file, text, dict(reversed(list(_lines(text)))), allow_code=allowed)

    @property
    def folder(self) -> Path:
        """Folder of relative paths in the scenario."""
        return self.file.parent if self.file else Path()

    def locate(self, problem: Problem, path: Sequence[str | int]) -> Problem:
        """The problem with the file and line (or command-line option) that set the innermost known key of ``path``.

        What another file has set at ``path`` or within comes first; a key that it has set is as it is called there.
        """
        within = [place for key, place in self.places.items() if path and key[: len(path)] == tuple(path)]
        if within and tuple(path) not in self.places:
            return problem.at(*within[0][:2])
        lines = {dotted(key): line for key, line in self.lines.items()}  # keys may have dots in them
        for length in range(len(path), 0, -1):
            prefix = tuple(path[:length])
            if prefix in self.assignments:
                return problem.at(f"--set {self.assignments[prefix]}", None)
            if prefix in self.places:
                file, line, there = self.places[prefix]
                called = replace(problem, key=dotted((*there, *path[length:])))
                return problem if problem.file else called.at(file, line)
            if dotted(prefix) in lines:
                return problem.at(str(self.file), lines[dotted(prefix)])
        return problem.at(str(self.file), None) if self.file else problem

    def take(self, path: KeyPath, value: Any, place: tuple[str, int | None, KeyPath]) -> None:
        """Sets a value from another file in place of the present one and its lines. ``LookupError`` as ``assign``."""
        assign(self.data, path, value)
        for known in (self.lines, self.places):
            for key in [key for key in known if key[: len(path)] == path]:
                del known[key]
        self.places[path] = place

    def set(self, assignment: str) -> None:
        """Applies ``key.path=value`` of the command line; the value is TOML, or a plain string if it is not."""
        key, equals, value = assignment.partition("=")
        steps = [int(step) if re.fullmatch("[0-9]{1,9}", str(step)) else step for step in undotted(key.strip())]
        if not equals or not steps:
            raise ScenarioError(Problem("--set", "is no assignment", assignment, "KEY.PATH=VALUE"))
        try:
            parsed = parse_toml(f"value = {value}")["value"]
        except NestingError as error:
            raise ScenarioError(Problem("--set", str(error), key)) from None
        except (tomllib.TOMLDecodeError, KeyError):
            parsed = value.strip()
        try:
            assign(self.data, steps, parsed)
        except LookupError as error:
            raise ScenarioError(Problem("--set", str(error.args[0]), assignment)) from None
        self.assignments[tuple(steps)] = assignment


_NOWHERE = Document({}, allow_code=False)
current_document: ContextVar[Document] = ContextVar("current_document", default=_NOWHERE)
"""The document whose values are being validated: validators of paths ask it for its folder."""


@contextmanager
def override(variable: ContextVar[_T], value: _T) -> Iterator[None]:
    """Within, a context variable has another value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def assign(data: Any, steps: Sequence[str | int], value: Any) -> None:
    """Sets the value at a path of nested tables; ``LookupError`` names the step that does not exist."""
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        is_list = isinstance(data, list)
        fits = isinstance(step, int) and step < len(data) if is_list else isinstance(data, dict)
        if not fits:
            raise LookupError(f"there is no {step!r} to go into")
        key: Any = step if is_list else str(step)
        if after is None:
            data[key] = value
        elif not is_list and key not in data:
            data[key] = {}
        data = data[key]


def _lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Each key's path and line. The text is valid TOML, so a statement is the shortest run of lines that is."""
    table: KeyPath = ()
    counts: dict[KeyPath, int] = {}
    statement, start, parsed_so_far = "", 1, 0
    for number, line in enumerate(text.split("\n"), 1):
        statement, start = (f"{statement}\n{line}", start) if statement else (line, number)
        parsed_so_far += len(statement)
        if parsed_so_far > _MOST_PARSED:  # a value over thousands of lines
            return
        try:
            parsed = tomllib.loads(statement)
        except ValueError:
            continue
        paths = list(_keys(parsed))
        if statement.lstrip().startswith("["):
            table = _table(paths[-1], statement.lstrip().startswith("[["), counts)
            paths = [()]
            if isinstance(table[-1], int):
                yield table[:-1], start
        yield from (((*table, *path), start) for path in paths)
        statement = ""


def _keys(value: Any) -> Iterator[KeyPath]:
    """The paths of the keys that a statement sets, those within inline tables included."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (key,)
            yield from ((key, *rest) for rest in _keys(inner))


def _table(names: KeyPath, is_array: bool, counts: dict[KeyPath, int]) -> KeyPath:
    """The path that a header opens: names of arrays of tables are followed by the number of their latest table."""
    path: KeyPath = ()
    for depth, name in enumerate(names, 1):
        path = (*path, name)
        if is_array and depth == len(names):
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path
