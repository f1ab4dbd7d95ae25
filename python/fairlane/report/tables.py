"""Tables of any columns in a page: columns by name, with numbers to six digits; of long tables the first rows."""

from collections.abc import Mapping
from typing import Any

import polars as pl

MOST_ROWS = 20_000
"""Rows of a table in a page; of more, evenly spaced ones."""
DIGITS = 6


def rows_of(table: pl.DataFrame, most: int = MOST_ROWS) -> dict[str, Any]:
    """A table as JSON: ``columns`` by name, which of them are ``numeric``, and how many rows it has in ``total``."""
    kept = table if table.height <= most else table.gather_every(-(-table.height // most))
    kept = kept.with_columns(pl.col(pl.Float64, pl.Float32).round_sig_figs(DIGITS))
    columns = {name: _column(kept[name]) for name in kept.columns}
    return {
        "columns": columns,
        "numeric": [n for n in kept.columns if kept[n].dtype.is_numeric()],
        "total": table.height,
    }


def tables_of(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """Several tables by name."""
    return {name: rows_of(table) for name, table in tables.items()}


def _column(column: pl.Series) -> list[Any]:
    simple = column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean)
    return (column if simple else column.cast(pl.String, strict=False)).to_list()
