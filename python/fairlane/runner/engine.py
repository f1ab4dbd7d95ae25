"""One simulation driven to its end in short slices, so that it can be watched and stopped at any time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from fairlane.results.measured import Engine
from fairlane.runner.watchers import Watcher

SLICE_S = 0.1
"""Wall time that a slice aims at, s; stopping takes at most a few of them."""
SLICES = 100
"""A slice never covers more than this part of the simulated time, however few packets move."""
FIRST_BUDGET = 20_000
"""Packet-hops of the first slice, before the speed is known."""


class Runnable(Engine, Protocol):
    """A simulation that can be run on."""

    @property
    def finished(self) -> bool:
        """Whether every rank has come to the end of its program."""

    def run_window_budget(self, picoseconds: int, max_hops: int) -> bool:
        """Runs until this simulated time, or about ``max_hops`` packet-hops."""


@dataclass
class Gauge:
    """How far a simulation is; one thread writes it, another reads it."""

    duration: int
    """Simulated time to reach, ps."""
    now: int = 0
    """Simulated time reached, ps."""
    packet_hops: int = 0
    """Packet-hops so far."""
    started: float | None = None
    """When it began, on the monotonic clock, s."""
    ended: float | None = None
    """When it was done or stopped."""
    told: Callable[[float], None] | None = None
    """Called with the share that is done whenever that has changed."""

    def reach(self, now: int, packet_hops: int) -> None:
        """The simulation has come this far."""
        self.now, self.packet_hops = min(now, self.duration), packet_hops
        if self.told is not None:
            self.told(self.share)

    @property
    def share(self) -> float:
        """How much of it is done, from 0 to 1."""
        return 1.0 if self.ended is not None else self.now / self.duration if self.duration else 0.0

    @property
    def seconds(self) -> float:
        """Wall time spent on it so far, s."""
        if self.started is None:
            return 0.0
        return (self.ended if self.ended is not None else time.monotonic()) - self.started


@dataclass
class Driver:
    """Drives simulations until they have reached their time or are told to stop."""

    stop: threading.Event = field(default_factory=threading.Event)
    """Set to make every simulation stop after its present slice."""

    def drive(self, engine: Runnable, gauge: Gauge, watchers: Sequence[Watcher] = ()) -> bool:
        """Runs ``engine`` to the end of ``gauge.duration``, with ``watchers``; False if it was stopped before."""
        budget = FIRST_BUDGET
        step = max(1, gauge.duration // SLICES)
        target, complete = min(gauge.duration, step), False
        while not (complete or self.stop.is_set()):
            before, hops = time.monotonic(), engine.packet_hops
            engine.run_window_budget(min([target, *(watcher.due for watcher in watchers)]), budget)
            spent = time.monotonic() - before
            gauge.reach(engine.now, engine.packet_hops)
            complete = engine.finished or engine.now >= gauge.duration
            for watcher in watchers:
                if complete or engine.now >= watcher.due:
                    watcher.look(engine)
            target = target if engine.now < target else min(gauge.duration, target + step)
            if engine.packet_hops - hops >= budget or spent > SLICE_S:
                budget = max(1, int(budget * min(2.0, max(0.5, SLICE_S / max(spent, 1e-6)))))
        return complete
