"""What a sweep of loads measured: a row for each load and seed, a row for each load, and where they are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import polars as pl
from pydantic import TypeAdapter

from fairlane.results import notes
from fairlane.results.derive import interval
from fairlane.results.latency import QUANTILES, summarize
from fairlane.results.schemas import Optional, Schema
from fairlane.saturation.measure import Measurement, Replicate
from fairlane.saturation.plan import Plan
from fairlane.statistics import FEWEST, independent
from fairlane.tasks.measuring import Measured, StoredMeta, measure_all, provenance
from fairlane.tasks.store import Store

ACCEPTED_IN_FULL = 0.97
"""A load is saturated if less than this part of what is generated is delivered."""
FEW = 1000
"""Messages at a load below which its figures are rough."""

Verdict = Literal["yes", "no", "undecided"]


_LATENCIES = [
    f"{of}_{name}" for of in ("message", "packet") for name in ("count", "mean_ps", *(f"{q}_ps" for q in QUANTILES))
]
_TYPES = {name: pl.Int64 if name.endswith("count") else pl.Float64 for name in _LATENCIES}
_SHARES = {"offered": pl.Float64, "accepted": pl.Float64, "links": pl.Float64}
_RUN = {"load": pl.Float64, "seed": pl.UInt64, **_SHARES, **_TYPES, "digest": pl.String}
_SAME = ("load", "digest")
"""What the runs have in common that are one replicate."""
_INTERVALS = ("accepted", *(name for name in _LATENCIES if not name.endswith("count")))
_POINT = {
    "load": pl.Float64,
    "seeds": pl.Int64,
    "replicates": pl.Int64,
    **_SHARES,
    **{f"{name}_{end}": pl.Float64 for name in _INTERVALS for end in ("low", "high")},
    "ratio": pl.Float64,
    "ratio_low": pl.Float64,
    "ratio_high": pl.Float64,
    "saturated": pl.String,
    **_TYPES,
}
_EMPTY = {*_LATENCIES, *(name for name in _POINT if name.endswith(("_low", "_high"))), "ratio"}
"""Columns that may have no value: no message was delivered, or there is one seed."""
_SCHEMAS: Mapping[str, Schema] = {
    table: {name: Optional(kind) if name in _EMPTY else kind for name, kind in columns.items()}
    for table, columns in (("runs", _RUN), ("points", _POINT))
}


class _Stored(StoredMeta):
    """What ``saturation.json`` holds."""

    warm_up_ps: int
    loads: list[float]


@dataclass(frozen=True, repr=False, kw_only=True)
class Saturation(Measured):
    """Accepted throughput and latency by offered load."""

    runs: pl.DataFrame
    """One row per load and seed."""
    points: pl.DataFrame
    """One row per load: means over seeds with their intervals, quantiles of the histograms of all seeds together."""

    TABLES = ("runs", "points")
    KIND = "saturation"
    SCHEMA_VERSION = 3
    SCHEMAS = _SCHEMAS
    META = TypeAdapter(_Stored)
    CSV = ("points", "points.csv")

    @classmethod
    def of(cls, replicates: Iterable[Replicate], meta: Mapping[str, Any]) -> Saturation:
        """The tables of what was measured."""
        ordered = sorted(replicates, key=lambda replicate: (replicate.load, replicate.seed))
        runs = pl.DataFrame([_run(replicate) for replicate in ordered], schema=_RUN, infer_schema_length=None)
        by_load = groupby(ordered, key=lambda replicate: replicate.load)
        rows = [_point(load, list(of_load), runs.filter(pl.col("load") == load)) for load, of_load in by_load]
        points = pl.DataFrame(rows, schema=_POINT, infer_schema_length=None)
        return cls(runs=runs, points=points, meta=meta)

    def saturation(self) -> tuple[float | None, float | None]:
        """The greatest load accepted in full below which all are, and the least that is saturated; None without one."""
        full: float | None = None
        for row in self.points.iter_rows(named=True):
            if row["saturated"] == "yes":
                return full, row["load"]
            if row["saturated"] == "no":
                full = row["load"]
        return full, None

    def repeated(self) -> list[str]:
        """That runs repeat another one of the same load, in a sentence; nothing if none does."""
        return notes.repeated(self.runs, _SAME, ["seeds"])

    def headline(self) -> str:
        """Where saturation lies, in a line."""
        full, saturated = self.saturation()
        head = "No load is accepted in full" if full is None else f"All offered load is accepted up to load {full:g}"
        if saturated is not None:
            return f"{head}, saturated from {saturated:g} on"
        undecided = self.points.filter((pl.col("saturated") == "undecided") & (pl.col("load") > (full or 0)))
        return f"{head}, undecided above" if undecided.height else f"{head}: not saturated"


def _run(replicate: Replicate) -> dict[str, Any]:
    head = {"load": replicate.load, "seed": replicate.seed, **{name: getattr(replicate, name) for name in _SHARES}}
    return {**head, **_latencies(replicate.exact, replicate.histogram), "digest": replicate.digest}


def _latencies(exact: pl.DataFrame, histogram: pl.DataFrame) -> dict[str, Any]:
    """Count, mean and quantiles of messages and packets; null where there are none."""
    found: dict[str, Any] = dict.fromkeys(_LATENCIES)
    for row in summarize(exact, histogram, ("of",)).iter_rows(named=True):
        of = row["of"]
        found |= {f"{of}_count": row["count"], f"{of}_mean_ps": row["mean"]}
        found |= {f"{of}_{name}_ps": float(row[name]) for name in QUANTILES}
    return found


def _point(load: float, every: Sequence[Replicate], runs: pl.DataFrame) -> dict[str, Any]:
    replicates, runs = list({one.digest: one for one in every}.values()), notes.distinct(runs, _SAME)
    merged = _latencies(
        pl.concat([replicate.exact for replicate in replicates]),
        pl.concat([replicate.histogram for replicate in replicates]),
    )
    row: dict[str, Any] = {"load": load, "seeds": len(every), "replicates": len(replicates), **merged}
    row |= {name: runs[name].mean() for name in _SHARES}
    for name in _INTERVALS:
        # A quantile of few messages is that of the few largest: it has no interval.
        of, _, quantile = name.removesuffix("_ps").partition("_")
        few = FEWEST / (1 - QUANTILES[quantile]) if quantile in QUANTILES else 0.0
        counts = runs[f"{of}_count"].fill_null(0).to_list() if few else []
        found = None if any(count < few for count in counts) else independent(runs[name].drop_nulls().to_list())
        row[f"{name}_low"], row[f"{name}_high"] = (found.low, found.high) if found else (None, None)
    ratios = [replicate.accepted / replicate.offered for replicate in replicates if replicate.offered > 0]
    row |= interval("ratio", independent(ratios))
    exact = len(replicates) == 1 < len(every)  # seeds change nothing: the ratio has no uncertainty
    ends = (row["ratio"], row["ratio"]) if exact else (row["ratio_low"], row["ratio_high"])
    row["saturated"] = _verdict(*ends)
    return row


def _verdict(low: float | None, high: float | None) -> Verdict:
    """Whether accepted over generated is below the limit; undecided where its interval has the limit in it."""
    if low is None or high is None or low < ACCEPTED_IN_FULL <= high:
        return "undecided"
    return "yes" if high < ACCEPTED_IN_FULL else "no"


def opened(plan: Plan, started: datetime, out: Path | None, *, resume: bool) -> Store:
    """The folder of a sweep: a new one, or with ``resume`` one that is there, by default the latest unfinished one.

    Raises ``ScenarioError`` if the plan cannot be simulated, ``ResultsError`` if the folder is of something else.
    """
    plan.check()
    return Saturation.opened("sweep", plan, started, out, code="fairlane.saturation.measure", resume=resume)


def sweep(plan: Plan, *, store: Store | None = None, progress: bool = False) -> Saturation:
    """Simulates every load on every seed; ``progress`` is shown on standard error.

    What ``store`` has answers of is not simulated, and new answers go there. Ctrl-C ends it; what is complete is kept,
    and ``partial`` is set. Raises ``ScenarioError`` or ``RunError`` if a simulation cannot be built or cannot continue.
    """
    tasks = [Measurement(plan, load, seed) for load in plan.loads for seed in plan.seeds]
    answers = measure_all(tasks, plan.workers, store, progress=progress)
    found = [task.replicate(answer) for task, answer in answers]
    partial = len(found) < len(tasks)
    return Saturation.of(found, provenance(plan, store, partial=partial, loads=list(plan.loads)))
