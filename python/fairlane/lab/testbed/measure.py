"""Measuring: each job isolated, all jobs together, and all with each treatment, again and again.

The processes run all the time, and phases follow each other within a repetition; every second repetition has them in
reverse order, so that a drift of the machine affects isolated and common phases alike. All jobs of a phase begin and
end at the same time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import polars as pl

from fairlane.cluster.agent.backends.htb import LevelClass
from fairlane.cluster.agent.backends.linux import Linux
from fairlane.cluster.agent.jobs import Setting
from fairlane.core.errors import writing
from fairlane.core.signals import HANG_S
from fairlane.inputs.files import replacing
from fairlane.lab.testbed import machine
from fairlane.lab.testbed.file import TestbedFile
from fairlane.lab.testbed.machine import MeasurementError
from fairlane.lab.testbed.mpi import PAGES, RunningJob, running
from fairlane.lab.testbed.plan import Plan

ISOLATED, TOGETHER = "isolated", "together"
"""Kinds of phases; that of a treatment has its name after ``treated:``."""
TREATED = "treated:"
AGENT = "agent"
"""The kind of the phases in which what the agent has set is in force."""
STEERED = "steered"
"""The kind of the phases in which a controller sets levels by rank."""
_PS = 1e-12


@dataclass(frozen=True)
class Phase:
    """Some jobs running for a while."""

    kind: str
    jobs: tuple[str, ...]
    levels: Mapping[str, int] | None = None
    """Service level by job; None for none, and without queueing disciplines of levels."""


def phases_of(file: TestbedFile, repetition: int) -> list[Phase]:
    """The phases of a repetition, numbered from 0, in order."""
    names = tuple(job.name for job in file.jobs)
    isolated = [Phase(ISOLATED, (name,)) for name in names]
    treatments = file.qos.treatments if file.qos else ()
    treated = [Phase(f"{TREATED}{treatment.name}", names, treatment.levels) for treatment in treatments]
    phases = [*isolated, Phase(TOGETHER, names), *treated]
    return phases[:: -1 if repetition % 2 else 1]


def backend_of(file: TestbedFile) -> Linux | None:
    """Return the backend of the levels in ``qos`` on the trunks, for jobs that mark their packets; None without any."""
    return linux(file, file.qos.levels, None) if file.qos else None


def linux(file: TestbedFile, levels: Sequence[LevelClass], marks: list[str] | None) -> Linux:
    """Return the backend of levels on the trunks; with ``marks`` the hosts mark packets."""
    plan = Plan(file.fabric)
    devices, timeout = plan.trunk_devices, f"{HANG_S} s"
    return Linux(devices=devices, levels=list(levels), addresses=plan.addresses, marks=marks, timeout=timeout)


class Bench:
    """The running jobs of a testbed that is up.

    Args:
        file: The testbed.
        jobs: Its jobs, ready.
        pages: The folder of the pages in which they mark their progress.
    """

    def __init__(self, file: TestbedFile, jobs: Sequence[RunningJob], pages: Path) -> None:
        self.file, self.pages = file, pages
        self._jobs = {job.job.name: job for job in jobs}
        self._backend = backend_of(file)

    def phase(self, phase: Phase) -> pl.DataFrame:
        """Runs a phase with its service levels; returns a row for each iteration, as ``run``."""
        backend = self._backend
        if phase.levels is None or backend is None:
            return self.run(phase)
        settings = [Setting(name, level, self._jobs[name].job.hosts) for name, level in phase.levels.items()]
        self.mark(phase.levels)
        backend.write(settings)
        try:
            return self.run(phase)
        finally:
            backend.write([])
            self.mark({})

    def mark(self, levels: Mapping[str, int]) -> None:
        """Has the jobs mark their packets with the DSCP of their levels, from their next iterations on."""
        marks = (
            {level_class.level: level_class.dscp or 0 for level_class in self.file.qos.levels} if self.file.qos else {}
        )
        for name, job in self._jobs.items():
            job.control.set_dscp(marks.get(levels.get(name, 0), 0))

    def run(self, phase: Phase, during: Callable[[], object] | None = None) -> pl.DataFrame:
        """Runs jobs for warm-up and duration, or without a warm-up for as long as a call takes.

        Returns a row for each iteration that began and ended in the duration: ``kind``, ``job``, ``iteration`` from 0,
        and ``at_s``, the time of its end since the beginning of the phase. Raises ``MeasurementError`` if a job ends,
        or completes too few iterations.
        """
        measure = self.file.measure
        active = [self._jobs[name] for name in phase.jobs]
        firsts = [active_job.control.go() for active_job in active]
        start, warm_up = monotonic(), 0.0 if during else measure.warm_up * _PS
        if during:
            during()
        else:
            sleep(warm_up + measure.duration * _PS)
        for active_job in active:
            active_job.control.freeze()
        end = monotonic()
        rows = []
        for active_job, first in zip(active, firsts, strict=True):
            last = active_job.control.wait_stopped(HANG_S)
            times = active_job.control.completions(first, last)
            kept = times[(times >= start + warm_up) & (times <= end)] - start
            if len(kept) <= measure.min_iterations:
                too_few = f"{max(0, len(kept) - 1)} iterations in a phase of {end - start - warm_up:.3g} s"
                raise MeasurementError(
                    f"{active_job.job.name}: {too_few}, fewer than measure.min_iterations; measure longer"
                )
            columns = {"kind": phase.kind, "job": active_job.job.name, "iteration": range(len(kept)), "at_s": kept}
            rows.append(pl.DataFrame(columns))
        return pl.concat(rows)


@contextmanager
def bench(file: TestbedFile) -> Iterator[Bench]:
    """A testbed that is up, with its jobs ready and their connections made; it is removed with the block.

    Raises ``TestbedError`` if the machine cannot have it or has another, ``MeasurementError`` if a job does not start.
    """
    with machine.established(Plan(file.fabric)) as folder, running(file, folder) as jobs:
        bench_of_jobs = Bench(file, jobs, folder / PAGES)
        bench_of_jobs.run(Phase(TOGETHER, tuple(job.name for job in file.jobs)))
        yield bench_of_jobs


def measure(file: TestbedFile, folder: Path, repetitions: int, report: Callable[[str], object] = str) -> pl.DataFrame:
    """Measures the repetitions that ``folder`` does not have, and returns all.

    They are the rows of ``Bench.run`` with a column ``repetition``. Each repetition is a file of its own, written when
    it is complete. Raises as ``bench``.
    """
    folder.mkdir(exist_ok=True)
    files = [folder / f"repetition-{number:04}.parquet" for number in range(repetitions)]
    if absent := [number for number, path in enumerate(files) if not path.is_file()]:
        report(f"measuring {len(absent)} repetitions, about {_seconds(file, len(absent)):.0f} s")
        with bench(file) as bench_of_file:
            for number in absent:
                rows = pl.concat([bench_of_file.phase(phase) for phase in phases_of(file, number)])
                store(rows.with_columns(repetition=pl.lit(number, pl.Int64)), files[number])
                report(f"repetition {number + 1} of {repetitions} measured")
    return pl.concat([pl.read_parquet(path) for path in files])


def _seconds(file: TestbedFile, repetitions: int) -> float:
    """Estimate the time of the measurement, s."""
    phases = repetitions * len(phases_of(file, 0)) + 1
    return phases * (file.measure.warm_up + file.measure.duration) * _PS


def store(rows: pl.DataFrame, path: Path) -> None:
    """Writes a file that is there as a whole or not at all."""
    with writing(path), replacing(path) as scratch:
        rows.write_parquet(scratch)


def times_per_iteration(iterations: pl.DataFrame) -> pl.DataFrame:
    """The mean time per iteration in each phase, of rows of ``measure``.

    Columns are ``repetition``, ``kind``, ``job``, ``iterations`` and ``seconds_per_iteration``.
    """
    span = pl.col("at_s").max() - pl.col("at_s").min()
    grouped = iterations.group_by("repetition", "kind", "job", maintain_order=True)
    return grouped.agg(iterations=pl.len() - 1, seconds_per_iteration=span / (pl.len() - 1))
