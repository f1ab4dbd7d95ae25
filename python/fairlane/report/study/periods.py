"""What controllers did from period to period: iterations of all jobs by treatment."""

from typing import Any

import numpy as np
import polars as pl

from fairlane.results.study import StudyResults

MOST_POINTS = 400
"""Points of a line; of more periods, each point is the mean of some successive ones."""


def periods_of(study: StudyResults) -> list[dict[str, Any]] | None:
    """By treatment: the periods, and the iterations of all jobs in each, mean over points. None without controllers."""
    if study.periods.is_empty():
        return None
    sums = study.periods.group_by("treatment", "point", "period").agg(pl.col("iterations").sum())
    means = sums.group_by("treatment", "period").agg(pl.col("iterations").mean()).sort("treatment", "period")
    found = []
    for (treatment,), rows in means.group_by("treatment", maintain_order=True):
        period, iterations = rows["period"].to_numpy().astype(float), rows["iterations"].to_numpy()
        group = np.arange(len(period)) // -(-len(period) // MOST_POINTS)
        counts = np.bincount(group)
        merged = {
            name: np.round(np.bincount(group, values) / counts, 4).tolist()
            for name, values in (("period", period), ("iterations", iterations))
        }
        found.append({"treatment": treatment, **merged})
    return found
