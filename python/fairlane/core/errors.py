"""Errors, one type for each phase: reading a scenario, building a simulation, running it.

The library raises and never prints; the command line turns ``ScenarioError`` into exit code 2 and ``RunError`` into 1.
"""

import errno
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

__all__ = [
    "BuildError",
    "FairlaneError",
    "Problem",
    "RunError",
    "ScenarioError",
    "disk_full",
    "nearest",
]


def nearest(given: str, allowed: Iterable[str]) -> str | None:
    """The allowed name that ``given`` was probably meant to be, or None if none is near."""
    from rapidfuzz.fuzz import ratio
    from rapidfuzz.process import extractOne
    from rapidfuzz.utils import default_process

    match = extractOne(given, list(allowed), scorer=ratio, processor=default_process, score_cutoff=60)
    return str(match[0]) if match else None


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with an input: where it stands, what it is, and what it could be."""

    key: str
    """Dotted path of the key, as ``jobs[2].workload.message_size``."""
    message: str
    """The fault, as a phrase."""
    value: Any = None
    """The value given, if there is one."""
    allowed: str | None = None
    """Allowed values: a phrase or a list of names."""
    nearest: str | None = None
    """The allowed name that was probably meant."""
    file: str | None = None
    """The file that was read; None for a scenario that was built in Python."""
    line: int | None = None
    """The line of the file, from 1."""

    @classmethod
    def unknown(cls, key: str, kind: str, given: str, allowed: Sequence[str], value: Any = None) -> "Problem":
        """A name that no table knows."""
        return cls(key, f"unknown {kind}", value, ", ".join(allowed), nearest(given, allowed))

    @classmethod
    def of_file(cls, file: Path, message: str, line: int | None = None, allowed: str | None = None) -> "Problem":
        """Report a fault of a file or one of its lines, whatever key it is about."""
        return cls("", message, allowed=allowed, file=str(file), line=line)

    def under(self, prefix: str) -> "Problem":
        """The same problem seen from further out: its key gets a prefix."""
        if not self.key or not prefix:
            return replace(self, key=prefix or self.key)
        return replace(self, key=f"{prefix}{self.key}" if self.key.startswith("[") else f"{prefix}.{self.key}")

    def at(self, file: str | None, line: int | None) -> "Problem":
        """The same problem with its place in a file, unless it has one already."""
        return self if self.file else replace(self, file=file, line=line)

    def __str__(self) -> str:
        place = "" if self.file is None else f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        given = "" if self.value is None else f" = {_shown(self.value)}"
        subject = f"{self.key}{given}: " if self.key else ""
        allowed = f"; allowed: {self.allowed}" if self.allowed else ""
        hint = f'; did you mean "{self.nearest}"?' if self.nearest else ""
        return f"{place}{subject}{self.message}{allowed}{hint}"


def _shown(value: Any, limit: int = 80) -> str:
    if isinstance(value, list | dict):
        text = json.dumps(value, default=str, ensure_ascii=False, skipkeys=True)
    else:
        text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def disk_full(error: BaseException) -> bool:
    """Whether an error, or one of its causes, is that a disk or a quota is full."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "os error 28" in str(seen) or "[errno 28]" in str(seen).lower():  # libraries that keep the words only
            return True
        seen = seen.__cause__ or seen.__context__
    return False


class FairlaneError(Exception):
    """The base of every error that fairlane raises on purpose."""


class ScenarioError(FairlaneError, ValueError):
    """An input is wrong. It carries every problem that was found, not only the first."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type["ScenarioError"], tuple[tuple[Problem, ...]]]:
        """Sent to another process, it keeps its problems."""
        return type(self), (self.problems,)


class BuildError(FairlaneError, ValueError):
    """A simulation cannot be built from values that the scenario alone could not judge. The simulator raises it."""

    def __init__(
        self,
        message: str,
        *,
        slug: str = "value",
        path: str | None = None,
        value: str | None = None,
        allowed: str | None = None,
    ) -> None:
        super().__init__(message)
        self.slug = slug
        """Its kind: ``unknown_name``, ``value`` or ``shape``."""
        self.path = path
        """The key of the scenario that it is about, if it is about one; what was looked up for an ``unknown_name``."""
        self.value = value
        """The value given."""
        self.allowed = allowed
        """Allowed values: names, a range, or the fault of the shape."""

    @property
    def problem(self) -> Problem:
        """The same as a problem of the scenario's key."""
        key = (self.path or "").replace(".params", "")
        if self.slug == "unknown_name" and self.value is not None:
            names = (self.allowed or "").split(", ")
            return Problem.unknown("", key, self.value, names, self.value)
        if self.allowed is None:
            return Problem(key, str(self))
        return Problem(key, self.allowed, None if self.value is None else _plain(self.value))


def _plain(value: str) -> Any:
    """A value that the simulator shows: a number or a list if it is one, else text."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


class RunError(FairlaneError, RuntimeError):
    """A run had to end: ranks that can never go on, collectives that do not match, an unreadable trace."""

    def __init__(self, message: str, *, slug: str = "run", cycle: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.slug = slug
        """Its kind: ``stuck``, ``collective_mismatch``, ``program``, ``source``, ``too_many_messages``, ``deadlock``
        or ``law``."""
        self.cycle = tuple(cycle)
        """Of a deadlock the lanes that wait for each other: ``link``, ``name``, ``lane``, ``vl``, ``packets`` and the
        numbers of ``jobs``, from 0."""


EXTRAS = {
    "predict": "sklearn",
    "schedule": "networkx",
    "dask": "distributed",
    "serve": "tornado",
    "timeline": "perfetto",
}
"""For each extra a module that it brings; ``papers`` brings those of the first two."""


class MissingExtraError(FairlaneError, ImportError):
    """A library of an extra is not installed."""


def require(extra: Literal["predict", "schedule", "dask", "serve", "timeline"]) -> None:
    """Raises ``MissingExtraError``, which names the command that installs it, if the library of an extra is missing."""
    try:
        import_module(EXTRAS[extra])
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != EXTRAS[extra]:
            raise
        raise MissingExtraError(f'{EXTRAS[extra]} is not installed: pip install "fairlane[{extra}]"') from None


class ResultsError(FairlaneError, ValueError):
    """A run's folder that cannot be read or written, or a query that cannot be answered.

    The message names the file or query, what is wrong with it, and what is allowed or nearest.
    """


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn errors of a file's disk or folder into a ``ResultsError`` that names it."""
    from polars.exceptions import PolarsError

    try:
        yield
    except (OSError, PolarsError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ResultsError(f"{path}: cannot be written: {reason}") from error
