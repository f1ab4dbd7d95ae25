"""How long iterations take: the distribution over all ranks and iterations of a job, out to its tail."""

from __future__ import annotations

import polars as pl

TAIL = 0.99
"""The quantile beyond which an iteration is an outlier."""


def distribution(iterations: pl.DataFrame) -> pl.DataFrame:
    """One row per job: how many iterations of a rank have a known time, quantiles of it, and outliers, in seconds.

    ``outliers`` counts those beyond three times the median; ``unknown`` those that are not a rank's first and have no
    known time.
    """
    time = pl.col("seconds")
    known = iterations.filter(time.is_not_null())
    later = iterations.filter(pl.col("iteration") > 1)
    unknown = later.group_by("name").agg(time.null_count().alias("unknown"))
    return (
        known.group_by("name", maintain_order=True)
        .agg(
            pl.len().alias("count"),
            time.min().alias("least"),
            *(time.quantile(at, "linear").alias(f"q{at * 100:g}") for at in (0.01, 0.25, 0.5, 0.75, TAIL)),
            time.max().alias("greatest"),
            (time > 3 * time.median()).sum().alias("outliers"),
        )
        .join(unknown, on="name", how="left", maintain_order="left")
    )
