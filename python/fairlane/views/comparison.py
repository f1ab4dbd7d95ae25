"""Two results compared job by job: changes with their intervals, what is beyond noise, and what limits it."""

from collections.abc import Iterator, Sequence

from fairlane.core.wording import listed, plural, seconds, with_half_width
from fairlane.study.comparison import LATENCY, Comparison, summary
from fairlane.views.model import View
from fairlane.views.tables import Bad, Column, Estimated, Faint, Good, Row, Table, change, columns

_MOST_KEYS = 8
"""Of scenarios, that are listed where they differ."""
_OVER = {"iterations": "other iterations on the same hosts", "placement": "placements", "seed": "seeds"}


def view(comparison: Comparison) -> View:
    """The changes of jobs from the first to the second result."""
    facts = [f"A: {comparison.first.name}", f"B: {comparison.second.name}"]
    if (mean := comparison.overall) is not None:
        shown = with_half_width(mean.value, mean.low, mean.high, change)
        facts.append(f"Mean of all jobs over {_OVER[comparison.replicates]}: {shown}")
    return View(
        title=f"{comparison.second.name} against {comparison.first.name}",
        headline=summary(comparison),
        facts=facts,
        parts=[_table(comparison)],
        remarks=list(_notes(comparison)),
    )


def _table(comparison: Comparison) -> Table:
    several = [
        Column(name, name, left=True)
        for name in ("condition", "treatment")
        if comparison.table[name].null_count() < comparison.table.height
    ]
    latencies = (comparison.table["of"] == LATENCY).any()
    of = "time per\niteration, or latency" if latencies else "time per\niteration"
    shown = [
        *several,
        Column("job", "name", left=True),
        Column("workload", "workload", left=True, wrap=True),
        *columns(seconds, before=f"A: {of}", after=f"B: {of}"),
        Column("change", Estimated("change", _change)),
        Column("verdict", _verdict, left=True),
    ]
    about = f"Change of throughput, B against A. ±: 95% interval over {_OVER[comparison.replicates]}."
    if latencies:
        about += " Of jobs without iterations: mean message latency; positive where it is lower in B."
    return Table(shown, comparison.table.to_dicts(), note=about, sentence=summary(comparison))


def _change(row: Row) -> str:
    kind = Faint if not row["beyond_noise"] else Good if row["change"] > 0 else Bad
    return kind(with_half_width(row["change"], row["change_low"], row["change_high"], change))


def _verdict(row: Row) -> str | None:
    if row["beyond_noise"] is None:
        return None
    better, worse = ("lower latency", "higher latency") if row["of"] == LATENCY else ("faster", "slower")
    return (better if row["change"] > 0 else worse) if row["beyond_noise"] else "within noise"


def _notes(comparison: Comparison) -> Iterator[str]:
    """Yield the limits of the comparison."""
    if comparison.differs:
        yield f"The scenarios differ in {_several(comparison.differs)}."
    if comparison.points is not None and comparison.points[0] < max(comparison.points):
        common, first, second = comparison.points
        yield f"Compared at the {plural(common, 'point')} that both have; A has {first}, B {second}."
    if comparison.without:
        yield f"Nothing to compare, no iterations or messages in common: {listed(comparison.without)}."
    if comparison.moved:
        moved = f"On other hosts in B: {listed(comparison.moved)}. What other placements would give is not part of"
        yield f"{moved} the intervals; two studies with several placements would show it."
    if comparison.only_in_one:
        yield f"Only in one of the two: {listed(comparison.only_in_one)}."
    if comparison.failed:
        yield f"Failed in one of the two, and not compared: {listed(comparison.failed)}."


def _several(keys: Sequence[str]) -> str:
    """The first keys, and how many more there are."""
    shown = [*keys[:_MOST_KEYS]]
    return listed([*shown, f"{plural(len(keys) - len(shown), 'further key')}"] if len(keys) > len(shown) else shown)
