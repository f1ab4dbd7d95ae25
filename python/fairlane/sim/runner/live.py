"""State of a run for other processes while it is simulated: progress, speed, and measurements so far.

Each simulation is looked at by its own thread between two slices, and the thread that waits for all of them writes the
state. Looking changes nothing, and takes at most a given share of the time: what takes long is done less often.

W so far is the plain ratio of the times to the last iteration that both runs have completed. The warm-up that results
leave out, and intervals, are for the end: they would load the libraries of statistics while the simulations run.
"""

import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from fairlane.core.bridge import RawTable
from fairlane.core.drive import Engine
from fairlane.core.tables import PS
from fairlane.model.fabric.graph import columns
from fairlane.results.live import BusyLinks, History, Jobs, LiveFolder, Matrix, Progress, State
from fairlane.results.tables import Links
from fairlane.sim.runner.experiment import Experiment
from fairlane.sim.runner.progress import Gauge, StopRequestedError, seconds_left

Floats = NDArray[np.float64]

MOST_CELLS = 4000
"""Cells of the matrix; of more, those with the greatest delay."""
MOST_POINTS, FEWEST_POINTS, MOST_LINE = 4000, 4, 60
"""Points of the times per iteration: of all jobs together, and of one job at least and at most."""
BUSIEST = 12
"""Number of links."""
EVERY_S = 1.0  # wall time between two states, s
SHARE = 0.0025  # of a thread's time, that looking and writing may take
MOST_HISTORY = 240  # states whose progress is kept; of more, every second one


@dataclass(frozen=True)
class Snapshot:
    """Measurements of a simulation up to an instant, in the engine's own columns."""

    now: int
    """The instant, ps."""
    iterations: Sequence[int]
    """By job, those of its slowest rank."""
    marks: RawTable
    interference: RawTable
    ports: RawTable

    @classmethod
    def of(cls, engine: Engine, *, network: bool) -> Self:
        """Read the measurements so far; with ``network`` also interference and ports."""
        iterations = [min(ranks, default=0) for ranks in engine.progress()]
        network_tables = (engine.table(name) if network else {} for name in ("interference", "ports"))
        return cls(engine.now, iterations, engine.table("job_marks"), *network_tables)


