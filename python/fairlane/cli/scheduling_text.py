"""How a log went, how a model of slowdowns did, and a claim, as tables."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from rich.box import SIMPLE_HEAD
from rich.table import Table

from fairlane.results.text import percent
from fairlane.scheduler import Comparison, ScheduleMetrics, SlowdownModel, Verification

__all__ = ["claim_lines", "model_tables", "schedule_table", "verification_table"]


def schedule_table(rows: Mapping[str, ScheduleMetrics]) -> Table:
    """A row for each allocator; what slowdowns do only where there are some."""
    stretched = any(row.mean_slowdown != 1 for row in rows.values())
    table = _table(
        "allocator",
        "jobs",
        "refused",
        "makespan",
        "utili-\nsation",
        *(("of use",) if stretched else ()),
        "mean\nwait",
        "median\nwait",
        "bounded\nslowdown",
        *(("mean run\nslowdown", "by hosts'\ntime", "inter-\nference") if stretched else ()),
        "frag-\nmented",
    )
    for name, row in rows.items():
        slowed = (f"{row.mean_slowdown:.3f}", f"{row.weighted_slowdown:.3f}", percent(row.interference))
        table.add_row(
            name,
            str(row.jobs),
            str(row.refused),
            _time(row.makespan),
            percent(row.utilisation),
            *((percent(row.useful),) if stretched else ()),
            _time(row.mean_wait),
            _time(row.median_wait),
            f"{row.mean_bounded_slowdown:.2f}",
            *(slowed if stretched else ()),
            percent(row.fragmentation),
        )
    return table


def verification_table(checked: Mapping[str, Verification]) -> Table:
    """How far the model was off at the moments that were simulated."""
    headings = ("moments\nsimulated", "jobs", "mean\nerror", "a tenth\nabove", "bias", "without\na model")
    table = _table("allocator", *headings)
    for name, one in checked.items():
        if one.error is None:
            table.add_row(name, "0", "0", *["–"] * 4)
            continue
        error = one.error
        shares = (percent(error.mean), percent(error.worst_tenth), percent(error.bias, signed=True))
        table.add_row(name, str(one.moments), str(error.jobs), *shares, percent(error.without))
    return table


def claim_lines(found: Comparison) -> Iterator[str]:
    """The claim of Yang et al.: paper, measured, holds."""
    from fairlane.reproduce.claims import claims_of
    from fairlane.reproduce.report import HOLDS
    from fairlane.reproduce.yang2016.schedules import pattern_aware_findings

    claim = claims_of("yang2016", "yang.pattern-aware")[0]
    findings = list(pattern_aware_findings({name: asdict(row) for name, row in found.metrics.items()}))
    yield f"\n{claim.id} (Yang et al. 2016, {claim.where}): {HOLDS[all(held for _, held in findings)]}"
    yield f"  paper     {claim.claim}"
    for words, held in findings:
        yield f"  measured  {words}: {'yes' if held else 'no'}"


def model_tables(model: SlowdownModel) -> Iterator[Table]:
    """What a model says of each pattern, and how far it was off."""
    table = _table("pattern", "workload", "jobs", "mean\nerror", "a tenth\nabove", "bias", "without\na model")
    for share, one in zip(model.mix.pattern, model.coefficients, strict=True):
        from fairlane.workload.registry import name_of

        error = one.error
        table.add_row(
            share.kind,
            name_of(share.workload) if share.workload else "–",
            str(error.jobs),
            percent(error.mean),
            percent(error.worst_tenth),
            percent(error.bias, signed=True),
            percent(error.without),
        )
    yield table
    first = model.coefficients[0]
    table = _table("coefficients of the logarithm", *(share.kind for share in model.mix.pattern))
    for part in ("own", "neighbours"):
        for feature in getattr(first, part):
            values = (f"{getattr(one, part)[feature]:.3f}" for one in model.coefficients)
            table.add_row(f"{part}: {feature}", *values)
    yield table


def _table(first: str, *headings: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _time(seconds: float) -> str:
    if seconds >= 10 * 86400:
        return f"{seconds / 86400:.1f} d"
    return f"{seconds / 3600:.2f} h" if seconds >= 3600 else f"{seconds:.0f} s"
