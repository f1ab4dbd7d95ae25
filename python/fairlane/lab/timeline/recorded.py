"""Records of ranks in a time range of a run: found by simulating it again, and kept in the run's folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from fairlane.core.drive import Engine
from fairlane.core.errors import ResultsError
from fairlane.core.tables import frame
from fairlane.lab.timeline.causes import of_messages, queueing_causes
from fairlane.results.manifest import Sealed, create_sealed
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import SCHEMA_VERSION, TIMELINE
from fairlane.sim.analysis.again import KEPT, Again
from fairlane.sim.analysis.record import Span

_WORDS = {
    "wait_all": "Waitall",
    "wait_any": "Waitany",
    "wait_some": "Waitsome",
    "comm_topology": "Cart_create",
}
_VECTOR = ("gather", "scatter", "allgather", "alltoall")


def mpi_name(call: str, blocks: int = 0) -> str:
    """As ``MPI_Isend`` for ``isend``; with ``blocks`` of their own for the members, the v-variant of a collective."""
    if call in _WORDS:
        return f"MPI_{_WORDS[call]}"
    vector = "v" if blocks and call.removeprefix("i").removeprefix("neighbor_") in _VECTOR else ""
    uniform = "_block" if call.removeprefix("i") == "reduce_scatter" and not blocks else ""
    return f"MPI_{call[:1].upper()}{call[1:]}{vector}{uniform}"


_NONE = {pl.UInt64: 2**64 - 1, pl.UInt32: 2**32 - 1}
"""The simulator's numbers for nothing."""
_FOREVER = 1 << 62
_INSTANTS = ("since", "end", "at", "partner_at", "sent_at", "posted_at", "received_at", "acknowledged_at")


@dataclass(frozen=True)
class Recorder(Again):
    """A run that can be simulated again with a record of what ranks did; ``job`` is its first job."""

    NARROWER = "choose a shorter time range: --from, --to"

    def tables(self, jobs: Sequence[int], from_ps: int, to_ps: int) -> Mapping[str, pl.DataFrame]:
        """The tables of ``schemas.TIMELINE`` for some jobs, by number, in a time range.

        Instants are signed here, so that they can be subtracted. Raises ``ResultsError`` if the run cannot be simulated
        again, or the second simulation differs from it.
        """
        only = jobs[0] if len(jobs) == 1 else None
        name = "all" if only is None else str(only)
        kept = self.folder / KEPT / f"timeline-{name}-{from_ps}-{to_ps}"
        if not kept.is_dir():
            part = from_ps > 0 or to_ps < self.run.meta.simulated_ps
            span = Span("time range" if part else "whole run", None, from_ps, to_ps, 0.0)
            self._check_size(span)
            create_sealed(kept, "analysis", SCHEMA_VERSION, self._record(only, span), {})
        try:
            recorded = read_tables(Sealed.open(kept, "analysis", SCHEMA_VERSION), TIMELINE)
        except ResultsError as error:
            raise ResultsError(f"{error}\n{kept}: remove it, and it is made again") from None
        chosen = pl.col("job").is_in(list(jobs))
        tables = {name: table.filter(chosen) if "job" in table.columns else table for name, table in recorded.items()}
        tables["causes"] = tables["causes"].join(tables["messages"].select("message"), on="message", how="semi")
        return {name: _signed(table) for name, table in tables.items()}

    def _record(self, only: int | None, span: Span) -> dict[str, pl.DataFrame]:
        """Simulates the run again up to the end of a range with a record of it."""
        whole = span.to_ps >= self.run.meta.simulated_ps
        # A run ends a little after its duration, with the simulator's window.
        record = {"job": only, "from": span.from_ps, "to": _FOREVER if whole else span.to_ps, "operations": True}
        resolved = self._resolved
        observe = {**resolved.tables["observe"], "record": record, "departures": False}
        tables = {**resolved.tables, "observe": observe}
        engine = self._simulate([replace(resolved, tables=tables, duration=span.to_ps)])[0]
        self._check_range(engine, span)
        frames = {name: _read(engine, name) for name in TIMELINE if name != "causes"}
        departures = frame(engine.table("departures"))
        departures = departures.rename({"message": "token", "time": "time_ps", "waited": "queueing_ps"})
        causes = queueing_causes(departures, self.view.links, span.from_ps)
        return {**frames, "causes": of_messages(departures, frames["messages"], causes)}

    def _check_range(self, engine: Engine, span: Span) -> None:
        """Raises ``ResultsError`` if a simulation to the end of a range is not the run that was."""
        if span.to_ps >= self.run.meta.simulated_ps:
            self._check_digest(engine)
        keys = ["job", "iteration", "at_ps"]
        marked = frame(engine.table("job_marks")).rename({"time": "at_ps"}).cast({"job": pl.UInt32})
        listed = self.run.completions["job"].unique()
        before = pl.col("at_ps") < span.to_ps
        now = marked.filter(before, pl.col("job").is_in(listed.implode())).select(keys).sort(keys)
        then = self.run.completions.filter(before).select(keys).sort(keys)
        if then.height and not now.equals(then):
            raise self._different()


def _read(engine: Engine, name: str) -> pl.DataFrame:
    """A table of the record, as it is stored: null for what is not there, and the names and types of the schema."""
    raw = frame(engine.table(name))
    raw = raw.rename({column: f"{column}_ps" for column in raw.columns if column in _INSTANTS})
    absent = [
        pl.when(pl.col(column) != none).then(pl.col(column)).alias(column)
        for kind, none in _NONE.items()
        for column, dtype in raw.schema.items()
        if dtype == kind
    ]
    flags = [column for column in raw.columns if TIMELINE[name].get(column) == pl.Boolean]
    return raw.with_columns(*absent).with_columns(pl.col(flags) != 0 if flags else []).select(*TIMELINE[name])


def _signed(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col(pl.UInt64).cast(pl.Int64))
