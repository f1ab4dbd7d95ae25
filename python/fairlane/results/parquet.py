"""Parquet files of unknown origin as data frames: limits before anything is allocated, and columns as declared.

They are read by DuckDB's reader, which is fuzzed and reports damage as an error; that of Polars may panic.
"""

import os
from collections.abc import Mapping
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.core.errors import ResultsError, nearest
from fairlane.results.base import frame_of
from fairlane.results.manifest import Sealed
from fairlane.results.schemas import Optional, Schema

if TYPE_CHECKING:
    import duckdb

_DAMAGE = (
    *(pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, MemoryError, ValueError, TypeError),
    RuntimeError,  # of DuckDB, for a column name that is not UTF-8
)
"""Exceptions of libraries for damaged files; a panic is no ``Exception``."""


def read_parquet(path: Path, schema: Schema | None = None) -> pl.DataFrame:
    """A table. Raises ``ResultsError`` naming file and column if it is damaged, too large, or not as in ``schema``."""
    import duckdb

    with duckdb.connect() as connection:
        return _read(connection, path, schema or {})


def read_tables(sealed: Sealed, schemas: Mapping[str, Schema]) -> dict[str, pl.DataFrame]:
    """The tables of a sealed folder by name. Raises ``ResultsError`` if one has changed or is not as in its schema."""
    import duckdb

    paths = {name: sealed.path(f"{name}.parquet") for name in schemas}
    with duckdb.connect() as connection:
        return {name: _read(connection, paths[name], schema) for name, schema in schemas.items()}


def _read(connection: "duckdb.DuckDBPyConnection", path: Path, schema: Schema) -> pl.DataFrame:
    import duckdb

    try:
        path.stat()
        table = connection.read_parquet(escape(str(path)))
        known = connection.execute("SELECT num_rows FROM parquet_file_metadata(?)", [escape(str(path))]).fetchall()
        rows = sum(int(row) for (row,) in known)
        if not 0 <= rows * len(table.columns) * 8 <= _memory():
            message = f"has {rows} rows and {len(table.columns)} columns: more than the memory of this machine holds"
            raise ResultsError(f"{path}: {message}")
        frame = frame_of(table)
    except FileNotFoundError:
        raise ResultsError(f"{path}: is missing") from None
    except (*_DAMAGE, duckdb.Error) as error:
        if isinstance(error, ResultsError):
            raise
        message = (str(error) or type(error).__name__).partition("\n")[0][:200]
        raise ResultsError(f"{path}: is not a Parquet file, or damaged: {message}") from error
    _check_columns(path, frame, schema)
    return frame


def _check_columns(path: Path, table: pl.DataFrame, schema: Schema) -> None:
    """Raises ``ResultsError`` if a column is missing, of another type, or has nulls where it must not."""
    for name, declared in schema.items():
        optional = isinstance(declared, Optional)
        kind = declared.type if optional else declared
        expected = kind() if isinstance(kind, type) else kind
        if name not in table.columns:
            near = nearest(name, table.columns)
            hint = f"; nearest is {near!r}" if near else ""
            raise ResultsError(f"{path}: column {name!r} is missing; expected a column of {expected}{hint}")
        if table.schema[name] != kind:
            raise ResultsError(f"{path}: column {name!r} is of {table.schema[name]}; expected {expected}")
        if not optional and table[name].null_count():
            raise ResultsError(f"{path}: column {name!r} has empty cells; expected {expected} in every row")


def _memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


DIGITS = 6
"""Significant digits of numbers."""


def plain_columns(table: pl.DataFrame) -> dict[str, list[Any]]:
    """The columns by name."""
    return {column.name: _plain(column).to_list() for column in rounded(table)}


def rounded(table: pl.DataFrame) -> pl.DataFrame:
    """The table with six significant digits."""
    return table.with_columns(pl.col(pl.Float64, pl.Float32).round_sig_figs(DIGITS))


def _plain(column: pl.Series) -> pl.Series:
    if column.dtype.is_decimal():
        return column.cast(pl.Float64)
    simple = column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean)
    return column if simple else column.cast(pl.String, strict=False)
