"""Effects by the values of each parameter that a study varies, over all others."""

from typing import Any

import polars as pl

from fairlane.plot.treatments import run_kinds
from fairlane.study.conditions import shown, varied
from fairlane.study.replication import EFFECTS, PACE, estimate, outer_unit

MEASURES = (PACE[0], *EFFECTS)


def sweeps_of(work: pl.DataFrame) -> list[dict[str, Any]]:
    """For each parameter or case its values, and rows by kind of run, workload and value.

    A row has means of time per iteration, s, W and improvement, with their 95% intervals. Values are
    numbers where all are, which a figure then shows on an axis of numbers.
    """
    unit = outer_unit(work)
    found = []
    for name in varied(work):
        values = work[name].unique(maintain_order=True)
        numeric = values.dtype.is_numeric() and not values.has_nulls()
        ordered = (values.sort() if numeric else values).to_list()
        rows: list[dict[str, Any]] = []
        for number, kind in enumerate(run_kinds(work)):
            groups = kind.rows(work).group_by("workload", name, maintain_order=True)
            for (workload, value), group in groups:
                row = {"run": number, "workload": workload, "value": ordered.index(value)}
                rows.append(row | _means(group, unit))
        labels = ["none" if one is None else shown(one) for one in ordered]
        found.append({"name": name, "numeric": numeric, "values": ordered if numeric else labels, "rows": rows})
    return found


def _means(group: pl.DataFrame, unit: str) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for column in MEASURES:
        one = estimate(group, column, unit)
        ends = (None, None, None) if one is None else (one.value, one.low, one.high)
        found |= dict(zip((column, f"{column}_low", f"{column}_high"), ends, strict=True))
    return found
