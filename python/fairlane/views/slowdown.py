"""Models of slowdowns: their errors and coefficients as tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairlane.views.tables import Column, Table, change, columns, fixed
from fairlane.wording import percent

if TYPE_CHECKING:
    from fairlane.scheduler import SlowdownModel

ERRORS = [
    *columns(percent, mean_error="mean\nerror", p90_error="90th\npercentile"),
    Column("bias", "bias", change),
    Column("without\na model", "baseline_error", percent),
]
"""The columns of the errors of a model."""


def model_tables(model: "SlowdownModel") -> Iterator[Table]:
    """The errors and coefficients of each pattern."""
    kinds = model.mix.pattern
    rows: list[dict[str, Any]] = [
        {
            "kind": kind.kind,
            "workload": type(kind.workload).name if kind.workload else None,
            **one.error.model_dump(),
        }
        for kind, one in zip(kinds, model.coefficients, strict=True)
    ]
    yield Table([*columns(kind="pattern", workload="workload", count="jobs"), *ERRORS], rows)
    values = [
        {
            "name": f"{part}: {feature}",
            **{str(at): getattr(one, part)[feature] for at, one in enumerate(model.coefficients)},
        }
        for part in ("own", "neighbours")
        for feature in getattr(model.coefficients[0], part)
    ]
    of_kinds = [Column(kind.kind, str(at), fixed(3)) for at, kind in enumerate(kinds)]
    yield Table([Column("coefficients of the logarithm", "name"), *of_kinds], values)
