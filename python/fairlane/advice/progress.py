"""How fast a job goes on, told finely enough that a short simulation says what an alternative costs.

A count of whole iterations is coarse: of ten, a tenth. Marks are not: between the first and the k-th one lie ``k - 1``
iterations, and a time that is known to the picosecond. What comes before the first mark, when queues fill, does not
count. Two runs are compared by the same iterations, which matters where iterations differ, as in a trace. A job that
has marked fewer than ``LEAST`` in either run is known by the bytes on the wire that have come to its hosts, which is
coarse again if it sends in bursts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

__all__ = ["LEAST", "change", "delivered", "pace", "progress"]

LEAST = 3
"""Marks from which on they tell what a job loses."""


def progress(marks: pl.DataFrame, ranks: int) -> dict[str, list[float]]:
    """When each iteration that all ranks have marked was: ``last`` by the slowest rank, ``mean`` over all, ps."""
    whole = (
        marks.group_by("iteration")
        .agg(pl.len().alias("count"), pl.col("at").max().alias("last"), pl.col("at").mean().alias("mean"))
        .filter(pl.col("count") == ranks)
        .sort("iteration")
    )
    return {name: whole[name].cast(pl.Float64).to_list() for name in ("last", "mean")}


def pace(job: Mapping[str, Any], marks: int | None = None) -> float | None:
    """The mean time of an iteration, ps, of all or up to a number of marks; None if there are fewer than two."""
    times = job["last"][:marks]
    return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else None


def delivered(ports: pl.DataFrame, links: pl.DataFrame, hosts: Iterable[int]) -> int:
    """Bytes on the wire that have come to some hosts."""
    into = links.filter(pl.col("to_host").is_in(list(set(hosts)))).select(pl.col("link").cast(pl.UInt32))
    return int(ports.join(into, on="link")["bytes"].sum())


def change(beside: Mapping[str, Any], without: Mapping[str, Any]) -> float | None:
    """What a job's rate changes by, as -0.02 for a loss of two percent; None if it does nothing."""
    common = min(len(beside["mean"]), len(without["mean"]))
    if common >= LEAST:
        slow, fast = (one["mean"][common - 1] - one["mean"][0] for one in (beside, without))
        return float(fast / slow - 1)
    return float(beside["delivered"] / without["delivered"] - 1) if without["delivered"] else None
