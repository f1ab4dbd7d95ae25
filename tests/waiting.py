"""Wait for events in tests: what another process has written, printed or become.

A test ends when the event has come or can come no more, however slow the machine is. There is one limit, for hangs.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["FOREVER", "HANG", "HANG_S", "LOOP_S", "wait_for"]

HANG_S = 1500.0
"""When something hangs, s: below the ``timeout`` of pytest in ``pyproject.toml``, so that an error names the event."""
HANG = f"{HANG_S:g} s"
"""The same as a duration in files, for limits that the test is not about."""
LOOP_S = 60.0
"""Processor time, s, of what takes a second at most, and hours if it goes through all of something huge."""
FOREVER = [sys.executable, "-c", "import signal; signal.pause()"]
"""A command that does nothing until it gets a signal."""
_POLL_S = 0.02

_Found = TypeVar("_Found")


def wait_for(
    found: Callable[[], _Found | None], what: object = "the event", process: subprocess.Popen[Any] | None = None
) -> _Found:
    """Return what a function returns as soon as that is true.

    Args:
        found: Asked again and again.
        what: The event in words, or a function that describes it when it has not come.
        process: What the event has to come from: its end is an error at once.
    """
    end = time.monotonic() + HANG_S
    while True:
        ended = process is not None and process.poll() is not None  # first: it may have ended with the event
        if result := found():
            return result
        words = what() if callable(what) else what
        assert not ended, f"{words}: the process ended before, with {process.returncode if process else None}"
        assert time.monotonic() < end, f"{words}: not within {HANG_S:g} s"
        time.sleep(_POLL_S)
