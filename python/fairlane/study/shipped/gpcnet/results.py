"""Network tests of GPCNeT, and their results: a row for each trial, and congestion impact factors.

Taylor Groves, Sudheer Chunduri, Pete Mendygral et al.: GPCNeT: Designing a benchmark suite for inducing and measuring
contention in HPC networks, SC '19. Message sizes, names and units are those of version 1.3 of the benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy
import polars as pl
from numpy.typing import NDArray
from typing_extensions import override

from fairlane.core.statistics import of_ratios, over_replicates
from fairlane.core.tables import PS
from fairlane.core.wording import significant
from fairlane.model.workload.base import KIB
from fairlane.results import notes
from fairlane.results.derive import interval
from fairlane.results.schemas import Optional, Schema
from fairlane.study.shipped.base import Row, ShippedResults

MEASURES = ("isolated", "isolated_p99", "congested", "congested_p99", "impact", "impact_p99")
"""Columns of ``impact`` that have intervals."""
_WINDOW, _BANDWIDTH_SIZE = 8, 128 * KIB
_NUMBER = Optional(pl.Float64)


@dataclass(frozen=True)
class NetworkTest:
    """A network test."""

    title: str
    """Name in the benchmark's own table."""
    unit: str
    """Unit in that table."""
    workload: Mapping[str, Any]
    """The workload without its communicators."""
    part: int = 1
    """It has one iteration where the test of latency has so many."""
    messages: int = 1
    """Messages of an iteration, over which its time is divided."""
    bytes: int | None = None
    """Bytes that a rank sends in an iteration, for a bandwidth; None if times are what is measured."""

    def iterations(self, of_latency: int) -> int:
        """Return the number of measured iterations."""
        return max(1, of_latency // self.part)

    def measured(self, times: NDArray[numpy.int64]) -> tuple[float, float]:
        """Mean and 99th percentile of what is measured, from the time of each iteration of each rank, ps.

        A bandwidth is bytes over the mean time; at most one iteration in a hundred is slower than its 99th percentile.
        """
        mean, worst = float(times.mean()), float(numpy.quantile(times, 0.99))
        if self.bytes is None:
            return mean * PS * 1e6 / self.messages, worst * PS * 1e6 / self.messages
        return self.bytes / (mean * PS) / 2**20, self.bytes / (worst * PS) / 2**20

    def impact(self, isolated: float, congested: float) -> float:
        """The congestion impact factor: how many times worse it is with congestion."""
        return congested / isolated if self.bytes is None else isolated / congested


_BANDWIDTH = {"message_size": f"{_BANDWIDTH_SIZE} B", "messages_per_iteration": _WINDOW, "barrier": True}
TESTS: Mapping[str, NetworkTest] = {
    "latency": NetworkTest("RR Two-sided Lat (8 B)", "usec", {"name": "random_ring"}, messages=2),
    "bandwidth": NetworkTest(
        f"RR Two-sided BW+Sync ({_BANDWIDTH_SIZE} B)",
        "MiB/s/rank",
        {"name": "random_ring", **_BANDWIDTH},
        part=25,
        bytes=2 * _WINDOW * _BANDWIDTH_SIZE,
    ),
    "allreduce": NetworkTest("Multiple Allreduce (8 B)", "usec", {"name": "multiple_allreduce"}),
}
"""The network tests by name, in the order of the benchmark's table."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Gpcnet(ShippedResults):
    """Latency, bandwidth and allreduce, isolated and congested, by transport."""

    trials: pl.DataFrame
    """One row per transport, network test, seed and whether there was congestion: mean and 99th percentile."""
    impact: pl.DataFrame
    """One row per transport and network test: isolated, congested and the impact factor, means over seeds."""

    TABLES = ("trials", "impact")
    KIND = "gpcnet"
    SCHEMA_VERSION = 2
    SCHEMAS: ClassVar[Mapping[str, Schema]] = {
        "trials": {
            **dict.fromkeys(("transport", "test"), pl.String),
            "seed": pl.UInt64,
            "congested": pl.Boolean,
            "unit": pl.String,
            **dict.fromkeys(("mean", "p99"), _NUMBER),
            **dict.fromkeys(("iterations", "samples"), pl.Int64),
            "digest": pl.String,
        },
        "impact": {
            **dict.fromkeys(("transport", "test", "unit"), pl.String),
            "replicates": pl.Int64,
            **{f"{name}{end}": _NUMBER for name in MEASURES for end in ("", "_low", "_high")},
        },
    }
    CSV = "impact"
    SAME = ("transport", "test", "congested", "digest")
    VARIED = "assignments of hosts"
    MEASUREMENT = "trial"

    @classmethod
    @override
    def tables_of(cls, rows: Sequence[Row]) -> dict[str, pl.DataFrame]:
        trials = cls.table("trials", [{**row, "unit": TESTS[row["test"]].unit} for row in rows])
        by_test = trials.group_by("transport", "test", "unit", maintain_order=True)
        return {"trials": trials, "impact": cls.table("impact", [_impact(key, of_test) for key, of_test in by_test])}

    @override
    def headline(self) -> str:
        largest = self.impact.group_by("transport").agg(pl.col("impact").max()).drop_nulls().sort("impact")
        ends = [f"{significant(value, 2)} with {name}" for name, value in largest.iter_rows()]
        if not ends:
            return "No congestion impact factor was measured"
        return f"Congestion impact factors: mean up to {' and '.join(dict.fromkeys([ends[-1], ends[0]]))}"


def _impact(key: Sequence[Any], trials: pl.DataFrame) -> Row:
    """The row of a transport and a network test, over the seeds that have both trials."""
    known = trials.drop_nulls("mean")
    alone, together = (known.filter(pl.col("congested") == congested) for congested in (False, True))
    both = alone.join(together, on="seed", suffix="_congested", maintain_order="left")
    pairs = notes.distinct(both, ("digest", "digest_congested"))
    row: Row = {**dict(zip(("transport", "test", "unit"), key, strict=True)), "replicates": pairs.height}
    for measure, end in (("mean", ""), ("p99", "_p99")):
        for name, kind in (("isolated", ""), ("congested", "_congested")):
            values = notes.distinct(both, (f"digest{kind}",))[f"{measure}{kind}"].to_list()
            row |= interval(f"{name}{end}", over_replicates([[value] for value in values]))
        factors = [TESTS[row["test"]].impact(*pair) for pair in pairs.select(measure, f"{measure}_congested").rows()]
        row |= interval(f"impact{end}", of_ratios(factors))
    return row
