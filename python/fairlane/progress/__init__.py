"""Marks of progress in Python programs: how many iterations this process has made, for fairlane's agent.

Mark by hand, around a block, or over a loop::

    from fairlane import progress

    for step in progress.iterations(range(1000)):
        ...

A program goes on where its progress cannot be recorded; rank 0 warns once. It needs nothing but the standard library,
and Linux. ``fairlane_progress.h`` is the same for C: docs/progress.md.
"""

import atexit
import os
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from mmap import mmap
from pathlib import Path
from typing import TypeVar

from fairlane.progress import layout

__all__ = ["close_progress", "iteration", "iterations", "mark_progress", "mark_progress_fraction", "open_progress"]

T = TypeVar("T")


class _Writer:
    """The page of this process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Without a page; a child after a fork begins so, because the page is its parent's."""
        self.lock = threading.Lock()
        self.words: memoryview | None = None
        self.path: Path | None = None
        self.count = 0
        self.tried = False

    def open(self) -> None:
        if self.words is not None:
            return
        self.tried = True
        self.count = 0
        job, rank, host = layout.identify(os.environ, pid := os.getpid())
        header = layout.Header(
            pid, layout.start_of(pid) or 0, layout.pid_namespace(), time.monotonic_ns(), rank, job, host
        )
        place, linked = layout.directory(os.environ)
        with suppress(FileExistsError):
            place.mkdir(mode=0o700)
        folder = os.open(place, os.O_RDONLY | os.O_DIRECTORY | (0 if linked else os.O_NOFOLLOW))
        try:
            if reason := layout.unsafe(os.fstat(folder)):
                raise PermissionError(f"{place}: {reason}")
            name = f"{job}-{rank}-{pid}.python.progress"
            page = _made(folder, name)
        finally:
            os.close(folder)
        page[8 : layout.HEADER.size] = header.packed()[8:]
        page[:8] = layout.MAGIC  # published last
        self.path, self.words = place / name, memoryview(page).cast("Q")

    def close(self) -> None:
        if self.path is not None:
            self.path.unlink(missing_ok=True)
        self.path = self.words = None

    def lazily(self) -> "memoryview | None":
        """The words of the page, which the first mark makes."""
        if self.words is None and not self.tried:
            try:
                self.open()
            except OSError as error:
                if layout.identify(os.environ, os.getpid())[1] == 0:
                    warnings.warn(f"progress is not recorded: {error}", RuntimeWarning, stacklevel=4)
        return self.words


def _made(folder: int, name: str) -> mmap:
    """A new file, mapped. What a killed process with the same pid has left is replaced."""
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=folder)
    file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    try:
        os.posix_fallocate(file, 0, layout.PAGE_BYTES)  # a full disk is an error here, and would be a SIGBUS later
        return mmap(file, layout.PAGE_BYTES)
    except OSError:
        os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(file)


_writer = _Writer()


os.register_at_fork(after_in_child=_writer.forget)
atexit.register(_writer.close)


def open_progress() -> None:
    """Make the page of this process unless there is one, as the first mark does. Raises ``OSError``."""
    with _writer.lock:
        _writer.open()


def close_progress() -> None:
    """Remove the page, as the end of the process does. Later marks count nowhere until ``open_progress``."""
    with _writer.lock:
        _writer.tried = True
        _writer.close()


def mark_progress() -> None:
    """One more iteration is complete."""
    with _writer.lock:
        if (words := _writer.lazily()) is not None:
            _writer.count += 1
            words[layout.COUNT] = _writer.count
            words[layout.MARKED] = time.monotonic_ns()


def mark_progress_fraction(fraction: float) -> None:
    """A share of the current iteration is complete, from 0 to less than 1; the next mark sets it to 0."""
    part = min(int(fraction * 2**32), 2**32 - 1) if 0 < fraction < 1 else 2**32 - 1 if fraction >= 1 else 0
    with _writer.lock:
        if (words := _writer.lazily()) is not None:
            words[layout.FRACTION] = (_writer.count & 0xFFFFFFFF) << 32 | part
            words[layout.MARKED] = time.monotonic_ns()


@contextmanager
def iteration() -> Iterator[None]:
    """Mark an iteration at the end of a ``with`` block, unless it raises."""
    yield
    mark_progress()


def iterations(items: Iterable[T]) -> Iterator[T]:
    """Pass items on, and mark an iteration after the work with each; not if ``break`` or an error ends it."""
    for item in items:
        yield item
        mark_progress()
