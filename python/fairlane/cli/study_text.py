"""What the terminal shows after a study: work by workload and treatment, what failed, and where the folder is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl
from rich.text import Text

from fairlane.cli.options import stored
from fairlane.cli.terminal import Part, long
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.notes import few, stops, sufficient
from fairlane.results.parquet import read_parquet
from fairlane.results.schemas import STUDY
from fairlane.results.study import StudyResults
from fairlane.statistics import SPREAD
from fairlane.study.conditions import CONDITION, timeless, with_condition
from fairlane.study.design import EFFECTS
from fairlane.study.replication import EFFECTS as CHANGES
from fairlane.study.replication import PACE, outer_unit, over_points
from fairlane.views.tables import Column, Row, Table, change, fixed, with_change, with_interval
from fairlane.wording import listed, number, percent, plural, seconds

ABOUT = (
    "W: throughput change against the isolated run. Improvement: throughput change against the default run. "
    "Means over jobs, placements and seeds. "
)
ABOUT_INTERVAL = "±: 95% interval over {}s; of a single run over its iterations."
ABOUT_ALONE = "Every scenario has one job, so there is no W. Means over placements and seeds. "
ABOUT_EFFECTS = (
    "Factor: time of an iteration at the worst level over that at the best. Share: of the variation of its logarithm. "
    "p: chance of so large a share if there is no effect."
)
PROFILE = {
    "simulating": "workers in simulations",
    "set-up": "workers building scenarios and finding compute times",
    "waiting": "workers starting, without a task, or with their answer on its way",
    "planning": "this process reading the study and trying every scenario, before workers start",
    "writing": "this process storing answers and tables",
}
OF_WORKERS = ("simulating", "set-up", "waiting")
MOST_TERMS = 8  # of a job with more terms, the others are in the table ``effects``
MOST_ROWS = 48  # with more rows than this, conditions are shown over all workloads
MOST_SINGLE = 24  # with more repetitions than this, they are in the table ``work`` only
MOST_FAILURES = 5  # with more failures than this, the others are only counted
MOST_MEASURED = 24  # rows of a measured table that are shown


def study_parts(study: StudyResults) -> Iterator[Part]:
    """What ``study`` found out."""
    meta = study.meta
    shared = meta.runs - meta.simulations
    yield Text.assemble(
        (meta.study, "bold"),
        f": {plural(meta.points, 'point')}, {plural(meta.runs, 'run')}, {plural(meta.simulations, 'simulation')}",
        f" ({plural(shared, 'run')} the same as another)" if shared else "",
        f", {seconds(meta.wall_s)}\n",
    )
    if study.work.height:
        yield from work_tables(study)
        about = ABOUT_ALONE if alone_everywhere(study.work) else ABOUT
        yield Text(about + ABOUT_INTERVAL.format(outer_unit(study.work)), style="dim")
        notes = (timeless(study.work), *comparison_notes(study.work))
        yield from (long(note, "yellow") for note in notes if note)
    yield from (long(f"Note: {note}") for note in meta.notes)
    for name, table in (study.measured or {}).items():
        yield measured_table(name, table)
    if study.folder and (study.folder / EFFECTS).is_file():
        yield effects_table(read_parquet(study.folder / EFFECTS, STUDY["effects"]))
    for failure in study.failures.head(MOST_FAILURES).iter_rows(named=True):
        what = f"{failure['treatment']} run" + (f" of {failure['job']}" if failure["job"] else "")
        where = f"point {failure['point']}, {what}: {failure['error']}; see {failure['scenario']}"
        yield long(f"failed twice: {where}", "red")
    if study.failures.height > MOST_FAILURES:
        yield Text(f"... and {study.failures.height - MOST_FAILURES} others: see the table failures", "red")
    yield from stored(study.folder)


def profile_lines(found: Mapping[str, float]) -> Iterator[str]:
    """Where the time went, summed over workers."""
    workers = "1 worker" if found["workers"] == 1 else f"{found['workers']:.0f} workers"
    yield f"Where the time went: {seconds(found['wall'])}, of these {seconds(found['spent'])} with {workers}"
    for name, meaning in PROFILE.items():
        of = found["spent"] * found["workers"] if name in OF_WORKERS else found["wall"]
        share = percent(found[name] / of) if of else ""
        yield f"  {name:<10}  {seconds(found[name]):>8}  {share:>6}  {meaning}"


def work_tables(study: StudyResults) -> Iterator[Part]:
    """By condition, workload and treatment, over placements, seeds and jobs; then by placement and seed."""
    work, conditions = with_condition(study.work)
    yield _by_condition(work, study, len(conditions) > 1)
    apart = [name for name in ("placement", "seed") if work[name].n_unique() > 1]
    if not apart:
        return
    single = _by_repetition(work, study, [*([CONDITION] if len(conditions) > 1 else []), *apart])
    if len(single.rows) <= MOST_SINGLE:
        yield single
    else:
        yield Text(f"By {' and '.join(apart)}, {len(single.rows)} rows: see the table work.", style="dim")


def alone_everywhere(work: pl.DataFrame) -> bool:
    """Whether no scenario has two jobs: then there is nothing that W could show."""
    return bool((work.group_by("point").agg(pl.col("job").n_unique())["job"] == 1).all())


def _by_condition(work: pl.DataFrame, study: StudyResults, several: bool) -> Table:
    """One row per condition, workload and treatment, then one for all workloads of the condition."""
    keys = [CONDITION, "workload", "baseline", "treatment"]
    rows = _summed(work, keys)
    many = several and rows.height > MOST_ROWS
    if work["workload"].n_unique() > 1 and (many or not several):
        every = _summed(work.with_columns(workload=pl.lit("all")), keys).with_columns(
            pl.lit(None, pl.Float64).alias(f"{column}{end}")
            for column in PACE
            for end in ("", "_low", "_high", *SPREAD)
        )
        rows = pl.concat([*([] if many else [rows]), every], how="vertical_relaxed")
    order = {label: at for at, label in enumerate(work[CONDITION].unique(maintain_order=True))}
    ordered = rows.with_columns(
        at=pl.col(CONDITION).replace_strict(order, return_dtype=pl.UInt32), all=pl.col("workload") == "all"
    ).sort("at", "all", maintain_order=True)
    effects = [] if alone_everywhere(work) else [Column("W", with_change("w"))]
    effects += [] if alone_everywhere(work) else [Column("worst W", "worst_w", change, drop=1)]
    if work["improvement"].null_count() < work.height:
        effects.append(Column("improvement", with_change("improvement")))
        effects += [Column(name, name, change, drop=1) for name in ("best", "worst")]
    treatment = Column("treatment", partial(_label, study), left=True)
    shown = [
        *([Column("condition", CONDITION, wrap=True)] if several else []),
        Column("workload", "workload", left=True),
        *([treatment] if study.meta.treatments else []),
        Column("jobs", "jobs", str),
        Column("time per\niteration", with_interval(PACE[0], seconds)),
        Column("iterations\nper s", with_interval(PACE[1], number), drop=2),
        *effects,
    ]
    return Table(shown, _without_repeated(ordered.to_dicts(), (CONDITION, "workload")))


def _without_repeated(rows: list[dict[str, Any]], labels: Sequence[str]) -> list[Row]:
    """The rows without labels that are those of the row above; a label is repeated where one before it changes."""
    before: list[object] = []
    for row in rows:
        these = [row[label] for label in labels]
        for at, label in enumerate(labels):
            if these[: at + 1] == before[: at + 1]:
                row[label] = ""
        before = these
    return list(rows)


def _summed(work: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    summed = work.group_by(by, maintain_order=True).agg(
        pl.struct("same_as", "job").n_unique().alias("jobs"),
        pl.col("w").min().alias("worst_w"),
        pl.col("improvement").max().alias("best"),
        pl.col("improvement").min().alias("worst"),
    )
    means = over_points(work, by, (*PACE, *CHANGES))
    return summed.join(means, on=by, how="left", nulls_equal=True, maintain_order="left")


def _by_repetition(work: pl.DataFrame, study: StudyResults, keys: Sequence[str]) -> Table:
    """One row for each placement and seed of each condition; of every run the time of an iteration and W.

    Where the terminal is too narrow it has no intervals, or a row for each run.
    """
    names = dict(enumerate(study.meta.placements))
    found = _summed(work, [*keys, "baseline", "treatment"]).with_columns(
        pl.col(key).cast(pl.String)
        if key != "placement"
        else pl.col(key).replace_strict(names, default=pl.col(key).cast(pl.String), return_dtype=pl.String)
        for key in keys
    )
    interval_columns = [f"{PACE[0]}{end}" for end in ("", "_low", "_high", *SPREAD)]
    interval_columns += [f"w{end}" for end in ("", "_low", "_high")]
    rows: list[dict[str, Any]] = []
    for values, of_runs in found.group_by(keys, maintain_order=True):
        row: dict[str, Any] = dict(zip(keys, values, strict=True))
        for run in of_runs.to_dicts():
            label = _label(study, run)
            row |= {f"{label}\n{name}": run[name] for name in interval_columns}
        rows.append(row)
    runs = [_label(study, run) for run in work.select("baseline", "treatment").unique(maintain_order=True).to_dicts()]
    measures = [(PACE[0], "time per\niteration", seconds)] if work["workload"].n_unique() == 1 else []
    measures += [] if alone_everywhere(work) else [("w", "W", change)]
    cells = [
        (f"{label}\n{heading}" if len(runs) > 1 else heading, f"{label}\n{key}", form)
        for label in runs
        for key, heading, form in measures
    ]
    left = [Column(name, name, left=name != "seed", wrap=True) for name in keys]
    title = f"By {' and '.join(key for key in keys if key != CONDITION)}"
    shown = _without_repeated(rows, [key for key in keys if key == CONDITION])

    def by_run() -> Table:
        measured = [Column(heading, _measure(key, form)) for key, heading, form in measures]
        columns = [*left, Column("run", partial(_label, study), left=True, wrap=True), *measured]
        return Table(columns, _without_repeated(found.to_dicts(), keys), title)

    def made(*, intervals: bool) -> Table:
        measured = [
            Column(heading, _measure(key, form)) if intervals else Column(heading, key, form)
            for heading, key, form in cells
        ]
        narrow = partial(made, intervals=False) if intervals else by_run
        return Table([*left, *measured], shown, title, otherwise=narrow)

    return made(intervals=True)


def _measure(key: str, form: Callable[[float], str]) -> Callable[[Row], str | None]:
    """A measure of a run with its interval: a change, or a time."""
    return with_change(key) if form is change else with_interval(key, form)


def comparison_notes(work: pl.DataFrame) -> Iterator[str]:
    """Sentences about rows that cannot be compared, or hardly."""
    if "ten_iterations_ps" not in work.columns:
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


def measured_table(name: str, table: pl.DataFrame) -> Table:
    """The first rows of what was measured, without conditions that are the same in all of them."""
    conditions = table.columns[: table.columns.index("seed") + 1]
    same = [it for it in conditions if it == "point" or table[it].n_unique() < 2]
    shown = [Column(it, it, left=not kind.is_numeric()) for it, kind in table.schema.items() if it not in same]
    note = f"The first {MOST_MEASURED} of {table.height} rows." if table.height > MOST_MEASURED else ""
    return Table(shown, table.head(MOST_MEASURED).to_dicts(), name, note)


def effects_table(found: pl.DataFrame) -> Table:
    """The terms that explain most of each job's time, and what no term explains."""
    rows: list[dict[str, Any]] = []
    for _, of_job in found.group_by("name", maintain_order=True):
        terms, last = (
            of_job.filter(is_last) for is_last in (pl.col("term") != "residual", pl.col("term") == "residual")
        )
        rows += pl.concat([terms.head(MOST_TERMS), last]).to_dicts()
    shown = [
        Column("job", "name"),
        Column("effect of", "term", left=True, wrap=True),
        Column("factor", "factor", fixed(3)),
        Column("share", "share", lambda share: f"{share:.1%}"),
        Column("p", "p", lambda p: f"{p:.2g}"),
    ]
    return Table(shown, _without_repeated(rows, ["name"]), note=ABOUT_EFFECTS)


def _label(study: StudyResults, row: Row) -> str:
    """The treatment; the default run with what it is like, where the study has several."""
    several = study.work["baseline"].n_unique() > 1 and row["treatment"] == "default"
    return f"default ({row['baseline'] or 'whole'})" if several else str(row["treatment"])