class Pace:
    """Clock of a repeated action that costs processor time: every second, or later where it takes long."""

    def __init__(self) -> None:
        self._next = time.monotonic() + EVERY_S

    @property
    def due(self) -> bool:
        """Whether it is time."""
        return time.monotonic() >= self._next

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Within, it is done; it must stay on one thread."""
        begun = time.thread_time()
        try:
            yield
        finally:
            self._next = time.monotonic() + max(EVERY_S, (time.thread_time() - begun) / SHARE)


class Probe:
    """Keeps the last snapshot of a simulation, with interference and ports if it is that of the ``network``."""

    def __init__(self, gauge: Gauge, *, network: bool) -> None:
        self._gauge, self._network = gauge, network
        self._pace = Pace()
        self.snapshot: Snapshot | None = None
        gauge.probe = self.look

    def look(self, engine: Engine) -> None:
        """Takes a snapshot if that is due."""
        # An isolated run is compared with after its end.
        last = not self._network and (engine.finished or engine.now >= self._gauge.duration)
        if last or self._pace.due:
            with self._pace.measured():
                self.snapshot = Snapshot.of(engine, network=self._network)


class Live:
    """Writes the state of a run, and ends it when another process asks for that."""

    def __init__(self, held: LiveFolder, experiment: Experiment, started: datetime) -> None:
        self._held, self._scenario, self._links = held, experiment.scenario, experiment.links
        self._together, self._isolated = experiment.together.gauge, [run.gauge for run in experiment.alone.values()]
        self._gauges = [self._together, *self._isolated, *(run.gauge for run in experiment.without.values())]
        self._probe = Probe(self._together, network=True)
        self._alone = {job: Probe(run.gauge, network=False) for job, run in experiment.alone.items()}
        self._writing = Pace()
        self._shown: Snapshot | None = None
        self._course: list[tuple[float, float, float]] = []
        self._every, self._count = 1, 0  # of how many states one is kept in the history, and how many there were
        self._before: tuple[float, int] | None = None
        scenario = self._scenario
        labels = [(job.name, job.workload, job.ranks) for job in scenario.jobs]
        names, workloads, ranks = zip(*labels, strict=True) if labels else ((), (), ())
        self._state = State(
            version=version("fairlane"),
            scenario=scenario.name,
            seed=scenario.seed,
            started=started,
            pid=os.getpid(),
            machine=platform.node(),
            progress=Progress(duration_s=scenario.duration * PS),
            jobs=Jobs(name=names, workload=workloads, ranks=ranks),
        )
        held.write(self._state)

    def update(self) -> None:
        """Writes the state if that is due. Raises ``StopRequestedError`` if the run is to end."""
        if self._held.stop_requested:
            raise StopRequestedError
        if self._writing.due:
            if self._probe.snapshot is not None:
                _ = self._links.table  # not counted: the results need it, too
            with self._writing.measured():
                self._write(written=time.time(), progress=self._progress(), history=self._history(), **self._measured())

    def storing(self) -> None:
        """The simulations are over."""
        self._write(phase="storing", written=time.time(), progress=self._progress())

    def failed(self, error: BaseException) -> None:
        """The run ends without results."""
        words = str(error) or ("interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__)
        self._write(phase="failed", written=time.time(), error=words)

    def _write(self, **changes: object) -> None:
        self._state = self._state.model_copy(update=changes)
        self._held.write(self._state)

    def _progress(self) -> Progress:
        together, gauges = self._together, self._gauges
        now, hops = time.monotonic(), together.packet_hops
        rate = None
        if self._before is not None and now > self._before[0] and together.since is not None:
            rate = (hops - self._before[1]) / (now - self._before[0])
        self._before = (now, hops)
        return Progress(
            simulated_s=together.now * PS,
            duration_s=together.duration * PS,
            share=sum(gauge.share for gauge in gauges) / len(gauges),
            packet_hops=hops,
            hops_per_s=rate,
            elapsed_s=now - min((gauge.started for gauge in gauges if gauge.started is not None), default=now),
            left_s=seconds_left(gauges),
            isolated=len(self._isolated),
            isolated_done=sum(gauge.share == 1 for gauge in self._isolated),
        )

    def _history(self) -> History:
        """The course up to the state before: this one is in ``progress``."""
        before = self._state.progress
        if before.hops_per_s is not None:
            if self._count % self._every == 0:
                self._course.append((before.elapsed_s, before.simulated_s, before.hops_per_s))
            self._count += 1
        if len(self._course) > MOST_HISTORY:
            self._course, self._every = self._course[::2], 2 * self._every
        columns = zip(*self._course, strict=True) if self._course else ((), (), ())
        elapsed, simulated, rates = (tuple(float(f"{value:.6g}") for value in column) for column in columns)
        return History(elapsed_s=elapsed, simulated_s=simulated, hops_per_s=rates)

    def _measured(self) -> dict[str, object]:
        """Return the measurements so far, if there is a snapshot that has not been shown."""
        snapshot = self._probe.snapshot
        if snapshot is None or snapshot is self._shown:
            return {}
        self._shown = snapshot
        alone = {job: one.snapshot for job, one in self._alone.items() if one.snapshot}
        return {
            "measured_s": snapshot.now * PS,
            "jobs": jobs_so_far([job.start for job in self._scenario.jobs], self._state.jobs, snapshot, alone),
            "matrix": matrix_so_far(snapshot),
            "links": busiest(self._links, snapshot),
        }


@contextmanager
def watched(folder: Path | None, experiment: Experiment, started: datetime) -> Iterator[Live | None]:
    """Within, other processes see the run that will be stored in a folder; None without one, or if it cannot be shown.

    Raises ``ResultsError`` if another process simulates a run into the folder.
    """
    held = None if folder is None else LiveFolder.create(folder)
    if held is None:
        yield None
        return
    view = Live(held, experiment, started)
    try:
        yield view
    except BaseException as error:
        view.failed(error)
        held.close(keep=True)
        raise
    held.close()


@dataclass(frozen=True)
class _Times:
    """Times at which a job completed its iterations ``stride``, ``2 stride`` ..., ps from its start."""

    stride: int
    at: Floats
    elapsed: Floats | None = None
    """Times that their timed parts took, ps; None without such parts."""

    def change_against(self, isolated: "_Times") -> float | None:
        """The change of throughput over all iterations that both have completed; None without any."""
        stride = max(self.stride, isolated.stride)  # both are powers of two
        last = min(of.stride * len(of.at) for of in (self, isolated)) // stride * stride
        if not last:
            return None
        here, there = (float(of.at[last // of.stride - 1]) for of in (self, isolated))
        return there / here - 1 if here and there else None

    @property
    def per_iteration(self) -> float | None:
        """The mean time from one completed iteration to the next, or of their timed parts if they have some, s."""
        if self.elapsed is not None:
            return float(self.elapsed.mean()) * PS
        count = len(self.at) - 1
        return float(self.at[-1] - self.at[0]) * PS / (count * self.stride) if count > 0 else None


def _times(marks: RawTable, starts: Sequence[int]) -> dict[int, _Times]:
    """By job of one simulation."""
    raw = columns(marks)
    if not len(raw["job"]):
        return {}
    order = np.argsort(raw["job"], kind="stable")
    jobs, first = np.unique(raw["job"][order], return_index=True)
    parts = np.split(order, first[1:])
    return {
        int(job): _Times(
            int(raw["iteration"][rows[0]]),
            raw["time"][rows].astype(np.float64) - starts[int(job)],
            raw["elapsed"][rows].astype(np.float64) if raw["timed"][rows].any() else None,
        )
        for job, rows in zip(jobs, parts, strict=True)
    }


def jobs_so_far(starts: Sequence[int], known: Jobs, together: Snapshot, alone: Mapping[int, Snapshot]) -> Jobs:
    """Iterations, the time per iteration and W of jobs that begin at ``starts``, ps; ``alone`` are isolated runs."""
    here = _times(together.marks, starts)
    there = {job: _times(one.marks, [starts[job]]).get(0) for job, one in alone.items()}
    pairs = [(here.get(job), there.get(job)) for job in range(len(starts))]
    most = max(FEWEST_POINTS, min(MOST_LINE, MOST_POINTS // max(1, len(starts))))
    lines = [_line(own, start, most) if own else ((), ()) for (own, _), start in zip(pairs, starts, strict=True)]
    return known.model_copy(
        update={
            "iterations": tuple(together.iterations),
            "seconds_per_iteration": tuple(_short(own.per_iteration) if own else None for own, _ in pairs),
            "w": tuple(_short(own.change_against(other)) if own and other else None for own, other in pairs),
            "at_s": tuple(at for at, _ in lines),
            "time_s": tuple(each for _, each in lines),
        }
    )


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def _line(job: _Times, start: int, most: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the times of completed iterations, and the mean time of each since the one before; without the first."""
    count = len(job.at)
    if count < 2:
        return (), ()
    kept = np.unique(np.linspace(0, count - 1, min(count, most + 1)).astype(int))
    at = (job.at[kept] + start) * PS
    each = np.diff(at) / (np.diff(kept) * job.stride) if job.elapsed is None else job.elapsed[kept[1:]] * PS
    return _rounded(at[1:]), _rounded(each)


