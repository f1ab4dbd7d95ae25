"""CSV files of campaigns: lines by column, numbers that are checked, and errors that name file and line."""

import csv
from collections.abc import Iterator, Sequence
from math import isfinite
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import lines_of, reading
from fairlane.inputs.packed import read_unpacked

LONGEST_S = 1e6
"""Times from here on are none."""


def lines(file: Path, columns: Sequence[str], comment: str = "") -> Iterator[tuple[int, dict[str, str]]]:
    """Number and cells, by column, of the lines of a CSV file, which may be packed by ``xz``.

    Raises ``ScenarioError`` if one of ``columns`` is missing, or a line has more or fewer cells than the header.
    """
    with reading(file):
        text = read_unpacked(file).decode("utf-8").replace("\r\n", "\n")
    header: list[str] = []
    for number, line in enumerate(lines_of(text), 1):
        if comment and line.startswith(comment):
            continue
        try:
            cells = next(csv.reader([line]), [])
        except csv.Error as error:
            raise ScenarioError(Problem.of_file(file, f"not CSV: {error}", number)) from None
        if not header:
            header = cells
            if absent := [name for name in columns if name not in header]:
                words = f"has no column {absent[0]}, and has {', '.join(header)[:200] or 'none'}"
                raise ScenarioError(Problem.of_file(file, words, number, ", ".join(columns)))
        elif len(cells) != len(header):
            words = f"has {len(cells)} cells, and the header {len(header)}: is the file cut off?"
            raise ScenarioError(Problem.of_file(file, words, number))
        else:
            yield number, dict(zip(header, cells, strict=True))
    if not header:
        raise ScenarioError(Problem.of_file(file, "is empty", allowed=f"a header with {', '.join(columns)}, and lines"))


def time_of(text: str, file: Path, line: int) -> float:
    """A time in seconds; raises ``ScenarioError``."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not (isfinite(value) and 0 <= value < LONGEST_S) or text.strip().startswith("-"):
        raise ScenarioError(Problem.of_file(file, f'"{text[:40]}" is no time', line, "seconds, as 0.000012"))
    return value


def pause_of(text: str, file: Path, line: int) -> float | None:
    """The length of a burst or pause; None without one."""
    return time_of(text, file, line) if text else None


def whole_of(name: str, text: str, most: int, file: Path, line: int) -> int:
    """A whole number from 1 to ``most``; raises ``ScenarioError``."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and 1 <= int(text) <= most):
        problem = Problem(name, "is no such number", text, f"a whole number from 1 to {most}", None, str(file), line)
        raise ScenarioError(problem)
    return int(text)
