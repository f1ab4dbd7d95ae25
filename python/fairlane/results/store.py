"""A run's folder: written whole or not at all, and read again."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import polars as pl

from fairlane.errors import nearest
from fairlane.results.errors import ResultsError
from fairlane.results.manifest import Sealed, create_sealed, read_as
from fairlane.results.parquet import read_tables
from fairlane.results.run import SCHEMA_VERSION, Run, RunMeta
from fairlane.results.schemas import RUN
from fairlane.scenario.resolved import BACKGROUND

META = "run.json"
SCENARIO = "scenario.toml"
RESOLVED = "resolved.json"


def new_folder(scenario: str, started: datetime, out: Path | None) -> Path:
    """Where a run is to be stored: ``out``, or a folder under ``runs/`` named after the scenario and the time.

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


def save(run: Run, folder: Path) -> Run:
    """Stores ``run`` in ``folder``, which appears under its name only when everything is in it.

    Raises ``ResultsError`` if the folder exists and is not empty, or cannot be written; or the run has no source.
    """
    if run.source is not None:
        texts = {SCENARIO: run.source.scenario, RESOLVED: run.source.resolved}
    elif run.folder is not None:
        texts = {name: file_of_run(run.folder, name).read_text("utf-8") for name in (SCENARIO, RESOLVED)}
    else:
        words = "cannot be saved: it is of a simulation under way; fairlane.run makes runs that can, and its tables"
        raise ResultsError(f"the run {words} have write_parquet")
    new_folder(run.meta.scenario, run.meta.started, folder)
    texts[META] = run.meta.model_dump_json(indent=2) + "\n"
    create_sealed(folder, "run", SCHEMA_VERSION, run.tables(), texts)
    return replace(run, folder=folder)


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
        words = f"holds no results ({META} is missing)" if folder.is_dir() else "there is no such folder"
        raise ResultsError(f"{folder}: {words}{hint}")
    meta = read_as(RunMeta, path)
    if meta.schema_version != SCHEMA_VERSION:
        raise ResultsError(
            f"{path}: schema_version is {meta.schema_version}; this version of fairlane reads {SCHEMA_VERSION}: "
            f"simulate it again with fairlane run {folder / SCENARIO}"
        )
    sealed = Sealed.open(folder, "run", SCHEMA_VERSION)
    sealed.path(META)
    there = [name for name in Run.ON_DEMAND if f"{name}.parquet" in sealed]
    tables = read_tables(sealed, {name: RUN[name] for name in (*Run.TABLES, *there)})
    _check_jobs(folder, tables)
    _check_numbers(folder, tables)
    return Run.of(meta, tables, folder=folder)


def file_of_run(folder: Path, name: str) -> Path:
    """A file of a run's folder, if it is the one that was written. Raises ``ResultsError``."""
    return Sealed.open(folder, "run", SCHEMA_VERSION).path(name)


def _check_jobs(folder: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    """Raises ``ResultsError`` if a table names a job that the table of jobs does not have."""
    jobs = tables["jobs"]["name"]
    if jobs.is_duplicated().any():
        raise ResultsError(f"{folder / 'jobs.parquet'}: column 'name': two jobs have the same name")
    for table, found in tables.items():
        # Leave-one-out runs leave out the background as one aggressor.
        known = [*jobs, BACKGROUND] if table == "lost_time" else jobs.to_list()
        for column in {"name", "victim", "aggressor"} & set(found.columns):
            unknown = found.filter(~pl.col(column).is_in(known))
            if unknown.height:
                words = f"names {unknown[column][0]!r}, which is no job in jobs.parquet"
                raise ResultsError(f"{folder / f'{table}.parquet'}: column {column!r} {words}")


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
    for table, found in tables.items():
        for column in counts.keys() & set(found.columns):
            outside = found.filter(pl.col(column) >= counts[column])
            if outside.height:
                words = f"has {outside[column][0]}; the run has {counts[column]}, from 0"
                raise ResultsError(f"{folder / f'{table}.parquet'}: column {column!r} {words}")
