"""The answer to a query: a table, or CSV."""

import polars as pl

from fairlane.views.tables import Column, Table


def table(frame: pl.DataFrame) -> Table:
    """The rows as a table."""
    numeric = {name: kind.is_numeric() for name, kind in frame.schema.items()}
    return Table([Column(name, name, _value, left=not right) for name, right in numeric.items()], frame.to_dicts())


def csv(frame: pl.DataFrame) -> str:
    """The rows as CSV, which has neither lists nor records: these are text."""
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    texts = [[None if value is None else str(value) for value in frame[name].to_list()] for name in nested]
    flat = [pl.Series(name, text, pl.String) for name, text in zip(nested, texts, strict=True)]
    return frame.with_columns(flat).write_csv().removesuffix("\n")


def _value(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
