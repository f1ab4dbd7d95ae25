"""The loop that every simulation runs in: slices, between which it is watched, reported on and can be stopped."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from threading import Event
from typing import Protocol

from fairlane.core.bridge import RawTable
from fairlane.core.units import CLOCK_END

SLICE_S = 0.1  # wall time that a slice of its own length aims at, s: stopping takes at most a few of them
FIRST_HOPS, FIRST_WINDOW = 20_000, 10**9
"""Packet-hops and simulated time, ps, of the first slice, before the speed is known."""


class Engine(Protocol):
    """A simulation: what driving and measuring need of it."""

    @property
    def now(self) -> int:
        """Simulated time, ps."""

    @property
    def packet_hops(self) -> int:
        """Packets times links crossed, so far."""

    @property
    def messages(self) -> int:
        """Messages that have been sent and not received."""

    @property
    def finished(self) -> bool:
        """Whether every rank has come to the end of its program."""

    def run_window_budget(self, picoseconds: int, max_hops: int) -> bool:
        """Runs until this simulated time, or about ``max_hops`` packet-hops. Raises ``RunError``."""

    def progress(self) -> list[list[int]]:
        """Iterations so far, by job and rank."""

    def table(self, name: str) -> RawTable:
        """One of the engine's tables."""

    def digest(self) -> str:
        """A fingerprint of everything measured."""


class Watcher(Protocol):
    """Looks at a simulation when it has reached an instant."""

    @property
    def due(self) -> int:
        """The next instant to look at, ps."""

    def look(self, engine: Engine) -> None:
        """Looks at the simulation as it is; afterwards ``due`` is later than its time."""


class End(Enum):
    """Why ``drive`` returned."""

    FINISHED = auto()
    """Every rank has come to the end of its program."""
    TIME = auto()
    """The instant is reached."""
    DONE = auto()
    """The condition holds."""
    BUDGET = auto()
    """The packet-hops are used up."""
    STOPPED = auto()
    """It was asked to stop."""

    @property
    def complete(self) -> bool:
        """Whether there is nothing left to simulate up to the instant."""
        return self in (End.FINISHED, End.TIME)


@dataclass(frozen=True)
class Slice:
    """Run between two checks of a condition: simulated time or packet-hops, whichever ends first.

    It does not depend on wall time, so that where a condition ends a simulation is the same on every machine.
    """

    hops: int = 200_000
    window: int = CLOCK_END
    """Simulated time of the first slice, ps."""
    growth: int = 1
    """Factor by which the window grows from slice to slice."""
    longest: int = CLOCK_END
    """The longest window, ps."""


class _Size:
    """Length of the next slice: as given, or for about ``SLICE_S``, whatever the speed."""

    def __init__(self, given: Slice | None) -> None:
        self._given = given
        self.hops, self.window = (given.hops, given.window) if given else (FIRST_HOPS, FIRST_WINDOW)

    def ended(self, hops: int, simulated: int, seconds: float) -> None:
        """Adapts what ended the slice, and only that: a long silence must not allow a long slice of traffic after."""
        if self._given is not None:
            self.window = min(self.window * self._given.growth, self._given.longest)
            return
        factor = min(2.0, max(0.5, SLICE_S / max(seconds, 1e-6)))
        if hops >= self.hops:
            self.hops = max(1000, round(self.hops * factor))
        elif simulated >= self.window:
            self.window = min(CLOCK_END, max(FIRST_WINDOW, round(self.window * factor)))


def drive(
    engine: Engine,
    until: int = CLOCK_END,
    *,
    done: Callable[[Engine], bool] | None = None,
    every: Slice | None = None,
    budget: int | None = None,
    watchers: Sequence[Watcher] = (),
    progress: Callable[[Engine], None] | None = None,
    stop: Event | None = None,
    last: bool = True,
) -> End:
    """Runs a simulation until an instant, a condition, a number of packet-hops, or until it is stopped.

    Ctrl-C raises ``KeyboardInterrupt`` between two slices and leaves the simulation whole.

    Args:
        engine: The simulation.
        until: The instant to reach, ps.
        done: A condition that ends it; checked after each slice, which then has a fixed size.
        every: The size of a slice; None for ``Slice()`` with a condition, else for slices of about 0.1 s.
        budget: Packet-hops that it may take, to the next end of a slice.
        watchers: Look at it when they are due, and once more when it is complete.
        progress: Called after each slice.
        stop: Set to end it after the present slice.
        last: Whether nothing follows: else watchers do not look once more when the instant is reached.

    Raises:
        RunError: The simulation cannot go on: deadlock, ranks that wait forever, wrong use of MPI.
    """
    size = _Size(every or (Slice() if done else None))
    begun = engine.packet_hops
    while not (engine.finished or engine.now >= until):
        if stop is not None and stop.is_set():
            return End.STOPPED
        clock, now, hops = time.monotonic(), engine.now, engine.packet_hops
        if budget is not None and hops - begun >= budget:
            return End.BUDGET
        engine.run_window_budget(min([until, now + size.window, *(watcher.due for watcher in watchers)]), size.hops)
        size.ended(engine.packet_hops - hops, engine.now - now, time.monotonic() - clock)
        for watcher in watchers:
            if engine.now >= watcher.due:
                watcher.look(engine)
        if progress is not None:
            progress(engine)
        if done is not None and done(engine):
            return End.DONE
    if last or engine.finished:
        for watcher in watchers:
            watcher.look(engine)
    return End.FINISHED if engine.finished else End.TIME
