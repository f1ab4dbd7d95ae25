"""Files of unknown origin: read up to a stated size, parsed to a stated depth; files that are written whole.

A device or a file without end cannot fill the memory. Data that programs keep has a checksum: the key ``sha256`` is the
SHA-256 of everything else in the file, as JSON with its keys in order. Such a file is TOML if that is its suffix, else
JSON.

*Compressed input with stated limits: a small file cannot fill the disk or the memory by what it expands to.* A stream
may expand to ``FREE`` bytes whatever its size, from there on to ``RATIO`` times its compressed size, and never beyond
``most``. Traces expand 3 to 9 times, job logs 4 to 12 times; zstd reaches 30,000 times on zeros, gzip 1,000.

*Locks on files that the kernel releases when the process ends in whatever way.* To ask whether a file is locked takes
no lock, so no reader is ever in the way of the process that wants it.
"""

import codecs
import errno
import fcntl
import gzip
import io
import json
import os
import re
import struct
import sys
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from lzma import FORMAT_XZ, LZMADecompressor, LZMAError
from pathlib import Path
from threading import get_ident
from typing import Any, BinaryIO

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import data_size

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
        content = file.read(most + 1)
    if len(content) > most:
        raise OSError(errno.EINVAL, f"it has more than {data_size(most)}", str(path))
    return content


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
        reason = re.sub(r" \(at [^)]*\)", "", str(error))
        problem = Problem.of_file(file, f"not valid TOML: {reason}", int(place[1]) if place else None)
    except json.JSONDecodeError as error:
        problem = Problem.of_file(file, f"not valid JSON: {error.msg}", error.lineno)
    else:
        return
    raise ScenarioError(problem)


def parse_toml(text: str) -> dict[str, Any]:
    """TOML as data. Raises ``TOMLDecodeError``, and ``NestingError`` where it is nested too deep."""
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise NestingError from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # as of an integer with thousands of digits
        raise tomllib.TOMLDecodeError(str(error)) from None
    _check_depth(document)
    return document


def parse_json(text: str | bytes) -> Any:
    """JSON as data. Raises ``JSONDecodeError``, and ``NestingError`` where it is nested too deep."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise NestingError from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:  # as of an integer with thousands of digits, or bytes that are no text
        raise json.JSONDecodeError(str(error), "", 0) from None
    _check_depth(document)
    return document


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
    difference = "missing" if given is None else "is not that of the file"
    message = f"{difference}: the file has changed since it was written; make it again"
    return data, Problem(CHECKSUM, message, file=str(path))


_XZ = b"\xfd7zXZ\x00"
_XZ_MEMORY = 128 << 20  # bytes that unpacking may take
_LARGEST = 256 << 20  # bytes of the largest unpacked file


def read_unpacked(path: Path) -> bytes:
    """The content of a file, expanded if it is xz's. Raises ``ScenarioError`` for what is damaged or cut off."""
    raw = read_bytes(path, _LARGEST)
    if not raw.startswith(_XZ):
        return raw
    reader = LZMADecompressor(FORMAT_XZ, memlimit=_XZ_MEMORY)
    try:
        content = reader.decompress(raw, _LARGEST)
    except LZMAError as error:
        raise ScenarioError(Problem.of_file(path, f"is damaged: {error}")) from None
    if not reader.eof:
        message = "is cut off" if reader.needs_input else f"expands to more than {_LARGEST >> 20} MiB"
        raise ScenarioError(Problem.of_file(path, message))
    return content


def encoding_of(raw: bytes) -> str:
    """The encoding of a text, by its byte order mark."""
    return "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"


RATIO = 200  # how many times its compressed size a stream may expand to
FREE = 64 << 20  # bytes up to which the ratio is not checked


class ExpansionError(ValueError):
    """Compressed data expands to more than is allowed, or is damaged."""


class Limited(io.RawIOBase):
    """The expanded side of a compressed stream. Reading raises ``ExpansionError`` beyond the limits."""

    def __init__(self, plain: BinaryIO, compressed: int, most: int) -> None:
        """Reads ``plain``, which expands ``compressed`` bytes, to ``most`` bytes at most."""
        super().__init__()
        self._plain, self._done = plain, 0
        by_ratio = max(FREE, RATIO * compressed)
        self._most = min(most, by_ratio)
        bound = f"{RATIO} times its size" if by_ratio <= most else "the limit for one file"
        self._words = f"expands to more than {self._most >> 20} MiB, {bound}"
        self._next: int | None = None

    def readable(self) -> bool:
        """It is."""
        return True

    def expect(self, most: int | None) -> None:
        """Only ``most`` bytes may follow until this is called again; None for no such bound."""
        self._next = None if most is None else self._done + most

    def readinto(self, buffer: object) -> int:
        """Fills ``buffer`` as far as there is data."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type] # typed as any object in the base class
        data = self._plain.read(len(view))
        self._done += len(data)
        if self._done > self._most:
            raise ExpansionError(self._words)
        if self._next is not None and self._done > self._next:
            raise ExpansionError("has a header that is longer than any real one")
        view[: len(data)] = data
        return len(data)


@contextmanager
def gunzipped(path: Path, most: int) -> Iterator[BinaryIO]:
    """The content of a file, expanded if it is gzip's. What is damaged raises ``ExpansionError`` when it is read."""
    with path.open("rb") as raw:
        if raw.peek(2)[:2] != b"\x1f\x8b":
            yield raw
            return
        limited = Limited(gzip.GzipFile(fileobj=raw), path.stat().st_size, most)  # type: ignore[arg-type] # a reader
        try:
            yield io.BufferedReader(limited, 1 << 16)
        except (zlib.error, EOFError, gzip.BadGzipFile) as error:
            raise ExpansionError(f"is damaged: {error}") from error


@contextmanager
def unpacked(path: Path, most: int) -> Iterator[Limited]:
    """The content of a file of zstd, expanded. What is damaged raises ``ExpansionError`` when it is read."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    try:
        with zstd.open(path, "rb") as plain:
            yield Limited(plain, path.stat().st_size, most)  # type: ignore[arg-type] # a reader
    except (zstd.ZstdError, EOFError) as error:
        raise ExpansionError(f"is damaged: {error}") from error


_FLOCK = struct.Struct("hhqqi0q")  # struct flock of Linux: type, whence, start, length (0 is all), process; padding


def take(file: int) -> bool:
    """Lock an open file for this process alone; return whether it is locked now.

    Raises ``OSError`` on file systems without locks.
    """
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    except (BlockingIOError, PermissionError):  # POSIX allows both for a file that another process has locked
        return False
    return True


def is_taken(file: int) -> bool:
    """Return whether an open file is locked by another opening of it, in this process or another."""
    answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    return bool(_FLOCK.unpack(answer)[0] != fcntl.F_UNLCK)
