"""The jobs of a run as a page shows them: hosts, W, the interference matrix, latencies, iterations, calls, power."""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.engine.tables import PS
from fairlane.report.packing import pack, smallest
from fairlane.results.culprit import LostTime, cell_of
from fairlane.results.run import Run
from fairlane.results.views import Interference, iteration_times

Floats = npt.NDArray[np.float64]

MOST_CLUSTERED = 600
"""Jobs up to which the matrix is put in order by similarity."""
MOST_POINTS = 160
"""Points of a job's line of iterations; of more iterations, each point is the mean of some successive ones."""
PER_OCTAVE = 8
"""Buckets of latency in a page, between any two successive powers of two: 32 of the table's buckets each."""
QUANTILES = ("p50", "p90", "p99", "p999")
_BACKGROUND = re.compile(r"background-\d+")


def jobs_of(run: Run) -> dict[str, Any]:
    """By job: name, workload, ranks, hosts, iterations, W and the time per iteration with their intervals."""
    hosts = run.ranks.group_by("job").agg(pl.col("host").unique().sort())
    by_job = dict(zip(hosts["job"], hosts["host"].to_list(), strict=True))
    names = run.jobs["name"].to_list()
    columns = ("workload", "ranks", "iterations", "compute_share", "communication_share", "w", "w_low", "w_high")
    times = [f"seconds_per_iteration{end}" for end in ("", "_low", "_high")]
    return {
        "name": names,
        **{column: run.jobs[column].to_list() for column in (*columns, *times)},
        "few": run.jobs["ten_iterations_ps"].is_not_null().to_list(),
        "hosts": [by_job.get(job, []) for job in run.jobs["job"]],
        "background": [_BACKGROUND.fullmatch(name) is not None for name in names],
        "rank_time_s": (run.jobs["ranks"].cast(pl.Float64) * run.jobs["span_ps"] * PS).to_list(),
    }


def matrix_of(run: Run) -> dict[str, Any]:
    """The interference matrix: cells with queueing delay, s, and an order in which similar jobs are neighbours."""
    matrix = Interference.of(run)
    whole = matrix.others + np.diag(matrix.own)
    victim, aggressor = np.nonzero(whole)
    jobs = smallest(len(matrix.labels))
    return {
        "victim": pack(victim, jobs),
        "aggressor": pack(aggressor, jobs),
        "queueing_s": pack(whole[victim, aggressor], "f32"),
        "order": order_of(matrix.others),
    }


def lost_of(run: Run) -> dict[str, Any] | None:
    """Lost time: names of victims and aggressors in order, and the cells; None without leave-one-out runs."""
    lost = LostTime.of(run)
    if lost is None:
        return None
    cells = [
        {
            "row": row,
            "column": column,
            **cell_of(lost, row, column),
            "certain": bool(lost.certain[row, column]),
            "queueing_s": float(lost.queueing[row, column]),
        }
        for row, column in np.argwhere(np.isfinite(lost.share)).tolist()
    ]
    return {"victims": lost.victims, "aggressors": lost.aggressors, "cells": cells}


def order_of(seconds: Floats) -> list[int]:
    """Rows of a matrix in an order in which those with similar rows and columns are near each other.

    By average linkage of the square roots, with leaves in the best order (Bar-Joseph et al. 2001).
    """
    count = len(seconds)
    if count < 3 or count > MOST_CLUSTERED or not seconds.any():
        return list(range(count))
    from scipy.cluster.hierarchy import leaves_list, linkage

    features = np.sqrt(np.concatenate([seconds, seconds.T], axis=1))
    found: list[int] = leaves_list(linkage(features, "average", optimal_ordering=True)).tolist()
    return found


def latency_of(run: Run) -> dict[str, Any] | None:
    """Quantiles of messages by job and kind with intervals, s, and histograms by job; None without latencies."""
    if run.latency is None or run.latency_histogram is None:
        return None
    number = {name: index for index, name in enumerate(run.jobs["name"])}
    rows = run.latency.filter(of="message")
    values = ["mean_ps", "min_ps", "max_ps", *(f"{name}_ps" for name in QUANTILES)]
    values += [f"{name}_{end}_ps" for name in QUANTILES for end in ("low", "high")]
    table: dict[str, Any] = {"job": [number[name] for name in rows["name"]], "kind": rows["kind"].to_list()}
    table["count"] = rows["count"].to_list()
    table |= {name.removesuffix("_ps"): [_seconds(value) for value in rows[name]] for name in values}
    return {"quantiles": table, "histogram": _histogram(run.latency_histogram.filter(of="message"), number)}


