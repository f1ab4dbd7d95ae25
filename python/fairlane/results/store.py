"""A run's folder: written whole or not at all, and read again."""

import re
import shutil
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import polars as pl
from pydantic import ValidationError

from fairlane.errors import nearest
from fairlane.inputs.files import read_bytes
from fairlane.results.errors import ResultsError, writing
from fairlane.results.manifest import Sealed, seal
from fairlane.results.parquet import read_tables
from fairlane.results.run import SCHEMA_VERSION, Run, RunMeta, Source
from fairlane.results.schemas import RUN

META = "run.json"
SCENARIO = "scenario.toml"
RESOLVED = "resolved.json"


def new_folder(scenario: str, started: datetime, out: Path | None) -> Path:
    """Where a run is to be stored: ``out``, or a folder under ``runs/`` named after the scenario and the time.

    Raises:
        ResultsError: ``out`` exists and is not an empty directory.
    """
    if out is None:
        stem = Path("runs") / f"{scenario}-{started:%Y%m%d-%H%M%S}"
        later = (stem.with_name(f"{stem.name}-{number}") for number in range(2, 1_000_000))
        return stem if not stem.exists() else next(path for path in later if not path.exists())
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ResultsError(f"{out}: exists and is not an empty directory; choose another")
    return out


def is_folder_of(folder: str, scenario: str) -> bool:
    """Whether a folder is called as ``new_folder`` calls one of this scenario."""
    return re.fullmatch(rf"{re.escape(scenario)}-\d{{8}}-\d{{6}}(-\d+)?", folder) is not None


def save(run: Run, folder: Path) -> Run:
    """Stores ``run`` in ``folder``, which appears under its name only when everything is in it.

    Raises:
        ResultsError: the folder exists and is not empty, or cannot be written; or the run has no source.
    """
    source = run.source or _source(run)
    new_folder(run.meta.scenario, run.meta.started, folder)
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        with writing(folder):
            for name, table in run.tables().items():
                table.write_parquet(unfinished / f"{name}.parquet")
            (unfinished / SCENARIO).write_text(source.scenario, encoding="utf-8")
            (unfinished / RESOLVED).write_text(source.resolved, encoding="utf-8")
            (unfinished / META).write_text(run.meta.model_dump_json(indent=2) + "\n", encoding="utf-8")
            tables = [f"{name}.parquet" for name in run.tables()]
            seal(unfinished, "run", SCHEMA_VERSION, [*tables, SCENARIO, RESOLVED, META])
            unfinished.chmod(0o755)
            unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return run.stored(folder)


def _source(run: Run) -> Source:
    """What a stored run was made from."""
    if run.folder is None:
        words = "cannot be saved: it is of a simulation under way; fairlane.run makes runs that can, and its tables"
        raise ResultsError(f"the run {words} have write_parquet")
    scenario, resolved = (file_of_run(run.folder, name).read_text("utf-8") for name in (SCENARIO, RESOLVED))
    return Source(scenario, resolved)


def load_run(folder: str | Path) -> Run:
    """Reads a run from its folder.

    Raises:
        ResultsError: there is no run in ``folder``, it is incomplete, or another version of fairlane wrote it.
    """
    folder = Path(folder)
    meta = _meta(folder)
    sealed = Sealed.open(folder, "run", SCHEMA_VERSION)
    sealed.path(META)
    there = [name for name in Run.ON_DEMAND if f"{name}.parquet" in sealed]
    tables = read_tables(sealed, {name: RUN[name] for name in (*Run.TABLES, *there)})
    _check_names(folder, tables)
    _check_numbers(folder, tables)
    return Run.of(meta, tables, folder=folder)


def file_of_run(folder: Path, name: str) -> Path:
    """A file of a run's folder, if it is the one that was written. Raises ``ResultsError``."""
    return Sealed.open(folder, "run", SCHEMA_VERSION).path(name)


def _check_names(folder: Path, tables: Mapping[str, pl.DataFrame]) -> None:
    """Raises ``ResultsError`` if a table names a job that the table of jobs does not have."""
    jobs = tables["jobs"]["name"]
    if jobs.is_duplicated().any():
        raise ResultsError(f"{folder / 'jobs.parquet'}: column 'name': two jobs have the same name")
    for table, found in tables.items():
        for column in {"name", "victim", "aggressor"} & set(found.columns):
            unknown = found.filter(~pl.col(column).is_in(jobs.to_list()))
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


def _meta(folder: Path) -> RunMeta:
    path = folder / META
    if not path.is_file():
        raise ResultsError(f"{folder}: holds no run ({META} is missing){_nearest(folder)}")
    try:
        meta = RunMeta.model_validate_json(read_bytes(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ResultsError(f"{path}: {where}: {first['msg']}") from error
    if meta.schema_version != SCHEMA_VERSION:
        raise ResultsError(
            f"{path}: schema_version is {meta.schema_version}; this version of fairlane reads {SCHEMA_VERSION}: "
            f"simulate it again with fairlane run {folder / SCENARIO}"
        )
    return meta


def _nearest(folder: Path) -> str:
    """A hint at the run that was probably meant."""
    beside = [str(path.parent) for root in {folder.parent, Path("runs")} for path in root.glob(f"*/{META}")]
    meant = nearest(str(folder), beside)
    return f"; did you mean {meant}?" if meant else ""
