"""Compressed input with stated limits: a small file cannot fill the disk or the memory by what it expands to.

A stream may expand to ``FREE`` bytes whatever its size, from there on to ``RATIO`` times its compressed size, and never
beyond ``most``. Traces expand 3 to 9 times, job logs 4 to 12 times; zstd reaches 30,000 times on zeros, gzip 1,000.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

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
