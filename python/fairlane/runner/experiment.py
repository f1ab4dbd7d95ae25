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
from fairlane.errors import Problem, RunError, ScenarioError
from fairlane.results.latency_batches import LatencyBatches
from fairlane.results.tables import Observed
from fairlane.runner.counters import IterationCounters, PortSampler
from fairlane.runner.live import Live, StopRequestedError
from fairlane.runner.precision import Precision
from fairlane.runner.progress import Display, Displays, Gauge, display
from fairlane.scenario.estimate import free_cores, machine_cores

if TYPE_CHECKING:
    from fairlane.scenario import Resolved

WATCH_S = 0.1  # how often progress is shown, s
LATER_HOPS = 1_000_000
"""Packet-hops that an isolated run without an iteration in time may always use to complete its first one."""
LATER_MESSAGES = 100_000
"""So many messages may be under way then, in addition to twice those at the end of the time that was asked for: a job
that sends faster than its network takes would fill the memory before an iteration is complete."""
LATER_PS = 10**15  # the simulated time after which no first iteration is waited for, ps


@dataclass(frozen=True)
class Outcome:
    """What the simulations of a run measured."""

    together: Observed  # all jobs at once
    alone: Sequence[Work | None]  # each job on its own; None where there is nothing that can be compared
    partial: bool  # whether some simulation was stopped before its end
    samples: pl.DataFrame | None = None  # samples of ports in the co-run, if requested
    counted: pl.DataFrame | None = None  # counters of each iteration of a job, if requested
    before: pl.DataFrame | None = None  # the same of windows before each iteration, if requested
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

    def release(self) -> None:
        """Lets the engine go, with its memory."""
        self._engine = None

    def finish(self) -> None:
        """Nothing follows: watchers look once more."""
        self._gauge.finished = True
        for watcher in self._watchers:
            watcher.look(self.engine)


class Experiment:
    """All jobs together and each alone. Threads suffice: the engine lets go of the interpreter while it simulates.

    ``threads`` simulate all jobs together; without it as many as there are free cores for each of the simulations,
    where the fabric is large enough to gain. Of a scenario with ``until`` all are simulated part by part, until the
    results are precise enough. ``live`` shows other processes how far they are, and stops them on request.
    """

    def __init__(
        self, scenario: "Resolved", *, isolated: bool, threads: int | None = None, live: Live | None = None
    ) -> None:
        until = scenario.until
        if until and until.of == "w" and not isolated:
            allowed = '"time_per_iteration", or isolated runs'
            raise ScenarioError(Problem("until.of", "needs isolated runs, and there are none", until.of, allowed))
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
        self._batches = LatencyBatches(self._instants[0], [job.workload for job in scenario.jobs]) if counts else None
        watchers: list[Watcher] = [it for it in (self._sampler, self._counters, self._batches) if it]
        self._live = live
        self._gauge = live.co_run(scenario.duration) if live else Gauge(scenario.duration)
        self._together = Simulated(self._all_jobs, self._gauge, watchers)
        alone = [job for job in compared if isolated and not self._is_alone]
        self._gauges = {
            job: live.isolated(job, scenario.duration) if live else Gauge(scenario.duration) for job in alone
        }
        self._alone = {job: Simulated(partial(self._one_job, job), gauge) for job, gauge in self._gauges.items()}
        self._measured: dict[int, Work] = {}
        self._counted: pl.DataFrame | None = None
        self._observed: Observed | None = None
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
        """Simulates everything, or what Ctrl-C or another process leaves time for."""
        pool = ThreadPoolExecutor(max_workers=machine_cores())
        shown = display(self._gauge, list(self._gauges.values()), wanted=progress)
        if self._live is not None:
            shown = Displays(shown, self._live)
        try:
            # What is measured so far is kept; a second interrupt, while the simulations stop, ends it all.
            with suppress(KeyboardInterrupt, StopRequestedError), shown:
                for instant in self._instants:
                    self._duration = instant
                    _watch([pool.submit(self._part, job) for job in (None, *self._alone)], shown)
                    if self._precision is not None and self._is_enough(self._precision):
                        break
                if self._observed is None:
                    _watch([pool.submit(self._end, job) for job in (None, *self._alone)], shown)
        finally:
            self._stop.set()
            pool.shutdown(wait=True)
        return self._outcome()

    def _part(self, job: int | None) -> None:
        """Simulates a job by itself, or all together (None), to the next instant, the last of which is the end."""
        one = self._together if job is None else self._alone[job]
        one.advance(self._duration, self._stop)
        if self._duration == self._instants[-1]:
            self._end(job)

    def _is_enough(self, precision: Precision) -> bool:
        """Whether what was simulated so far is precise enough."""
        together = self._observed.measured if self._observed else Work.of(self._together.engine)
        alone = self._measured or {job: Work.of(one.engine) for job, one in self._alone.items()}
        return precision.reached(together, {0: together} if self._is_alone else alone)

    def _end(self, job: int | None) -> None:
        """Nothing follows: keeps what a complete simulation, or that of all jobs, has measured."""
        one = self._together if job is None else self._alone[job]
        if one.complete:
            one.finish()
        if job is None:
            self._end_of_all()
        elif one.complete:
            work = Work.of(one.engine)
            self._measured[job] = replace(work, first_iteration=later_iteration(one.engine, self._stop))
            one.release()

    def _end_of_all(self) -> None:
        """What all jobs together have done, then when a job that is alone completes its first iteration."""
        engine = self._together.engine
        self._counted = self._counters.table(engine) if self._counters else None
        observed = Observed.of(engine, self._scenario)
        if self._is_alone and self._together.complete and self._scenario.jobs[0].iterates:
            first = later_iteration(engine, self._stop)
            observed = replace(observed, measured=replace(observed.measured, first_iteration=first))
            self._measured[0] = observed.measured
        self._observed = observed

    def _outcome(self) -> Outcome:
        """What was measured; nothing is compared where the co-run was interrupted."""
        complete = self._together.complete
        for job in [*([None] if self._observed is None else []), *(self._alone.keys() - self._measured.keys())]:
            self._end(job)  # it was interrupted before
        assert self._observed is not None, "the end of all jobs"
        return Outcome(
            self._observed,
            [self._measured.get(job) if complete else None for job in range(len(self._scenario.jobs))],
            not complete or any(job not in self._measured for job in self._alone),
            self._sampler.table() if self._sampler else None,
            self._counted,
            self._counters.windows() if self._counters else None,
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

    The simulation goes on for that, with few packet-hops and messages more: idle time costs nothing.
    """
    if min(engine.progress()[0], default=1):
        return None
    step = Slice(hops=LATER_HOPS // 100, window=max(1, engine.now // 10), growth=2)
    most = 2 * engine.messages + LATER_MESSAGES

    def ends(engine: Engine) -> bool:
        return min(engine.progress()[0]) > 0 or engine.messages > most

    budget = max(LATER_HOPS - engine.packet_hops, engine.packet_hops)
    with suppress(RunError):  # it fails after the time that was asked for
        drive(engine, LATER_PS, done=ends, every=step, budget=budget, stop=stop)
    found = frame(engine.table("job_marks"))["time"]
    return int(found[0]) if found.len() else None
