"""Data frames into DuckDB and out of it, by Arrow's C interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

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
