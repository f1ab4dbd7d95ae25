"""SQL over a run, a study or a sweep of loads: DuckDB reads the Parquet files in place, as views; it writes nothing."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fairlane.results.errors import ResultsError
from fairlane.results.run import Run
from fairlane.results.store import load
from fairlane.results.study import StudyResults

if TYPE_CHECKING:
    import duckdb

    from fairlane.saturation import Saturation


def query(folder: str | Path, sql: str) -> pl.DataFrame:
    """Answers ``sql``, one SELECT (or DESCRIBE, SHOW, EXPLAIN) over the tables of a run, a study or a sweep.

    Raises:
        ResultsError: ``folder`` has none of them, or the query is wrong; names the tables and the nearest column.
    """
    import duckdb

    folder = Path(folder)
    run = load(folder)
    with duckdb.connect() as connection:
        paths = {name: str((folder / f"{name}.parquet").resolve()) for name in run.tables()}
        try:
            for name, path in paths.items():
                connection.read_parquet(path).create_view(name)
            connection.execute("SET allowed_paths = ?", [list(paths.values())])
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
            _check_reads_only(connection, sql)
            answer: pl.DataFrame = connection.sql(sql).pl()
        except duckdb.Error as error:
            raise ResultsError(_explain(run, str(error))) from error
    return answer


def _check_reads_only(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    from duckdb import StatementType

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type not in (StatementType.SELECT, StatementType.EXPLAIN):
        raise ResultsError("query: tables are only read; give one SELECT (or DESCRIBE, SHOW, EXPLAIN)")


def _explain(run: Run | StudyResults | Saturation, message: str) -> str:
    """DuckDB's own words, and what there is to ask for."""
    tables = {name: table.columns for name, table in run.tables().items()}
    listed = f"tables: {', '.join(tables)}"
    missing = re.search(r'Referenced (?:column|table) "([^"]+)"|column named "([^"]+)"|with name "?(\w+)"?', message)
    hint = ""
    if missing:
        name = next(group for group in missing.groups() if group)
        columns = {column for names in tables.values() for column in names}
        near = get_close_matches(name, sorted(columns | set(tables)), n=1)
        owners = [table for table, names in tables.items() if near and near[0] in names]
        of = f" (of {', '.join(owners)})" if owners else ""
        hint = f"\nnearest to {name!r}: {near[0]}{of}" if near else ""
    return f"query: {message.strip()}{hint}\n{listed}"
