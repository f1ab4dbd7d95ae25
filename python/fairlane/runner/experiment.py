"""All simulations of a run, on all cores, watched, and stopped by Ctrl-C."""

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.engine import Engine, Slice, Watcher, drive
from fairlane.engine.tables import Work, frame
from fairlane.errors import RunError
from fairlane.results.latency_batches import LatencyBatches
from fairlane.results.tables import Observed
from fairlane.runner.counters import IterationCounters, PortSampler
from fairlane.runner.progress import Gauge, display
from fairlane.scenario.estimate import free_cores, machine_cores

if TYPE_CHECKING:
    from fairlane.scenario import Resolved

WATCH_S = 0.1  # how often progress is shown, s
LATER_HOPS = 1_000_000
"""Packet-hops that an isolated run without an iteration in time may always use to complete its first one."""
LATER_PS = 10**15  # the simulated time after which no first iteration is waited for, ps


@dataclass(frozen=True)
class Outcome:
    """What the simulations of a run measured."""

    together: Observed  # all jobs at once
    alone: Sequence[Work | None]  # each job on its own; None where there is nothing that can be compared
    partial: bool  # whether some simulation was stopped before its end
    samples: pl.DataFrame | None = None  # samples of ports in the co-run, if requested
    counted: pl.DataFrame | None = None  # counters of each iteration of a job, if requested
    latency_intervals: pl.DataFrame | None = None  # the ends of the intervals of latencies
    shards: int = 1  # parts into which the fabric was divided in the co-run, each simulated by a thread of its own
    engine_s: float = 0.0  # wall time in which the engine simulated the co-run, s
    isolated_s: float = 0.0  # the same of all isolated runs, summed over them, s


class Experiment:
    """All jobs together and each alone. Threads suffice: the engine lets go of the interpreter while it simulates.

    ``threads`` simulate all jobs together; without it as many as there are free cores for each of the simulations,
    where the fabric is large enough to gain.
    """

    def __init__(self, scenario: "Resolved", *, isolated: bool, threads: int | None = None) -> None:
        self._scenario = scenario
        self._threads = threads
        self._stop = Event()
        self._together = Gauge(scenario.duration)
        # The co-run of a single job is its isolated run.
        self._is_alone = isolated and len(scenario.jobs) == 1
        compared = [number for number, job in enumerate(scenario.jobs) if job.iterates and not job.background]
        self._alone = {job: Gauge(scenario.duration) for job in compared} if isolated and not self._is_alone else {}
        self._sampler = PortSampler(scenario.sample_interval) if scenario.sample_interval else None
        asked = scenario.switch_counters
        self._counters = IterationCounters(scenario, asked) if asked else None
        self._counted: pl.DataFrame | None = None
        counts = scenario.tables["observe"]["counters"]
        self._batches = LatencyBatches(scenario.duration) if counts else None
        self._shards = 1

    def perform(self, *, progress: bool) -> Outcome:
        """Simulates everything, or what Ctrl-C leaves time for."""
        pool = ThreadPoolExecutor(max_workers=machine_cores())
        try:
            first = pool.submit(self._simulate_together)
            others = {job: pool.submit(self._simulate_alone, job) for job in self._alone}
            # What is measured so far is kept; a second interrupt, while the simulations stop, ends it all.
            with suppress(KeyboardInterrupt):
                self._watch([first, *others.values()], progress=progress)
        finally:
            self._stop.set()
            pool.shutdown(wait=True)
        together, complete = first.result()
        done = {job: future.result() for job, future in others.items()}
        partial = not complete or None in done.values()
        if self._is_alone and self._scenario.jobs[0].iterates:
            done = {0: together.measured}
        alone = [done.get(job) if complete else None for job in range(len(self._scenario.jobs))]
        return Outcome(
            together,
            alone,
            partial,
            self._sampler.table() if self._sampler else None,
            self._counted,
            self._batches.table() if self._batches else None,
            shards=self._shards,
            engine_s=self._together.seconds,
            isolated_s=sum(gauge.seconds for gauge in self._alone.values()),
        )

    def _watch(self, simulations: Sequence[Future[Any]], *, progress: bool) -> None:
        """Shows progress until all is done; raises the first error of a simulation at once."""
        pending = set(simulations)
        with display(self._together, list(self._alone.values()), wanted=progress) as shown:
            while pending:
                done, pending = wait(pending, timeout=WATCH_S, return_when=FIRST_COMPLETED)
                for simulation in done:
                    simulation.result()
                shown.update()

    def _simulate_together(self) -> tuple[Observed, bool]:
        watchers: list[Watcher] = [it for it in (self._sampler, self._counters, self._batches) if it]
        share = max(1, free_cores() // (1 + len(self._alone)))
        threads = share if self._threads is None else self._threads
        built = self._scenario.engine(threads, automatic=self._threads is None)
        self._shards = built.shards
        engine, complete = simulate(built, self._together, self._stop, watchers)
        self._counted = self._counters.table(engine) if self._counters else None
        observed = Observed.of(engine, self._scenario)
        if self._is_alone and complete and self._scenario.jobs[0].iterates:
            first = later_iteration(engine, self._stop)
            observed = replace(observed, measured=replace(observed.measured, first_iteration=first))
        return observed, complete

    def _simulate_alone(self, job: int) -> Work | None:
        if self._stop.is_set():
            return None
        engine, complete = simulate(self._scenario.alone(job).engine(), self._alone[job], self._stop)
        if not complete:
            return None
        work = Work.of(engine)
        return replace(work, first_iteration=later_iteration(engine, self._stop))


def simulate(
    engine: Engine, gauge: Gauge, stop: Event | None = None, watchers: Sequence[Watcher] = ()
) -> tuple[Engine, bool]:
    """One simulation of the gauge's duration, and whether it is complete. Raises ``RunError``."""
    gauge.started = time.monotonic()
    end = drive(engine, gauge.duration, watchers=watchers, progress=gauge.reach, stop=stop)
    gauge.ended = time.monotonic()
    return engine, end.complete


def later_iteration(engine: Engine, stop: Event | None = None) -> int | None:
    """When the one job of ``engine`` completes its first iteration, ps; None if it has one, or that is not found out.

    The simulation goes on for that, with few packet-hops more: idle time costs nothing.
    """
    if min(engine.progress()[0], default=1):
        return None
    step = Slice(hops=LATER_HOPS // 10, window=max(1, engine.now // 10), growth=2)
    budget = max(LATER_HOPS - engine.packet_hops, engine.packet_hops)
    with suppress(RunError):  # it fails after the time that was asked for
        drive(engine, LATER_PS, done=lambda engine: min(engine.progress()[0]) > 0, every=step, budget=budget, stop=stop)
    found = frame(engine.table("job_marks"))["time"]
    return int(found[0]) if found.len() else None
