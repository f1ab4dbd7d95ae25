"""Views of the ports table."""

from __future__ import annotations

import polars as pl


def by_link(ports: pl.DataFrame) -> pl.DataFrame:
    """One row per port instead of one per port and lane: its own times, and the sums over its lanes."""
    whole = ["from_vertex", "to_vertex", "class", "from_level", "to_level", "bandwidth", "latency_ps"]
    times = ["port_active_ps", "port_stalled_ps", "port_active_share", "port_stalled_share"]
    return (
        ports.group_by("link")
        .agg(
            pl.col(*whole, *times).first(),
            pl.col("bytes", "packets", "waiting_ps").sum(),
            pl.col("max_queue").max(),
        )
        .sort("link")
    )
