"""The iterations of a job as stretches of the run's time: how long each took, which was fastest, which slowest."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

__all__ = ["Period", "extremes", "periods"]


@dataclass(frozen=True)
class Period:
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
    """How long the iteration took, s: from when the slowest rank was done with the one before."""


def periods(iterations: pl.DataFrame) -> pl.DataFrame:
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


def extremes(found: pl.DataFrame) -> list[Period]:
    """The fastest and the slowest of some ``periods``, the first among equals; only the one if there is only one."""
    if found.is_empty():
        return []
    order = found.sort("seconds", "iteration")
    slowest = order.filter(pl.col("seconds") == pl.col("seconds").max()).row(0, named=True)
    if order.height == 1:
        return [Period("only", **slowest)]
    return [Period("fastest", **order.row(0, named=True)), Period("slowest", **slowest)]
