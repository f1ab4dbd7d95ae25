"""A study's results: its tables as data frames, and the folder that they live in."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Self

import polars as pl
from pydantic import Field

from fairlane.core.wording import plural
from fairlane.inputs.table import Table
from fairlane.results.base import Results
from fairlane.results.manifest import Sealed, read_as
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import STUDY, STUDY_SCHEMA_VERSION, types

META = "study.json"


class PilotEffect(Table):
    """An effect in the pilot by which a study has chosen the length of its runs: the mean over jobs."""

    condition: str
    treatment: str
    between: float
    """Standard deviation between replicates that last for ever."""
    within: float
    """Standard deviation that the course of a run of the whole duration adds."""
    shift: float | None
    """Mean difference of the shorter length that was compared from the whole duration; None if none was."""
    shift_low: float | None
    shift_high: float | None


class RunLength(Table):
    """The simulated time of a study's runs where that was chosen, by what it was, and what was expected of it."""

    duration_ps: int
    """The scenario's duration, which the runs of the pilot had."""
    length_ps: int
    """The length that was chosen."""
    kept_because: str = ""
    """Why it is the scenario's duration; empty if it is not."""
    pilot: int
    """Replicates of the pilot."""
    accepted: float
    """Largest shift that is accepted."""
    replicates: int | None = None
    """Replicates that this length was expected to need; None if the pilot does not say."""
    replicates_of_duration: int | None = None
    """Replicates that the scenario's duration was expected to need."""
    cost_s: float | None = None
    """Estimated processor time that this length takes after the pilot, s; the same on all machines."""
    cost_of_duration_s: float | None = None
    """Estimated processor time that the scenario's duration takes after the pilot, s."""
    expected_half_width: float | None = None
    """Half of the widest interval of an effect that was expected."""
    reached_half_width: float | None = None
    """Half of the widest interval of an effect that was reached."""
    compared_ps: int | None = None
    """The shorter length that ``effects`` compare with the whole duration."""
    effects: list[PilotEffect] = Field(default_factory=list)


class StudyMeta(Table):
    """Provenance of a study, kept in ``study.json``.

    The versions of the folder's layout and of fairlane that simulated it, the names of the study and of its treatments,
    the number of runs that failed, and more.
    """

    schema_version: int = STUDY_SCHEMA_VERSION
    version: str
    study: str
    digest: str
    """Fingerprint of the tables; the same study gives the same, wherever and with however many workers it is run."""
    points: int
    """Scenarios: combinations of cases, parameters, placements and seeds."""
    runs: int
    """Runs that the points consist of: default, isolated and treated ones."""
    simulations: int
    """Distinct runs, which were computed."""
    failures: int
    treatments: list[str]
    measured: list[str] | None = None
    """Names of the tables that are measured of each run; None of a study that compares."""
    placements: list[str] = Field(default_factory=list)
    """Names of the placements, by their number in the tables."""
    wall_s: float
    """Time of the last call of ``fairlane study``, s."""
    started: datetime
    """Date and time of that call."""
    profile: dict[str, float]
    """Time of that call by activity, s, summed over workers."""
    recomputed: list[str] = Field(default_factory=list)
    """Stored answers that had changed since they were stored, and so were computed again in that call."""
    notes: list[str] = Field(default_factory=list)
    """Notes on the results, a sentence each."""
    length: RunLength | None = None
    """How long runs are, where the study chose that."""


@dataclass(frozen=True, repr=False)
class StudyResults(Results):
    """All results of a study."""

    meta: StudyMeta
    """Provenance."""
    runs: pl.DataFrame
    """One row per run: its point, its treatment, and the digest of the simulation that it shares with others alike."""
    work: pl.DataFrame
    """One row per point, treatment and job: iterations, ``w`` and ``improvement``."""
    periods: pl.DataFrame
    """One row per period and job of the runs with a controller."""
    failures: pl.DataFrame
    """One row per run that failed, with where its scenario is."""
    measured: Mapping[str, pl.DataFrame] | None = None
    """Measured tables of each run, by name; then ``work`` and ``periods`` have no rows. None if it compares runs."""
    folder: Path | None = None
    """Its folder."""

    TABLES = ("runs", "work", "periods", "failures")

    @classmethod
    def of(cls, meta: StudyMeta, tables: Mapping[str, pl.DataFrame], folder: Path | None = None) -> Self:
        """The results with these tables."""
        measured = None if meta.measured is None else {name: tables[name] for name in meta.measured}
        work, periods = (
            tables[name] if measured is None else pl.DataFrame(schema=types(STUDY[name]))
            for name in ("work", "periods")
        )
        return cls(meta, tables["runs"], work, periods, tables["failures"], measured, folder)

    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by name."""
        if self.measured is None:
            return super().tables()
        return {"runs": self.runs, "failures": self.failures, **self.measured}

    def headline(self) -> str:
        """Subject of the study, in a line."""
        meta = self.meta
        failed = f", {meta.failures} failed" if meta.failures else ""
        return f"{meta.study}: {plural(meta.points, 'point')}, {plural(meta.runs, 'run')}{failed}"

    @staticmethod
    def digest_of(tables: dict[str, pl.DataFrame]) -> str:
        """A fingerprint of tables: of their columns and all values."""
        digest = sha256()
        for name, table in tables.items():
            digest.update(f"{name} {table.schema}\n".encode())
            digest.update(table.write_ndjson().encode())
        return digest.hexdigest()[:32]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads a study from its folder. Raises ``ResultsError`` if it is not complete."""
        sealed = Sealed.open(folder, "study", STUDY_SCHEMA_VERSION)
        meta = read_as(StudyMeta, sealed.path(META))
        if meta.measured is None:
            schemas = {name: STUDY[name] for name in cls.TABLES}
        else:
            schemas = {"runs": STUDY["runs"], "failures": STUDY["failures"], **{name: {} for name in meta.measured}}
        return cls.of(meta, read_tables(sealed, schemas), folder)
