"""All simulations of a run, on all cores, watched, and stopped by Ctrl-C."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.errors import RunError
from fairlane.results.measured import Measured, Work, frame, marks
from fairlane.runner.engine import Driver, Gauge, Runnable
from fairlane.runner.progress import display
from fairlane.runner.watchers import PortSampler, Watcher

if TYPE_CHECKING:
    from fairlane.scenario import Resolved

WATCH_S = 0.1
"""How often progress is shown, s."""


@dataclass(frozen=True)
class Outcome:
    """What the simulations of a run measured."""

    together: Measured
    """All jobs at once."""
    alone: Sequence[Work | None]
    """Each job on its own; None where there is nothing that can be compared."""
    partial: bool
    """Whether some simulation was stopped before its end."""
    samples: pl.DataFrame | None = None
    """What ports did from time to time, all jobs at once, if that was asked for."""
    marks: pl.DataFrame | None = None
    """When ranks marked iterations, all jobs at once, if that was asked for."""
    record: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    """What was recorded of single messages and packets: the engine's tables by name, as far as they were asked for."""


class Experiment:
    """All jobs together and each alone. Threads suffice: the engine lets go of the interpreter while it simulates."""

    def __init__(self, scenario: Resolved, *, isolated: bool) -> None:
        self._scenario = scenario
        self._driver = Driver()
        self._together = Gauge(scenario.duration)
        # A job with no other beside it is alone already.
        self._is_alone = isolated and len(scenario.jobs) == 1
        self._alone = [Gauge(scenario.duration) for _ in scenario.jobs] if isolated and not self._is_alone else []
        self._sampler = PortSampler(scenario.sample_interval) if scenario.sample_interval else None
        self._marks: pl.DataFrame | None = None
        self._record: dict[str, pl.DataFrame] = {}

    def perform(self, *, progress: bool) -> Outcome:
        """Simulates everything, or what Ctrl-C leaves time for."""
        pool = ThreadPoolExecutor(max_workers=_cores())
        try:
            first = pool.submit(self._simulate_together)
            others = [pool.submit(self._simulate_alone, job) for job in range(len(self._alone))]
            # What is measured so far is kept; a second interrupt, while the simulations stop, ends it all.
            with suppress(KeyboardInterrupt):
                self._watch([first, *others], progress=progress)
        finally:
            self._driver.stop.set()
            pool.shutdown(wait=True)
        together, complete = first.result()
        alone = [future.result() for future in others]
        partial = not complete or None in alone
        if self._is_alone:
            alone = [together]
        comparable = complete and bool(alone)
        return Outcome(
            together,
            alone if comparable else [None] * len(self._scenario.jobs),
            partial,
            self._sampler.table() if self._sampler else None,
            self._marks,
            self._record,
        )

    def _watch(self, simulations: Sequence[Future[Any]], *, progress: bool) -> None:
        """Shows progress until all is done; raises the first error of a simulation at once."""
        pending = set(simulations)
        with display(self._together, self._alone, wanted=progress) as shown:
            while pending:
                done, pending = wait(pending, timeout=WATCH_S, return_when=FIRST_COMPLETED)
                for simulation in done:
                    simulation.result()
                shown.update()

    def _simulate_together(self) -> tuple[Measured, bool]:
        watchers = [self._sampler] if self._sampler else []
        engine, complete = simulate(self._scenario, self._together, self._driver, watchers)
        if any(job.marks for job in self._scenario.jobs):
            self._marks = marks(engine)
        self._record = {name: frame(engine.table(name)) for name in self._scenario.recorded}
        return Measured.of(engine), complete

    def _simulate_alone(self, job: int) -> Work | None:
        if self._driver.stop.is_set():
            return None
        engine, complete = simulate(self._scenario.alone(job), self._alone[job], self._driver)
        return Work.of(engine) if complete else None


def simulate(
    scenario: Resolved, gauge: Gauge, driver: Driver, watchers: Sequence[Watcher] = ()
) -> tuple[Runnable, bool]:
    """One simulation, and whether it came to its end; raises ``RunError`` if it cannot go on."""
    from fairlane import _core

    gauge.started = time.monotonic()
    engine = scenario.engine()
    try:
        complete = driver.drive(engine, gauge, watchers)
    except _core.RunError as error:
        raise RunError(str(error), slug=error.slug) from None
    gauge.ended = time.monotonic()
    return engine, complete


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
