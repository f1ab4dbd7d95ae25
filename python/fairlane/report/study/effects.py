"""Effects of a study's treatments with their 95% intervals: over all jobs, by workload, job and condition.

Means and intervals are those of ``study.replication``: over placements, or over seeds of a study with one placement.
Which changes are beyond noise is decided over all rows of a level together, as ``statistics.comparing`` says.
"""

from collections.abc import Sequence
from math import ceil
from typing import Any

import polars as pl

from fairlane.plot.treatments import run_kinds
from fairlane.results.study import StudyResults
from fairlane.statistics import Estimate, beyond_noise
from fairlane.study.conditions import CONDITION, with_condition
from fairlane.study.replication import EFFECTS, distinct, estimate, outer_unit

LEVELS = {
    "treatment": (),
    "workload": ("workload",),
    "job": ("name", "workload"),
    "condition": (CONDITION,),
}
"""What the rows of a level are, besides the kind of run: all of it, workloads, jobs, conditions."""


def runs_of(work: pl.DataFrame) -> list[dict[str, Any]]:
    """The kinds of runs: default ones first, then those of each treatment."""
    return [{"name": kind.name, "default": kind.is_default} for kind in run_kinds(work)]


def effects_of(work: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Rows by level: number of the kind of run, what the row is of, and W and improvement with their intervals."""
    table, conditions = with_condition(work)
    unit = outer_unit(work)
    levels = {name: by for name, by in LEVELS.items() if name != "condition" or len(conditions) > 1}
    return {name: _rows(table, by, unit) for name, by in levels.items()}


def _rows(table: pl.DataFrame, by: Sequence[str], unit: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    estimates: dict[str, list[Estimate | None]] = {column: [] for column in EFFECTS}
    for number, kind in enumerate(run_kinds(table)):
        of = kind.rows(table)
        groups = of.group_by(by, maintain_order=True) if by else [((), of)]
        for key, group in groups:
            rows.append({"run": number, **dict(zip(by, key, strict=True)), "units": distinct(group)[unit].n_unique()})
            for column in EFFECTS:
                estimates[column].append(estimate(group, column, unit))
    for column, found in estimates.items():
        verdicts = iter(beyond_noise([one for one in found if one is not None]))
        for row, one in zip(rows, found, strict=True):
            ends = (None, None, None) if one is None else (one.value, one.low, one.high)
            row |= dict(zip((column, f"{column}_low", f"{column}_high"), ends, strict=True))
            row[f"{column}_beyond"] = None if one is None else next(verdicts)
    return rows


def replicates_of(study: StudyResults) -> dict[str, Any]:
    """Each placement's (or seed's) mean effect over jobs, by kind of run; and about how many more would decide."""
    work, unit = study.work, outer_unit(study.work)
    rows: list[dict[str, Any]] = []
    for number, kind in enumerate(run_kinds(work)):
        means = kind.rows(work).group_by(unit, maintain_order=True).agg(pl.col(*EFFECTS).mean())
        for key, w, improvement in means.sort(unit).iter_rows():
            name = placement_name(study, key) if unit == "placement" else f"seed {key}"
            rows.append({"run": number, "unit": name, "w": w, "improvement": improvement})
    return {"unit": unit, "rows": rows}


def placement_name(study: StudyResults, number: int) -> str:
    """What the study calls a placement."""
    names = study.meta.placements
    return names[number] if number < len(names) else f"placement {number}"


def needed(row: dict[str, Any], column: str) -> int | None:
    """About how many placements (or seeds) the interval of a row would need to exclude zero.

    None without an interval, or if it does exclude it. The width falls with the root of their number.
    """
    value, low, high = (row[f"{column}{end}"] for end in ("", "_low", "_high"))
    if value is None or low is None or high is None or not value or low > 0 or high < 0:
        return None
    count: int = ceil(row["units"] * ((high - low) / 2 / value) ** 2)
    return count
