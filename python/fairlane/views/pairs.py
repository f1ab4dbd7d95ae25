"""Slowdowns of pairs of jobs: how well they are predicted before the jobs run."""

from collections.abc import Iterator, Mapping

import polars as pl

from fairlane.views.model import View
from fairlane.views.tables import Column, Row, Table
from fairlane.wording import percent, plural, significant


def view(pairs: pl.DataFrame, errors: Mapping[str | None, pl.DataFrame], seen: pl.DataFrame) -> View:
    """The errors of each model for held-out applications, by groups, and for those that it was fitted to."""
    mean = significant(pairs.select(pl.col("slowdown").mean()).item())
    return View(
        title="Slowdowns of pairs of jobs",
        headline=f"{plural(pairs.height, 'job')} in pairs, mean slowdown {mean}",
        facts=(),
        parts=list(_tables(errors, seen)),
    )


def _tables(errors: Mapping[str | None, pl.DataFrame], seen: pl.DataFrame) -> Iterator[Table]:
    """The mean errors of each model by groups, for held-out applications; then for those of the training data."""
    title = "Held-out applications (the job's, its neighbour's, or both)"
    for by, of in errors.items():
        yield _table(of, by, title)
        title = ""
    yield _table(seen, None, "Held-out pairs of applications that the models were fitted to")


def _table(errors: pl.DataFrame, by: str | None, title: str) -> Table:
    names = errors["model"].unique(maintain_order=True).to_list()
    rows: list[Row] = []
    for group in errors.partition_by(by) if by else [errors]:
        means = dict(zip(group["model"], map(percent, group["mean_error"]), strict=True))
        rows.append({"what": str(group[by][0]) if by else "mean error", "jobs": group["count"][0], **means})
    if by is None:
        kinds = {
            "90th percentile": map(percent, errors["p90_error"]),
            "bias": (percent(bias, signed=True) for bias in errors["bias"]),
            "rank correlation": (None if rank is None else f"{rank:.2f}" for rank in errors["rank"]),
        }
        rows += [{"what": kind, "jobs": "", **dict(zip(names, values, strict=True))} for kind, values in kinds.items()]
    shown = [Column(by or "all", "what"), Column("jobs", "jobs"), *(Column(name, name) for name in names)]
    return Table(shown, rows, title, sentence=f"{plural(len(names), 'model')}.")
