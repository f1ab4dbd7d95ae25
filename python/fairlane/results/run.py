"""A run: its tables as data frames, their provenance, and its folder, which is written whole or not at all."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from fairlane.core.errors import ResultsError, nearest
from fairlane.core.wording import amount, html_table, percent, plural, seconds, with_half_width
from fairlane.inputs.table import Table
from fairlane.model.scenario.resolved import BACKGROUND
from fairlane.results.base import Results
from fairlane.results.manifest import Sealed, create_sealed, read_as
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import ALWAYS, ON_DEMAND, RUN, SCHEMA_VERSION


class Timings(Table):
    """Parts of the wall time of a run, s."""

    set_up_s: float
    """Reading and checking the scenario, placing jobs, writing their programs."""
    calibration_s: float
    """Finding compute times, in short simulations of each job alone; nothing where they were given or found before."""
    simulation_s: float
    """All simulations, which run at the same time on several cores."""
    engine_s: float
    """The engine's part of the co-run: what the speed in packet-hops goes by."""
    isolated_s: float
    """The engine's part of the isolated runs, summed over them."""
    leave_one_out_s: float = 0.0
    """The same of the leave-one-out runs."""
    writing_s: float | None = None
    """Making and storing the tables; known of the returned run only, as they are stored by then."""
    figures_s: float | None = None
    """Drawing the figures; known of the returned run only."""


class RunMeta(Table):
    """Provenance of a run, kept in ``run.json``.

    The versions of the folder's layout and of fairlane that simulated it, the name and the seed of the scenario, when
    the run was started, where its time went, and what it was.
    """

    schema_version: int = SCHEMA_VERSION
    version: str
    scenario: str
    seed: int
    digest: str
    """Fingerprint of the results of the jobs together; the same seed gives the same digest."""
    duration_ps: int
    """Simulated time that the scenario asked for, or that was enough for its table ``until``, ps."""
    simulated_ps: int
    """Simulated time that was reached with all jobs together, ps."""
    packet_hops: int
    """Packets times links crossed, with all jobs together."""
    totals: dict[str, int] | None = None
    """Totals of the network with all jobs together, as ``Simulation.totals``; runs of earlier versions lack it."""
    wall_s: float
    """Time that the whole run took, isolated runs included, s."""
    cpu_s: float
    """Processor time of the whole run, s."""
    started: datetime
    partial: bool
    """Whether the run was interrupted before it had measured everything."""
    notes: tuple[str, ...] = ()
    """Warnings about the results, one sentence each."""
    timings: Timings | None = None
    threads: int | None = None
    """Number of threads that simulated all jobs together; results do not depend on it."""
    shards: int | None = None
    """Number of parts into which the fabric was divided for them."""

    @property
    def simulated_s(self) -> float:
        """Simulated time that was reached with all jobs together, s."""
        return self.simulated_ps * 1e-12


@dataclass(frozen=True)
class Source:
    """Source of a run, as stored with it: the scenario as TOML, and the resolved one as JSON."""

    scenario: str
    resolved: str


