"""Means over the placements and seeds of a study, with intervals.

The outer units are placements; where there is one placement, seeds are. A unit's value is the mean over its seeds and
jobs. With fewer than three units there is no interval, unless it is one run of one job: then it is the run's own.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from fairlane.results.derive import interval
from fairlane.statistics import Estimate, over_replicates

EFFECTS = ("w", "improvement")
"""Columns of ``work`` that have intervals over replicates."""


def outer_unit(work: pl.DataFrame) -> str:
    """The column that has the outer units: ``placement``, or ``seed`` where there is one placement."""
    return "placement" if work["placement"].n_unique() > 1 else "seed"


def estimate(rows: pl.DataFrame, column: str, unit: str) -> Estimate | None:
    """The mean of a column of ``work`` over replicates; None without a value."""
    known = rows.filter(pl.col(column).is_not_null())
    if known.height == 1:
        [value, low, high] = known.select(column, f"{column}_low", f"{column}_high").row(0)
        return Estimate(value, low, high, count=1)
    by_seed = known.group_by(unit, "seed" if unit != "seed" else "placement", maintain_order=True).agg(
        pl.col(column).mean()
    )
    units = by_seed.group_by(unit, maintain_order=True).agg(column)[column].to_list()
    return over_replicates(units)


def over_points(work: pl.DataFrame, by: Sequence[str], columns: Sequence[str] = EFFECTS) -> pl.DataFrame:
    """One row per group of rows of ``work``: each column's mean over replicates, and the ends of its interval."""
    unit = outer_unit(work)
    rows = []
    for key, of_group in work.group_by(by, maintain_order=True):
        found = [interval(column, estimate(of_group, column, unit)) for column in columns]
        rows.append(dict(zip(by, key, strict=True)) | {name: it for one in found for name, it in one.items()})
    schema: dict[str, Any] = {name: work.schema[name] for name in by}
    schema |= {f"{column}{end}": pl.Float64 for column in columns for end in ("", "_low", "_high")}
    return pl.DataFrame(rows, schema=schema)
