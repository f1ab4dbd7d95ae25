"""SQL over tables: DuckDB sees data frames as views, by Arrow's C interface, reads nothing else, and writes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

import polars as pl

from fairlane.results.errors import ResultsError

if TYPE_CHECKING:
    import duckdb


class Stream:
    """A data frame that DuckDB reads as a view; of Polars' own it would ask for pyarrow."""

    def __init__(self, table: pl.DataFrame) -> None:
        # A column of the type Null has no bitmap of validity, without which DuckDB refuses it.
        self._table = table.with_columns(pl.selectors.by_dtype(pl.Null).cast(pl.Int32))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def frame_of(relation: duckdb.DuckDBPyRelation) -> pl.DataFrame:
    """The rows of a relation. Columns of one name are numbered: ``b``, ``b_1``."""
    names: list[str] = []
    for name in relation.columns:
        same = sum(other == name for other in relation.columns[: len(names)])
        names.append(f"{name}_{same}" if same else name)
    if names != relation.columns:
        quoted = (name.replace('"', '""') for name in names)
        relation = relation.select(", ".join(f'#{at} AS "{name}"' for at, name in enumerate(quoted, 1)))
    # Not pl.DataFrame(relation): Polars keeps the types of what it is given, and DuckDB reports them at exit as leaked.
    return pl.scan_arrow_c_stream(relation).collect()


def ask(tables: Mapping[str, pl.DataFrame], sql: str) -> pl.DataFrame:
    """Answers ``sql``, one SELECT (or DESCRIBE, SHOW, EXPLAIN) over the tables.

    Raises ``ResultsError`` if the query is wrong, with the tables and the nearest column.
    """
    import duckdb

    readers = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
    with duckdb.connect() as connection:
        try:
            for name, table in tables.items():
                connection.register(name, Stream(table))
            connection.execute("SET enable_external_access = false; SET lock_configuration = true")
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type not in readers:
                raise ResultsError("query: tables are only read; give one SELECT (or DESCRIBE, SHOW, EXPLAIN)")
            return frame_of(connection.sql(sql))
        except duckdb.Error as error:
            raise ResultsError(_explain(tables, str(error))) from error


def _explain(tables: Mapping[str, pl.DataFrame], message: str) -> str:
    """DuckDB's message, the nearest name, and the tables."""
    missing = re.search(r'Referenced (?:column|table) "([^"]+)"|column named "([^"]+)"|with name "?(\w+)"?', message)
    hint = ""
    if missing:
        name = next(group for group in missing.groups() if group)
        columns = {column for table in tables.values() for column in table.columns}
        near = get_close_matches(name, sorted(columns | set(tables)), n=1)
        owners = [known for known, table in tables.items() if near and near[0] in table.columns]
        of = f" (of {', '.join(owners)})" if owners else ""
        hint = f"\nnearest to {name!r}: {near[0]}{of}" if near else ""
    return f"query: {message.strip()}{hint}\ntables: {', '.join(tables)}"
