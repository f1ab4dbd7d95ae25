"""Results of a sweep of loads: a row for each load and seed, and a row for each load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Literal

import polars as pl
from typing_extensions import override

from fairlane.core.statistics import FEWEST, independent
from fairlane.results import notes
from fairlane.results.derive import interval
from fairlane.results.latency import QUANTILES, summarize
from fairlane.results.schemas import Optional, Schema, types
from fairlane.study.shipped.base import Row, ShippedResults

ACCEPTED_IN_FULL = 0.97
"""A load is saturated if less than this part of what is generated is delivered."""
FEW = 1000
"""Messages at a load below which its figures are rough."""
Verdict = Literal["yes", "no", "undecided"]

_SHARES = ("offered", "accepted", "links")
_NUMBER = Optional(pl.Float64)
_OF_ONE = {"count": Optional(pl.Int64), "mean_ps": _NUMBER, **{f"{name}_ps": _NUMBER for name in QUANTILES}}
_LATENCIES: Schema = {f"{of}_{name}": kind for of in ("message", "packet") for name, kind in _OF_ONE.items()}
_INTERVALS = ("accepted", *(name for name in _LATENCIES if name.endswith("_ps")))
_OF_ANSWERS: Mapping[str, Schema] = {
    "exact": {"of": pl.String, "count": pl.UInt64, "sum": pl.Float64, "min": pl.UInt64, "max": pl.UInt64},
    "histogram": {"of": pl.String, "low": pl.UInt64, "high": pl.UInt64, "count": pl.UInt64},
}


@dataclass(frozen=True, repr=False, kw_only=True)
class Saturation(ShippedResults):
    """Accepted throughput and latency by offered load."""

    runs: pl.DataFrame
    """One row per load and seed."""
    points: pl.DataFrame
    """One row per load: means over seeds with their intervals, quantiles of the histograms of all seeds together."""

    TABLES = ("runs", "points")
    KIND = "saturation"
    SCHEMA_VERSION = 3
    SCHEMAS: ClassVar[Mapping[str, Schema]] = {
        "runs": {
            "load": pl.Float64,
            "seed": pl.UInt64,
            **dict.fromkeys(_SHARES, pl.Float64),
            **_LATENCIES,
            "digest": pl.String,
        },
        "points": {
            "load": pl.Float64,
            "seeds": pl.Int64,
            "replicates": pl.Int64,
            **dict.fromkeys(_SHARES, pl.Float64),
            **{f"{name}_{end}": _NUMBER for name in _INTERVALS for end in ("low", "high")},
            **dict.fromkeys(("ratio", "ratio_low", "ratio_high"), _NUMBER),
            "saturated": pl.String,
            **_LATENCIES,
        },
    }
    CSV = "points"
    SAME = ("load", "digest")

    @classmethod
    @override
    def tables_of(cls, rows: Sequence[Row]) -> dict[str, pl.DataFrame]:
        ordered = sorted(rows, key=lambda row: (row["load"], row["seed"]))
        runs = cls.table("runs", [{**row, **_latencies([row])} for row in ordered])
        points = [
            {"load": load, **_point(list(of_load), runs.filter(pl.col("load") == load))}
            for load, of_load in groupby(ordered, key=lambda row: row["load"])
        ]
        return {"runs": runs, "points": cls.table("points", points)}

    def saturation(self) -> tuple[float | None, float | None]:
        """The greatest load accepted in full below which all are, and the least that is saturated; None without one."""
        full: float | None = None
        for row in self.points.iter_rows(named=True):
            if row["saturated"] == "yes":
                return full, row["load"]
            if row["saturated"] == "no":
                full = row["load"]
        return full, None

    def headline(self) -> str:
        """Saturation in a line."""
        full, saturated = self.saturation()
        head = "No load is accepted in full" if full is None else f"All offered load is accepted up to load {full:g}"
        if saturated is not None:
            return f"{head}, saturated from {saturated:g} on"
        undecided = self.points.filter((pl.col("saturated") == "undecided") & (pl.col("load") > (full or 0)))
        return f"{head}, undecided above" if undecided.height else f"{head}: not saturated"


def _latencies(rows: Sequence[Row]) -> Row:
    """Count, mean and quantiles of messages and packets, over the histograms of all rows; none where there are none."""
    exact, histogram = (
        pl.concat(pl.DataFrame(row[name], schema=types(schema)) for row in rows) for name, schema in _OF_ANSWERS.items()
    )
    latencies: Row = {}
    for row in summarize(exact, histogram, ("of",)).iter_rows(named=True):
        of = row["of"]
        latencies |= {f"{of}_count": row["count"], f"{of}_mean_ps": row["mean"]}
        latencies |= {f"{of}_{name}_ps": float(row[name]) for name in QUANTILES}
    return latencies


def _point(rows: Sequence[Row], runs: pl.DataFrame) -> dict[str, Any]:
    """The means of a load over seeds, from its answers and its rows of the table ``runs``."""
    replicates, once = list({row["digest"]: row for row in rows}.values()), notes.distinct(runs, Saturation.SAME)
    point: dict[str, Any] = {"seeds": len(rows), "replicates": len(replicates), **_latencies(replicates)}
    point |= {name: once[name].mean() for name in _SHARES}
    for name in _INTERVALS:
        # A quantile of few messages is that of the few largest: it has no interval.
        of, _, quantile = name.removesuffix("_ps").partition("_")
        few = FEWEST / (1 - QUANTILES[quantile]) if quantile in QUANTILES else 0.0
        counts = once[f"{of}_count"].fill_null(0).to_list() if few else []
        mean = None if any(count < few for count in counts) else independent(once[name].drop_nulls().to_list())
        point |= {f"{name}_low": mean and mean.low, f"{name}_high": mean and mean.high}
    ratios = [row["accepted"] / row["offered"] for row in replicates if row["offered"] > 0]
    point |= interval("ratio", independent(ratios))
    exact = len(replicates) == 1 < len(rows)  # seeds change nothing: the ratio has no uncertainty
    ends = [point["ratio" if exact else f"ratio_{end}"] for end in ("low", "high")]
    return {**point, "saturated": _verdict(*ends)}


def _verdict(low: float | None, high: float | None) -> Verdict:
    """Whether accepted over generated is below the limit; undecided where its interval has the limit in it."""
    if low is None or high is None or low < ACCEPTED_IN_FULL <= high:
        return "undecided"
    return "yes" if high < ACCEPTED_IN_FULL else "no"
