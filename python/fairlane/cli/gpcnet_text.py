"""What the terminal shows of GPCNeT: the tables of the benchmark, for each transport."""

from collections.abc import Iterator

import polars as pl

from fairlane.cli.options import stored
from fairlane.cli.tables import Column, Part, Row, Table, fixed, long, time_ps, with_interval
from fairlane.gpcnet.network_tests import TESTS
from fairlane.gpcnet.results import Gpcnet
from fairlane.statistics import COVERAGE
from fairlane.wording import plural, some

_SECTIONS = {
    "Isolated Network Tests": "isolated",
    "Network Tests running with Congestion Tests": "congested",
}


def gpcnet_parts(found: Gpcnet) -> Iterator[Part]:
    """Three tables for each transport, with the names and units of the benchmark, then what they are."""
    meta = found.meta
    ranks, tested = meta["ranks_per_host"], meta["hosts_of_test"]
    yield f"GPCNeT with {meta['hosts'] * ranks} ranks on {plural(meta['hosts'], 'host')}"
    share = plural(ranks, "rank")
    yield f"  {tested} hosts with Network Tests, {meta['hosts'] - tested} with Congestion Tests, {share} per host"
    for (transport,), of_transport in found.impact.group_by("transport", maintain_order=True):
        rows = of_transport.to_dicts()
        for title, key in _SECTIONS.items():
            yield Table([_NAME, *_columns(key, ""), Column("Units", "unit", left=True)], rows, f"{transport}: {title}")
        yield Table([_NAME, *_columns("impact", "X")], rows, f"{transport}: Congestion Impact Factor")
    yield ""
    yield from (long(line, "dim") for line in _remarks(found))
    yield from stored(found.folder)


def _title(row: Row) -> str:
    return TESTS[row["test"]].title


_NAME = Column("Name", _title)


def _columns(key: str, unit: str) -> list[Column]:
    """Mean and 99th percentile with their intervals."""
    form = fixed(1, unit)
    return [Column("Avg", with_interval(key, form)), Column("99%", with_interval(f"{key}_p99", form))]


def _remarks(found: Gpcnet) -> Iterator[str]:
    """What the columns are, and what is weak about the figures."""
    meta = found.meta
    yield (
        f"Avg, 99%: of the iterations of all ranks; of a bandwidth, 99% of the iterations reach it. "
        f"±: {COVERAGE:.0%} over {plural(len(meta['seeds']), 'random assignment')} of hosts."
    )
    if len(meta["seeds"]) < 3:
        yield "Fewer than three replicates give no confidence interval: use --replicates 3 or more."
    few = found.trials.filter(pl.col("iterations") < _wanted(meta["iterations"]))
    if few.height:
        names = [f"{row['transport']} {row['test']}" for row in few.unique(["transport", "test"]).to_dicts()]
        after = time_ps(meta["duration_ps"])
        yield f"Ended after {after} with fewer iterations: {some(sorted(names), 6)}. Use a longer --duration."
    if meta["partial"]:
        yield "Interrupted: replicates without both an isolated and a congested measurement are left out."


def _wanted(iterations: int) -> pl.Expr:
    """The iterations that a trial should have."""
    return pl.col("test").replace_strict({name: test.iterations(iterations) for name, test in TESTS.items()})
