"""Views of the tables of ports and of samples."""

import polars as pl


def by_link(ports: pl.DataFrame) -> pl.DataFrame:
    """One row per port instead of one per port and lane: its own times, and the sums over its lanes."""
    known = ("from_name", "from_port", "to_name", "to_port", "link_name")
    named = [name for name in known if name in ports.columns]
    whole = [
        "from_vertex",
        "to_vertex",
        *named,
        "class",
        "role",
        "from_level",
        "to_level",
        "bandwidth_bps",
        "latency_ps",
    ]
    times = ["port_active_ps", "port_stalled_ps", "port_active_share", "port_stalled_share", "port_idle_share"]
    return (
        ports.group_by("link")
        .agg(
            pl.col(*whole, *times).first(),
            pl.col("bytes", "packets", "queueing_ps", "mean_queue").sum(),
            pl.col("max_queue").max(),
        )
        .sort("link")
    )


def by_role(ports: pl.DataFrame) -> pl.DataFrame:
    """One row per role of a port (host, up, down, local, global, a dimension): sums, and the ports' shares of time."""
    shares = ["port_active_share", "port_stalled_share"]
    return (
        by_link(ports)
        .group_by("role")
        .agg(
            pl.len().alias("ports"),
            pl.col("bytes", "packets", "queueing_ps").sum(),
            pl.col("max_queue").max(),
            pl.col("mean_queue", *shares, "port_idle_share").mean(),
            *(pl.col(share).quantile(0.99).name.prefix("p99_") for share in shares),
            *(pl.col(share).max().name.prefix("max_") for share in shares),
        )
        .sort("role")
    )


def over_time(samples: pl.DataFrame, ports: pl.DataFrame) -> pl.DataFrame:
    """One row per interval and role: bytes, mean queue of a port, and mean and greatest share of time of its ports.

    Ports without a sample in an interval did nothing in it, and count as well.
    """
    shares = ["port_active_share", "port_stalled_share"]
    counts = by_link(ports).group_by("role").agg(pl.len().alias("ports"))
    whole = samples.group_by("from_ps", "to_ps", "role", "link").agg(
        pl.col("bytes", "mean_queue").sum(), pl.col(*shares).first()
    )
    grid = samples.select("from_ps", "to_ps").unique().join(counts, how="cross")
    sums = whole.group_by("from_ps", "to_ps", "role").agg(
        pl.col("bytes", "mean_queue", *shares).sum(), *(pl.col(share).max().name.prefix("max_") for share in shares)
    )
    return (
        grid.join(sums, on=["from_ps", "to_ps", "role"], how="left")
        .with_columns(pl.exclude("from_ps", "to_ps", "role", "ports").fill_null(0))
        .with_columns(pl.col("mean_queue", *shares) / pl.col("ports"))
        .sort("from_ps", "role")
    )
