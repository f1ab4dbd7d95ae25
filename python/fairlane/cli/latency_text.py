"""The table of latencies in the summary of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairlane.engine.measured import PS
from fairlane.results.latency import summarize
from fairlane.results.run import Run
from fairlane.results.text import seconds

ABOUT = "Messages: from the send call to the last byte"
ABOUT_PACKETS = "; packets: from the offer to the adapter to the delivery"
_MESSAGES = ("mean", "p50", "p99", "p999", "max")
_PACKETS = ("mean", "p99")
_HEADINGS = {"mean": "mean", "p50": "50%", "p99": "99%", "p999": "99.9%", "max": "max"}


def latency_table(run: Run, *, by_workload: bool, packets: bool = True) -> Group | None:
    """A row per job (or workload), and one per traffic kind where there are several; None without latencies.

    Without ``packets`` only messages are shown, for narrow terminals.
    """
    if run.latency is None or run.latency_histogram is None or not run.latency.height:
        return None
    workloads = run.jobs.select("name", "workload")
    exact, histogram = (
        table.rename(lambda name: name.removesuffix("_ps")).join(workloads, on="name", how="left")
        for table in (run.latency, run.latency_histogram)
    )
    exact = exact.with_columns(sum=pl.col("mean") * pl.col("count"))
    by = "workload" if by_workload else "name"
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("workload" if by_workload else "job", no_wrap=True)
    columns = {"message": _MESSAGES, **({"packet": _PACKETS} if packets else {})}
    for of, keys in columns.items():
        for heading in (f"{of}s", *(_HEADINGS[key] for key in keys)):
            table.add_column(heading, justify="right", no_wrap=True)
    _add(
        table, columns, summarize(exact, histogram, ("of", by)), by, run.jobs[by].unique(maintain_order=True).to_list()
    )
    kinds = exact["kind"].unique().sort().to_list()
    if len(kinds) > 1:
        table.add_section()
        _add(table, columns, summarize(exact, histogram, ("of", "kind")), "kind", kinds)
    return Group(
        Text("\nLatency", style="bold"), table, Text(f"{ABOUT}{ABOUT_PACKETS if packets else ''}.", style="dim")
    )


def _add(table: Table, columns: Mapping[str, Sequence[str]], rows: pl.DataFrame, by: str, names: list[str]) -> None:
    """A row for each of the names that has latencies: of its messages, then of its packets."""
    found = {(row["of"], row[by]): row for row in rows.iter_rows(named=True)}
    for name in names:
        cells: list[str] = []
        for of, keys in columns.items():
            row = found.get((of, name))
            cells += (
                [f"{row['count']:,}", *(seconds(row[key] * PS) for key in keys)] if row else ["–"] * (1 + len(keys))
            )
        if any(cell != "–" for cell in cells):
            table.add_row(name, *cells)
