"""Effects of each parameter of a study by its values, over all others; shares of the time per iteration.

What controllers did by period is here, too.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import altair
import polars as pl

from fairlane.core.statistics import COVERAGE, SPREAD
from fairlane.core.wording import listed, percent, plural, seconds, time_unit
from fairlane.results.manifest import Sealed
from fairlane.results.parquet import read_tables
from fairlane.results.schemas import STUDY, STUDY_SCHEMA_VERSION
from fairlane.results.study import StudyResults
from fairlane.study.conditions import shown, varied
from fairlane.study.replicates import PACE, over_points
from fairlane.views.charts import (
    CHANGES,
    NUMBERS,
    Axis,
    caption,
    choice,
    colour,
    layers,
    long,
    offered,
    ordered,
    whiskers,
    with_tooltip,
)
from fairlane.views.model import Chart
from fairlane.views.study.series import RUN, WORDS, Compared
from fairlane.views.tables import Column, Estimated, Row, Table, fixed, with_change, with_interval

TIME = PACE[0]
MOST_POINTS = 400
"""Points of a line of periods; of more periods, each point is the mean of some successive ones."""
MOST_TERMS = 8
"""Of a job with more terms, a terminal leaves the others out."""
CERTAIN = 0.05
"""The p below which an effect is beyond chance."""
RESIDUAL = "residual"
_FILE = "effects.parquet"
_VERDICTS = (f"p below {CERTAIN:g}", "chance, or not known")
_TERM = [
    Column("effect of", "term", left=True, wrap=True),
    Column("factor", "factor", fixed(3)),
    Column("share", "share", lambda share: f"{share:.1%}"),
    Column("p", "p", lambda p: f"{p:.2g}"),
]


def sweep_charts(compared: Compared) -> Iterator[Chart]:
    """A chart for each parameter or case; measure and workload are chosen."""
    names = dict.fromkeys(name for study in compared.studies.values() for name in varied(study.work))
    for at, name in enumerate(names):
        yield _sweep(compared, name, "sweeps" if not at else f"sweeps{at}")


def _sweep(compared: Compared, name: str, key: str) -> Chart:
    table, numeric, values = sweep_rows(compared, name)
    factor, unit = time_unit(table[TIME].max() or 1.0)  # type: ignore[arg-type]
    measures = {**compared.effects, TIME: f"Time per iteration [{unit}]"}
    keys = {sentence: measure for measure, sentence in measures.items()}
    rows = long(table, measures).with_columns(measure=pl.col("of").replace_strict(keys)).to_dicts()
    columns = [RUN, Column("workload", "workload"), Column(name, "label"), Column("mean", Estimated("value", _written))]

    def spec() -> altair.LayerChart:
        measure = choice(f"{key}_measure", "Measure", [*keys])
        workloads = table["workload"].unique(maintain_order=True).to_list()
        workload = choice(f"{key}_workload", "Workload", workloads, "workload")
        base, tooltip, choices = offered(rows, columns, measure, workload)
        x: Any = altair.X("label:N", sort=[_label(of) for of in values], title=name, axis=altair.Axis(labelAngle=0))
        if numeric:
            x = Axis.of((float(value) for value in values), name, zero=False).x("at")
        time = f"format(datum.value / {factor}, '{NUMBERS}')"
        y = Axis.chosen(labels=f"{key}_measure === '{measures[TIME]}' ? {time} : {CHANGES}")
        only = compared.with_effect(compared.effect) if compared.effects else None
        base = base.encode(x=x, color=compared.colour(only=only, raised=True))
        return layers(
            300,
            base.mark_line().encode(y=y.y("value")),
            whiskers(base, y, vertical=True),
            caption(f"{key}_measure", vertical=True),
            base.mark_point(size=60).encode(y=y.y("value"), tooltip=tooltip),
            zoom=("x", "y") if numeric else ("y",),
            choices=choices,
        )

    note = (
        f"Means over all other parameters, placements and seeds. Bars: {COVERAGE:.0%} interval over {compared.units}."
    )
    sentence = f"{name} has {plural(len(values), 'value')}: {listed([_label(value) for value in values])}."
    return Chart(key, f"Effects by {name}", spec, sentence, note, rows, picture="sweeps", wide=True, only_page=True)


def _written(row: Row) -> str:
    column = with_interval("value", seconds) if row["measure"] == TIME else with_change("value")
    return column.write(row)


def _label(value: Any) -> str:
    return "none" if value is None else shown(value)


def sweep_rows(compared: Compared, name: str) -> tuple[pl.DataFrame, bool, list[Any]]:
    """Rows by series, workload and value of a parameter (``at``), whether it is a number, and its values in order.

    A row has means of time per iteration, s, W and improvement, with their intervals.
    """
    having = [table for table in compared.tables.values() if name in table.columns]
    alike = len({table[name].dtype for table in having}) == 1
    table = pl.concat(
        over_points(of, ["run", "workload", name], (TIME, *WORDS), of["unit"][0]).with_columns(
            pl.col(name) if alike else pl.col(name).cast(pl.String)
        )
        for of in having
    )
    table = table.drop([f"{TIME}{end}" for end in SPREAD]).rename({name: "at"})
    every = table["at"].unique(maintain_order=True)
    numeric = every.dtype.is_numeric() and not every.has_nulls()
    values = (every.sort() if numeric else every).to_list()
    table = table.with_columns(label=pl.Series([_label(value) for value in table["at"]]))
    order = [values.index(value) for value in table["at"]]
    return table[sorted(range(table.height), key=order.__getitem__)], numeric, values


def periods_chart(compared: Compared) -> Chart | None:
    """Iterations of all jobs from period to period, mean over points; None without a controller."""
    controlled = {name: study.periods for name, study in compared.studies.items() if study.periods.height}
    if not controlled:
        return None
    some = (pl.int_range(pl.len()) // ((pl.len() - 1) // MOST_POINTS + 1)).over("treatment").alias("some")
    table = pl.concat(
        periods.group_by("treatment", "point", "period")
        .agg(pl.col("iterations").sum())
        .group_by("treatment", "period")
        .agg(pl.col("iterations").mean())
        .sort("treatment", "period")
        .group_by("treatment", some, maintain_order=True)
        .agg(pl.col("period", "iterations").mean())
        .select(
            pl.lit(f"{name}: " if compared.several else "").add(pl.col("treatment")).alias("run"),
            "period",
            "iterations",
        )
        for name, periods in controlled.items()
    )
    runs = table["run"].unique(maintain_order=True).to_list()

    def spec() -> altair.LayerChart:
        base, tooltip = with_tooltip(
            table.to_dicts(), [RUN, Column("period", "period"), Column("iterations", "iterations")]
        )
        period = Axis.of(table["period"], "Period", scale="linear", zero=False)
        iterations = Axis.of(table["iterations"], "Iterations", scale="linear")
        coloured = compared.colour(only=runs) if {*runs} <= {*compared.names} else colour("run", runs)
        base = base.encode(x=period.x("period"), y=iterations.y("iterations"), color=coloured)
        return layers(240, base.mark_line(), base.mark_point(size=24).encode(tooltip=tooltip))

    sentence = f"{plural(table['period'].n_unique(), 'period')} of {listed(runs)}."
    note = "Iterations of all jobs in each period, mean over points."
    return Chart("periods", "Iterations by period", spec, sentence, note, table.to_dicts(), only_page=True)


def terms_of(studies: Mapping[str, StudyResults]) -> list[dict[str, Any]]:
    """By job and term: factor, share of the variance and p; none of studies that are not designed.

    Raises ``ResultsError`` if the table has changed since it was written.
    """
    rows = []
    for name, study in studies.items():
        if study.folder is None or not (study.folder / _FILE).is_file():
            continue
        sealed = Sealed.open(study.folder, "study", STUDY_SCHEMA_VERSION)
        terms = read_tables(sealed, {"effects": STUDY["effects"]})["effects"].to_dicts() if _FILE in sealed else []
        rows += [{**row, "job": f"{name}: {row['name']}" if len(studies) > 1 else row["name"]} for row in terms]
    return rows


def terms_table(terms: list[dict[str, Any]]) -> Table:
    """The terms that explain most of each job's time, and what no term explains."""
    rows: list[dict[str, Any]] = []
    for job in dict.fromkeys(row["job"] for row in terms):
        of_job = [row for row in terms if row["job"] == job]
        rows += [row for row in of_job if row["term"] != RESIDUAL][:MOST_TERMS]
        rows += [row for row in of_job if row["term"] == RESIDUAL]
    note = (
        "Factor: time of an iteration at the worst level over that at the best. Share: of the variation of its "
        "logarithm. p: chance of so large a share if there is no effect (F test)."
    )
    title = "Effects on the time per iteration"
    return Table([Column("job", "job", once=True), *_TERM], rows, title, note, sentence=_explained(terms))


