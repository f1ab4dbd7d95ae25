"""SQL over tables: DuckDB sees them as views, reads nothing else, and writes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import polars as pl

from fairlane.results.duck import Stream, frame_of
from fairlane.results.errors import ResultsError

if TYPE_CHECKING:
    import duckdb


def ask(tables: Mapping[str, pl.DataFrame], sql: str) -> pl.DataFrame:
    """Answers ``sql``, one SELECT (or DESCRIBE, SHOW, EXPLAIN) over the tables.

    Raises:
        ResultsError: The query is wrong; names the tables and the nearest column.
    """
    import duckdb

    with duckdb.connect() as connection:
        try:
            for name, table in tables.items():
                connection.register(name, Stream(table))
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
            _check_reads_only(connection, sql)
            answer = frame_of(connection.sql(sql))
        except duckdb.Error as error:
            raise ResultsError(_explain(tables, str(error))) from error
    return answer


def _check_reads_only(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    from duckdb import StatementType

    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type not in (StatementType.SELECT, StatementType.EXPLAIN):
        raise ResultsError("query: tables are only read; give one SELECT (or DESCRIBE, SHOW, EXPLAIN)")


def _explain(tables: Mapping[str, pl.DataFrame], message: str) -> str:
    """DuckDB's own words, and what there is to ask for."""
    listed = f"tables: {', '.join(tables)}"
    missing = re.search(r'Referenced (?:column|table) "([^"]+)"|column named "([^"]+)"|with name "?(\w+)"?', message)
    hint = ""
    if missing:
        name = next(group for group in missing.groups() if group)
        columns = {column for table in tables.values() for column in table.columns}
        near = get_close_matches(name, sorted(columns | set(tables)), n=1)
        owners = [known for known, table in tables.items() if near and near[0] in table.columns]
        of = f" (of {', '.join(owners)})" if owners else ""
        hint = f"\nnearest to {name!r}: {near[0]}{of}" if near else ""
    return f"query: {message.strip()}{hint}\n{listed}"
