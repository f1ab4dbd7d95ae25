"""A run simulated again, to look closer: the same scenario and seed give the same run, bit for bit.

What is recorded so is kept in the run's folder, and read from there the next time.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from threading import Event

import polars as pl
from typing_extensions import override

from fairlane.core.drive import Engine
from fairlane.core.errors import ResultsError, ScenarioError
from fairlane.core.tables import RECORD, frame, marks
from fairlane.inputs.document import Document
from fairlane.model.scenario import Resolved, Scenario
from fairlane.results import derive
from fairlane.results.manifest import Sealed, create_sealed
from fairlane.results.parquet import read_tables
from fairlane.results.run import SCENARIO, Run, file_of_run
from fairlane.results.schemas import ANALYSIS, SCHEMA_VERSION
from fairlane.sim.analysis.record import Record, Span, View, spec_of
from fairlane.sim.runner.experiment import Simulated, watch
from fairlane.sim.runner.progress import display

MAX_HOPS = 200_000_000
"""A stretch with about so many packet-hops or more is not recorded: each is a row."""
KEPT = "analysis"
"""The folder, within the run's, of what was recorded."""


@dataclass(frozen=True)
class Again:
    """A run, stored in a folder, that can be simulated again for one of its jobs; ``view`` is its fabric and hosts."""

    run: Run
    job: str
    view: View
    files: Path | None = None
    """Folder of relative paths of the scenario; None for the run's folder or, where they are not there, this one."""
    progress: bool = False
    """Whether to show progress on standard error."""
    allow_code: bool = False
    """Whether code that the scenario names may run; never that in a folder of results."""

    NARROWER = "record a shorter stretch with observe.record in the scenario"
    """Ways to ask for less, if a stretch is too long."""
    PREFIX = ""
    """Prefix of its files in the run's folder."""

    @property
    def number(self) -> int:
        """The job's number."""
        return self.view.names.index(self.job)

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
        """Return the marks of the job's ranks by iteration: of the run, of an analysis before, or simulated now."""
        kept = self._kept_by_the_run()
        if kept is not None:
            return kept
        kept_here = self.folder / KEPT / f"{self.PREFIX}iterations-{self.number}"
        if kept_here.is_dir():
            return _tables(kept_here, ["iterations"])["iterations"]
        engine = self._simulate([self._with_marks(self._resolved)])[0]
        self._check_digest(engine)
        marked = self._marked(engine)
        create_sealed(kept_here, "analysis", SCHEMA_VERSION, {"iterations": marked}, {})
        return marked

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
        resolved = [self._with_marks(recording(self._resolved, self._own_number, span)) for span in missing]
        for span, engine in zip(missing, self._simulate(resolved) if missing else [], strict=True):
            self._check_same(engine, span)
            tables = {name: self._numbered(table) for name, table in recorded(engine).items()}
            create_sealed(self._kept(span), "analysis", SCHEMA_VERSION, tables, {})
        return [
            Record.of(self.job, self.number, (span.from_ps, span.to_ps), **_tables(self._kept(span), RECORD))
            for span in spans
        ]

    def _numbered(self, table: pl.DataFrame) -> pl.DataFrame:
        """A table of the record with the job's number in the run."""
        if self._own_number == self.number or "job" not in table.columns:
            return table
        number = pl.lit(self.number).cast(table.schema["job"])
        return table.with_columns(pl.when(pl.col("job") == self._own_number).then(number).otherwise("job").alias("job"))

    def _kept(self, span: Span) -> Path:
        return self.folder / KEPT / f"{self.PREFIX}record-{self.number}-{span.from_ps}-{span.to_ps}"

    def _kept_by_the_run(self) -> pl.DataFrame | None:
        kept = self.run.iterations
        return None if kept is None or self.job not in kept["name"] else kept.filter(pl.col("name") == self.job)

    @cached_property
    def _resolved(self) -> Resolved:
        """The scenario, resolved anew, as programs are not kept; for as long as the run lasted."""
        return replace(self._scenario().resolve(), duration=self.run.meta.duration_ps)

    def _scenario(self) -> Scenario:
        """The scenario of the run, with paths as seen from the first folder in which they are all there."""
        path = self.folder / SCENARIO
        if not path.is_file():
            raise ResultsError(f"{path}: is missing; without the scenario the run cannot be simulated again")
        file_of_run(self.folder, SCENARIO)
        first: ScenarioError | None = None
        for base in [self.folder, Path()] if self.files is None else [self.files]:
            document = Document.read(path, allow_code=self.allow_code)
            data = {"name": self.run.meta.scenario, **document.data}
            try:
                return Scenario.of(replace(document, data=data, file=base / SCENARIO))
            except ScenarioError as error:
                first = first or error
        assert first is not None, "there is a folder to try"
        raise first

    def _with_marks(self, resolved: Resolved) -> Resolved:
        jobs = tuple(replace(job, marks=job.marks or job.name == self.job) for job in resolved.jobs)
        return replace(resolved, jobs=jobs)

    def _marked(self, engine: Engine) -> pl.DataFrame:
        """Return the marks of the job's ranks by iteration in a simulation."""
        every = derive.iterations(self._resolved.jobs, marks(engine))
        return every.filter(pl.col("name") == self.job)

    def _check_size(self, span: Span) -> None:
        meta = self.run.meta
        hops = meta.packet_hops * (span.to_ps - span.from_ps) / max(meta.simulated_ps, 1)
        if hops > MAX_HOPS:
            raise ResultsError(
                f"{self.folder}: the {span.name} of {self.job} has about {hops:.0f} packet-hops, more than "
                f"{MAX_HOPS} to record; {self.NARROWER}"
            )

    def _check_digest(self, engine: Engine) -> None:
        """Raises ``ResultsError`` if a simulation to the end is not the run that was."""
        if engine.digest() != self.run.meta.digest:
            raise self._different()

    def _check_same(self, engine: Engine, span: Span) -> None:
        """Raises ``ResultsError`` if a simulation to the end of a stretch is not the run that was."""
        if span.to_ps >= self.run.meta.simulated_ps:
            self._check_digest(engine)
        if span.iteration is None:
            return
        keys = ["rank", "iteration", "at_ps"]
        before = (table.filter(pl.col("at_ps") < span.to_ps) for table in (self._marked(engine), self.iterations()))
        now, then = (table.select(keys).sort(keys) for table in before)
        if not now.equals(then):
            raise self._different()

    def _different(self) -> ResultsError:
        return ResultsError(
            f"{self.folder}: simulated again it gives other results; it was simulated by fairlane "
            f"{self.run.meta.version}, this is {version('fairlane')}, and what the scenario names may have changed"
        )

    def _simulate(self, scenarios: Sequence[Resolved]) -> list[Engine]:
        """Simulates all of these at once, with progress; Ctrl-C ends them."""
        stop = Event()
        simulated = [Simulated(scenario.engine, scenario.duration) for scenario in scenarios]
        pool = ThreadPoolExecutor(max_workers=len(scenarios))
        try:
            running = [pool.submit(one.advance, one.gauge.duration, stop) for one in simulated]
            longest = max((one.gauge for one in simulated), key=lambda gauge: gauge.duration)
            with display(longest, {}, wanted=self.progress) as show:
                watch(running, [show])
            return [one.engine for one in simulated]
        finally:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)


