"""Stretches of a run's time: the iterations of a job, and the rounds between its collectives; fastest and slowest."""

from dataclasses import dataclass

import polars as pl

from fairlane.analysis.record import Record


@dataclass(frozen=True)
class Span:
    """A stretch of a run."""

    name: str
    """What it is called: "fastest", "slowest", "whole run"."""
    iteration: int | None
    """The iteration, from 1; None if it is not one."""
    from_ps: int
    """From when the first rank was in it."""
    to_ps: int
    """Until when the last rank was done with it."""
    seconds: float
    """How long it took, s: from when the slowest rank was done with the one before."""
    round: int | None = None
    """Which round of the iteration, from 1, if it is one."""


def spans(iterations: pl.DataFrame) -> pl.DataFrame:
    """When each iteration of a job was and how long it took: ``iteration``, ``from_ps``, ``to_ps``, ``seconds``.

    An iteration takes from when the last rank has marked the one before until the last rank has marked it; ``from_ps``
    is when the first rank had marked the one before. The first iteration has none before, and is left out, as are
    those that not all ranks have marked.

    Args:
        iterations: Rows of one job of a run's table ``iterations``.
    """
    ranks = iterations["rank"].n_unique()
    marked = (
        iterations.group_by("iteration")
        .agg(pl.len().alias("ranks"), pl.col("at_ps").cast(pl.Int64).min().alias("first"), _last())
        .filter(pl.col("ranks") == ranks)
        .sort("iteration")
    )
    before = pl.col("iteration").cast(pl.Int64).diff() == 1
    return (
        marked.with_columns(pl.col("first", "last").shift(1).name.prefix("before_"))
        .filter(before)
        .select(
            pl.col("iteration").cast(pl.Int64),
            pl.col("before_first").alias("from_ps"),
            pl.col("last").alias("to_ps"),
            ((pl.col("last") - pl.col("before_last")) * 1e-12).alias("seconds"),
        )
    )


def _last() -> pl.Expr:
    return pl.col("at_ps").cast(pl.Int64).max().alias("last")


def extremes(found: pl.DataFrame) -> list[Span]:
    """The fastest and the slowest of some ``spans``, the first among equals; only the one if there is only one."""
    if found.is_empty():
        return []
    order = found.sort("seconds", "iteration")
    slowest = order.filter(pl.col("seconds") == pl.col("seconds").max()).row(0, named=True)
    if order.height == 1:
        return [Span("only", **slowest)]
    return [Span("fastest", **order.row(0, named=True)), Span("slowest", **slowest)]


def rounds(record: Record) -> pl.DataFrame:
    """The rounds of a record, from the end of one collective to the end of the next, with the columns of ``spans``.

    A round lasts from when the last rank has everything of a collective until the last rank has everything of the next;
    ``from_ps`` is when the first rank has everything of the one before. ``iteration`` counts the rounds, from 1. Only
    collectives with point-to-point messages before them count, so there may be no round.
    """
    ordered = record.messages.filter(pl.col("sent_at_ps") >= record.from_ps).sort("from_rank", "sent_at_ps", "message")
    opens = pl.col("collective") & ~pl.col("collective").shift(1).over("from_rank").fill_null(value=True)
    numbered = ordered.with_columns(iteration=opens.cast(pl.Int64).cum_sum().over("from_rank"))
    ranks = ordered["from_rank"].n_unique()
    ends = (
        numbered.filter("collective")
        .group_by("iteration", "to_rank")
        .agg(pl.col("received_at_ps").max(), pl.col("received_at_ps").null_count().alias("missing"))
        .group_by("iteration")
        .agg(
            pl.len().alias("ranks"),
            pl.col("missing").sum(),
            pl.col("received_at_ps").min().alias("first"),
            pl.col("received_at_ps").max().alias("last"),
        )
        .filter(pl.col("iteration") > 0, pl.col("ranks") == ranks, pl.col("missing") == 0)
        .sort("iteration")
    )
    before = [pl.col(name).shift(1).fill_null(record.from_ps).alias(f"before_{name}") for name in ("first", "last")]
    lasts = ((pl.col("last") - pl.col("before_last")) * 1e-12).alias("seconds")
    to_ps = (pl.col("last") + 1).alias("to_ps")  # the wait for the last message ends with it
    return ends.with_columns(before).select("iteration", pl.col("before_first").alias("from_ps"), to_ps, lasts)
