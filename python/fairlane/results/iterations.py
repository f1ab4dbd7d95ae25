"""How long iterations take: the distribution over all ranks and iterations of a job, out to its tail."""

import polars as pl

TAIL = 0.99
"""The quantile beyond which an iteration is an outlier."""


def distribution(iterations: pl.DataFrame) -> pl.DataFrame:
    """One row per job: how many iterations there are besides the first, quantiles of their time in seconds, outliers.

    ``outliers`` counts those beyond three times the median.
    """
    time = pl.col("time_s")
    return (
        iterations.filter(time.is_not_null())
        .group_by("name", maintain_order=True)
        .agg(
            pl.len().alias("count"),
            time.min().alias("min"),
            *(time.quantile(at, "linear").alias(f"q{at * 100:g}") for at in (0.01, 0.25, 0.5, 0.75, TAIL)),
            time.max().alias("max"),
            (time > 3 * time.median()).sum().alias("outliers"),
        )
    )
