"""Runs for tests of report pages: small, with samples, queueing delay by port and power; a name that breaks out."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

import fairlane
from fairlane import Run, Scenario
from fairlane.cli.terminal import show
from fairlane.views.kinds import view_of

__all__ = ["EVIL", "SCENARIO", "evil", "printed", "shown_times", "simulated"]

SCENARIO = """
name = "small"
duration = "400 us"
[fabric]
topology = "fat_tree"
hosts = 16
levels = 2
radix = 8
bandwidth = "3.2 GB/s"
[observe]
interval = "50 us"
interference_by_port = true
[power]
sockets = 2
idle = "20 W"
busy = "100 W"
cap = "80 W"
variability = 0.05
[placement]
name = "random"
[[jobs]]
name = "pairs"
count = 2
ranks = 4
workload = { name = "flood_pairs", message_size = "4 KiB", compute = "10 us" }
[[jobs]]
name = "total"
ranks = 8
workload = { name = "all_to_all", message_size = "4 KiB", compute = "10 us" }
"""
EVIL = "</script><img src=x onerror=\"document.title='broken'\">&'"
"""A job's name that ends the script element, if it is not escaped, and changes the page's title in any HTML."""


def simulated(folder: Path, text: str = SCENARIO, *, isolated: bool = True) -> Run:
    """The run of a scenario, stored in a new folder."""
    file = folder.with_suffix(".toml")
    file.write_text(text)
    return fairlane.run(Scenario.load(file), out=folder, isolated=isolated)


def evil(run: Run) -> Run:
    """The run with its first job renamed."""
    old = run.jobs["name"][0]

    def renamed(table: pl.DataFrame | None) -> pl.DataFrame | None:
        if table is None:
            return None
        names = [name for name in ("name", "victim", "aggressor", "label") if name in table.columns]
        return table.with_columns(pl.col(name).replace(old, EVIL) for name in names)

    tables: dict[str, Any] = {name: renamed(table) for name, table in run.tables().items()}
    return replace(run, **tables)


def printed(run: Run, width: int = 140) -> str:
    """What the terminal shows of a run."""
    written = StringIO()
    show([view_of([run])], Console(file=written, width=width))
    return written.getvalue()


def shown_times(run: Run) -> list[float]:
    """The times per iteration of the first job as a page shows them."""
    (chart,) = [chart for chart in view_of([run]).charts if chart.name == "iterations"]
    return [row["time"] for row in chart.data if row["job"] == run.jobs["name"][0]]
