"""Tables of any columns in a page: columns by name, with numbers to six digits; of long tables the first rows."""

from typing import Any

import polars as pl

from fairlane.results.plain import plain_columns

MOST_ROWS = 20_000
"""Rows of a table in a page; of more, evenly spaced ones."""


def rows_of(table: pl.DataFrame, most: int = MOST_ROWS) -> dict[str, Any]:
    """A table as JSON: ``columns`` by name, which of them are ``numeric``, and how many rows it has in ``total``."""
    kept = table if table.height <= most else table.gather_every(-(-table.height // most))
    numeric = [name for name, kind in kept.schema.items() if kind.is_numeric()]
    return {"columns": plain_columns(kept), "numeric": numeric, "total": table.height}