# Polars rather than pandas: integers stay integers in columns with nulls, and it reads and writes Parquet by itself.
@dataclass(frozen=True, repr=False)
class Run(Results):
    """Everything that a run measured, as data frames (their columns are those of ``results.schemas``).

    Columns that end in ``_ps`` are exact picoseconds, those in ``_s`` seconds. ``fairlane.run`` returns one, ``load``
    reads one from its folder, and ``Simulation.result`` is what a simulation has measured so far.
    """

    meta: RunMeta
    """Provenance."""
    jobs: pl.DataFrame
    """One row per job: iterations, time per iteration, shares of time, the same alone, and ``w``."""
    ranks: pl.DataFrame
    """One row per rank: iterations, time in compute and communication, messages and bytes sent."""
    completions: pl.DataFrame
    """One row per job and completed iteration: when the last of its ranks completed it."""
    calls: pl.DataFrame
    """One row per job and MPI call: how often, and the time in it summed over ranks."""
    ports: pl.DataFrame
    """One row per port and virtual lane: bytes, packets, waiting, active and stalled time."""
    interference: pl.DataFrame
    """One row per (victim, aggressor): the queueing delay of the one job's packets that the other's caused."""
    lost_time: pl.DataFrame | None = None
    """One row per (victim, aggressor): the time per iteration that the one job loses because of the other; with
    ``observe.leave_one_out``."""
    latency: pl.DataFrame | None = None
    """One row per job, traffic kind and whether it is of messages or packets: count, mean, quantiles, extremes; unless
    ``observe.counters`` is off."""
    latency_merged: pl.DataFrame | None = None
    """The same over all traffic kinds of each job, all jobs of each workload, and all jobs by traffic kind."""
    latency_histogram: pl.DataFrame | None = None
    """Its histograms: one row per bucket in which something was counted."""
    classes: pl.DataFrame | None = None
    """One row per job and traffic class, and one for its messages without a class: messages, packets, bytes, latencies,
    queueing delay, and slowdown against the isolated run; with ``classes``."""
    class_interference: pl.DataFrame | None = None
    """The rows of ``interference`` by traffic class of victim and aggressor; with ``classes``."""
    samples: pl.DataFrame | None = None
    """One row per interval, port and virtual lane in which something happened; with ``observe.interval``."""
    iterations: pl.DataFrame | None = None
    """One row per rank and iteration of the jobs in ``observe.iterations``: when it was marked, and its time."""
    collectives: pl.DataFrame | None = None
    """One row per job and size of buffer: time and bandwidths of the collective; with a workload ``nccl_tests``."""
    serving: pl.DataFrame | None = None
    """Two rows per job: times to the first token, and between tokens; with a workload ``inference``."""
    power: pl.DataFrame | None = None
    """One row per socket of every host that has ranks: what it drew, and how fast it ran; with a table ``power``."""
    counters: pl.DataFrame | None = None
    """One row per iteration of the job in ``observe.switch_counters``: its time, and flits and stalls of switches."""
    counters_before: pl.DataFrame | None = None
    """The same counters in windows that end before each iteration begins; with ``observe.switch_counters.windows``."""
    port_interference: pl.DataFrame | None = None
    """The rows of ``interference`` by port; with ``observe.interference_by_port``."""
    messages: pl.DataFrame | None = None
    """One row per message of the job in ``observe.record`` that was under way in its stretch, collectives' included."""
    waits: pl.DataFrame | None = None
    """One row per time that a rank of that job was blocked until an instant in the stretch."""
    departures: pl.DataFrame | None = None
    """One row per packet of any job and link on which it started; with ``observe.departures`` or ``observe.record``."""
    failures: pl.DataFrame | None = None
    """One row per job that failed, in the co-run or isolated: when, and between which hosts; if there are any."""
    sweeps: pl.DataFrame | None = None
    """One row per time that routes were recomputed after a change of the fabric; if there are any."""
    pauses: pl.DataFrame | None = None
    """One row per port and lane that priority flow control has paused, the first first; if there are any."""
    folder: Path | None = None
    """Its folder; None while it is only in memory."""
    source: Source | None = field(default=None, repr=False)
    """Its source; None if it was read from a folder, or belongs to a running simulation."""

    TABLES = tuple(ALWAYS)
    ON_DEMAND = tuple(ON_DEMAND)

    def save(self, folder: str | Path) -> "Run":
        """Stores the run in a folder, new or empty, and returns it as stored there.

        The folder appears under its name only when everything is in it. Raises ``ResultsError`` if the directory is not
        empty or cannot be written, or the run is that of a simulation under way.
        """
        if self.source is not None:
            texts = {SCENARIO: self.source.scenario, RESOLVED: self.source.resolved}
        elif self.folder is not None:
            texts = {name: file_of_run(self.folder, name).read_text("utf-8") for name in (SCENARIO, RESOLVED)}
        else:
            message = "of a simulation under way; fairlane.run makes runs that can, and its tables have write_parquet"
            raise ResultsError(f"the run cannot be saved: it is {message}")
        folder = new_folder(self.meta.scenario, self.meta.started, Path(folder))
        texts[META] = self.meta.model_dump_json(indent=2) + "\n"
        create_sealed(folder, "run", SCHEMA_VERSION, self.tables(), texts)
        return replace(self, folder=folder)

    def _repr_html_(self) -> str:
        shown = ("name", "workload", "ranks", "iterations")
        rows = [
            (
                *(job[name] for name in shown),
                _shown(job, "seconds_per_iteration", partial(amount, form=seconds)),
                _shown(job, "w", partial(with_half_width, form=partial(percent, signed=True))),
            )
            for job in self.jobs.iter_rows(named=True)
        ]
        headings = ("job", "workload", "ranks", "iterations", "time per iteration", "W")
        return html_table(f"Run of {self.headline()}", headings, rows)

    def headline(self) -> str:
        """A one-line description."""
        meta = self.meta
        partial = ", partial" if meta.partial else ""
        span = f"{seconds(meta.simulated_s)} simulated{partial}, {plural(self.jobs.height, 'job')}, seed {meta.seed}"
        return f"{meta.scenario}: {span}"


def _shown(job: Mapping[str, Any], name: str, written: Callable[..., str]) -> str:
    """A value of a job with its interval, or a dash."""
    return "–" if job[name] is None else written(job[name], job[f"{name}_low"], job[f"{name}_high"])


META = "run.json"
SCENARIO = "scenario.toml"
RESOLVED = "resolved.json"


