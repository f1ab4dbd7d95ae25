"""Jobs on GPUs: bandwidths of collectives by size, and latencies of inference."""

from collections.abc import Iterator

import polars as pl

from fairlane.results.run import Run
from fairlane.units import SIZE
from fairlane.views.model import together
from fairlane.views.run.series import Series
from fairlane.views.tables import Column, Table, columns, fixed
from fairlane.wording import percent, seconds


def tables(series: Series) -> Iterator[Table]:
    """A row for each job and size of its buffers; two for each job that serves requests."""
    yield from _bandwidths(series)
    yield from _latencies(series)


def _bandwidths(series: Series) -> Iterator[Table]:
    known = series.having(lambda run: run.collectives is not None)
    rows = together(known, "run", _collectives).to_dicts() if known else []
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


def _collectives(run: Run) -> pl.DataFrame:
    assert run.collectives is not None, "invariant: it is known"
    return run.collectives


def _latencies(series: Series) -> Iterator[Table]:
    known = series.having(lambda run: run.serving is not None)
    rows = together(known, "run", _serving).to_dicts() if known else []
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


def _serving(run: Run) -> pl.DataFrame:
    assert run.serving is not None, "invariant: it is known"
    return run.serving
