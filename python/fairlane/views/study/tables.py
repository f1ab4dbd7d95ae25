"""Work by condition, workload and treatment, then by placement and seed; what failed; tables that a study measures.

A table that is measured has a chart, too, of two of its columns, which are chosen.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import altair
import polars as pl
from pydantic_core import to_json

from fairlane.core.statistics import SPREAD
from fairlane.core.wording import number, plural, seconds, significant
from fairlane.results.study import StudyResults
from fairlane.study.conditions import CONDITION
from fairlane.study.replicates import EFFECTS, PACE, over_points
from fairlane.views.charts import NUMBERS, RAISED, Axis, caption, choice, layers, with_tooltip
from fairlane.views.model import Chart
from fairlane.views.study.series import Compared, alone_everywhere
from fairlane.views.style import is_wide
from fairlane.views.tables import INTERVAL, Column, Estimated, Row, Table, change, naming, with_change, with_interval

MOST_ROWS = 48
"""With more rows than this, conditions are shown over all workloads."""
MOST_SINGLE = 24
"""With more repetitions than this, a terminal leaves them out."""
MOST_SERIES = 8
"""Colours of a chart of a measured table."""
MOST_DOTS = 2_000
"""Rows of a measured table that have a dot; of more, evenly spaced ones."""
MOST_MEASURED = 24
"""Rows of a measured table that a terminal shows."""
_NONE = "none"


def by_condition(compared: Compared) -> Table:
    """One row per condition, workload and treatment, then one for all workloads of the condition."""
    conditions = any(table[CONDITION].n_unique() > 1 for table in compared.tables.values())
    rows = [{"study": name, **row} for name in compared.studies for row in _of_study(compared, name)]
    treatments = any(study.meta.treatments for study in compared.studies.values())
    every = [
        table.select(pl.col("run").alias("runs"), *study.work.columns, CONDITION)
        for table, study in zip(compared.tables.values(), compared.studies.values(), strict=True)
    ]

    def made(*, names: bool) -> Table:
        shown = [
            *([Column("study", "study", once=True)] if compared.several else []),
            *([Column("condition", CONDITION, wrap=True, once=True)] if conditions else []),
            Column("workload", "workload", left=True, once=True),
            *([Column("treatment", "run", left=True)] if treatments or compared.several else []),
            Column("jobs", "jobs", str),
            Column("time per\niteration", with_interval(PACE[0], seconds)),
            Column("iterations\nper s", with_interval(PACE[1], number), drop=2),
            *_effects(compared, names=names),
        ]
        sentence = f"{plural(len(rows), 'row')}: means over jobs, placements and seeds."
        narrow = partial(made, names=False) if names else None
        data = pl.concat(every, how="diagonal_relaxed")
        return Table(shown, rows, "Throughput", otherwise=narrow, sentence=sentence, data=data)

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


def _work(compared: Compared, study: str) -> tuple[pl.DataFrame, list[str]]:
    """The rows of a study, with their ``run``, in order of points; and the runs."""
    runs = compared.tables[study]["label"].unique(maintain_order=True).to_list()
    work = compared.work.filter(study=study).with_columns(run="label")
    return work.sort("point", maintain_order=True), runs


def _of_study(compared: Compared, study: str) -> list[dict[str, Any]]:
    work, runs = _work(compared, study)
    conditions, workloads = (work[key].unique(maintain_order=True).to_list() for key in (CONDITION, "workload"))
    keys = [CONDITION, "workload", "run"]
    rows = _summed(work, keys)
    many = len(conditions) > 1 and rows.height > MOST_ROWS
    if len(workloads) > 1 and (many or len(conditions) == 1):
        # Times of different workloads have no mean.
        pace = [f"{column}{end}" for column in PACE for end in (*INTERVAL, *SPREAD)]
        every = _summed(work.with_columns(workload=pl.lit("all")), keys)
        every = every.with_columns(pl.lit(None, pl.Float64).alias(name) for name in pace)
        rows = every if many else pl.concat([rows, every], how="vertical_relaxed")
    order = {CONDITION: conditions, "workload": [*workloads, "all"], "run": runs}
    return rows.sort(pl.col(key).cast(pl.Enum(list(dict.fromkeys(names)))) for key, names in order.items()).to_dicts()


def _summed(work: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    extremes = [
        pl.col(column).sort_by(effect, descending=key == "best", nulls_last=True).first().alias(f"{key}{end}")
        for key, effect in (("worst_w", "w"), ("best", "improvement"), ("worst", "improvement"))
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
            yield _by_repetition(compared, name, apart)


def _by_repetition(compared: Compared, name: str, apart: Sequence[str]) -> Table:
    """Of every run the time of an iteration and W.

    Where the terminal is too narrow it has no intervals, or a row for each run.
    """
    work, runs = _work(compared, name)
    keys = [*([CONDITION] if work[CONDITION].n_unique() > 1 else []), *apart]
    work = work.with_columns(placement="place", seed=pl.col("seed").cast(pl.String))
    means = over_points(work, [*keys, "run"], (PACE[0], "w")).to_dicts()
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in means:
        # The values of each run are columns, named by it.
        values = {f"{row['run']}\n{key}": value for key, value in row.items() if key not in (*keys, "run")}
        rows.setdefault(tuple(row[key] for key in keys), {key: row[key] for key in keys}).update(values)
    measures = [(PACE[0], "time per\niteration", seconds)] if work["workload"].n_unique() == 1 else []
    measures += [] if alone_everywhere(work) else [("w", "W", change)]
    title = f"{f'{name}: b' if compared.several else 'B'}y {' and '.join(apart)}"
    sentence = f"{plural(len(rows), 'repetition')} of each run."
    look: dict[str, Any] = {"only_page": len(rows) > MOST_SINGLE, "sentence": sentence}

    def by_run() -> Table:
        once = [Column(key, key, left=key != "seed", wrap=True, once=True) for key in keys]
        measured = [Column(heading, _measure(key, form)) for key, heading, form in measures]
        return Table([*once, Column("run", "run", left=True, wrap=True), *measured], means, title, **look)

    def made(*, intervals: bool) -> Table:
        left = [Column(key, key, left=key != "seed", wrap=True, once=key == CONDITION) for key in keys]
        for run in runs:
            for key, heading, form in measures:
                value, header = f"{run}\n{key}", f"{run}\n{heading}" if len(runs) > 1 else heading
                left.append(Column(header, _measure(value, form)) if intervals else Column(header, value, form))
        narrower = partial(made, intervals=False) if intervals else by_run
        return Table(left, [*rows.values()], title, otherwise=narrower, **look)

    return made(intervals=True)


def _measure(key: str, form: Callable[[float], str]) -> Callable[[Row], str | None]:
    """A measure of a run with its interval: a change, or a time; nothing where there is none."""
    return with_change(key) if form is change else with_interval(key, form)


def failures_table(studies: Mapping[str, StudyResults]) -> Table | None:
    """The runs that failed; None if none did."""
    failed = {name: study.failures for name, study in studies.items() if study.failures.height}
    if not failed:
        return None
    every = [frame.select(pl.lit(name).alias("study"), pl.all()) for name, frame in failed.items()]
    table = pl.concat(every, how="diagonal_relaxed")
    numbers = [Column(name, name, left=False) for name in ("point", "placement", "seed")]
    texts = [Column(name, name, left=True) for name in ("treatment", "job")]
    texts += [Column(name, name, left=True, wrap=True) for name in ("error", "scenario")]
    sentence = f"{plural(table.height, 'run')} failed twice; fairlane run accepts their scenarios."
    shown = [*naming(studies, "study"), *numbers, *texts]
    return Table(shown, table.to_dicts(), "Runs that failed", sentence=sentence, only_page=True, data=table)


def measured_tables(studies: Mapping[str, StudyResults]) -> dict[str, pl.DataFrame]:
    """The tables that studies measure by name, those of several studies as one."""
    tables_by_name: dict[str, list[pl.DataFrame]] = {}
    for name, study in studies.items():
        for key, table in (study.measured or {}).items():
            frame = table.select(pl.lit(name).alias("study"), pl.all()) if len(studies) > 1 else table
            tables_by_name.setdefault(key, []).append(frame)
    return {key: pl.concat(tables, how="diagonal_relaxed") for key, tables in tables_by_name.items()}


def measured_table(name: str, table: pl.DataFrame) -> Table:
    """The rows of a table, without conditions that are the same in all of them."""
    conditions = table.columns[: table.columns.index("seed") + 1]
    same = [key for key in conditions if key == "point" or table[key].n_unique() < 2]
    shown = [Column(key, key, left=not kind.is_numeric()) for key, kind in table.schema.items() if key not in same]
    sentence = f"{plural(table.height, 'row')}, {plural(table.width, 'column')}."
    return Table(shown, table.to_dicts(), name, sentence=sentence, most=MOST_MEASURED, data=table)


def measured_charts(tables: Mapping[str, pl.DataFrame]) -> Iterator[Chart]:
    """Of each table with numbers a chart of two columns, and of one that gives colours."""
    for at, (name, table) in enumerate(tables.items()):
        numbers = [key for key, kind in table.schema.items() if kind.is_numeric() and table[key].count()]
        if table.height and numbers:
            yield _measured(f"measured{at or ''}", name, table, numbers)


def usual(table: pl.DataFrame, numbers: list[str]) -> tuple[str, str, str]:
    """Columns to begin with: the measured number that varies most, against what the study varies, in colours of it."""
    distinct = {name: table[name].n_unique() for name in table.columns}
    conditions = table.columns[1 : table.columns.index("seed") + 1]
    measured = [name for name in numbers if name not in (*conditions, "point")] or numbers
    y = max(measured, key=lambda name: distinct[name])
    factors = [name for name in conditions if name != y and distinct[name] > 1]
    x = (factors or [name for name in table.columns if name != y] or [y])[0]
    others = [name for name in (*conditions, *table.columns) if name not in (x, y, "point")]
    series = next((name for name in others if 1 < distinct[name] <= MOST_SERIES), _NONE)
    return x, y, series


def _measured(key: str, name: str, table: pl.DataFrame, numbers: list[str]) -> Chart:
    """Dots of two columns. Text columns are at whole numbers, by the order of their values."""
    x, y, series = usual(table, numbers)
    texts = {
        of: table[of].drop_nulls().unique(maintain_order=True).to_list() for of in table.columns if of not in numbers
    }
    wide = [of for of in numbers if is_wide(float(table[of].min()), float(table[of].max()))]  # type: ignore[arg-type]
    kept = table.gather_every(-(-table.height // MOST_DOTS))
    columns = {of: f"c{at}" for at, of in enumerate(table.columns)}
    # A column's place in the chart is its field; its text is in the field of the same name after "t".
    places = kept.with_columns(
        *(pl.col(of).log10() for of in wide),
        *(
            pl.col(of).replace_strict(values, range(len(values)), default=None, return_dtype=pl.Int64)
            for of, values in texts.items()
        ),
    ).rename(columns)
    written = [{f"t{columns[of]}": _text(value) for of, value in row.items()} for row in kept.to_dicts()]
    rows = [place | text for place, text in zip(places.to_dicts(), written, strict=True)]

    def spec() -> altair.LayerChart:
        base, tooltip = with_tooltip(rows, [Column(of, f"t{columns[of]}") for of in table.columns])
        few = [of for of in table.columns if 1 < table[of].n_unique() <= MOST_SERIES]
        offered = {"x": ("Horizontal", x, [*texts, *numbers]), "y": ("Vertical", y, numbers)}
        offered["colours"] = "Colours", series, [*few, _NONE]
        choices = [
            choice(f"{key}_{end}", label, list(dict.fromkeys([first, *every])))[0]
            for end, (label, first, every) in offered.items()
        ]
        field = {end: f"({to_json(columns).decode()})[{key}_{end}]" for end in offered}
        coloured = f"{key}_colours === '{_NONE}' ? '{name}' : datum['t' + {field['colours']}]"
        base = (
            base.transform_calculate(x=f"datum[{field['x']}]", y=f"datum[{field['y']}]", series=coloured)
            .transform_filter("isValid(datum.x) && isValid(datum.y)")
            .encode(color=altair.Color("series:N", legend=altair.Legend(title=None, offset=RAISED)), tooltip=tooltip)
        )
        across, along = (Axis.chosen(_labels(f"{key}_{end}", wide, texts)) for end in ("x", "y"))
        dots = base.mark_point(size=26, opacity=0.75).encode(x=across.x("x"), y=along.y("y"))
        return layers(340, caption(f"{key}_x"), caption(f"{key}_y", vertical=True), dots, choices=choices)

    known = table[y].drop_nulls()
    least, most = (significant(float(end)) for end in (known.min(), known.max()))  # type: ignore[arg-type]
    sentence = f"{y} from {least} to {most} in {plural(table.height, 'row')}."
    note = "A dot is a row."
    note += f" {kept.height} of {plural(table.height, 'row')}, evenly spaced." if kept.height < table.height else ""
    note += f" Logarithmic: {', '.join(wide)}." if wide else ""
    return Chart(key, f"Table {name}", spec, sentence, note, frame=table, wide=True, only_page=True)


def _text(value: Any) -> str:
    return "–" if value is None else significant(value, 4) if isinstance(value, float) else str(value)


def _labels(parameter: str, wide: list[str], texts: Mapping[str, list[Any]]) -> str:
    """The label of an axis: of a logarithm its number, of a place among texts the text."""
    label = f"format(datum.value, '{NUMBERS}')"
    if wide:
        chosen = f"indexof({to_json(wide).decode()}, {parameter}) >= 0"
        label = f"{chosen} ? format(pow(10, datum.value), ',.2~r') : {label}"
    for of, values in texts.items():
        names = to_json([_text(value) for value in values]).decode()
        label = f"{parameter} === {to_json(of).decode()} ? ({names}[datum.value] || '') : {label}"
    return label
