"""A run simulated again, to look closer: the same scenario and seed give the same run, bit for bit.

What is recorded so is kept in the run's folder, and read from there the next time.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Event
from typing import Any

import polars as pl

from fairlane.analysis.record import Record
from fairlane.analysis.spans import Span
from fairlane.analysis.view import View, spec_of
from fairlane.engine import Engine
from fairlane.engine.measured import RECORD, frame, marks
from fairlane.errors import ScenarioError
from fairlane.inputs.document import Document
from fairlane.results import Run, derive
from fairlane.results.errors import ResultsError, writing
from fairlane.results.manifest import Sealed, seal
from fairlane.results.parquet import read_tables
from fairlane.results.run import SCHEMA_VERSION
from fairlane.results.schemas import ANALYSIS
from fairlane.results.store import SCENARIO, file_of_run
from fairlane.runner.experiment import WATCH_S, simulate
from fairlane.runner.progress import Gauge, display
from fairlane.scenario import Resolved, Scenario

MOST_HOPS = 200_000_000
"""A stretch with about so many packet-hops or more is not recorded: each is a row."""
_DEPARTURES = {"message": "token", "time": "time_ps", "waited": "queueing_ps"}
KEPT = "analysis"
"""The folder, within the run's, of what was recorded."""


@dataclass(frozen=True)
class Again:
    """A run that can be simulated again for one of its jobs."""

    run: Run
    """The run, stored in a folder."""
    job: str
    """The job to look at."""
    view: View
    """Fabric and hosts."""
    files: Path | None = None
    """What paths in the scenario are relative to; None for the run's folder or, where they are not there, this one."""
    progress: bool = False
    """Whether to show progress on standard error."""
    allow_code: bool = False
    """Whether code that the scenario names may run; never that in a folder of results."""

    @property
    def number(self) -> int:
        """The job's number."""
        return self.view.names.index(self.job)

    @property
    def prefix(self) -> str:
        """What the names of its files in the run's folder begin with."""
        return ""

    @property
    def _own_number(self) -> int:
        """The job's number in the simulation."""
        return self.number

    @property
    def folder(self) -> Path:
        """The run's folder."""
        if self.run.folder is None:
            raise ResultsError("the run is only in memory; save it before analysing it")
        return self.run.folder

    def iterations(self) -> pl.DataFrame:
        """When each rank of the job marked each iteration: kept by the run, by an analysis before, or found out now."""
        kept = self._kept_by_the_run()
        if kept is not None:
            return kept
        kept_here = self.folder / KEPT / f"{self.prefix}iterations-{self.number}"
        if kept_here.is_dir():
            return _tables(kept_here, ["iterations"])["iterations"]
        engine = self._simulate([self._with_marks(self._resolved)])[0]
        self._check_digest(engine)
        found = derive.iterations(derive.labels_of(self._resolved), marks(engine)).filter(pl.col("name") == self.job)
        _write({"iterations": found}, kept_here)
        return found

    def _kept_by_the_run(self) -> pl.DataFrame | None:
        kept = self.run.iterations
        return None if kept is None or self.job not in kept["name"] else kept.filter(pl.col("name") == self.job)

    def _check_digest(self, engine: Engine) -> None:
        """Refuses a simulation to its end that went another way."""
        if engine.digest() != self.run.meta.digest:
            raise self._different()

    def own_record(self) -> Record | None:
        """The record that the run's scenario asked for, if it is of the job."""
        asked = spec_of(self.folder)["observe"].get("record")
        tables = {name: getattr(self.run, name) for name in RECORD}
        if asked is None or asked["job"] != self.number or any(table is None for table in tables.values()):
            return None
        span = (asked["from"], min(asked["to"], self.run.meta.simulated_ps))
        return Record.of(self.job, self.number, span, **tables)

    def records(self, spans: Sequence[Span]) -> list[Record]:
        """The records of some stretches: kept by an analysis before, or simulated now, at once."""
        missing = [span for span in spans if not self._kept(span).is_dir()]
        for span in missing:
            self._check_size(span)
        engines = self._simulate([self._recording(span) for span in missing]) if missing else []
        for span, engine in zip(missing, engines, strict=True):
            self._check_same(engine, span)
            _write({name: self._numbered(table) for name, table in recorded(engine).items()}, self._kept(span))
        return [self._read(span) for span in spans]

    def _numbered(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table of the record with the job's number in the run."""
        if self._own_number == self.number or "job" not in table.columns:
            return table
        number = pl.lit(self.number).cast(table.schema["job"])
        return table.with_columns(pl.when(pl.col("job") == self._own_number).then(number).otherwise("job").alias("job"))

    def _read(self, span: Span) -> Record:
        tables = _tables(self._kept(span), RECORD)
        return Record.of(self.job, self.number, (span.from_ps, span.to_ps), **tables)

    def _kept(self, span: Span) -> Path:
        return self.folder / KEPT / f"{self.prefix}record-{self.number}-{span.from_ps}-{span.to_ps}"

    @cached_property
    def _resolved(self) -> Resolved:
        """The scenario, resolved anew: programs are not kept."""
        return _scenario(self.folder, self.run.meta.scenario, self.files, allow_code=self.allow_code).resolve()

    def _with_marks(self, resolved: Resolved) -> Resolved:
        jobs = tuple(replace(job, marks=job.marks or job.name == self.job) for job in resolved.jobs)
        return replace(resolved, jobs=jobs)

    def _recording(self, span: Span) -> Resolved:
        """The same up to the end of a stretch, which is recorded."""
        return self._with_marks(recording(self._resolved, self._own_number, span))

    def _check_size(self, span: Span) -> None:
        meta = self.run.meta
        hops = meta.packet_hops * (span.to_ps - span.from_ps) / max(meta.simulated_ps, 1)
        if hops > MOST_HOPS:
            raise ResultsError(
                f"{self.folder}: the {span.name} of {self.job} has about {hops:.0f} packet-hops, more than "
                f"{MOST_HOPS} to record; record a shorter stretch with observe.record in the scenario"
            )

    def _check_same(self, engine: Engine, span: Span) -> None:
        """A run that goes another way than it did before has nothing to say about it."""
        if span.to_ps >= self.run.meta.simulated_ps:
            self._check_digest(engine)
        if span.iteration is None:
            return
        now = derive.iterations(derive.labels_of(self._resolved), marks(engine)).filter(pl.col("name") == self.job)
        keys = ["rank", "iteration", "at_ps"]
        until = pl.col("at_ps") < span.to_ps
        if (
            not now.filter(until)
            .select(keys)
            .sort(keys)
            .equals(self.iterations().filter(until).select(keys).sort(keys))
        ):
            raise self._different()

    def _different(self) -> ResultsError:
        from importlib.metadata import version

        return ResultsError(
            f"{self.folder}: simulated again it went another way than it did; it was simulated by fairlane "
            f"{self.run.meta.version}, this is {version('fairlane')}, and what the scenario names may have changed"
        )

    def _simulate(self, scenarios: Sequence[Resolved]) -> list[Engine]:
        """Simulates all of these at once, with progress; Ctrl-C ends them."""
        stop = Event()
        gauges = [Gauge(scenario.duration) for scenario in scenarios]
        pool = ThreadPoolExecutor(max_workers=len(scenarios))
        try:
            pairs = zip(scenarios, gauges, strict=True)
            running = [pool.submit(simulate, scenario, gauge, stop) for scenario, gauge in pairs]
            longest = max(gauges, key=lambda gauge: gauge.duration)
            with display(longest, [], wanted=self.progress) as shown:
                _until_done(running, shown.update)
            return [future.result()[0] for future in running]
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


def recording(resolved: Resolved, job: int, span: Span) -> Resolved:
    """A scenario up to the end of a stretch, with a record of it for the job of this number."""
    record = {"job": job, "from": span.from_ps, "to": span.to_ps}
    observe = {**resolved.tables["observe"], "record": record, "departures": False}
    return replace(resolved, tables={**resolved.tables, "observe": observe}, duration=span.to_ps)


def recorded(engine: Engine) -> dict[str, pl.DataFrame]:
    """The tables of the record that a simulation has kept, for ``Record.of``."""
    return {
        "messages": derive.messages(frame(engine.table("messages"))),
        "waits": derive.waits(frame(engine.table("waits"))),
        "departures": frame(engine.table("departures")).rename(_DEPARTURES),
    }


def _until_done(running: Sequence[Future[Any]], tell: Callable[[], None]) -> None:
    pending = set(running)
    while pending:
        done, pending = wait(pending, timeout=WATCH_S)
        for future in done:
            future.result()
        tell()


def _scenario(folder: Path, name: str, files: Path | None, *, allow_code: bool) -> Scenario:
    """The scenario of a run, with paths as seen from the first folder in which they are all there."""
    path = folder / SCENARIO
    if not path.is_file():
        raise ResultsError(f"{path}: is missing; without the scenario the run cannot be simulated again")
    file_of_run(folder, SCENARIO)
    first: ScenarioError | None = None
    for base in _bases(folder, files):
        document = Document.read(path, allow_code=allow_code)
        document = replace(document, data={"name": name, **document.data}, file=base / SCENARIO)
        try:
            return Scenario.of(document)
        except ScenarioError as error:
            first = first or error
    assert first is not None, "there is a folder to try"
    raise first


def _bases(folder: Path, files: Path | None) -> Iterator[Path]:
    yield from [files] if files is not None else [folder, Path()]


def _tables(folder: Path, names: Sequence[str]) -> dict[str, pl.DataFrame]:
    """What an analysis has kept. Raises ``ResultsError`` if it has changed since."""
    try:
        sealed = Sealed.open(folder, "analysis", SCHEMA_VERSION)
        return read_tables(sealed, {name: ANALYSIS[name] for name in names})
    except ResultsError as error:
        raise ResultsError(f"{error}\n{folder}: remove it, and the analysis makes it again") from None


def _write(tables: Mapping[str, pl.DataFrame], folder: Path) -> None:
    """Writes tables into a new folder, all or none."""
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            for name, table in tables.items():
                table.write_parquet(unfinished / f"{name}.parquet")
            seal(unfinished, "analysis", SCHEMA_VERSION, [f"{name}.parquet" for name in tables])
            unfinished.chmod(0o755)
            unfinished.rename(folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
