"""Latencies of messages and packets: exact counts, means and extremes, and quantiles from histograms.

All histograms have the same buckets, none wider than a 256th of its lowest value, so those of several jobs, traffic
kinds or runs are merged exactly by adding counts. A quantile is the upper end of the bucket in which it lies, or the
maximum if that is less: at most 0.4% above the true one, and never below it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import polars as pl

from fairlane.engine import Engine
from fairlane.engine.tables import frame

QUANTILES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
"""The quantiles of the tables, by name."""

BUCKET_WIDTH = 1 / 256
"""The greatest width of a bucket, as a share of its lowest value."""

KEY = ("of", "job", "kind")
"""The quantities with a histogram."""


@dataclass(frozen=True)
class Latency:
    """The latencies of messages and packets of a simulation, by job and traffic kind, in picoseconds."""

    exact: pl.DataFrame
    """One row per quantity (``of``: message or packet), job and kind: ``count``, ``sum``, ``min``, ``max``."""
    histogram: pl.DataFrame
    """One row per bucket in which something was counted: ``low`` and ``high``, both included, and ``count``."""

    @classmethod
    def measured(cls, engine: Engine) -> Self:
        """The latencies of what ``engine`` has delivered so far."""
        return cls(exact_of(engine).drop("kind_number"), frame(engine.table("latency_histogram")))

    def since(self, before: Self) -> Self:
        """Those counted after ``before``, a former state of the same simulation; extremes are those of the buckets."""
        keys = [*KEY, "low", "high"]
        earlier = before.histogram.rename({"count": "earlier"})
        histogram = (
            self.histogram.join(earlier, on=keys, how="left", maintain_order="left")
            .with_columns(count=pl.col("count") - pl.col("earlier").fill_null(0))
            .filter(pl.col("count") > 0)
            .drop("earlier")
        )
        extremes = histogram.group_by(KEY).agg(pl.col("low").min().alias("min"), pl.col("high").max().alias("max"))
        totals = self.exact.select(*KEY, "count", "sum").join(
            before.exact.select(*KEY, pl.col("count", "sum").name.suffix("_earlier")), on=KEY, how="left"
        )
        differences = [(pl.col(name) - pl.col(f"{name}_earlier").fill_null(0)).alias(name) for name in ("count", "sum")]
        exact = totals.select(*KEY, *differences).join(extremes, on=KEY).sort(KEY)
        return type(self)(exact, histogram)

    def summary(self, by: Sequence[str] = KEY) -> pl.DataFrame:
        """One row per group: count, mean, minimum, quantiles and maximum, in picoseconds."""
        return summarize(self.exact, self.histogram, by)


def exact_of(engine: Engine) -> pl.DataFrame:
    """Counts, sums, least and largest values of what ``engine`` has delivered so far."""
    # A sum has 128 bits; beyond 2^53 a float still has it to 16 digits.
    total = pl.col("sum_high").cast(pl.Float64) * 2.0**64 + pl.col("sum_low").cast(pl.Float64)
    return frame(engine.table("latency")).with_columns(sum=total).drop("sum_high", "sum_low")


def summarize(exact: pl.DataFrame, histogram: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The rows of ``exact`` and ``histogram`` merged by the columns ``by``, with quantiles."""
    keys, count = list(by), pl.col("count")
    totals = exact.group_by(keys, maintain_order=True).agg(
        count.sum(), mean=pl.col("sum").sum() / count.sum(), min=pl.col("min").min(), max=pl.col("max").max()
    )
    merged = histogram.group_by([*keys, "high"]).agg(count.sum()).sort([*keys, "high"])
    quantiles = merged.group_by(keys).agg(**{name: _quantile(quantile) for name, quantile in QUANTILES.items()})
    return (
        totals.join(quantiles, on=keys, how="left")
        .with_columns(pl.min_horizontal(name, "max").alias(name) for name in QUANTILES)
        .sort(keys)
        .select(*keys, "count", "mean", "min", *QUANTILES, "max")
    )


def _quantile(quantile: float) -> pl.Expr:
    """The end of the bucket in which the quantile lies: of n values in order, number ``ceil(quantile * n)``."""
    # Thousandths are whole numbers: no rounding where quantile * n is one.
    rank = (pl.col("count").sum() * round(quantile * 1000) + 999) // 1000
    return pl.col("high").filter(pl.col("count").cum_sum() >= rank).first()
