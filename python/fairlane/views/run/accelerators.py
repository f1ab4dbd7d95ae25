"""Jobs on GPUs: bandwidths of collectives by size, and latencies of inference."""

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl

from fairlane.core.units import SIZE
from fairlane.core.wording import percent, seconds
from fairlane.results.run import Run
from fairlane.views.model import together
from fairlane.views.run.series import Series
from fairlane.views.tables import Column, Table, columns, fixed


def tables(series: Series) -> Iterator[Table]:
    """A row for each job and size of its buffers; two for each job that serves requests."""
    yield from _bandwidths(series)
    yield from _latencies(series)


def _bandwidths(series: Series) -> Iterator[Table]:
    rows = _rows(series, lambda run: run.collectives)
    if rows:
        shown = [
            *series.run_column,
            Column("job", "name", left=True),
            Column("operation", "operation", left=True),
            Column("size", "bytes", SIZE.format),
            Column("time", "time_s", seconds),
            *columns(fixed(2, " GB/s"), algbw_gb_s="algbw", busbw_gb_s="busbw"),
        ]
        best = max(row["busbw_gb_s"] for row in rows)
        yield Table(shown, rows, "Collectives", sentence=f"busbw is {best:.2f} GB/s at most.")


def _latencies(series: Series) -> Iterator[Table]:
    rows = _rows(series, lambda run: run.serving)
    if rows:
        shown = [
            *series.run_column,
            Column("job", "name", left=True),
            Column("time", "metric", left=True),
            Column("count", "count", str),
            *columns(seconds, mean_s="mean", p50_s="50%", p99_s="99%", objective_s="objective"),
            Column("within", "within_share", percent),
        ]
        yield Table(shown, rows, "Inference")


def _rows(series: Series, table_of: Callable[[Run], pl.DataFrame | None]) -> list[dict[str, Any]]:
    """The rows of a table of all runs that have it."""
    known = series.having(lambda run: table_of(run) is not None)
    return together(known, "run", lambda run: _known(table_of(run))).to_dicts() if known else []


def _known(table: pl.DataFrame | None) -> pl.DataFrame:
    assert table is not None, "invariant: only runs that have it"
    return table
