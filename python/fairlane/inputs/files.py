"""Files of unknown origin: read up to a stated size, parsed to a stated depth; files that are written whole.

A device or a file without end cannot fill the memory. Data that programs keep has a checksum: the key ``sha256`` is the
SHA-256 of everything else in the file, as JSON with its keys in order. Such a file is TOML if that is its suffix, else
JSON.
"""

import errno
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.wording import data_size

MOST_TEXT = 16 << 20  # bytes of a file that people write, as a scenario
MOST_STORED = 256 << 20  # bytes of a file that programs write, as a fitted model
MOST_DEPTH = 40  # levels of tables and lists within each other; the deepest of a scenario have six
CHECKSUM = "sha256"  # the key of the checksum


class NestingError(ValueError):
    """Tables or lists within each other deeper than any input needs."""

    def __init__(self) -> None:
        super().__init__(f"tables or lists are nested more than {MOST_DEPTH} deep")


def read_bytes(path: Path, most: int = MOST_TEXT) -> bytes:
    """The content of a file. Raises ``OSError``, in words also where it has more than ``most`` bytes."""
    with path.open("rb") as file:
        found = file.read(most + 1)
    if len(found) > most:
        raise OSError(errno.EINVAL, f"it has more than {data_size(most)}", str(path))
    return found


def read_text(path: Path, most: int = MOST_TEXT, encoding: str = "utf-8") -> str:
    """As ``read_bytes``, for text with any kind of line ends. Raises ``UnicodeDecodeError``, too."""
    return read_bytes(path, most).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def lines_of(text: str) -> list[str]:
    """The lines of a text that ``read_text`` has read.

    Lines end at line ends only: names that devices report may have control characters, at which ``splitlines`` splits.
    """
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]


def content_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines that are neither empty nor comments, with their numbers from 1."""
    for number, line in enumerate(map(str.strip, lines_of(text)), 1):
        if line and not line.startswith("#"):
            yield number, line


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Within, a file that cannot be read, or is no text, TOML or JSON, is a ``ScenarioError`` with file and line."""
    try:
        yield
    except OSError as error:
        problem = Problem.of_file(file, f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        problem = Problem.of_file(file, f"is not UTF-8: {error.reason}")
    except NestingError as error:
        problem = Problem.of_file(file, str(error))
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column \d+\)", str(error))
        words = re.sub(r" \(at [^)]*\)", "", str(error))
        problem = Problem.of_file(file, f"not valid TOML: {words}", int(place[1]) if place else None)
    except json.JSONDecodeError as error:
        problem = Problem.of_file(file, f"not valid JSON: {error.msg}", error.lineno)
    else:
        return
    raise ScenarioError(problem)


def parse_toml(text: str) -> dict[str, Any]:
    """TOML as data. Raises ``TOMLDecodeError``, and ``NestingError`` where it is nested too deep."""
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise NestingError from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # as of an integer with thousands of digits
        raise tomllib.TOMLDecodeError(str(error)) from None
    _check_depth(found)
    return found


def parse_json(text: str | bytes) -> Any:
    """JSON as data. Raises ``JSONDecodeError``, and ``NestingError`` where it is nested too deep."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise NestingError from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # as of an integer with thousands of digits, or bytes that are no text
        raise json.JSONDecodeError(str(error), "", 0) from None
    _check_depth(found)
    return found


def _check_depth(data: Any) -> None:
    level: list[Any] = [[data]]
    for _ in range(MOST_DEPTH + 2):
        lists = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for values in lists for value in values if isinstance(value, dict | list)]
        if not level:
            return
    raise NestingError


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file next to ``path`` to write to, which takes its place at the end: after an error all is as it was.

    What exists and is no plain file, as a pipe or ``/dev/stdout``, is written to directly.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    target = path.resolve()
    scratch = target.with_name(f".{os.getpid()}-{get_ident()}-{target.name}")
    try:
        yield scratch
        scratch.replace(target)
    finally:
        scratch.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all; raises ``ScenarioError``."""
    try:
        with replacing(path) as scratch:
            scratch.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ScenarioError(Problem.of_file(path, f"cannot be written: {error.strerror}")) from error


def checksum(data: Mapping[str, Any]) -> str:
    """The SHA-256 of plain data, but for its own checksum; a date, which TOML can hold, counts as its text."""
    rest = {key: value for key, value in data.items() if key != CHECKSUM}
    return sha256(json.dumps(rest, sort_keys=True, default=str).encode()).hexdigest()


def save_sealed(data: Mapping[str, Any], path: Path) -> None:
    """Writes plain data with its checksum; raises ``ScenarioError``."""
    if path.suffix == ".toml":
        import tomlkit

        text = tomlkit.dumps({CHECKSUM: checksum(parse_toml(tomlkit.dumps(data))), **data})
    else:
        text = json.dumps({CHECKSUM: checksum(data), **data}) + "\n"
    write_text(path, text)


def load_sealed(path: Path) -> tuple[dict[str, Any], Problem | None]:
    """The data of a file, and what is wrong with its checksum if anything is.

    Raises ``ScenarioError`` if the file cannot be read or has no keys.
    """
    with reading(path):
        text = read_text(path, MOST_STORED)
        data = parse_toml(text) if path.suffix == ".toml" else parse_json(text)
    if not isinstance(data, dict):
        raise ScenarioError(Problem.of_file(path, "not a model: JSON without keys"))
    given = data.pop(CHECKSUM, None)
    if given == checksum(data):
        return data, None
    words = "missing" if given is None else "is not that of the file"
    message = f"{words}: the file has changed since it was written; make it again"
    return data, Problem(CHECKSUM, message, file=str(path))
