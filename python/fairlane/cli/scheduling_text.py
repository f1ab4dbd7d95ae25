"""Schedules, models of slowdowns with their errors, and a criterion, as tables."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from fairlane.scheduler import Comparison, ScheduleMetrics, SlowdownModel, Verification
from fairlane.views.tables import Column, Table, change, columns, fixed
from fairlane.wording import percent


def schedule_table(rows: Mapping[str, ScheduleMetrics]) -> Table:
    """A row for each allocator; what slowdowns do only where there are some."""
    stretched = any(row.mean_slowdown != 1 for row in rows.values())
    use = columns(percent, useful="useful")
    slowed = columns(fixed(3), mean_slowdown="mean run\nslowdown", weighted_slowdown="by hosts'\ntime")
    shown = [
        Column("allocator", "allocator"),
        *columns(str, jobs="jobs", refused="refused"),
        Column("makespan", "makespan", _time),
        Column("utili-\nsation", "utilisation", percent),
        *(use if stretched else []),
        *columns(_time, mean_wait="mean\nwait", median_wait="median\nwait"),
        Column("bounded\nslowdown", "mean_bounded_slowdown", fixed(2)),
        *([*slowed, Column("inter-\nference", "interference", percent)] if stretched else []),
        Column("frag-\nmented", "fragmentation", percent),
    ]
    return Table(shown, [{"allocator": name, **asdict(row)} for name, row in rows.items()])


def verification_table(checked: Mapping[str, Verification]) -> Table:
    """The model's errors on the simulated snapshots."""
    shown = [*columns(allocator="allocator", snapshots="snapshots\nsimulated", count="jobs"), *_errors()]
    rows = [
        {"allocator": name, "snapshots": one.snapshots, "count": 0, **_error(one.error)}
        for name, one in checked.items()
    ]
    return Table(shown, rows)


def claim_lines(found: Comparison) -> Iterator[str]:
    """Whether pattern-aware allocation is as fast as contiguous, and as full as non-contiguous allocation."""
    from fairlane.scheduler.compare import pattern_aware_findings

    findings = list(pattern_aware_findings({name: asdict(row) for name, row in found.metrics.items()}))
    holds = "holds" if all(held for _, held in findings) else "does not hold"
    yield f"\npattern-aware allocation as fast as contiguous and as full as non-contiguous: {holds}"
    for words, held in findings:
        yield f"  {words}: {'yes' if held else 'no'}"


def model_tables(model: SlowdownModel) -> Iterator[Table]:
    """The errors and coefficients of each pattern."""
    kinds = model.mix.pattern
    rows = [
        {"kind": kind.kind, "workload": type(kind.workload).name if kind.workload else None, **_error(one.error)}
        for kind, one in zip(kinds, model.coefficients, strict=True)
    ]
    yield Table([*columns(kind="pattern", workload="workload", count="jobs"), *_errors()], rows)
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


def _errors() -> list[Column]:
    """The columns of the errors of a model."""
    headings = {"mean_error": "mean\nerror", "p90_error": "90th per-\ncentile"}
    return [
        *columns(percent, **headings),
        Column("bias", "bias", change),
        Column("without\na model", "baseline_error", percent),
    ]


def _error(error: Any) -> dict[str, Any]:
    return error.model_dump() if error else {}


def _time(seconds: float) -> str:
    if seconds >= 10 * 86400:
        return f"{seconds / 86400:.1f} d"
    return f"{seconds / 3600:.2f} h" if seconds >= 3600 else f"{seconds:.0f} s"
