"""What the terminal shows after a study: work by workload and treatment, what failed, and where the folder is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairlane.cli.run_text import console_for_tables
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.notes import few, stops, sufficient
from fairlane.results.parquet import read_parquet
from fairlane.results.schemas import STUDY, STUDY_EMPTY
from fairlane.results.study import StudyResults
from fairlane.results.text import listed, number, percent, plural, seconds
from fairlane.study.conditions import CONDITION, median_time, timeless, with_condition
from fairlane.study.sheet import EFFECTS

__all__ = ["print_study"]

ABOUT = (
    "W: throughput change against the isolated run. Improvement: throughput change against the default run. "
    "Medians over jobs, placements and seeds."
)
ABOUT_ALONE = "Every scenario has one job, so there is no W. Medians over jobs, placements and seeds."
ABOUT_EFFECTS = (
    "Factor: time of an iteration at the worst level over that at the best. Share: of the variation of its logarithm. "
    "p: chance of so large a share if there is no effect."
)
MOST_TERMS = 8
"""Of a job with more terms, the others are in the table ``effects``."""
MOST_ROWS = 48
"""With more rows than this, conditions are shown over all workloads."""
MOST_SINGLE = 24
"""With more repetitions than this, they are in the table ``work`` only."""
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
            f" ({plural(shared, 'run')} the same as another)" if shared else "",
            f", {seconds(meta.wall_s)}\n",
        )
    )
    if study.work.height:
        for part in work_tables(study):
            console.print(part)
        console.print(Text(ABOUT_ALONE if alone_everywhere(study.work) else ABOUT, style="dim"))
        for note in filter(None, (timeless(study.work), *comparison_notes(study.work))):
            console.print(Text(note, style="yellow"), soft_wrap=True)
    if study.folder and (study.folder / EFFECTS).is_file():
        console.print(effects_table(read_parquet(study.folder / EFFECTS, STUDY["effects"], STUDY_EMPTY["effects"])))
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


def work_tables(study: StudyResults) -> Iterator[Table | Text]:
    """By condition, workload and treatment, medians over placements, seeds and jobs; then by placement and seed."""
    work, conditions = with_condition(study.work)
    yield _by_condition(work, study, len(conditions) > 1)
    apart = [name for name in ("placement", "seed") if work[name].n_unique() > 1]
    if not apart:
        return
    single = _by_repetition(work, study, [*([CONDITION] if len(conditions) > 1 else []), *apart])
    if single.row_count <= MOST_SINGLE:
        yield Text(f"\nBy {' and '.join(apart)}, medians over jobs", style="bold")
        yield single
    else:
        yield Text(f"By {' and '.join(apart)}, {single.row_count} rows: see the table work.", style="dim")


def alone_everywhere(work: pl.DataFrame) -> bool:
    """Whether no scenario has two jobs: then there is nothing that W could show."""
    return bool((work.group_by("point").agg(pl.col("job").n_unique())["job"] == 1).all())


def _by_condition(work: pl.DataFrame, study: StudyResults, several: bool) -> Table:
    """One row per condition, workload and treatment, then one for all workloads of the condition."""
    lonely, treated = alone_everywhere(work), work["improvement"].null_count() < work.height
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    first = [*(["condition"] if several else []), "workload", *(["treatment"] if study.meta.treatments else [])]
    for heading in first:
        table.add_column(heading, no_wrap=heading != "condition")
    numbers = ["jobs", "time per\niteration", "iterations\nper s", *([] if lonely else ["W", "worst W"])]
    for heading in (*numbers, *(["improvement", "best", "worst"] if treated else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    keys = [CONDITION, "workload", "baseline", "treatment"]
    rows = _summed(work, keys)
    many = several and rows.height > MOST_ROWS
    if work["workload"].n_unique() > 1 and (many or not several):
        every = _summed(work.with_columns(workload=pl.lit("all")), keys).with_columns(seconds=None, rate=None)
        rows = pl.concat([*([] if many else [rows]), every], how="vertical_relaxed")
    order = {label: at for at, label in enumerate(work[CONDITION].unique(maintain_order=True))}
    ordered = rows.with_columns(
        at=pl.col(CONDITION).replace_strict(order, return_dtype=pl.UInt32), all=pl.col("workload") == "all"
    ).sort("at", "all", maintain_order=True)
    before = ("", "")
    for row in ordered.iter_rows(named=True):
        place = (row[CONDITION], row["workload"])
        labels = [place[0] if place[0] != before[0] else ""] if several else []
        labels.append(place[1] if place != before else "")
        labels += [_label(row, study)] if study.meta.treatments else []
        before = place
        changes = [*([] if lonely else ["w", "worst_w"]), *(["improvement", "best", "worst"] if treated else [])]
        shares = [percent(row[key], signed=True) for key in changes]
        rate = "–" if row["rate"] is None else number(row["rate"])
        table.add_row(*labels, str(row["jobs"]), seconds(row["seconds"]), rate, *shares)
    return table


def _summed(work: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    return work.group_by(by, maintain_order=True).agg(
        pl.len().alias("jobs"),
        median_time().alias("seconds"),
        pl.when(median_time().is_not_null()).then(pl.col("iterations_per_second").fill_null(0).median()).alias("rate"),
        pl.col("w").median(),
        pl.col("w").min().alias("worst_w"),
        pl.col("improvement").median(),
        pl.col("improvement").max().alias("best"),
        pl.col("improvement").min().alias("worst"),
    )


def _by_repetition(work: pl.DataFrame, study: StudyResults, keys: Sequence[str]) -> Table:
    """One row for each placement and seed of each condition; of every run the time of an iteration and W."""
    lonely = alone_everywhere(work)
    one_workload = work["workload"].n_unique() == 1
    runs = list(work.select("baseline", "treatment").unique(maintain_order=True).iter_rows(named=True))
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for name in keys:
        table.add_column(name, justify="right" if name == "seed" else "left")
    measures = [*(["seconds"] if one_workload else []), *([] if lonely else ["w"])]
    words = {"seconds": "time per\niteration", "w": "W"}
    for run in runs:
        of = f"{_label(run, study)}\n" if len(runs) > 1 else ""
        for measure in measures:
            table.add_column(f"{of}{words[measure]}", justify="right", no_wrap=True)
    found = _summed(work, [*keys, "baseline", "treatment"])
    names, before = study.meta.placements, ""
    for values, rows in found.group_by(keys, maintain_order=True):
        at = dict(zip(keys, values, strict=True))
        if "placement" in at and int(str(at["placement"])) < len(names):
            at["placement"] = names[int(str(at["placement"]))]
        if CONDITION in at:
            at[CONDITION], before = ("" if at[CONDITION] == before else at[CONDITION]), str(at[CONDITION])
        cells: list[str] = []
        for run in runs:
            row = next(iter(rows.filter(**run).iter_rows(named=True)), {})
            shown = {"seconds": seconds(row.get("seconds")), "w": percent(row.get("w"), signed=True)}
            cells += [shown[measure] for measure in measures]
        table.add_row(*map(str, at.values()), *cells)
    return table


def comparison_notes(work: pl.DataFrame) -> Iterator[str]:
    """Sentences about rows that cannot be compared, or hardly."""
    if "enough_ps" not in work.columns:
        return
    default = work.filter(pl.col("treatment") == "default", pl.col("baseline") == "")
    names = {"without": default.filter(pl.col("w").is_null()), "hardly": few(default)}
    for kind, rows in names.items():
        if rows.is_empty():
            continue
        jobs = listed(rows["name"].unique(maintain_order=True).to_list())
        where = f"{jobs}, {rows.height} of {plural(default.height, 'default run')} of a job"
        time = sufficient(rows)
        begin = "No W without a completed iteration" if kind == "without" else "Too few iterations for a reliable W"
        yield f"{begin}: {where}" + (f"; {FEW_ITERATIONS} take about {time}{stops(rows)}." if time else ".")


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
