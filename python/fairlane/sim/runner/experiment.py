"""All simulations of a run, on all cores, watched, and stopped by Ctrl-C."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

import polars as pl

from fairlane.core.drive import Engine, Slice, Watcher, drive
from fairlane.core.errors import Problem, RunError, ScenarioError
from fairlane.core.tables import Work, frame
from fairlane.model.scenario.estimate import free_cores, machine_cores
from fairlane.results.culprit import LeftOut
from fairlane.results.latency import LatencyBatches
from fairlane.results.tables import Observed
from fairlane.sim.runner.counters import IterationCounters, PortSampler
from fairlane.sim.runner.live import Live, StopRequestedError
from fairlane.sim.runner.precision import Precision
from fairlane.sim.runner.progress import Display, Displays, Gauge, display

if TYPE_CHECKING:
    from fairlane.model.scenario import Resolved

WATCH_S = 0.1  # how often progress is shown, s
LATER_HOPS = 1_000_000
"""Packet-hops that an isolated run without two iterations in time may always use to complete them."""
LATER_MESSAGES = 100_000
"""So many messages may be under way then, in addition to twice those at the end of the time that was asked for: a job
that sends faster than its network takes would fill the memory before an iteration is complete."""
LATER_PS = 10**15  # the simulated time after which no iteration is waited for, ps


@dataclass(frozen=True)
class Outcome:
    """Measurements of the simulations of a run."""

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
    without: Sequence[LeftOut] = ()  # the leave-one-out runs, if requested and not interrupted
    leave_one_out_s: float = 0.0  # wall time of the engine in them, summed over them, s
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
    """All jobs together, each alone, and with ``leave_one_out`` all without each aggressor.

    Threads suffice: the engine lets go of the interpreter while it simulates.

    ``threads`` simulate all jobs together; without it as many as there are free cores for each of the simulations,
    where the fabric is large enough to gain. Of a scenario with ``until`` all are simulated part by part, until the
    results are precise enough. ``live`` shows other processes how far they are, and stops them on request.
    """

    def __init__(
        self,
        scenario: "Resolved",
        *,
        isolated: bool,
        leave_one_out: bool = False,
        threads: int | None = None,
        live: Live | None = None,
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
        gauges = {job: live.isolated(job, scenario.duration) if live else Gauge(scenario.duration) for job in alone}
        self._alone = {job: Simulated(partial(self._some_jobs, [job]), gauge) for job, gauge in gauges.items()}
        self._aggressors = scenario.aggressors if leave_one_out else {}
        # The co-run of two jobs without one is the isolated run of the other.
        found = {name: self._others(name) for name in self._aggressors}
        simulated = {name: jobs for name, jobs in found.items() if jobs and not (len(jobs) == 1 and jobs[0] in alone)}
        gauges_without = {
            name: live.left_out(scenario.duration) if live else Gauge(scenario.duration) for name in simulated
        }
        self._without = {
            name: Simulated(partial(self._some_jobs, jobs), gauges_without[name]) for name, jobs in simulated.items()
        }
        self._gauges = {"isolated": list(gauges.values()), "leave-one-out": list(gauges_without.values())}
        self._measured: dict[int | str, Work] = {}
        self._counted: pl.DataFrame | None = None
        self._observed: Observed | None = None
        self._shards = 1
        self._duration = scenario.duration

    def _all_jobs(self) -> Engine:
        share = max(1, free_cores() // (1 + len(self._alone) + len(self._without)))
        threads = share if self._threads is None else self._threads
        built = self._scenario.engine(threads, automatic=self._threads is None)
        self._shards = built.shards
        return built

    def _some_jobs(self, jobs: Sequence[int]) -> Engine:
        return self._scenario.only(jobs).engine()

    def _others(self, aggressor: str) -> list[int]:
        """The jobs that are left without an aggressor."""
        return [job for job in range(len(self._scenario.jobs)) if job not in self._aggressors[aggressor]]

    @property
    def _separate(self) -> Mapping[int | str, Simulated]:
        """The simulations besides the co-run: isolated ones by job, leave-one-out runs by aggressor."""
        return dict([*self._alone.items(), *self._without.items()])

    def perform(self, *, progress: bool) -> Outcome:
        """Simulates everything, or what Ctrl-C or another process leaves time for."""
        pool = ThreadPoolExecutor(max_workers=machine_cores())
        shown = display(self._gauge, self._gauges, wanted=progress)
        if self._live is not None:
            shown = Displays(shown, self._live)
        try:
            # What is measured so far is kept; a second interrupt, while the simulations stop, ends it all.
            with suppress(KeyboardInterrupt, StopRequestedError), shown:
                for instant in self._instants:
                    self._duration = instant
                    _watch([pool.submit(self._part, run) for run in (None, *self._separate)], shown)
                    if self._precision is not None and self._is_enough(self._precision):
                        break
                if self._observed is None:
                    _watch([pool.submit(self._end, run) for run in (None, *self._separate)], shown)
        finally:
            self._stop.set()
            pool.shutdown(wait=True)
        return self._outcome()

    def _part(self, run: int | str | None) -> None:
        """Simulates a separate run, or all together (None), to the next instant, the last of which is the end."""
        one = self._together if run is None else self._separate[run]
        one.advance(self._duration, self._stop)
        if self._duration == self._instants[-1]:
            self._end(run)

    def _is_enough(self, precision: Precision) -> bool:
        """Whether what was simulated so far is precise enough."""
        together = self._observed.measured if self._observed else Work.of(self._together.engine)
        alone = {job: self._measured.get(job) or Work.of(one.engine) for job, one in self._alone.items()}
        return precision.reached(together, {0: together} if self._is_alone else alone)

    def _end(self, run: int | str | None) -> None:
        """Nothing follows: keeps what a complete simulation, or that of all jobs, has measured."""
        one = self._together if run is None else self._separate[run]
        if one.complete:
            one.finish()
        if run is None:
            self._end_of_all()
        elif one.complete:
            work = Work.of(one.engine)
            if run in self._alone:
                work = replace(work, later_iterations=later_iterations(one.engine, self._stop))
            self._measured[run] = work
            one.release()

    def _end_of_all(self) -> None:
        """Keep the results of all jobs together, then simulate on until a job that is alone has two iterations."""
        engine = self._together.engine
        self._counted = self._counters.table(engine) if self._counters else None
        observed = Observed.of(engine, self._scenario)
        if self._is_alone and self._together.complete and self._scenario.jobs[0].iterates:
            later = later_iterations(engine, self._stop)
            observed = replace(observed, measured=replace(observed.measured, later_iterations=later))
            self._measured[0] = observed.measured
        self._observed = observed

    def _outcome(self) -> Outcome:
        """Return the measurements; nothing is compared where the co-run was interrupted."""
        complete = self._together.complete
        for run in [*([None] if self._observed is None else []), *(self._separate.keys() - self._measured.keys())]:
            self._end(run)  # it was interrupted before
        assert self._observed is not None, "the end of all jobs"
        interrupted = not complete or any(run not in self._measured for run in self._separate)
        return Outcome(
            self._observed,
            [self._measured.get(job) if complete else None for job in range(len(self._scenario.jobs))],
            interrupted,
            self._sampler.table() if self._sampler else None,
            self._counted,
            self._counters.windows() if self._counters else None,
            self._batches.table() if self._batches else None,
            shards=self._shards,
            engine_s=self._gauge.seconds,
            isolated_s=sum(gauge.seconds for gauge in self._gauges["isolated"]),
            without=list(self._left_out()) if complete else (),
            leave_one_out_s=sum(gauge.seconds for gauge in self._gauges["leave-one-out"]),
            duration=self._duration,
            notes=(self._precision.words(),) if self._precision and complete else (),
        )

    def _left_out(self) -> Iterator[LeftOut]:
        """Yield the work of the jobs without each aggressor, as far as that was simulated to its end."""
        for name in self._aggressors:
            others = self._others(name)
            work = self._measured.get(name if name in self._without else others[0]) if others else None
            if work is not None:
                yield LeftOut(name, others, work)


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


def later_iterations(engine: Engine, stop: Event | None = None) -> list[int]:
    """Return the times at which the one job of ``engine`` completes what it lacks of two iterations, ps.

    The simulation goes on for that, with few packet-hops and messages more: idle time costs nothing.
    """
    before = min(engine.progress()[0], default=2)
    if before >= 2:
        return []
    step = Slice(hops=LATER_HOPS // 100, window=max(1, engine.now // 10), growth=2)
    most = 2 * engine.messages + LATER_MESSAGES

    def ends(engine: Engine) -> bool:
        return min(engine.progress()[0]) > 1 or engine.messages > most

    budget = max(LATER_HOPS - engine.packet_hops, engine.packet_hops)
    with suppress(RunError):  # it fails after the time that was asked for
        drive(engine, LATER_PS, done=ends, every=step, budget=budget, stop=stop)
    return [int(time) for time in frame(engine.table("job_marks"))["time"][before:2]]
