"""Models of slowdowns: their errors and coefficients, and a claim on allocation that they decide."""

from collections.abc import Iterator, Mapping
from typing import Any

from fairlane.scheduler.compare import pattern_aware_findings
from fairlane.scheduler.slowdown.model import SlowdownModel
from fairlane.views.model import View
from fairlane.views.tables import Column, Table, change, columns, fixed
from fairlane.wording import percent, plural

ERRORS = [
    *columns(percent, mean_error="mean\nerror", p90_error="90th\npercentile"),
    Column("bias", "bias", change),
    Column("without\na model", "baseline_error", percent),
]
"""The columns of the errors of a model."""


def view(model: SlowdownModel) -> View:
    """A model: the errors and coefficients of each pattern."""
    worst = max(one.error.mean_error for one in model.coefficients)
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
    for words, held in findings:
        yield f"  {words}: {'yes' if held else 'no'}"


def _tables(model: SlowdownModel) -> Iterator[Table]:
    kinds = model.mix.pattern
    rows: list[dict[str, Any]] = [
        {
            "kind": kind.kind,
            "workload": type(kind.workload).name if kind.workload else None,
            **one.error.model_dump(),
        }
        for kind, one in zip(kinds, model.coefficients, strict=True)
    ]
    said = f"{sum(row['count'] for row in rows):,} jobs."
    yield Table([*columns(kind="pattern", workload="workload", count="jobs"), *ERRORS], rows, sentence=said)
    values = [
        {
            "name": f"{part}: {feature}",
            **{str(at): getattr(one, part)[feature] for at, one in enumerate(model.coefficients)},
        }
        for part in ("own", "neighbours")
        for feature in getattr(model.coefficients[0], part)
    ]
    of_kinds = [Column(kind.kind, str(at), fixed(3)) for at, kind in enumerate(kinds)]
    said = f"{plural(len(values), 'coefficient')} of each pattern."
    yield Table([Column("coefficients of the logarithm", "name"), *of_kinds], values, sentence=said)
