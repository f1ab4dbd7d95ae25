"""What the terminal shows after a study: work by workload and treatment, what failed, and where the folder is."""

from __future__ import annotations

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairlane.results.study import StudyResults
from fairlane.results.summary import console_for_tables
from fairlane.results.text import percent, plural, seconds
from fairlane.study.sheet import EFFECTS

__all__ = ["print_study"]

ABOUT = "W: work compared with the same job alone. Improvement: work compared with the default run. Medians over jobs."
ABOUT_EFFECTS = (
    "Factor: time of an iteration at the worst level over that at the best. Share: of the variation of its logarithm. "
    "p: chance of so large a share if there is no effect."
)
MOST_TERMS = 8
"""Of a job with more terms, the others are in the table ``effects``."""
MOST_FAILURES = 5
"""With more failures than this, the others are only counted."""


def print_study(study: StudyResults, console: Console | None = None) -> None:
    """Prints what ``study`` found out, to standard output unless a ``console`` is given."""
    console = console or console_for_tables()
    meta = study.meta
    shared = meta.runs - meta.simulations
    console.print(
        Text.assemble(
            (meta.study, "bold"),
            f": {plural(meta.points, 'point')}, {plural(meta.runs, 'run')}, {plural(meta.simulations, 'simulation')}",
            f" ({shared} runs the same as another)" if shared else "",
            f", {seconds(meta.wall_s)}\n",
        )
    )
    if study.work.height:
        console.print(work_table(study))
        console.print(Text(ABOUT, style="dim"))
    if study.folder and (study.folder / EFFECTS).is_file():
        console.print(effects_table(pl.read_parquet(study.folder / EFFECTS)))
        console.print(Text(ABOUT_EFFECTS, style="dim"))
    for failure in study.failures.head(MOST_FAILURES).iter_rows(named=True):
        what = f"{failure['treatment']} run" + (f" of {failure['job']}" if failure["job"] else "")
        console.print(
            Text(
                f"failed twice: point {failure['point']}, {what}: {failure['error']}; see {failure['scenario']}", "red"
            ),
            soft_wrap=True,
        )
    if study.failures.height > MOST_FAILURES:
        console.print(Text(f"... and {study.failures.height - MOST_FAILURES} others: see the table failures", "red"))
    if study.folder:
        console.print(Text.assemble("Everything is in ", (str(study.folder), "bold"), "."), soft_wrap=True)


def work_table(study: StudyResults) -> Table:
    """One row per workload and treatment, then one for all workloads."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("workload", no_wrap=True)
    table.add_column("treatment", no_wrap=True)
    for heading in ("jobs", "W", "worst", "improvement", "best", "worst"):
        table.add_column(heading, justify="right", no_wrap=True)
    by = ["workload", "baseline", "treatment"]
    every = study.work.with_columns(workload=pl.lit("all"))
    for rows in (study.work, every):
        summed = rows.group_by(by, maintain_order=True).agg(
            pl.len().alias("jobs"),
            pl.col("w").median(),
            pl.col("w").min().alias("worst_w"),
            pl.col("improvement").median(),
            pl.col("improvement").max().alias("best"),
            pl.col("improvement").min().alias("worst"),
        )
        shown = ""
        for row in summed.sort("workload", maintain_order=True).iter_rows(named=True):
            changes = [percent(row[key], signed=True) for key in ("w", "worst_w", "improvement", "best", "worst")]
            label = row["workload"] if row["workload"] != shown else ""
            shown = row["workload"]
            table.add_row(label, _label(row, study), str(row["jobs"]), *changes)
    return table


def effects_table(found: pl.DataFrame) -> Table:
    """The terms that explain most of each job's time, and what no term explains."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("job", no_wrap=True)
    table.add_column("effect of")
    for heading in ("factor", "share", "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    for (name,), rows in found.group_by("name", maintain_order=True):
        shown = str(name)
        last = rows.filter(pl.col("term") == "residual")
        for row in pl.concat([rows.filter(pl.col("term") != "residual").head(MOST_TERMS), last]).to_dicts():
            numbers = [
                "" if row[key] is None else form.format(row[key])
                for key, form in (("factor", "{:.3f}"), ("share", "{:.1%}"), ("p", "{:.2g}"))
            ]
            table.add_row(shown, row["term"], *numbers)
            shown = ""
    return table


def _label(row: dict[str, object], study: StudyResults) -> str:
    """The treatment; the default run with what it is like, where the study has several."""
    several = study.work["baseline"].n_unique() > 1 and row["treatment"] == "default"
    return f"default ({row['baseline'] or 'whole'})" if several else str(row["treatment"])
