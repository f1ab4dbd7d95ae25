"""What one simulation tells of a job: where its time goes, its messages, and how busy links are.

Alone, this is all that the model of run times knows of an application, and of its neighbours. The numbers are plain:
picoseconds, bytes and shares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from fairlane import _core
    from fairlane.engine.measured import Measured

__all__ = ["extract_features", "link_utilisation"]

_POINT_TO_POINT = ("send", "isend", "recv", "irecv", "probe", "wait", "wait_all", "wait_any", "wait_some")
_ONE_SIDED = (
    *("put", "get", "accumulate", "get_accumulate", "compare_and_swap"),
    *("win_lock", "win_unlock", "win_lock_all", "win_unlock_all", "win_flush"),
    *("win_post", "win_start", "win_complete", "win_wait"),
)


def extract_features(measured: Measured, job: int) -> dict[str, float]:
    """Means over a job's ranks, and the share of collectives in its time in calls.

    ``computing``, ``network`` and ``late_partner`` are ps, the last two of waiting; ``messages`` and ``bytes`` are what
    a rank has sent.
    """
    ranks = measured.ranks.filter(pl.col("job") == job)
    kept = {
        "computing": "compute",
        "network": "network",
        "late_partner": "late_partner",
        "messages": "messages_sent",
        "bytes": "bytes_sent",
    }
    means = ranks.select(pl.col(column).cast(pl.Float64).mean().alias(name) for name, column in kept.items())
    calls = measured.calls.filter(pl.col("job") == job)
    whole = float(calls["time"].sum())
    collective = float(calls.filter(~pl.col("call").is_in(_POINT_TO_POINT + _ONE_SIDED))["time"].sum())
    return {**means.row(0, named=True), "collective_share": collective / whole if whole else 0.0}


def link_utilisation(measured: Measured, fabric: _core.Fabric, span: int) -> dict[str, float]:
    """How busy links were over ``span`` ps.

    The busiest of a host, the busiest between switches, and the mean of all between switches that carried anything.
    """
    from fairlane.engine.measured import frame

    links = frame(fabric.links())
    of_host = (pl.col("from_host") >= 0) | (pl.col("to_host") >= 0)
    busy = (
        measured.ports.group_by("link")
        .agg(pl.col("port_active").first())
        .join(links.select(pl.col("link").cast(pl.UInt32), of_host=of_host), on="link")
        .filter(pl.col("port_active") > 0)
        .with_columns(share=pl.col("port_active") / span)
    )
    hosts, between = busy.filter("of_host")["share"], busy.filter(~pl.col("of_host"))["share"]
    return {
        "host_utilisation": _number(hosts.max()),
        "switch_utilisation": _number(between.max()),
        "mean_switch_utilisation": _number(between.mean()),
    }


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
