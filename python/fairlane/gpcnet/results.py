"""Results of the benchmark: a row for each trial, congestion impact factors with intervals, and their folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import TypeAdapter

from fairlane.gpcnet.measure import Trial
from fairlane.gpcnet.plan import TESTS, Plan, divided
from fairlane.results import notes
from fairlane.results.derive import interval
from fairlane.results.schemas import Optional, Schema, types
from fairlane.statistics import of_ratios, over_replicates, spread
from fairlane.tasks.measuring import Measured, StoredMeta, measure_all, provenance
from fairlane.tasks.store import Store
from fairlane.tasks.task import Answer
from fairlane.wording import amount, number, ratio, significant

_MEASURES = ("isolated", "isolated_p99", "congested", "congested_p99", "impact", "impact_p99")
_NUMBER = Optional(pl.Float64)
_SAME = ("transport", "test", "congested", "digest")
"""Columns that are equal in trials of one replicate."""
_SCHEMAS: Mapping[str, Schema] = {
    "trials": {
        **dict.fromkeys(("transport", "test"), pl.String),
        "seed": pl.UInt64,
        "congested": pl.Boolean,
        "unit": pl.String,
        "mean": _NUMBER,
        "p99": _NUMBER,
        "iterations": pl.Int64,
        "samples": pl.Int64,
        "digest": pl.String,
    },
    "impact": {
        **dict.fromkeys(("transport", "test", "unit"), pl.String),
        "replicates": pl.Int64,
        **{f"{name}{end}": _NUMBER for name in _MEASURES for end in ("", "_low", "_high")},
    },
}


class _Stored(StoredMeta):
    """Content of ``gpcnet.json``."""

    hosts: int
    hosts_of_test: int
    ranks_per_host: int
    iterations: int
    message_size: int
    window: int
    warm_up_ps: int
    transports: list[str]
    left_out: dict[str, str]


@dataclass(frozen=True, repr=False, kw_only=True)
class Gpcnet(Measured):
    """Latency, bandwidth and allreduce, isolated and congested, by transport."""

    trials: pl.DataFrame
    """One row per transport, network test, seed and whether there was congestion: mean and 99th percentile."""
    impact: pl.DataFrame
    """One row per transport and network test: isolated, congested and the impact factor, means over seeds."""

    TABLES = ("trials", "impact")
    KIND = "gpcnet"
    SCHEMA_VERSION = 2
    SCHEMAS = _SCHEMAS
    META = TypeAdapter(_Stored)
    CSV = ("impact", "impact.csv")

    @classmethod
    def of(cls, answers: Iterable[tuple[Trial, Answer]], meta: Mapping[str, Any]) -> Gpcnet:
        """The tables of what was measured."""
        rows = [
            {
                "transport": trial.transport,
                "test": trial.test.name,
                "seed": trial.seed,
                "congested": trial.congested,
                "unit": trial.test.unit,
                **answer,
            }
            for trial, answer in answers
        ]
        trials = pl.DataFrame(rows, schema=types(_SCHEMAS["trials"]))
        pairs = trials.unique(["transport", "test"], maintain_order=True).select("transport", "test")
        impact = [_impact(trials, transport, test) for transport, test in pairs.iter_rows()]
        return cls(trials=trials, impact=pl.DataFrame(impact, schema=types(_SCHEMAS["impact"])), meta=meta)

    def repeated(self) -> list[str]:
        """Say which trials repeat another one of the same kind; nothing if none does."""
        return notes.repeated(self.trials, _SAME, ["assignments of hosts"], "trial")

    def headline(self) -> str:
        """The largest mean impact factor, of the best and the worst transport, in a line."""
        largest = self.impact.group_by("transport").agg(pl.col("impact").max()).drop_nulls().sort("impact")
        ends = [f"{significant(value, 2)} with {name}" for name, value in largest.iter_rows()]
        if not ends:
            return "No congestion impact factor was measured"
        return f"Congestion impact factors: mean up to {' and '.join(dict.fromkeys([ends[-1], ends[0]]))}"


def _impact(trials: pl.DataFrame, transport: str, test: str) -> dict[str, Any]:
    """The row of a transport and a network test, over the seeds that have both trials."""
    own = trials.filter((pl.col("transport") == transport) & (pl.col("test") == test)).drop_nulls("mean")
    alone, together = (own.filter(pl.col("congested") == congested) for congested in (False, True))
    both = alone.join(together, on="seed", suffix="_congested", maintain_order="left")
    pairs = notes.distinct(both, ("digest", "digest_congested"))
    network_test = TESTS[test]
    row: dict[str, Any] = {"transport": transport, "test": test, "unit": network_test.unit, "replicates": pairs.height}
    for measure, end in (("mean", ""), ("p99", "_p99")):
        for name, kind in (("isolated", ""), ("congested", "_congested")):
            values = notes.distinct(both, (f"digest{kind}",))[f"{measure}{kind}"].to_list()
            row |= interval(f"{name}{end}", over_replicates([[value] for value in values]))
        factors = [network_test.impact(*pair) for pair in pairs.select(measure, f"{measure}_congested").iter_rows()]
        row |= interval(f"impact{end}", of_ratios(factors))
    return row


def written(found: Gpcnet) -> list[dict[str, Any]]:
    """The rows of ``impact`` with ``text``: each measure with its interval, as the terminal and the page show it."""
    rows = []
    for row in found.impact.iter_rows(named=True):
        own = found.trials.filter(pl.col("transport") == row["transport"], pl.col("test") == row["test"])
        text = {}
        for name in _MEASURES:
            value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
            measure = "p99" if name.endswith("_p99") else "mean"
            values = own.filter(pl.col("congested") == name.startswith("congested"))[measure].drop_nulls().to_list()
            if value is None:
                text[name] = "–"
            elif name.startswith("impact"):
                text[name] = ratio(value, low, high, lambda factor: f"{number(factor)}X")
            else:
                text[name] = amount(value, low, high, number, spread(values))
        rows.append({**row, "text": text})
    return rows


def opened(plan: Plan, started: datetime, out: Path | None, *, resume: bool) -> Store:
    """The folder of a benchmark: a new one, or with ``resume`` one that is there, by default the latest unfinished one.

    Raises ``ResultsError`` if the folder is of something else.
    """
    return Gpcnet.opened("gpcnet", plan, started, out, code="fairlane.gpcnet.measure", resume=resume)


def benchmark(plan: Plan, *, store: Store | None = None, progress: bool = False) -> Gpcnet:
    """Runs every network test, isolated and congested; ``progress`` is shown on standard error.

    What ``store`` has answers of is not simulated, and new answers go there. Ctrl-C ends it; what is complete is kept,
    and ``partial`` is set. Raises ``ScenarioError`` or ``RunError`` if a simulation cannot be built or cannot continue.
    """
    trials = [
        Trial(plan, transport, test, congested, seed)
        for transport in plan.transports
        for test in TESTS.values()
        for seed in plan.seeds
        for congested in (False, True)
    ]
    found = measure_all(trials, plan.workers, store, progress=progress)
    meta = provenance(
        plan,
        store,
        partial=len(found) < len(trials),
        hosts=plan.hosts,
        hosts_of_test=divided(plan.hosts)[0],
        transports=list(plan.transports),
        left_out=dict(plan.left_out),
    )
    return Gpcnet.of(found, meta)
