"""Rows of CSV files, plain or packed by ``xz``, with checked columns and errors that name file, line and column.

*Lines around the output of a tool that a terminal, a script or a message has added.* Shell prompts, the command itself,
warnings of the tool, time stamps of a loop, fences of a Markdown block.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import isfinite
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.core.wording import plural
from fairlane.inputs.files import content_lines, encoding_of, read_unpacked, reading

LONGEST_S = 1e6
"""Every time is shorter, s."""
_UNIT = re.compile(
    r"(.+)_([munp]?s|(?:micro|milli|nano)?sec(?:onds)?|min|h|[kmgt]?i?b|(?:[kmg]i?)?(?:bytes|bits))", re.I
)

csv.field_size_limit(16 << 20)  # the nodes of a job may be those of a whole cluster


class Row(dict[str, str]):
    """The cells of a line by column, with its place."""

    def __init__(self, cells: Iterable[tuple[str, str]], file: Path, line: int) -> None:
        super().__init__(cells)
        self.file, self.line = file, line

    def problem(self, column: str, message: str, allowed: str | None = None, names: Iterable[str] = ()) -> Problem:
        """Report the fault of a cell; ``names`` are those that it may have meant."""
        value = self.get(column, "")
        return Problem(column, message, value or None, allowed, nearest(value, names), str(self.file), self.line)

    def one_of(self, column: str, names: Sequence[str]) -> str:
        """One of these names. Raises ``ScenarioError``, as the following do."""
        if self[column] not in names:
            raise ScenarioError(self.problem(column, f"unknown {column}", ", ".join(names), names))
        return self[column]

    def whole(self, column: str, most: int = 10**12) -> int:
        """A whole number from 1."""
        text = self[column]
        if not (text.isascii() and text.isdecimal() and len(text) < 20 and 1 <= int(text) <= most):
            raise ScenarioError(self.problem(column, "not a valid number", f"a whole number from 1 to {most}"))
        return int(text)

    def seconds(self, column: str, *, zero: bool = False) -> float:
        """A time above zero, or one that may be zero."""
        text = self[column]
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not (isfinite(value) and 0 <= value < LONGEST_S and (value or zero)) or text.startswith("-"):
            message = "not a valid time" if zero else "not a time above zero"
            raise ScenarioError(self.problem(column, message, "seconds, as 0.000012"))
        return value

    def seconds_if_given(self, column: str) -> float | None:
        """A time above zero; None if the cell is empty or there is no such column."""
        return self.seconds(column) if self.get(column) else None


def read_rows(
    path: Path, required: Sequence[str], optional: Sequence[str] = (), *, others: bool = False
) -> Iterator[Row]:
    """The rows of a file, as ``rows_of`` reads them."""
    with reading(path):
        raw = read_unpacked(path)
        text = raw.decode(encoding_of(raw))
    return rows_of(text, path, required, optional, others=others)


def rows_of(
    text: str, file: Path, required: Sequence[str], optional: Sequence[str] = (), *, others: bool = False
) -> Iterator[Row]:
    """The rows of a CSV text without empty lines and those that begin with ``#``.

    ``ScenarioError`` for lines that are cut off, and for columns that are missing, repeated, in another unit or, unless
    ``others`` may be there, unknown.
    """
    lines = content_lines(text)
    first, names = next(lines, (1, ""))
    header = _cells(names, file, first)
    known = [*required, *optional]
    problems = [Problem(name, "duplicate column") for name in dict.fromkeys(header) if header.count(name) > 1]
    units = {match[1]: name for name in known if (match := _UNIT.fullmatch(name))}
    rest = [name for name in header if name not in known]
    missing = [name for name in required if name not in header]
    for name in rest:
        if (match := _UNIT.fullmatch(name)) and (meant := units.get(match[1])) and meant not in header:
            problems.append(Problem(name, "is in another unit", allowed=meant))
            missing = [name_of for name_of in missing if name_of != meant]
        elif not others:
            problems.append(Problem.unknown(name, "column", name, known))
    if missing:
        more = f", and the file has {', '.join(rest)[:200]}" if others and rest else ""
        message = f"missing column{more}" if header else "the file is empty"
        problems.append(Problem(", ".join(missing) if header else "", message, allowed=", ".join(known)))
    if problems:
        raise ScenarioError(problem.at(str(file), first) for problem in problems)
    for number, line in lines:
        cells = _cells(line, file, number)
        if len(cells) != len(header):
            message = f"has {len(cells)} cells, and the header {len(header)}: is the file cut off?"
            raise ScenarioError(Problem.of_file(file, message, number))
        yield Row(zip(header, cells, strict=True), file, number)


def _cells(line: str, file: Path, number: int) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line]), [])]
    except csv.Error as error:
        raise ScenarioError(Problem.of_file(file, f"not CSV: {error}", number)) from None


_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b.*\b\d{2}:\d{2}:\d{2}\b.*"
_ISO = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?\S*(?: [+-]\d{4})?)?"
_EPOCH = r"(?:time|timestamp|date)\b\W*\d{9,19}(?:\.\d{1,9})?|\d{10,19}(?:\.\d{1,9})?"


_LONGEST = 2000  # characters of such a line


@cache
def _shapes(tool: str) -> Mapping[str, re.Pattern[str]]:
    return {
        "shell prompt": re.compile(
            r"(?:\(\S+\)\s*)?(?:\[[^\]\s]*@[^\]]*\]|[\w.-]+@[\w.-]+(?::\S*)?|[\w.-]*)\s?\S{0,80}[$#%>](?:\s.*)?"
        ),
        "warning of the tool": re.compile(rf"(?:\S*/)?(?:(?:ibwarn|iberror|ibpanic|{tool}):|src/\S+:).*"),
        "command": re.compile(rf"(?:sudo\s+)?(?:\S*/)?{tool}\b.*"),
        "time stamp": re.compile(f"{_DAY}|{_ISO}|{_EPOCH}"),
        "Markdown fence": re.compile(r"(?:```|~~~)\w*"),
    }


def added_by_paste(line: str, tool: str) -> str | None:
    """Name a stripped line in the output of ``tool``, if it is none of the tool's: a shell prompt, a command ..."""
    if len(line) > _LONGEST:
        return None
    return next((what for what, shape in _shapes(tool).items() if shape.fullmatch(line)), None)


@dataclass
class Skipped:
    """Lines of a file that were not read, counted by what they are."""

    kinds: Counter[str] = field(default_factory=Counter)
    first: int | None = None
    """The first of them."""

    def add(self, what: str, line: int) -> None:
        """Counts a line."""
        self.first = line if self.first is None else self.first
        self.kinds[what] += 1

    @property
    def note(self) -> str | None:
        """A note with the counts; None if no line was skipped."""
        if self.first is None:
            return None
        counts = ", ".join(f"{number} {what}" for what, number in self.kinds.items())
        lines = plural(self.kinds.total(), "line")
        return f"{lines} skipped (first: line {self.first}): {counts}"
