"""Views of the ports table."""

from __future__ import annotations

import polars as pl


def by_link(ports: pl.DataFrame) -> pl.DataFrame:
    """One row per port instead of one per port and lane.

    Lanes carry packets one at a time, so active time adds up. Lanes can be stalled at once; a port's stalled time is
    at least that of its most stalled lane, which is what is given here (exact where one lane is in use).
    """
    return (
        ports.group_by("link")
        .agg(
            pl.col("from_vertex", "to_vertex", "class", "level", "bandwidth").first(),
            pl.col("bytes", "packets", "waiting_ps", "active_ps", "active_share").sum(),
            pl.col("stalled_ps", "stalled_share", "max_queue").max(),
        )
        .sort("link")
    )
