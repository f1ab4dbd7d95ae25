"""Models of slowdowns: their errors and coefficients, how well pairs are predicted, and a claim that they decide."""

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from fairlane.core.wording import percent, plural, significant
from fairlane.learn.scheduler.compare import pattern_aware_findings
from fairlane.learn.scheduler.slowdown.model import SlowdownModel
from fairlane.views.model import View
from fairlane.views.tables import Column, Row, Table, change, columns, fixed

ERRORS = [
    *columns(percent, mean_error="mean\nerror", p90_error="90th\npercentile"),
    Column("bias", "bias", change),
    Column("without\na model", "baseline_error", percent),
]
"""The columns of the errors of a model."""


def model_view(model: SlowdownModel) -> View:
    """A model: the errors and coefficients of each pattern."""
    worst = max(coefficients.error.mean_error for coefficients in model.coefficients)
    patterns = plural(len(model.coefficients), "pattern")
    return View(
        title="Model of slowdowns",
        headline=f"Mean errors of up to {percent(worst)} for {patterns}, on held-out snapshots",
        facts=[f"{plural(model.snapshots, 'snapshot')} of {model.fabric['topology']}, seed {model.seed}"],
        parts=list(_tables(model)),
    )


def claim_of(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Whether pattern-aware allocation is as fast as contiguous, and as full as non-contiguous allocation."""
    findings = list(pattern_aware_findings(rows))
    holds = "holds" if all(held for _, held in findings) else "does not hold"
    yield f"\npattern-aware allocation as fast as contiguous and as full as non-contiguous: {holds}"
    for claim, held in findings:
        yield f"  {claim}: {'yes' if held else 'no'}"


def _tables(model: SlowdownModel) -> Iterator[Table]:
    kinds = model.mix.pattern
    rows: list[dict[str, Any]] = [
        {
            "kind": kind.kind,
            "workload": type(kind.workload).name if kind.workload else None,
            **coefficients_of.error.model_dump(),
        }
        for kind, coefficients_of in zip(kinds, model.coefficients, strict=True)
    ]
    said = f"{sum(row['count'] for row in rows):,} jobs."
    yield Table([*columns(kind="pattern", workload="workload", count="jobs"), *ERRORS], rows, sentence=said)
    values = [
        {
            "name": f"{part}: {feature}",
            **{
                str(at): getattr(coefficients_of, part)[feature]
                for at, coefficients_of in enumerate(model.coefficients)
            },
        }
        for part in ("own", "neighbours")
        for feature in getattr(model.coefficients[0], part)
    ]
    of_kinds = [Column(kind.kind, str(at), fixed(3)) for at, kind in enumerate(kinds)]
    said = f"{plural(len(values), 'coefficient')} of each pattern."
    yield Table([Column("coefficients of the logarithm", "name"), *of_kinds], values, sentence=said)


def pairs_view(pairs: pl.DataFrame, errors: Mapping[str | None, pl.DataFrame], seen: pl.DataFrame) -> View:
    """The errors of each model for held-out applications, by groups, and for those that it was fitted to."""
    mean = significant(pairs.select(pl.col("slowdown").mean()).item())
    return View(
        title="Slowdowns of pairs of jobs",
        headline=f"{plural(pairs.height, 'job')} in pairs, mean slowdown {mean}",
        facts=(),
        parts=list(_pairs_tables(errors, seen)),
    )


def _pairs_tables(errors: Mapping[str | None, pl.DataFrame], seen: pl.DataFrame) -> Iterator[Table]:
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
