"""Runs of Smith et al. 2018 compared with each other: timesteps of one and of many iterations, both cablings."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from fairlane.study.sql import Database

COVERAGE = 0.95
"""Of confidence intervals."""


def lateness(tables: "Database") -> pl.DataFrame:
    """Compare runs with timesteps of one iteration and of many by the measures of the claims; delays of partners.

    A row for each study and measure, with a confidence interval over runs where there is one: of a correlation by
    Fisher's transformation, of a mean by Student's distribution. Timesteps that compute more than others are left out
    of those that are compared.
    """
    rows = [
        {"study": study, "machine": machine, **measure}
        for study, machine in (("runs", "whole"), ("eighth", "eighth"), ("long", "eighth"))
        for measure in _measures(tables, study)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def _measures(tables: "Database", study: str) -> Iterator[dict[str, Any]]:
    from scipy import stats

    runs = _runs(tables, study)
    run, steps = runs["seconds"], runs["steps"].explode()
    iterations, count = int(runs["iterations"][0]), runs.height

    def row(measure: str, value: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
        return {"iterations": iterations, "runs": count, "measure": measure, "value": value, "low": low, "high": high}

    yield row("slowest over fastest run", _ratio(run, 0, 1))
    yield row("90th over 10th percentile of runs", _ratio(run, 0.1, 0.9))
    yield row("slowest over fastest timestep", _ratio(steps, 0, 1))
    yield row("90th over 10th percentile of timesteps", _ratio(steps, 0.1, 0.9))
    computing = (runs["compute_max_s"] / runs["compute_min_s"]).to_numpy()
    yield row("greatest over least compute time", float(computing.max()))
    waiting = (runs["wait_share"] + runs["allreduce_share"]).to_numpy()
    yield row("least share of MPI_Wait and MPI_Allreduce in MPI", float(waiting.min()))
    if count > 3 and runs["groups"].n_unique() > 1:
        r = stats.pearsonr(runs["groups"], run)
        yield row("Pearson r of groups and run time", float(r.statistic), *r.confidence_interval(COVERAGE))
    if "late_share" in runs.columns:
        yield row("share of late partners in blocked time", *_mean(runs["late_share"]))


def _runs(tables: "Database", study: str) -> pl.DataFrame:
    """A row for each run: its time but for the timesteps to warm up, and those of its regular ``steps``, s."""
    return tables.ask(
        f"""WITH steps AS (
            SELECT point, sum(seconds) AS seconds, list(seconds) FILTER (NOT extra) AS steps
            FROM "{study}".own WHERE NOT warmup GROUP BY point
        ) SELECT run.*, seconds, steps FROM "{study}".run run JOIN steps USING (point) ORDER BY point"""
    )


def _ratio(values: pl.Series, low: float, high: float) -> float:
    """The ratio of two quantiles."""
    least, most = np.quantile(values.to_numpy(), (low, high))
    return float(most / least)


def _mean(values: pl.Series) -> tuple[float, float | None, float | None]:
    """Mean and confidence interval; none of a single value."""
    from scipy import stats

    if values.len() < 2:
        return float(values[0]), None, None
    middle, count = float(values.to_numpy().mean()), values.len()
    half = float(stats.t.ppf((1 + COVERAGE) / 2, count - 1) * stats.sem(values.to_numpy()))
    return middle, middle - half, middle + half


def cablings(tables: "Database") -> dict[str, pl.DataFrame]:
    """The same runs on both cablings: ``cablings`` run by run, and ``cabling_ratio``, the mean ratio of their times."""
    default, edison = (_runs(tables, study).select("seed", "seconds") for study in ("runs", "cabling"))
    paired = default.join(edison, on="seed", suffix="_edison").rename({"seed": "run"}).sort("run")
    each = paired.with_columns(ratio=pl.col("seconds_edison") / pl.col("seconds"))
    mean, low, high = _mean(each["ratio"])
    summary = {"runs": each.height, "mean_ratio": mean, "low": low, "high": high}
    return {"cablings": each, "cabling_ratio": pl.DataFrame([summary])}
