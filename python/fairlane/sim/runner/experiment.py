"""All simulations of a run, on all cores, watched, and stopped by Ctrl-C."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from fairlane.core.drive import Engine, Slice, Watcher, drive
from fairlane.core.errors import Problem, RunError, ScenarioError
from fairlane.core.tables import Work, frame
from fairlane.model.scenario.estimate import free_cores, machine_cores
from fairlane.results.culprit import LeftOut
from fairlane.results.latency import LatencyBatches
from fairlane.results.tables import Links, Measured
from fairlane.sim.runner.counters import IterationCounters, PortSampler
from fairlane.sim.runner.precision import Precision
from fairlane.sim.runner.progress import Gauge, StopRequestedError, display

if TYPE_CHECKING:
    from fairlane.model.scenario import Resolved

WATCH_S = 0.1  # how often progress is shown, s
LATER_HOPS = 1_000_000
"""Packet-hops that an isolated run without two iterations in time may always use to complete them."""
LATER_MESSAGES = 100_000
"""So many messages may be under way then, in addition to twice those at the end of the time that was asked for: a job
that sends faster than its network takes would fill the memory before an iteration is complete."""
LATER_PS = 10**15  # the simulated time after which no iteration is waited for, ps


class Simulated:
    """One of the simulations of a run: built when it first advances, and simulated in parts."""

    def __init__(self, build: Callable[[], Engine], duration: int, watchers: Sequence[Watcher] = ()) -> None:
        self._build = build
        self._watchers = watchers
        self._engine: Engine | None = None
        self.gauge = Gauge(duration)
        self.complete = False
        """Whether the last part was simulated to its end."""
        self.work: Work | None = None
        """What it has measured, once nothing follows."""

    @property
    def engine(self) -> Engine:
        """Its engine."""
        if self._engine is None:
            self._engine = self._build()
        return self._engine

    def advance(self, to: int, stop: Event) -> None:
        """Simulates up to an instant, ps, unless it is stopped. Raises ``RunError``."""
        self.complete = False
        if not stop.is_set():
            engine = self.engine
            with self.gauge.running():
                end = drive(engine, to, watchers=self._watchers, progress=self.gauge.reach, stop=stop, last=False)
            self.complete = end.complete

    def finish(self) -> None:
        """Nothing follows: watchers look once more."""
        self.gauge.finished = True
        for watcher in self._watchers:
            watcher.look(self.engine)

    def keep(self, work: Work) -> None:
        """Keeps what it has measured, and lets the engine go, with its memory."""
        self.work, self._engine = work, None


class Experiment:
    """All jobs together, each alone, and with ``leave_one_out`` all without each aggressor.

    Threads suffice: the engine lets go of the interpreter while it simulates.

    ``threads`` simulate all jobs together; without it as many as there are free cores for each of the simulations,
    where the fabric is large enough to gain. Of a scenario with ``until`` all are simulated part by part, until the
    results are precise enough.
    """

    def __init__(
        self, scenario: "Resolved", *, isolated: bool, leave_one_out: bool = False, threads: int | None = None
    ) -> None:
        until = scenario.until
        if until and until.of == "w" and not isolated:
            allowed = '"time_per_iteration", or isolated runs'
            raise ScenarioError(Problem("until.of", "needs isolated runs, and there are none", until.of, allowed))
        self.scenario = scenario
        self.links = Links(scenario.fabric)
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
        optional = (self._sampler, self._counters, self._batches)
        watchers: list[Watcher] = [watcher for watcher in optional if watcher]
        self.together = Simulated(self._all_jobs, scenario.duration, watchers)
        alone = [job for job in compared if isolated and not self._is_alone]
        self.alone = {job: Simulated(partial(self._some_jobs, [job]), scenario.duration) for job in alone}
        """The isolated runs, by job."""
        every = range(len(scenario.jobs))
        aggressors = scenario.aggressors if leave_one_out else {}
        self._others = {name: [job for job in every if job not in of] for name, of in aggressors.items()}
        """The jobs that are left without each aggressor."""
        # The co-run of two jobs without one is the isolated run of the other.
        self.without = {
            name: Simulated(partial(self._some_jobs, jobs), scenario.duration)
            for name, jobs in self._others.items()
            if jobs and not (len(jobs) == 1 and jobs[0] in alone)
        }
        """The leave-one-out runs, by aggressor."""
        self._separate = [*self.alone.values(), *self.without.values()]
        self._gauges = {
            "isolated": [one.gauge for one in self.alone.values()],
            "leave-one-out": [one.gauge for one in self.without.values()],
        }
        self._measured: Measured | None = None
        self.shards = 1
        """Parts into which the fabric was divided in the co-run, each simulated by a thread of its own."""
        self.duration = scenario.duration
        """The simulated time that was asked for, or turned out to be enough, ps."""

    def _all_jobs(self) -> Engine:
        share = max(1, free_cores() // (1 + len(self._separate)))
        threads = share if self._threads is None else self._threads
        built = self.scenario.engine(threads, automatic=self._threads is None)
        self.shards = built.shards
        return built

    def _some_jobs(self, jobs: Sequence[int]) -> Engine:
        return self.scenario.only(jobs).engine()

    def perform(self, *, progress: bool, observe: Callable[[], None] | None = None) -> Measured:
        """Simulates everything, or what Ctrl-C or ``StopRequestedError`` leaves time for.

        ``observe`` is called now and then meanwhile.
        """
        pool = ThreadPoolExecutor(max_workers=machine_cores())
        runs = [self.together, *self._separate]
        try:
            # What is measured so far is kept; a second interrupt, while the simulations stop, ends it all.
            shown = display(self.together.gauge, self._gauges, wanted=progress)
            with suppress(KeyboardInterrupt, StopRequestedError), shown as show:
                observers = [show, observe] if observe else [show]
                for instant in self._instants:
                    self.duration = instant
                    watch([pool.submit(self._part, run) for run in runs], observers)
                    if self._precision is not None and self._is_enough(self._precision):
                        break
                if self._measured is None:
                    watch([pool.submit(self._end, run) for run in runs], observers)
        finally:
            self._stop.set()
            pool.shutdown(wait=True)
        for run in runs:
            if run.work is None:  # it was interrupted before
                self._end(run)
        assert self._measured is not None, "the end of all jobs"
        return replace(
            self._measured,
            alone=[self._work_alone(job) for job in range(len(self.scenario.jobs))],
            without=list(self._left_out()) if self.together.complete else (),
            samples=self._sampler.table() if self._sampler else None,
            counters_before=self._counters.windows() if self._counters else None,
            latency_intervals=self._batches.table() if self._batches else None,
        )

    @property
    def partial(self) -> bool:
        """Whether some simulation was stopped before its end."""
        return not self.together.complete or any(run.work is None for run in self._separate)

    @property
    def notes(self) -> tuple[str, ...]:
        """How precise the results are, where that was asked for."""
        return (self._precision.words(),) if self._precision and self.together.complete else ()

    def engine_seconds(self) -> dict[str, float]:
        """Wall time of the engine in the co-run, the isolated and the leave-one-out runs, as in ``Timings``, s."""
        isolated, without = (sum(gauge.seconds for gauge in gauges) for gauges in self._gauges.values())
        return {"engine_s": self.together.gauge.seconds, "isolated_s": isolated, "leave_one_out_s": without}

    def _part(self, run: Simulated) -> None:
        """Simulates a run to the next instant, the last of which is the end."""
        run.advance(self.duration, self._stop)
        if self.duration == self._instants[-1]:
            self._end(run)

    def _is_enough(self, precision: Precision) -> bool:
        """Whether what was simulated so far is precise enough."""
        together = self.together.work or Work.of(self.together.engine)
        alone = {job: run.work or Work.of(run.engine) for job, run in self.alone.items()}
        return precision.reached(together, {0: together} if self._is_alone else alone)

    def _end(self, run: Simulated) -> None:
        """Nothing follows: keeps what a complete simulation, or that of all jobs, has measured."""
        if run.complete:
            run.finish()
        if run is self.together:
            self._end_of_all()
        elif run.complete:
            work = Work.of(run.engine)
            if run in self.alone.values():
                work = replace(work, later_iterations=later_iterations(run.engine, self._stop))
            run.keep(work)

    def _end_of_all(self) -> None:
        """Keep the results of all jobs together, then simulate on until a job that is alone has two iterations."""
        engine = self.together.engine
        counted = self._counters.table(engine) if self._counters else None
        measured = Measured.of(engine, self.scenario, self.links, counters=counted)
        if self._is_alone and self.together.complete and self.scenario.jobs[0].iterates:
            later = later_iterations(engine, self._stop)
            measured = replace(measured, together=replace(measured.together, later_iterations=later))
        self._measured, self.together.work = measured, measured.together

    def _work_alone(self, job: int) -> Work | None:
        """The work of a job in its isolated run; nothing is compared where the co-run was interrupted."""
        if not self.together.complete:
            return None
        if self._is_alone:
            return self.together.work if self.scenario.jobs[job].iterates else None
        return self.alone[job].work if job in self.alone else None

    def _left_out(self) -> Iterator[LeftOut]:
        """Yield the work of the jobs without each aggressor, as far as that was simulated to its end."""
        for name, others in self._others.items():
            run = self.without.get(name) or (self.alone[others[0]] if others else None)
            if run is not None and run.work is not None:
                yield LeftOut(name, others, run.work)


def watch(simulations: Sequence[Future[None]], observers: Sequence[Callable[[], None]]) -> None:
    """Calls the observers until all is done; raises the first error of a simulation at once."""
    pending = set(simulations)
    while pending:
        done, pending = wait(pending, timeout=WATCH_S, return_when=FIRST_COMPLETED)
        for simulation in done:
            simulation.result()
        for observe in observers:
            observe()


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
