"""Signals that end a command: it cleans up as after an error, and its temporary folders are removed completely."""

import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HANG_S = 1800.0
"""Limit for a program that takes a second on a machine with nothing else to do, s."""


@contextmanager
def exit_on_sigterm() -> Iterator[None]:
    """SIGTERM raises ``SystemExit`` with 128 plus its number, so that the block's ``finally`` clauses run.

    Raises ``ValueError`` in a thread other than the main one.
    """
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def awaited_signals() -> Iterator[Callable[[], object]]:
    """Yields a function that waits for SIGTERM or SIGINT; it returns at once if one has arrived in the block.

    Handlers hold for the whole process; a mask that is set here would not apply to threads that exist already.
    """
    ended = threading.Event()
    with _handled(lambda _: ended.set()):
        yield ended.wait


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Defers SIGTERM and SIGINT to the end of the block; of several the first is delivered.

    Without effect outside the main thread, which alone handles signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []
    try:
        with _handled(arrived.append):
            yield
    finally:
        if arrived:
            signal.raise_signal(arrived[0])


@contextmanager
def _handled(handler: Callable[[int], object]) -> Iterator[None]:
    """SIGTERM and SIGINT call the handler until the end of the block."""
    before = [
        (number_of, signal.signal(number_of, lambda number, _: handler(number)))
        for number_of in (signal.SIGTERM, signal.SIGINT)
    ]
    try:
        yield
    finally:
        for number_of, previous in before:
            signal.signal(number_of, signal.SIG_DFL if previous is None else previous)  # None: not set by Python


@contextmanager
def temporary_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A folder that is removed with the block, also if a signal arrives while it is made or removed."""
    made = None
    try:
        with deferred_signals():
            made = tempfile.TemporaryDirectory(prefix=prefix, dir=parent)
        yield Path(made.name)
    finally:
        with deferred_signals():
            if made is not None:
                made.cleanup()
