"""Work by condition, workload and treatment, then by placement and seed; what failed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from fairlane.results.study import StudyResults
from fairlane.statistics import SPREAD
from fairlane.study.conditions import CONDITION
from fairlane.study.replication import EFFECTS, PACE, over_points
from fairlane.views.study.series import Compared, alone_everywhere
from fairlane.views.tables import Column, Estimated, Row, Table, change, with_change, with_interval
from fairlane.wording import number, plural, seconds

MOST_ROWS = 48
"""With more rows than this, conditions are shown over all workloads."""
MOST_SINGLE = 24
"""With more repetitions than this, a terminal leaves them out."""
STUDY = Column("study", "study", once=True)


def by_condition(compared: Compared) -> Table:
    """One row per condition, workload and treatment, then one for all workloads of the condition."""
    conditions = any(one.work[CONDITION].n_unique() > 1 for one in compared.series)
    rows = [row for name in compared.studies for row in _of_study(compared, name)]
    treatments = any(study.meta.treatments for study in compared.studies.values())

    def made(*, names: bool) -> Table:
        shown = [
            *([STUDY] if compared.several else []),
            *([Column("condition", CONDITION, wrap=True, once=True)] if conditions else []),
            Column("workload", "workload", left=True, once=True),
            *([Column("treatment", "run", left=True)] if treatments or compared.several else []),
            Column("jobs", "jobs", str),
            Column("time per\niteration", with_interval(PACE[0], seconds)),
            Column("iterations\nper s", with_interval(PACE[1], number), drop=2),
            *(_effects(compared, names=names)),
        ]
        words = f"{plural(len(rows), 'row')}: means over jobs, placements and seeds."
        narrow = partial(made, names=False) if names else None
        every = pl.concat(
            [one.work.select(pl.lit(one.name).alias("runs"), pl.all()) for one in compared.series],
            how="diagonal_relaxed",
        )
        return Table(shown, rows, "Throughput", otherwise=narrow, sentence=words, data=every)

    return made(names=any(row["names"] > 1 for row in rows))


def _effects(compared: Compared, *, names: bool) -> Iterator[Column]:
    """W and improvement with their extremes, which name their jobs if ``names``."""

    def extreme(header: str, key: str) -> Column:
        value = Estimated(key, partial(_named, key)) if names else key
        return Column(header, value, str if names else change, left=names, drop=1)

    if compared.co_running:
        yield Column("W", with_change("w"))
        yield extreme("worst W", "worst_w")
    if compared.treated:
        yield Column("improvement", with_change("improvement"))
        yield extreme("best", "best")
        yield extreme("worst", "worst")


def _named(key: str, row: Row) -> str:
    """A change, and the job that it is of where there are several."""
    return f"{change(row[key])} {row[f'{key}_job']}" if row["names"] > 1 else change(row[key])


def _of_study(compared: Compared, study: str) -> list[dict[str, Any]]:
    series = [one for one in compared.series if one.study == study]
    label = {one.name: one.name.removeprefix(f"{study}: ") for one in series}
    work = pl.concat([one.work.with_columns(run=pl.lit(label[one.name])) for one in series]).sort(
        "point", maintain_order=True
    )
    order = {name: at for at, name in enumerate(work[CONDITION].unique(maintain_order=True))}
    keys = [CONDITION, "workload", "run"]
    rows = _summed(work, keys)
    many = len(order) > 1 and rows.height > MOST_ROWS
    if work["workload"].n_unique() > 1 and (many or len(order) == 1):
        every = _summed(work.with_columns(workload=pl.lit("all")), keys).with_columns(
            pl.lit(None, pl.Float64).alias(f"{column}{end}")
            for column in PACE
            for end in ("", "_low", "_high", *SPREAD)
        )
        rows = pl.concat([*([] if many else [rows]), every], how="vertical_relaxed")
    workloads = {name: at for at, name in enumerate(work["workload"].unique(maintain_order=True))}
    runs = {name: at for at, name in enumerate(label.values())}
    places = lambda row: (order[row[CONDITION]], workloads.get(row["workload"], len(workloads)), runs[row["run"]])  # noqa: E731
    return [{"study": study, **row} for row in sorted(rows.to_dicts(), key=places)]


def _summed(work: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    lowest = {"worst_w": ("w", False), "best": ("improvement", True), "worst": ("improvement", False)}
    extremes = [
        pl.col(column).sort_by(effect, descending=down, nulls_last=True).first().alias(f"{key}{end}")
        for key, (effect, down) in lowest.items()
        for end, column in (("", effect), ("_job", "name"))
    ]
    jobs = pl.struct("same_as", "job").n_unique().alias("jobs")
    summed = work.group_by(by, maintain_order=True).agg(jobs, pl.col("name").n_unique().alias("names"), *extremes)
    means = over_points(work, by, (*PACE, *EFFECTS))
    return summed.join(means, on=by, how="left", nulls_equal=True, maintain_order="left")


def by_repetition(compared: Compared) -> Iterator[Table]:
    """Of each study one row for each placement and seed of each condition, if there are several."""
    for name, study in compared.studies.items():
        apart = [key for key in ("placement", "seed") if study.work[key].n_unique() > 1]
        if apart:
            yield _by_repetition(compared, name, study, apart)


def _by_repetition(compared: Compared, name: str, study: StudyResults, apart: Sequence[str]) -> Table:
    """Of every run the time of an iteration and W.

    Where the terminal is too narrow it has no intervals, or a row for each run.
    """
    series = [one for one in compared.series if one.study == name]
    label = {one.name: one.name.removeprefix(f"{name}: ") for one in series}
    work = pl.concat([one.work.with_columns(run=pl.lit(label[one.name])) for one in series]).sort(
        "point", maintain_order=True
    )
    keys = [*([CONDITION] if work[CONDITION].n_unique() > 1 else []), *apart]
    names = dict(enumerate(study.meta.placements))
    found = over_points(work, [*keys, "run"], (PACE[0], "w")).with_columns(
        pl.col(key).cast(pl.String)
        if key != "placement"
        else pl.col(key).replace_strict(names, default=pl.col(key).cast(pl.String), return_dtype=pl.String)
        for key in keys
    )
    ends = ("", "_low", "_high")
    values = [*(f"{PACE[0]}{end}" for end in (*ends, *SPREAD)), *(f"w{end}" for end in ends)]
    rows: list[dict[str, Any]] = []
    for key, of_runs in found.group_by(keys, maintain_order=True):
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        for run in of_runs.to_dicts():
            row |= {f"{run['run']}\n{value}": run[value] for value in values}
        rows.append(row)
    runs = list(label.values())
    measures = [(PACE[0], "time per\niteration", seconds)] if work["workload"].n_unique() == 1 else []
    measures += [] if alone_everywhere(work) else [("w", "W", change)]
    cells = [
        (f"{run}\n{heading}" if len(runs) > 1 else heading, f"{run}\n{key}", form)
        for run in runs
        for key, heading, form in measures
    ]
    left = [Column(key, key, left=key != "seed", wrap=True, once=key == CONDITION) for key in keys]
    title = f"{f'{name}: b' if compared.several else 'B'}y {' and '.join(apart)}"
    look: dict[str, Any] = {"only_page": len(rows) > MOST_SINGLE}
    look["sentence"] = f"{plural(len(rows), 'repetition')} of each run."

    def by_run() -> Table:
        measured = [Column(heading, _measure(key, form)) for key, heading, form in measures]
        once = [Column(column.header, column.value, left=column.left, wrap=True, once=True) for column in left]
        return Table([*once, Column("run", "run", left=True, wrap=True), *measured], found.to_dicts(), title, **look)

    def made(*, intervals: bool) -> Table:
        measured = [
            Column(heading, _measure(key, form)) if intervals else Column(heading, key, form)
            for heading, key, form in cells
        ]
        return Table(
            [*left, *measured], rows, title, otherwise=partial(made, intervals=False) if intervals else by_run, **look
        )

    return made(intervals=True)


def _measure(key: str, form: Callable[[float], str]) -> Callable[[Row], str | None]:
    """A measure of a run with its interval: a change, or a time; nothing where there is none."""
    return with_change(key) if form is change else with_interval(key, form)


def failures_table(studies: Mapping[str, StudyResults]) -> Table | None:
    """The runs that failed; None if none did."""
    frames = [
        study.failures.select(pl.lit(name).alias("study"), pl.all())
        for name, study in studies.items()
        if study.failures.height
    ]
    if not frames:
        return None
    table = pl.concat(frames, how="diagonal_relaxed")
    names = [
        *(["study"] if len(studies) > 1 else []),
        "point",
        "placement",
        "seed",
        "treatment",
        "job",
        "error",
        "scenario",
    ]
    shown = [
        Column(name, name, left=name not in ("point", "placement", "seed"), wrap=name in ("error", "scenario"))
        for name in names
    ]
    words = f"{plural(table.height, 'run')} failed twice; fairlane run accepts their scenarios."
    return Table(shown, table.to_dicts(), "Runs that failed", sentence=words, only_page=True, data=table)
