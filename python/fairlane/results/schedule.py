"""Results of replaying a job log under several allocators: tables as data frames, and the folder that they are in."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import polars as pl
from pydantic import Field

from fairlane.core.wording import plural
from fairlane.inputs.hosts import ranges_of
from fairlane.inputs.table import Table
from fairlane.results.base import Results
from fairlane.results.manifest import Sealed, create_sealed, read_as
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import Optional, Schema

META = "schedule.json"
SCHEDULE_SCHEMA_VERSION = 1
"""Version of the layout of a schedule's folder and of its tables' columns."""
_NUMBERS = (
    "makespan utilisation mean_wait median_wait mean_bounded_slowdown useful mean_slowdown weighted_slowdown "
    "interference fragmentation"
)
SCHEDULE: Mapping[str, Schema] = {
    "allocators": {
        "allocator": pl.String,
        "jobs": pl.Int64,
        "refused": pl.Int64,
        **dict.fromkeys(_NUMBERS.split(), pl.Float64),
    },
    "placed": {
        "allocator": pl.String,
        "job": pl.Int64,
        "pattern": Optional(pl.String),
        **dict.fromkeys(("submit", "run", "start", "end", "slowdown", "lost"), pl.Float64),
        "hosts": pl.Int64,
        "host_numbers": pl.String,
    },
}
"""Metrics of each allocator, and a row for each allocator and job: times in s from the begin of the log, the run time
of the log, the time lost to neighbours, and the hosts as ``0-3,8``."""


class ScheduleMeta(Table):
    """Provenance of schedules, kept in ``schedule.json``."""

    schema_version: int = SCHEDULE_SCHEMA_VERSION
    version: str
    """Version of fairlane."""
    log: str
    """Name of the job log."""
    log_sha256: str
    hosts: int
    fabric: dict[str, Any]
    """The fabric as the simulator takes it."""
    load: float
    """Arrival-rate factor."""
    seed: int
    model: str | None = None
    """The model of slowdowns."""
    digest: str
    """Fingerprint of the tables."""
    verified: list[dict[str, Any]] = Field(default_factory=list)
    """Of each allocator the error of the model on simulated snapshots."""
    notes: list[str] = Field(default_factory=list)
    """Notes on the results, a sentence each."""


@dataclass(frozen=True, repr=False)
class ScheduleResults(Results):
    """The schedules of a job log, by allocator."""

    meta: ScheduleMeta
    allocators: pl.DataFrame
    """One row per allocator: its metrics."""
    placed: pl.DataFrame
    """One row per allocator and job that ran."""
    folder: Path | None = None
    """Its folder."""

    TABLES = ("allocators", "placed")

    def headline(self) -> str:
        """Name the log, in a line."""
        jobs = self.placed["job"].n_unique()
        return f"{self.meta.log}: {plural(jobs, 'job')} on {plural(self.meta.hosts, 'host')}"

    def save(self, folder: Path) -> Self:
        """Stores everything in a new folder: all of it or nothing. Raises ``ResultsError`` if that fails."""
        create_sealed(
            folder,
            "schedule",
            SCHEDULE_SCHEMA_VERSION,
            self.tables(),
            {META: self.meta.model_dump_json(indent=2) + "\n"},
        )
        return type(self)(self.meta, self.allocators, self.placed, folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Reads schedules from their folder. Raises ``ResultsError`` if it is not complete, or has changed."""
        sealed = Sealed.open(folder, "schedule", SCHEDULE_SCHEMA_VERSION)
        meta = read_as(ScheduleMeta, sealed.path(META))
        return cls(meta, **read_tables(sealed, SCHEDULE), folder=folder)


def hosts_as_text(hosts: Iterable[int]) -> str:
    """Numbers of hosts as text: ``0-3,8``."""
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in ranges_of(sorted(hosts)))


def hosts_of_text(text: str) -> list[int]:
    """The numbers of hosts in such a text."""
    hosts: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        hosts.extend(range(int(first), int(last or first) + 1))
    return hosts
