"""Latencies of messages and packets: exact counts, means and extremes, and quantiles from histograms.

All histograms have the same buckets, none wider than a 256th of its lowest value, so those of several jobs, traffic
kinds or runs are merged exactly by adding counts. A quantile is the upper end of the bucket in which it lies, or the
maximum if that is less: at most 0.4% above the true one, and never below it.

*Intervals of latencies: what was counted from one of several instants to the next, in batches of simulated time.*
Batches are equally long: they begin short, and whenever there are twice as many as wanted, any two neighbours become
one. So there are enough of them however early a simulation ends. They begin with the simulation; what comes after the
last whole batch is left out.

Latencies of several jobs or traffic kinds are merged batch by batch: so their intervals include that jobs which share
links are slow at the same time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy
import polars as pl
from numpy.typing import NDArray

from fairlane.core.drive import Engine
from fairlane.core.statistics import FEWEST, Estimate, quantile, ratio_change
from fairlane.core.tables import frame
from fairlane.results.schemas import ON_DEMAND, types

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


def exact_of(engine: Engine, table: str = "latency") -> pl.DataFrame:
    """Counts, sums, least and largest values of what ``engine`` has delivered so far, by the keys of its table."""
    # A sum has 128 bits; beyond 2^53 a float still has it to 16 digits.
    total = pl.col("sum_high").cast(pl.Float64) * 2.0**64 + pl.col("sum_low").cast(pl.Float64)
    return frame(engine.table(table)).with_columns(sum=total).drop("sum_high", "sum_low")


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


Floats = NDArray[numpy.float64]

BATCHES = 24
"""Least number of batches, after the first ones."""

_ENDS = {name: kind for name, kind in types(ON_DEMAND["latency"]).items() if name.endswith(("_low_ps", "_high_ps"))}
_LEVELS: Mapping[str, Sequence[str]] = {
    "": ("job", "kind"),
    "job": ("job",),
    "workload": ("workload",),
    "kind": ("kind",),
}
"""Columns that are merged, and those that then tell rows apart besides messages and packets; at first none."""
_SCHEMA = {"level": pl.String, "of": pl.String, "job": pl.UInt32, "kind": pl.String, "workload": pl.String, **_ENDS}


@dataclass(frozen=True)
class Look:
    """Counts at one instant: by histogram and bucket, and the sum of each histogram.

    Both have the columns ``of``, ``job``, ``kind``.
    """

    counts: pl.DataFrame
    sums: pl.DataFrame

    @classmethod
    def at(cls, engine: Engine) -> Self:
        """Read the counts of ``engine`` so far."""
        counts = frame(engine.table("latency_counts")).rename({"of": "packets"})
        sums = exact_of(engine).with_columns(packets=(pl.col("of") == "packet").cast(pl.UInt8))
        number = ("packets", "job", "kind_number")
        named = counts.join(sums.select("of", "kind", *number), on=number)
        return cls(named.select(*KEY, "high", "count"), sums.select(*KEY, "count", "sum"))


class LatencyBatches:
    """Looks at what has been counted, at least ``BATCHES`` times in a simulation of ``shortest`` or more, ps.

    ``workloads`` are those of the jobs, by number.
    """

    def __init__(self, shortest: int, workloads: Sequence[str]) -> None:
        self._workloads = dict(enumerate(workloads))
        self._every = max(1, shortest // BATCHES)
        self._looks: list[Look] = []
        self.due = self._every
        """The next instant to look at, ps."""

    def look(self, engine: Engine) -> None:
        """Keeps what has been counted so far, once at an instant that is due."""
        if engine.now >= self.due:
            self._looks.append(Look.at(engine))
            if len(self._looks) == 2 * BATCHES:
                self._looks = self._looks[1::2]
                self._every *= 2
            self.due = (engine.now // self._every + 1) * self._every

    def table(self) -> pl.DataFrame:
        """The ends of the intervals of mean and quantiles, ps, where there are any.

        Rows at the ``level`` "" are those of the table ``latency``, by ``of``, ``job`` and ``kind``; those at the level
        "job", "workload" or "kind" have all latencies of a job, a workload or a traffic kind.
        """
        looks = self._looks
        if len(looks) < FEWEST or looks[-1].sums.is_empty():
            return pl.DataFrame(schema=_SCHEMA)
        workload = pl.col("job").replace_strict(self._workloads, return_dtype=pl.String).alias("workload")
        named = [Look(look.counts.with_columns(workload), look.sums.with_columns(workload)) for look in looks]
        rows = [{"level": level, **row} for level, by in _LEVELS.items() for row in intervals(named, ("of", *by))]
        return pl.DataFrame(rows, schema=_SCHEMA)


def intervals(looks: Sequence[Look], by: Sequence[str]) -> Iterator[dict[str, Any]]:
    """A row for each group of histograms with the same ``by``, whose counts are added up: the ends of its intervals."""
    merged = [look.counts.group_by(*by, "high").agg(pl.col("count").sum()).sort(*by, "high") for look in looks]
    sums = [look.sums.group_by(by).agg(pl.col("count", "sum").sum()).sort(by) for look in looks]
    counts = _by_batch(merged, (*by, "high"), "count")
    delivered, total = (_by_batch(sums, by, name) for name in ("count", "sum"))
    places = (
        merged[-1].with_row_index().group_by(by, maintain_order=True).agg(pl.col("index").first(), pl.len(), "high")
    )
    for row in sums[-1].with_row_index("row").join(places, on=by, maintain_order="left").iter_rows(named=True):
        of_group = counts[:, row["index"] : row["index"] + row["len"]]
        quantiles = {name: quantile(row["high"], of_group, share) for name, share in QUANTILES.items()}
        mean = _mean(total[:, row["row"]], delivered[:, row["row"]])
        yield {name: row[name] for name in by} | _ends({"mean": mean, **quantiles})


def _by_batch(looks: Sequence[pl.DataFrame], by: Sequence[str], name: str) -> Floats:
    """Return the additions to the column ``name`` in each batch (row), for each row of the last look (column)."""
    places = looks[-1].select(by).with_row_index()
    counts = numpy.zeros((len(looks), places.height))
    for at, look in enumerate(looks):
        joined = look.select(*by, name).join(places, on=by)
        counts[at, joined["index"].to_numpy()] = joined[name].to_numpy()
    return numpy.diff(counts, axis=0, prepend=0.0)


def _mean(total: Floats, count: Floats) -> Estimate | None:
    change = ratio_change(total[count > 0], count[count > 0], skip=0)  # the sum over the count, less one
    return change.shifted(1.0) if change else None


def _ends(estimates: dict[str, Estimate | None]) -> dict[str, float | int | None]:
    """The columns of intervals; those of quantiles are whole picoseconds."""
    ends: dict[str, float | int | None] = {}
    for name, estimate in estimates.items():
        low, high = (estimate.low, estimate.high) if estimate else (None, None)
        for end, value in (("low", low), ("high", high)):
            ends[f"{name}_{end}_ps"] = value if name == "mean" or value is None else round(value)
    return ends
