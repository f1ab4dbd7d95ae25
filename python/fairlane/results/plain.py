"""Columns of tables as JSON has them: numbers with six digits, texts and booleans; anything else as text."""

from typing import Any

import polars as pl

DIGITS = 6
"""Significant digits of numbers."""


def plain_columns(table: pl.DataFrame) -> dict[str, list[Any]]:
    """The columns by name."""
    rounded = table.with_columns(pl.col(pl.Float64, pl.Float32).round_sig_figs(DIGITS))
    return {column.name: _plain(column).to_list() for column in rounded}


def _plain(column: pl.Series) -> pl.Series:
    if column.dtype.is_decimal():
        return column.cast(pl.Float64)
    simple = column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean)
    return column if simple else column.cast(pl.String, strict=False)
