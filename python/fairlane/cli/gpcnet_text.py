"""What the terminal shows of GPCNeT: the tables of the benchmark, for each transport."""

from collections.abc import Iterator

import polars as pl

from fairlane.cli.options import stored
from fairlane.cli.tables import Column, Part, Row, Table, long, time_ps
from fairlane.gpcnet.network_tests import TESTS
from fairlane.gpcnet.results import Gpcnet, written
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
    every = written(found)
    for transport in dict.fromkeys(row["transport"] for row in every):
        rows = [row for row in every if row["transport"] == transport]
        for title, key in _SECTIONS.items():
            yield Table([_NAME, *_columns(key), Column("Units", "unit", left=True)], rows, f"{transport}: {title}")
        yield Table([_NAME, *_columns("impact")], rows, f"{transport}: Congestion Impact Factor")
    yield ""
    yield from (long(line, "dim") for line in _remarks(found))
    yield from stored(found.folder)


def _title(row: Row) -> str:
    return TESTS[row["test"]].title


_NAME = Column("Name", _title)


def _columns(key: str) -> list[Column]:
    """Mean and 99th percentile with their intervals."""
    return [Column("Avg", lambda row: row["text"][key]), Column("99%", lambda row: row["text"][f"{key}_p99"])]


def _remarks(found: Gpcnet) -> Iterator[str]:
    """What the columns are, and what is weak about the figures."""
    meta = found.meta
    yield (
        f"Avg, 99%: of the iterations of all ranks; of a bandwidth, 99% of the iterations reach it. "
        f"±, in brackets after factors: {COVERAGE:.0%} interval over "
        f"{plural(len(meta['seeds']), 'random assignment')} of hosts; none where all values are equal."
    )
    yield from found.repeated()
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
