"""Ranked alternatives of an application, the best first, and the simulations that they are ranked by."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from math import exp, log, sqrt
from statistics import fmean, stdev
from typing import Any, ClassVar

import polars as pl
from typing_extensions import override

from fairlane.core.statistics import half_width
from fairlane.core.wording import seconds
from fairlane.results import notes
from fairlane.results.schemas import Optional, Schema
from fairlane.study.shipped.advice.measure import MEASURED
from fairlane.study.shipped.advice.question import Choice
from fairlane.study.shipped.base import Row, ShippedResults

COVERAGE = 0.8
"""The share of run times that an interval is to hold."""
KEYS = ("rails", "service_level", "placement")
_NUMBER, _INTEGER = Optional(pl.Float64), Optional(pl.Int64)
_RUNS: Schema = {
    **dict.fromkeys(("case", "application", "rails", "placement"), pl.String),
    "seed": pl.Int64,
    **dict.fromkeys(("cap_w", "adapters"), pl.Float64),
    "co_scheduled": Optional(pl.String),
    "service_level": _INTEGER,
    "link_share": _NUMBER,
    **dict.fromkeys(("adapters_shared", "interference_utilisation"), pl.Float64),
    **dict.fromkeys(MEASURED, _NUMBER),
    "iterations": pl.Int64,
    "digest": pl.String,
    "neighbours": _NUMBER,
    "neighbour_iterations": _INTEGER,
}
_RANKED: Schema = {
    **dict(zip(KEYS, (pl.String, pl.Int64, pl.String), strict=True)),
    **dict.fromkeys(("iteration_ms", "low_ms", "high_ms", "isolated_ms", "neighbours"), _NUMBER),
}


@dataclass(frozen=True)
class Check:
    """An advice compared with longer simulations of all alternatives, with other seeds."""

    length: str
    seeds: int
    """Seeds of each alternative; the advice was based on none of them."""
    rank: int
    """Place of the advised alternative, 1 for the best."""
    regret: float
    """Time per iteration beyond that of the best alternative, relative; infinite where it has too few iterations."""
    random_regret: float
    """The same for an alternative chosen uniformly at random; the mean."""
    coverage: float
    """The share of these run times within the interval that was given for their alternative."""
    table: pl.DataFrame
    """The alternatives as they were simulated, the best first."""
    runs: pl.DataFrame
    """The simulations."""

    @classmethod
    def of(cls, advised: pl.DataFrame, simulated: pl.DataFrame, runs: pl.DataFrame, length: str, seeds: int) -> "Check":
        """Compare two tables of alternatives, each with the best first; ``runs`` are those of the second."""
        first = advised.row(0, named=True)
        own = simulated.with_row_index("place", 1).filter(pl.all_horizontal(pl.col(key) == first[key] for key in KEYS))
        times = simulated["iteration_ms"].drop_nulls()
        best, time = float(times[0]), own["iteration_ms"].item()
        both = runs.filter(pl.col("link_share").is_not_null()).join(advised, on=KEYS)
        both = both.filter(pl.col("low_ms").is_not_null(), pl.col("run_time_ms").is_not_null())
        within = both["run_time_ms"].is_between(both["low_ms"], both["high_ms"])
        return cls(
            length,
            seeds,
            rank=int(own["place"].item()),
            regret=float("inf") if time is None else float(time) / best - 1,
            random_regret=float((times / best - 1).to_numpy().mean()),
            coverage=float(within.to_numpy().mean()) if both.height else float("nan"),
            table=simulated,
            runs=runs,
        )

    @property
    def best(self) -> str:
        """The best alternative as text."""
        return ", ".join(f"level {key}" if isinstance(key, int) else key for key in self.table.row(0)[: len(KEYS)])


@dataclass(frozen=True, repr=False, kw_only=True)
class Advice(ShippedResults):
    """The ranked alternatives of one application."""

    runs: pl.DataFrame
    """A row for each simulation of the application with two iterations, as ``learn`` takes them."""
    alternatives: pl.DataFrame
    """A row for each alternative, the best first: ``rails``, ``service_level``, ``placement``; ``iteration_ms`` with
    the interval from ``low_ms`` to ``high_ms``; ``isolated_ms`` without neighbours; and ``neighbours``, the change of
    their rates by the application. A model does not predict ``isolated_ms``, and with it ``neighbours`` is there for
    the advised alternative only; a single seed has no interval."""
    check_runs: pl.DataFrame
    """The simulations of the check, if there is one."""
    check_alternatives: pl.DataFrame
    """The alternatives by the check."""

    TABLES = ("runs", "alternatives", "check_runs", "check_alternatives")
    KIND = "advice"
    SCHEMA_VERSION = 2
    SCHEMAS: ClassVar[Mapping[str, Schema]] = dict(zip(TABLES, (_RUNS, _RANKED) * 2, strict=True))
    CSV = "alternatives"
    SAME = (*KEYS, "digest")
    MEASUREMENT = "simulation"

    @cached_property
    def checked(self) -> Check | None:
        """The check of the advice, if that was asked for, is complete, and an alternative has a time in it."""
        if self.meta["partial"] or not self.check_alternatives["iteration_ms"].count():
            return None
        length, seeds = self.meta["check"], len(self.meta["seeds"])
        return Check.of(self.alternatives, self.check_alternatives, self.check_runs, length, seeds)

    @property
    def iterations(self) -> int:
        """The fewest iterations of the application in a simulation."""
        return min(self.runs["iterations"].to_list(), default=0)

    @property
    def neighbour_iterations(self) -> int | None:
        """The fewest of a neighbour: with fewer than three, its change of rate is that of bytes. None without any."""
        return min(self.runs["neighbour_iterations"].drop_nulls().to_list(), default=None)

    @override
    def headline(self) -> str:
        if not self.alternatives["iteration_ms"].count():
            return f"{self.meta['job']}: no alternative completed two iterations"
        best = self.alternatives.row(0, named=True)
        return f"{self.meta['job']}: {name_of(best)}, {seconds(best['iteration_ms'] * 1e-3)} per iteration"


def name_of(row: Mapping[str, Any]) -> str:
    """An alternative as text."""
    return f"rails {row['rails']}, level {row['service_level']}, {row['placement']}"


def ranked(choices: Sequence[Choice], runs: pl.DataFrame, *, alone: bool = False) -> pl.DataFrame:
    """The alternatives by their mean time over the seeds, with the prediction interval for another seed.

    Those that have not done two iterations with every seed have no time, and stand last. ``alone``: there are no
    neighbours.
    """
    rows = []
    for choice in choices if runs.height else ():
        same = runs.filter(rails=choice.rails, placement=choice.placement)
        isolated = same.filter(pl.col("link_share").is_null())
        co_run = isolated if alone else same.filter(service_level=choice.service_level)
        low, middle, high = _interval(co_run)
        others = co_run["neighbours"].cast(pl.Float64).mean()
        times = {"iteration_ms": middle, "low_ms": low, "high_ms": high, "isolated_ms": _interval(isolated)[1]}
        rows.append({**asdict(choice), **times, "neighbours": others})
    return sorted_by_time(rows)


def sorted_by_time(rows: Sequence[Row]) -> pl.DataFrame:
    """The table ``alternatives``: the best first, and last those without a time."""
    return Advice.table("alternatives", rows).sort("iteration_ms", nulls_last=True, maintain_order=True)


def _interval(runs: pl.DataFrame) -> tuple[float | None, float | None, float | None]:
    """The interval of the runs' times; nothing where one has none. Runs with the same results count once."""
    runs = notes.distinct(runs, ("digest",))
    if not runs.height or runs["run_time_ms"].null_count():
        return None, None, None
    return lognormal_interval(runs["run_time_ms"].to_list(), COVERAGE)


def lognormal_interval(values: Sequence[float], coverage: float) -> tuple[float | None, float, float | None]:
    """Prediction interval for one more value: lower end, geometric mean, upper end; a single value has no ends.

    With mean ``m`` and standard deviation ``s`` of ``n`` logarithms the next one is within ``m +- t s sqrt(1 + 1/n)``
    with probability ``coverage``, ``t`` being the quantile of Student's distribution with ``n - 1`` degrees of freedom
    (Student, Biometrika 6, 1908; G. J. Hahn, J. Am. Stat. Assoc. 64, 1969), if they are normally distributed.
    """
    logs, count = [log(value) for value in values], len(values)
    middle = fmean(logs)
    if count < 2:
        return None, exp(middle), None
    half = half_width(stdev(logs) * sqrt(1 + 1 / count), count - 1, coverage)
    return exp(middle - half), exp(middle), exp(middle + half)