def _seconds(value: float | None) -> float | None:
    return None if value is None else float(f"{value * PS:.5g}")


def _histogram(table: pl.DataFrame, number: dict[str, int]) -> dict[str, Any]:
    """Counts by job and bucket, with the lower bounds of all buckets and the upper one of the last, s."""
    low = np.maximum(table["low_ps"].to_numpy().astype(np.float64), 1.0)
    exponent = np.floor(np.log2(low))
    part = np.floor((low / 2**exponent - 1) * PER_OCTAVE)
    bucket = (exponent * PER_OCTAVE + part).astype(np.int64)
    first = int(bucket.min()) if len(bucket) else 0
    counted = (
        table.with_columns(bucket=pl.Series(bucket - first, dtype=pl.UInt32))
        .group_by("name", "bucket")
        .agg(pl.col("count").sum())
        .sort("name", "bucket")
    )
    buckets = int(bucket.max()) - first + 1 if len(bucket) else 0
    at = np.arange(first, first + buckets + 1)
    bounds = 2.0 ** (at // PER_OCTAVE) * (1 + at % PER_OCTAVE / PER_OCTAVE) * PS
    return {
        "bounds_s": [float(f"{bound:.5g}") for bound in bounds],
        "job": pack([number[name] for name in counted["name"]], smallest(len(number))),
        "bucket": pack(counted["bucket"], "u16"),
        "count": pack(counted["count"], "u32"),
    }


def iterations_of(run: Run) -> list[dict[str, Any]]:
    """By job: times at which iterations were completed, and the time per iteration up to each, s.

    The first iteration is left out, because it includes the start. Of iterations with a timed part the time is that.
    """
    found = []
    for job in run.jobs["job"]:
        rows = run.completions.filter(pl.col("job") == job).sort("iteration")
        if rows.height > MOST_POINTS + 1:
            rows = rows[np.unique(np.linspace(0, rows.height - 1, MOST_POINTS + 1).astype(int))]
        shown = iteration_times(rows).drop_nulls("time_s")
        found.append(
            {
                "iteration": shown["iteration"].to_list(),
                "at_s": [float(f"{at * PS:.6g}") for at in shown["at_ps"]],
                "time_s": [float(f"{value:.5g}") for value in shown["time_s"]],
            }
        )
    return found


def calls_of(run: Run) -> dict[str, Any]:
    """By MPI call and job: the share of the ranks' time; and by job, the waits for late partners and the network."""
    number = {name: index for index, name in enumerate(run.jobs["name"])}
    time = run.jobs["ranks"].cast(pl.Float64).to_numpy() * run.jobs["span_ps"].to_numpy() * PS
    calls: dict[str, list[float]] = {}
    for name, call, seconds in run.calls.select("name", "call", "time_s").iter_rows():
        shares = calls.setdefault(call, [0.0] * len(number))
        shares[number[name]] += seconds / time[number[name]] if time[number[name]] else 0.0
    sums = run.ranks.group_by("job").agg(pl.col("late_partner_ps", "network_ps").sum())
    waits = run.jobs.select("job").join(sums, on="job", how="left", maintain_order="left").fill_null(0)
    shares_of = {
        name: np.divide(waits[f"{name}_ps"].to_numpy() * PS, time, out=np.zeros(len(time)), where=time > 0).tolist()
        for name in ("late_partner", "network")
    }
    used = {call: shares for call, shares in calls.items() if any(shares)}
    ordered = sorted(used.items(), key=lambda item: -sum(item[1]))
    return {"calls": dict(ordered), **shares_of}


def power_of(run: Run) -> dict[str, Any] | None:
    """By job: mean power of its sockets and of the one with the most, W, and their frequencies; None without power."""
    if run.power is None or run.power.is_empty():
        return None
    number = {name: index for index, name in enumerate(run.jobs["name"])}
    rows = run.power.group_by("name", maintain_order=True).agg(
        pl.len().alias("sockets"),
        pl.col("mean_w").mean(),
        pl.col("mean_w").min().alias("min_w"),
        pl.col("mean_w").max().alias("max_w"),
        pl.col("cap_w").max(),
        pl.col("energy_j").sum(),
        pl.col("frequency_share").mean(),
        pl.col("frequency_share").min().alias("min_frequency_share"),
    )
    return {"job": [number[name] for name in rows["name"]], **rows.drop("name").to_dict(as_series=False)}
