"""A study's results: its tables as data frames, and the folder that they live in."""

from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Self

import polars as pl
from pydantic import BaseModel, ConfigDict, ValidationError

from fairlane.inputs.files import read_bytes
from fairlane.results.base import Results
from fairlane.results.errors import ResultsError
from fairlane.results.manifest import Sealed
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import STUDY
from fairlane.wording import html_table, percent, plural

META = "study.json"
STUDY_SCHEMA_VERSION = 4
"""Version of the layout of a study's folder and of its tables' columns."""


class StudyMeta(BaseModel):
    """Provenance of a study, kept in ``study.json``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = STUDY_SCHEMA_VERSION
    """Version of the folder's layout."""
    version: str
    """Version of fairlane that simulated it."""
    study: str
    """Name of the study."""
    digest: str
    """Fingerprint of the tables; the same study gives the same, wherever and with however many workers it is run."""
    points: int
    """Scenarios: combinations of cases, parameters, placements and seeds."""
    runs: int
    """Runs that the points consist of: default, isolated and treated ones."""
    simulations: int
    """Runs that were different from each other, and so were computed."""
    failures: int
    """Runs that failed."""
    treatments: list[str]
    """Names of the treatments."""
    placements: list[str] = []
    """What the numbers of placements in the tables stand for."""
    wall_s: float
    """Time of the last call of ``fairlane study``, s."""
    started: datetime
    """When that was."""
    profile: dict[str, float]
    """Where the time of that call went, s, summed over workers."""
    recomputed: list[str] = []
    """Stored answers that had changed since they were stored, and so were computed again in that call."""


@dataclass(frozen=True, repr=False)
class StudyResults(Results):
    """Everything that a study found out."""

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
    folder: Path | None = None
    """Where it is stored."""

    TABLES = ("runs", "work", "periods", "failures")
    FIGURE = "work"

    def _repr_html_(self) -> str:
        compared = self.work.group_by("treatment", "workload", maintain_order=True).agg(
            pl.col("name").n_unique().alias("jobs"), pl.col("w", "improvement").median()
        )
        rows = [
            (treatment, workload, jobs, *(percent(share, signed=True) for share in shares))
            for treatment, workload, jobs, *shares in compared.iter_rows()
        ]
        headings = ("treatment", "workload", "jobs", "median W", "median improvement")
        return html_table(f"Study {self.headline()}", headings, rows)

    def headline(self) -> str:
        """What it is a study of, in a line."""
        meta = self.meta
        failed = f", {meta.failures} failed" if meta.failures else ""
        return f"{meta.study}: {plural(meta.points, 'point')}, {plural(meta.runs, 'run')}{failed}"

    @staticmethod
    def digest_of(tables: dict[str, pl.DataFrame]) -> str:
        """A fingerprint of tables: of their columns and all values."""
        found = sha256()
        for name, table in tables.items():
            found.update(f"{name} {table.schema}\n".encode())
            found.update(table.write_ndjson().encode())
        return found.hexdigest()[:32]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads a study from its folder. Raises ``ResultsError`` if it is not complete."""
        path = folder / META
        try:
            meta = StudyMeta.model_validate_json(read_bytes(path))
        except ValidationError as error:
            first = error.errors()[0]
            raise ResultsError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        except OSError as error:
            raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
        if meta.schema_version != STUDY_SCHEMA_VERSION:
            words = f"schema_version is {meta.schema_version}; this version of fairlane reads {STUDY_SCHEMA_VERSION}"
            raise ResultsError(f"{path}: {words}")
        sealed = Sealed.open(folder, "study", STUDY_SCHEMA_VERSION)
        sealed.path(META)
        tables = read_tables(sealed, {name: STUDY[name] for name in cls.TABLES})
        return cls(meta=meta, folder=folder, **tables)
