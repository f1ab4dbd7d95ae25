"""All simulations of a run, on all cores, watched, and stopped by Ctrl-C."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

import polars as pl

from fairlane.engine import Engine, Slice, Watcher, drive
from fairlane.engine.tables import Work, frame
from fairlane.errors import RunError
from fairlane.results.latency_batches import LatencyBatches
from fairlane.results.tables import Observed
from fairlane.runner.counters import IterationCounters, PortSampler
from fairlane.runner.precision import Precision
from fairlane.runner.progress import Display, Gauge, display
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
    duration: int = 0  # the simulated time that was asked for, or turned out to be enough, ps
    notes: tuple[str, ...] = ()  # how precise the results are, where that was asked for


class Simulated:
    """One of the simulations of a run: built when it first advances, and simulated in parts."""

    def __init__(self, build: Callable[[], Engine], gauge: Gauge, watchers: Sequence[Watcher] = ()) -> None:
        self._build = build
        self._gauge = gauge
        self._watchers = watchers
        self._engine: Engine | None = None
        self.complete = False
        """Whether the last part was simulated to its end."""
        self.first_iteration: int | None = None
        """When it completed its first iteration, if that was after its end and is known, ps."""

    @property
    def engine(self) -> Engine:
        """Its engine."""
        if self._engine is None:
            self._engine = self._build()
        return self._engine

    def advance(self, to: int, stop: Event) -> None:
        """Simulates up to an instant, ps, unless it is stopped."""
        self.complete = False
        if not stop.is_set():
            self.complete = simulate(self.engine, self._gauge, to, stop, self._watchers)

    def finish(self) -> None:
        """Nothing follows: watchers look once more."""
        self._gauge.finished = True
        for watcher in self._watchers:
            watcher.look(self.engine)

    def measured(self) -> Work:
        """What was measured."""
        return replace(Work.of(self.engine), first_iteration=self.first_iteration)


class Experiment:
    """All jobs together and each alone. Threads suffice: the engine lets go of the interpreter while it simulates.

    ``threads`` simulate all jobs together; without it as many as there are free cores for each of the simulations,
    where the fabric is large enough to gain. Of a scenario with ``until`` all are simulated part by part, until the
    results are precise enough.
    """

    def __init__(self, scenario: "Resolved", *, isolated: bool, threads: int | None = None) -> None:
        until = scenario.until
        self._scenario = scenario
        self._threads = threads
        self._stop = Event()
        # The co-run of a single job is its isolated run.
        self._is_alone = isolated and len(scenario.jobs) == 1
        compared = [number for number, job in enumerate(scenario.jobs) if job.iterates and not job.background]
        self._instants = until.instants if until else [scenario.duration]
        self._precision = Precision(until, scenario.jobs, compared) if until else None
        self._sampler = PortSampler(scenario.sample_interval) if scenario.sample_interval else None
        asked = scenario.switch_counters
        self._counters = IterationCounters(scenario, asked) if asked else None
        counts = scenario.tables["observe"]["counters"]
        self._batches = LatencyBatches(self._instants[0]) if counts else None
        watchers: list[Watcher] = [it for it in (self._sampler, self._counters, self._batches) if it]
        self._gauge = Gauge(scenario.duration)
        self._together = Simulated(self._all_jobs, self._gauge, watchers)
        self._gauges = {job: Gauge(scenario.duration) for job in compared if isolated and not self._is_alone}
        self._alone = {job: Simulated(partial(self._one_job, job), gauge) for job, gauge in self._gauges.items()}
        self._shards = 1
        self._duration = scenario.duration

    def _all_jobs(self) -> Engine:
        share = max(1, free_cores() // (1 + len(self._alone)))
        threads = share if self._threads is None else self._threads
        built = self._scenario.engine(threads, automatic=self._threads is None)
        self._shards = built.shards
        return built

    def _one_job(self, job: int) -> Engine:
        return self._scenario.alone(job).engine()

    def perform(self, *, progress: bool) -> Outcome:
        """Simulates everything, or what Ctrl-C leaves time for."""
        pool = ThreadPoolExecutor(max_workers=machine_cores())
        every = [self._together, *self._alone.values()]
        shown = display(self._gauge, list(self._gauges.values()), wanted=progress)
        try:
            # What is measured so far is kept; a second interrupt, while the simulations stop, ends it all.
            with suppress(KeyboardInterrupt), shown:
                for instant in self._instants:
                    self._duration = instant
                    _watch([pool.submit(one.advance, instant, self._stop) for one in every], shown)
                    if self._precision is not None and self._is_enough(self._precision):
                        break
                _watch([pool.submit(self._finish, one) for one in every], shown)
        finally:
            self._stop.set()
            pool.shutdown(wait=True)
        return self._outcome()

    def _is_enough(self, precision: Precision) -> bool:
        """Whether what was simulated so far is precise enough."""
        together = self._together.measured()
        alone = {0: together} if self._is_alone else {job: one.measured() for job, one in self._alone.items()}
        return precision.reached(together, alone)

    def _finish(self, one: Simulated) -> None:
        """Nothing follows: watchers look once more, and an isolated run completes its first iteration."""
        if not one.complete:
            return
        one.finish()
        if one is not self._together or (self._is_alone and self._scenario.jobs[0].iterates):
            one.first_iteration = later_iteration(one.engine, self._stop)

    def _outcome(self) -> Outcome:
        """What was measured; nothing is compared where the co-run was interrupted."""
        complete = self._together.complete
        observed = Observed.of(self._together.engine, self._scenario)
        first = self._together.first_iteration
        observed = replace(observed, measured=replace(observed.measured, first_iteration=first))
        done = {job: one.measured() if one.complete else None for job, one in self._alone.items()}
        is_partial = not complete or None in done.values()
        if self._is_alone and self._scenario.jobs[0].iterates:
            done = {0: observed.measured}
        return Outcome(
            observed,
            [done.get(job) if complete else None for job in range(len(self._scenario.jobs))],
            is_partial,
            self._sampler.table() if self._sampler else None,
            self._counters.table(self._together.engine) if self._counters else None,
            self._batches.table() if self._batches else None,
            shards=self._shards,
            engine_s=self._gauge.seconds,
            isolated_s=sum(gauge.seconds for gauge in self._gauges.values()),
            duration=self._duration,
            notes=(self._precision.words(),) if self._precision and complete else (),
        )


def _watch(simulations: Sequence[Future[None]], shown: Display) -> None:
    """Shows progress until all is done; raises the first error of a simulation at once."""
    pending = set(simulations)
    while pending:
        done, pending = wait(pending, timeout=WATCH_S, return_when=FIRST_COMPLETED)
        for simulation in done:
            simulation.result()
        shown.update()


def simulate(
    engine: Engine, gauge: Gauge, to: int, stop: Event | None = None, watchers: Sequence[Watcher] = ()
) -> bool:
    """Simulates up to an instant, ps, and says whether that was reached. Raises ``RunError``."""
    with gauge.running():
        return drive(engine, to, watchers=watchers, progress=gauge.reach, stop=stop, last=False).complete


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
