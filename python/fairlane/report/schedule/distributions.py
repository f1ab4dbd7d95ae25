"""Waits and slowdowns of jobs by allocator: their distributions, and means by the size of jobs."""

from typing import Any

import numpy as np
import polars as pl

from fairlane.results.schedule import ScheduleResults
from fairlane.scheduler.compare import BOUND_S

POINTS = 200
"""Points of a distribution."""
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536)
"""Least numbers of hosts of the classes of sizes."""
MEASURES = {
    "wait": pl.col("start") - pl.col("submit"),
    "bounded_slowdown": (
        (pl.col("end") - pl.col("submit")) / pl.max_horizontal(pl.col("run"), pl.lit(float(BOUND_S)))
    ).clip(lower_bound=1.0),
    "slowdown": pl.col("slowdown"),
}
"""Wait, s; bounded slowdown, see ``docs/scheduling.md``; run time over that of the log."""


def distributions(found: ScheduleResults) -> dict[str, list[dict[str, Any]]]:
    """By measure and allocator: values, and the share of jobs above each."""
    shares = 1 - np.concatenate([np.linspace(0, 0.99, POINTS - 20, endpoint=False), np.linspace(0.99, 1, 20)])
    table = found.placed.select("allocator", **MEASURES)
    made: dict[str, list[dict[str, Any]]] = {}
    for measure in MEASURES:
        made[measure] = []
        for name in found.allocators["allocator"]:
            values = table.filter(allocator=name)[measure].to_numpy()
            quantiles = np.quantile(values, 1 - shares, method="higher") if len(values) else np.array([])
            rows = {
                float(f"{value:.5g}"): float(f"{share:.4g}") for value, share in zip(quantiles, shares, strict=False)
            }
            made[measure].append({"allocator": name, "value": [*rows], "above": [*rows.values()]})
    return made


def by_size(found: ScheduleResults) -> dict[str, Any]:
    """Classes of sizes, with the number of jobs, and the mean of each measure by allocator and class."""
    starts = pl.Series(SIZES)
    least = pl.col("hosts").map_batches(
        lambda hosts: starts.gather(starts.search_sorted(hosts, side="right") - 1), return_dtype=pl.Int64
    )
    table = found.placed.select("allocator", least.alias("least"), **MEASURES)
    classes = table["least"].unique().sort().to_list()
    means = table.group_by("allocator", "least").agg(pl.len(), pl.col(*MEASURES).mean()).sort("least")
    rows = []
    for name in found.allocators["allocator"]:
        of = {row["least"]: row for row in means.filter(allocator=name).iter_rows(named=True)}
        rows.append(
            {
                "allocator": name,
                "jobs": [of[one]["len"] if one in of else 0 for one in classes],
                **{measure: [of[one][measure] if one in of else None for one in classes] for measure in MEASURES},
            }
        )
    return {"classes": [_class(one) for one in classes], "rows": rows}


def _class(least: int) -> str:
    following = next((one for one in SIZES if one > least), None)
    if following == least + 1:
        return str(least)
    return f"{least} and more" if following is None else f"{least} to {following - 1}"
