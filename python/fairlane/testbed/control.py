"""The control file of a job: memory that its ranks and the process that measures them share.

It has 64-bit words: a header, and for each rank a block with its count of iterations and the times of their ends, in
nanoseconds of the clock that all processes of the machine share. ``replay.c`` has the other side.
"""

from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import numpy
from numpy.typing import NDArray

from fairlane.testbed.machine import MeasurementError

_RANKS, _CAPACITY, _LIMIT, _FROZEN, _QUIT, _MARKING, _DSCP, _HEADER = 0, 1, 2, 3, 4, 5, 6, 64
_COUNT, _READY, _BLOCK = 0, 1, 8
CAPACITY = 1 << 20
"""Iterations that a job can complete in all phases together."""
_NO_LIMIT = 1 << 62
_POLL_S = 0.001


class Control:
    """A job's control file, new and with all ranks stopped before their first iteration.

    Args:
        path: Where it is made; it is sparse.
        ranks: Number of ranks.
        alive: Whether the job still runs; asked while waiting for it.
    """

    def __init__(self, path: Path, ranks: int, alive: Callable[[], bool] = lambda: True) -> None:
        self.path = path
        self._alive = alive
        self._printed: Callable[[], str] = str
        self._words: NDArray[numpy.int64] = numpy.memmap(
            path, numpy.int64, "w+", shape=_HEADER + ranks * (_BLOCK + CAPACITY)
        )
        self._words[_RANKS], self._words[_CAPACITY] = ranks, CAPACITY
        self._blocks = self._words[_HEADER:].reshape(ranks, _BLOCK + CAPACITY)
        self.marking = 0
        """Number of the last change of the DSCP."""

    def watch(self, alive: Callable[[], bool], printed: Callable[[], str] = str) -> None:
        """Sets what says whether the job still runs, and what it printed."""
        self._alive, self._printed = alive, printed

    def wait_ready(self, timeout_s: float) -> None:
        """Waits until all ranks are ready. Raises ``MeasurementError`` if the job ends before, or takes longer."""
        self._wait(lambda: bool((self._blocks[:, _READY] == 1).all()), timeout_s, "start")

    def set_dscp(self, dscp: int) -> None:
        """Has the ranks mark their packets, from their next iteration on."""
        self.marking += 1
        self._words[_DSCP] = dscp
        self._words[_MARKING] = self.marking

    def go(self) -> int:
        """Lets the ranks go on; returns the number of the first iteration."""
        first = int(self._blocks[:, _COUNT].max())
        self._words[_LIMIT] = _NO_LIMIT
        return first

    def freeze(self) -> None:
        """No rank begins another iteration than the last that one of them has begun."""
        self._words[_FROZEN] = 1
        sleep(_POLL_S)
        # A rank may have looked before it was frozen, and has begun the iteration after those that it has completed.
        self._words[_LIMIT] = int(self._blocks[:, _COUNT].max()) + 1
        self._words[_FROZEN] = 0

    def wait_stopped(self, timeout_s: float) -> int:
        """Waits until all ranks have stopped; returns how many iterations each has completed.

        Raises ``MeasurementError`` if the job ends, or stands still for so long.
        """
        limit = int(self._words[_LIMIT])
        self._wait(lambda: bool((self._blocks[:, _COUNT] >= limit).all()), timeout_s, "end their iterations")
        return limit

    def completions(self, first: int, last: int) -> NDArray[numpy.float64]:
        """Return the times, s, at which the slowest rank completed iterations from ``first`` on and before ``last``."""
        times = self._blocks[:, _BLOCK + first : _BLOCK + last]
        return numpy.asarray(times.max(axis=0), numpy.float64) * 1e-9

    def quit(self) -> None:
        """Has the ranks end."""
        self._words[_QUIT] = 1

    def _wait(self, done: Callable[[], bool], timeout_s: float, what: str) -> None:
        end = monotonic() + timeout_s
        while not done():
            if not self._alive():
                raise MeasurementError(f"{self.path.stem}: its processes ended{self._printed()}")
            if monotonic() > end:
                raise MeasurementError(
                    f"{self.path.stem}: its ranks did not {what} within {timeout_s:g} s{self._printed()}"
                )
            sleep(_POLL_S)