def _rounded(values: Floats) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in values)


def matrix_so_far(snapshot: Snapshot) -> Matrix:
    """The interference matrix."""
    raw = columns(snapshot.interference)
    delay = raw["waiting"].astype(np.float64)
    order = np.argsort(-delay, kind="stable")[:MOST_CELLS]
    kept = order[delay[order] > 0]
    total = float(delay.sum())
    return Matrix(
        victim=tuple(raw["delayed"][kept].tolist()),
        aggressor=tuple(raw["delaying"][kept].tolist()),
        queueing_s=_rounded(delay[kept] * PS),
        kept=float(delay[kept].sum()) / total if total else 1.0,
    )


def busiest(links: Links, snapshot: Snapshot) -> BusyLinks:
    """The links with the highest utilisation."""
    raw = columns(snapshot.ports)
    numbers, first = np.unique(raw["link"], return_index=True)
    active, stalled = (raw[name][first] / max(snapshot.now, 1) for name in ("port_active", "port_stalled"))
    order = np.argsort(-active, kind="stable")[:BUSIEST]
    chosen = [at for at in order if active[at] > 0]
    if not chosen:
        return BusyLinks()
    names = links.table["link_name"]
    return BusyLinks(
        name=tuple(str(names[int(numbers[at])]) for at in chosen),
        active_share=_rounded(active[chosen]),
        stalled_share=_rounded(stalled[chosen]),
    )
