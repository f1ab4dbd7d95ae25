"""Tables for SQL queries: data frames in DuckDB, in memory, on one thread so that sums are reproducible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from fairlane.results.base import Stream, frame_of

if TYPE_CHECKING:
    import duckdb


class QueryError(ValueError):
    """A query is wrong: DuckDB's message."""


class Database:
    """Tables by name, and answers to queries. It reads and writes no files."""

    def __init__(self, tables: Mapping[str, pl.DataFrame] | None = None) -> None:
        import duckdb

        self._connection: duckdb.DuckDBPyConnection = duckdb.connect(
            config={"threads": 1, "enable_external_access": False}
        )
        self._errors = duckdb.Error
        for name, table in (tables or {}).items():
            self.put(name, table)

    def put(self, name: str, table: pl.DataFrame, schema: str = "main") -> None:
        """Adds a table, or replaces the one with this name."""
        self._connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{schema}"')
        # Integers of different types that were put together have 128 bits, which DuckDB does not read.
        plain = table.with_columns(pl.selectors.by_dtype(pl.Int128).cast(pl.Int64))
        self._connection.register("_incoming", Stream(plain))
        self._connection.execute(f'CREATE OR REPLACE TABLE "{schema}"."{name}" AS SELECT * FROM _incoming')
        self._connection.unregister("_incoming")

    def columns(self, sql: str) -> list[str] | None:
        """The columns of a SELECT, which is not run; None if it does not fit the tables. Raises ``QueryError``."""
        import duckdb

        try:
            self._check(sql)
            return list(self._connection.sql(sql).columns)
        except duckdb.ParserException as error:
            raise QueryError(str(error).strip()) from error
        except duckdb.Error:
            return None

    def _check(self, sql: str) -> None:
        from duckdb import StatementType

        statements = self._connection.extract_statements(sql)
        if len(statements) != 1 or statements[0].type != StatementType.SELECT:
            raise QueryError("give one SELECT")

    def ask(self, sql: str) -> pl.DataFrame:
        """The answer to one SELECT. Raises ``QueryError``."""
        try:
            self._check(sql)
            relation = self._connection.sql(sql)
            columns = [_plain(name, str(kind)) for name, kind in zip(relation.columns, relation.types, strict=True)]
            answer = frame_of(relation.project(", ".join(columns)))
        except self._errors as error:
            raise QueryError(str(error).strip()) from error
        return answer

    def close(self) -> None:
        """Frees the memory."""
        self._connection.close()


def _plain(name: str, kind: str) -> str:
    """A column as integers of 64 bits and doubles: sums of integers are wider, and numbers with a point decimals."""
    quoted = '"' + name.replace('"', '""') + '"'
    wanted = "BIGINT" if kind in ("HUGEINT", "UHUGEINT") else "DOUBLE" if kind.startswith("DECIMAL") else None
    return quoted if wanted is None else f"CAST({quoted} AS {wanted}) AS {quoted}"
