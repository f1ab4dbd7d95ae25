"""Jobs on GPUs: bandwidths of collectives by size."""

from collections.abc import Iterator

import polars as pl

from fairlane.results.run import Run
from fairlane.units import SIZE
from fairlane.views.model import together
from fairlane.views.run.series import Series
from fairlane.views.tables import Column, Table, columns, fixed
from fairlane.wording import seconds


def tables(series: Series) -> Iterator[Table]:
    """A row for each job and size of its buffers."""
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