class Isolated(Again):
    """A job of a run isolated on its hosts, with the same program; its tables have the numbers of the run."""

    PREFIX = "isolated-"

    @cached_property
    @override
    def _resolved(self) -> Resolved:
        whole: Resolved = super()._resolved
        return whole.alone(self.number)

    @override
    def _kept_by_the_run(self) -> pl.DataFrame | None:
        return None

    @override
    def _check_digest(self, engine: Engine) -> None:
        """Its digest is not known, but how many iterations it had may be."""
        known = self.run.jobs.filter(pl.col("name") == self.job)
        expected = known["isolated_iterations"].item() if "isolated_iterations" in known.columns else None
        if expected is not None and min(engine.progress()[0]) != expected:
            raise self._different()

    @property
    @override
    def _own_number(self) -> int:
        return 0


def recording(resolved: Resolved, job: int, span: Span) -> Resolved:
    """A scenario up to the end of a stretch, with a record of it for the job of this number."""
    record = {"job": job, "from": span.from_ps, "to": span.to_ps}
    observe = {**resolved.tables["observe"], "record": record, "departures": False}
    return replace(resolved, tables={**resolved.tables, "observe": observe}, duration=span.to_ps)


def recorded(engine: Engine) -> dict[str, pl.DataFrame]:
    """The tables of the record that a simulation has kept, for ``Record.of``."""
    renamed = {"message": "token", "time": "time_ps", "waited": "queueing_ps"}
    return {
        "messages": derive.messages(frame(engine.table("messages"))),
        "waits": derive.waits(frame(engine.table("waits"))),
        "departures": frame(engine.table("departures")).rename(renamed),
    }


def _tables(folder: Path, names: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Read the tables that an analysis has kept. Raises ``ResultsError`` if they have changed since."""
    try:
        sealed = Sealed.open(folder, "analysis", SCHEMA_VERSION)
        return read_tables(sealed, {name: ANALYSIS[name] for name in names})
    except ResultsError as error:
        raise ResultsError(f"{error}\n{folder}: remove it, and the analysis makes it again") from None
