"""Means over the placements and seeds of a study, with intervals.

The outer units are placements; where there is one placement, seeds are. A unit's value is the mean over its seeds and
jobs. With fewer than three units there is no interval, unless it is one run of one job: then it is the run's own.

Points of a condition with the same results, bit for bit, are one replicate.

A run of a job with fewer than two iterations has no time per iteration and no rate: it was too slow. A mean over the
other runs would be that of the fast ones, so there is none.
"""

from collections.abc import Sequence
from typing import Any

import polars as pl

from fairlane.results import repeats
from fairlane.results.derive import interval
from fairlane.statistics import SPREAD, Estimate, over_replicates, spread

EFFECTS = ("w", "improvement")
"""Effects in ``work``: their means are over the rows that have one."""
PACE = ("seconds_per_iteration", "iterations_per_second")
"""How fast jobs are, in ``work``: there is a mean only where every row has a value."""


def distinct(work: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``work`` without those that repeat another of the same condition (``same_as``)."""
    if "same_as" not in work.columns:
        return work
    row = [name for name in ("same_as", "baseline", "treatment", "job") if name in work.columns]
    return repeats.distinct(work, row)


def outer_unit(work: pl.DataFrame) -> str:
    """The column that has the outer units: ``placement``, or ``seed`` where there is one placement."""
    return "placement" if distinct(work)["placement"].n_unique() > 1 else "seed"


def estimate(rows: pl.DataFrame, column: str, unit: str, *, complete: bool = False) -> Estimate | None:
    """The mean of a column of ``work`` over replicates; None without a value.

    With ``complete``, and for columns of ``PACE``, None also if any row has no value.
    """
    rows = distinct(rows)
    known = rows.filter(pl.col(column).is_not_null())
    if known.height < rows.height and (complete or column in PACE):
        return None
    if known.height == 1:
        [value, low, high] = known.select(column, f"{column}_low", f"{column}_high").row(0)
        return Estimate(value, low, high, count=1)
    by_seed = known.group_by(unit, "seed" if unit != "seed" else "placement", maintain_order=True).agg(
        pl.col(column).mean()
    )
    units = by_seed.group_by(unit, maintain_order=True).agg(column)[column].to_list()
    return over_replicates(units)


def over_points(
    work: pl.DataFrame, by: Sequence[str], columns: Sequence[str] = EFFECTS, unit: str = ""
) -> pl.DataFrame:
    """One row per group of rows of ``work``: each column's mean as by ``estimate``, and the ends of its interval.

    ``unit`` is what replicates are, by default the ``outer_unit`` of the rows.
    """
    unit = unit or outer_unit(work)
    rows = []
    for key, of_group in work.group_by(by, maintain_order=True):
        found = [interval(column, estimate(of_group, column, unit)) for column in columns]
        found += [_spread(of_group, column, unit) for column in columns if column in PACE]
        rows.append(dict(zip(by, key, strict=True)) | {name: it for one in found for name, it in one.items()})
    schema: dict[str, Any] = {name: work.schema[name] for name in by}
    schema |= {f"{column}{end}": pl.Float64 for column in columns for end in ("", "_low", "_high")}
    schema |= {f"{column}{end}": pl.Float64 for column in columns if column in PACE for end in SPREAD}
    return pl.DataFrame(rows, schema=schema)


def _spread(rows: pl.DataFrame, column: str, unit: str) -> dict[str, float | None]:
    """The median, the least and the greatest of the units' means; nothing of a single run."""
    if rows.height < 2 or rows[column].null_count():
        return {}
    found = spread(rows.group_by(unit).agg(pl.col(column).mean())[column].to_list())
    return {f"{column}{end}": value for end, value in zip(SPREAD, found, strict=True)} if found else {}
