"""Where the time of a job's ranks went: computing, waiting for late partners, waiting for the network, other MPI."""

import polars as pl

from fairlane.results.run import Run

PARTS = ("compute", "late partner", "network", "other MPI")
"""What a rank's time consists of."""


def breakdown(run: Run, job: str) -> pl.DataFrame:
    """Seconds of each rank of a job by ``PARTS``, and of all its ``communication``, which are the last three.

    Of a call that the end of the run cuts short, the waits within count and the rest does not.
    """
    second = 1e-12
    other = pl.col("communication") - pl.col("late partner") - pl.col("network")
    return (
        run.ranks.filter(pl.col("name") == job)
        .select(
            "rank",
            (pl.col("compute_ps") * second).alias("compute"),
            (pl.col("communication_ps") * second).alias("communication"),
            (pl.col("late_partner_ps") * second).alias("late partner"),
            (pl.col("network_ps") * second).alias("network"),
        )
        .with_columns(other.clip(0).alias("other MPI"))
    )


def spread(table: pl.DataFrame) -> pl.DataFrame:
    """For ``breakdown``: least, mean, greatest and standard deviation over ranks of each part and of communication."""
    parts = ["compute", "communication", *PARTS[1:]]
    long = table.unpivot(on=parts, variable_name="part", value_name="seconds")
    value = pl.col("seconds")
    return long.group_by("part", maintain_order=True).agg(
        value.mean().alias("mean"),
        value.min().alias("least"),
        value.max().alias("greatest"),
        value.std(ddof=0).alias("deviation"),
    )


def calls(run: Run, job: str) -> pl.DataFrame:
    """The MPI calls of a job, most time first: ``call``, ``count``, ``time_s`` of all ranks, ``share`` of MPI time."""
    return (
        run.calls.filter(pl.col("name") == job)
        .select("call", "count", "time_s")
        .with_columns(share=pl.when(pl.col("time_s").sum() > 0).then(pl.col("time_s") / pl.col("time_s").sum()))
        .sort("time_s", "call", descending=[True, False])
    )


def dominant_share(table: pl.DataFrame) -> float:
    """The share of MPI time that is spent in waits (for one, some or all requests) and in allreduce, for ``calls``."""
    waits = pl.col("call").str.starts_with("wait") | (pl.col("call") == "allreduce")
    return float(table.filter(waits)["share"].sum())