def terms_chart(terms: list[dict[str, Any]]) -> Chart:
    """Shares of the variance in a designed study, by factor and pair of factors; the job is chosen."""
    known = [
        {**row, "verdict": _VERDICTS[row["p"] is None or row["p"] >= CERTAIN]}
        for row in terms
        if row["share"] is not None
    ]

    def spec() -> altair.LayerChart:
        job = choice("design_job", "Job", list(dict.fromkeys(row["job"] for row in known)), "job")
        base, tooltip, choices = offered(known, [Column("job", "job"), *_TERM], job)
        share = Axis.of([0.0, *(row["share"] for row in known)], "Share of the variance", "share", scale="linear")
        verdict = colour("verdict", _VERDICTS, greys=_VERDICTS[1:])
        bars = base.mark_bar(size=13).encode(
            x=share.x("share"), x2=altair.datum(0), y=ordered("term", "share"), color=verdict, tooltip=tooltip
        )
        return layers(altair.Step(20), bars, zoom=("x",), choices=choices)

    note = (
        "Share of the variance of the logarithm of the time per iteration, by factor and by pair of factors. Residual: "
        "what is left to chance."
    )
    title = "What explains the time per iteration"
    return Chart("design", title, spec, _explained(terms), note, terms, wide=True, only_page=True)


def _explained(terms: list[dict[str, Any]]) -> str:
    known = [row for row in terms if row["share"] is not None and row["term"] != RESIDUAL]
    if not known:
        return "No factor is separated from the others by the sample."
    most = max(known, key=lambda row: row["share"])
    return f"{most['term']} explains most of the variance for {most['job']}: {percent(most['share'])}."