def resolved(run: Run) -> dict[str, Any] | None:
    """The scenario as it was simulated, in the simulator's units; None for a simulation that is under way.

    Raises ``ResultsError`` if the file in the run's folder cannot be read.
    """
    if run.source is None and run.folder is None:
        return None
    where = run.folder / RESOLVED if run.folder else Path(RESOLVED)
    try:
        spec: dict[str, Any] = json.loads(run.source.resolved if run.source else where.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{where}: what was simulated cannot be read from it: {error}") from error
    return spec


def new_folder(scenario: str, started: datetime, out: Path | None) -> Path:
    """Choose the folder of a new run: ``out``, or one under ``runs/`` named after the scenario and the time.

    Raises ``ResultsError`` if ``out`` exists and is not an empty directory.
    """
    if out is None:
        stem = Path("runs") / f"{scenario}-{started:%Y%m%d-%H%M%S}"
        later = (stem.with_name(f"{stem.name}-{number}") for number in range(2, 1_000_000))
        return stem if not stem.exists() else next(path for path in later if not path.exists())
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ResultsError(f"{out}: exists and is not an empty directory; choose another")
    return out


def is_folder_of(folder: str, scenario: str) -> bool:
    """Whether a folder's name is one that ``new_folder`` gives for this scenario."""
    return re.fullmatch(rf"{re.escape(scenario)}-\d{{8}}-\d{{6}}(-\d+)?", folder) is not None


def load_run(folder: str | Path) -> Run:
    """Reads a run from its folder.

    Raises ``ResultsError`` if there is no run in ``folder``, it is incomplete, or another version of fairlane wrote it.
    """
    folder = Path(folder)
    path = folder / META
    if not path.is_file():
        every = [str(path.parent) for root in {folder.parent, Path("runs")} for path in root.glob(f"*/{META}")]
        meant = nearest(str(folder), every)
        hint = f"; did you mean {meant}?" if meant else ""
        message = f"holds no results ({META} is missing)" if folder.is_dir() else "there is no such folder"
        raise ResultsError(f"{folder}: {message}{hint}")
    meta = read_as(RunMeta, path)
    if meta.schema_version != SCHEMA_VERSION:
        raise ResultsError(
            f"{path}: schema_version is {meta.schema_version}; this version of fairlane reads {SCHEMA_VERSION}: "
            f"simulate it again with fairlane run {folder / SCENARIO}"
        )
    sealed = Sealed.open(folder, "run", SCHEMA_VERSION)
    sealed.path(META)
    there = [name for name in Run.ON_DEMAND if f"{name}.parquet" in sealed]
    tables: dict[str, Any] = read_tables(sealed, {name: RUN[name] for name in (*Run.TABLES, *there)})
    _check_jobs(folder, tables)
    _check_numbers(folder, tables)
    return Run(meta=meta, **tables, folder=folder)


def file_of_run(folder: Path, name: str) -> Path:
    """A file of a run's folder, if it is the one that was written. Raises ``ResultsError``."""
    return Sealed.open(folder, "run", SCHEMA_VERSION).path(name)


def _check_jobs(folder: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    """Raises ``ResultsError`` if a table names a job that the table of jobs does not have."""
    jobs = tables["jobs"]["name"]
    if jobs.is_duplicated().any():
        raise ResultsError(f"{folder / 'jobs.parquet'}: column 'name': two jobs have the same name")
    for table, frame in tables.items():
        # Leave-one-out runs leave out the background as one aggressor.
        known = [*jobs, BACKGROUND] if table == "lost_time" else jobs.to_list()
        for column in {"name", "victim", "aggressor"} & set(frame.columns):
            unknown = frame.filter(~pl.col(column).is_in(known))
            if unknown.height:
                message = f"names {unknown[column][0]!r}, which is no job in jobs.parquet"
                raise ResultsError(f"{folder / f'{table}.parquet'}: column {column!r} {message}")


def _check_numbers(folder: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    """Raises ``ResultsError`` if a table has the number of a job, rank or link that the run does not have."""
    ranks, links = tables["jobs"]["ranks"].max(), tables["ports"]["link"].max()
    assert isinstance(ranks, int | None), "the column is declared"
    assert isinstance(links, int | None), "the column is declared"
    counts = {
        "job": tables["jobs"].height,
        **dict.fromkeys(("rank", "from_rank", "to_rank"), ranks or 0),
        "link": 0 if links is None else links + 1,
    }
    for table, frame in tables.items():
        for column in counts.keys() & set(frame.columns):
            outside = frame.filter(pl.col(column) >= counts[column])
            if outside.height:
                message = f"has {outside[column][0]}; the run has {counts[column]}, from 0"
                raise ResultsError(f"{folder / f'{table}.parquet'}: column {column!r} {message}")
