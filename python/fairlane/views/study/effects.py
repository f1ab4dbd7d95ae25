"""Effects of treatments with their intervals: over all jobs, by workload, job and condition; how they vary; by cell.

Means and intervals are those of ``study.replicates``: over placements, or over seeds of a study with one placement.
Which changes are beyond noise is decided over all rows of a level together, as ``statistics.beyond_noise`` says.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any

import altair
import polars as pl

from fairlane.core.statistics import COVERAGE, FALSE_DISCOVERIES, Estimate, beyond_noise
from fairlane.core.wording import listed, percent, plural, seconds, some
from fairlane.results.derive import interval
from fairlane.study.comparison import Comparison, summary
from fairlane.study.conditions import CONDITION
from fairlane.study.replicates import EFFECTS, distinct, estimate
from fairlane.views.charts import (
    Axis,
    Layer,
    caption,
    choice,
    colour,
    ends_of,
    hollow,
    layers,
    long,
    offered,
    ordered,
    outermost,
    rule,
    whiskers,
    with_tooltip,
)
from fairlane.views.heat import MOST_NUMBERS
from fairlane.views.model import Chart
from fairlane.views.study.series import RUN, VALUE, Compared, against, in_words
from fairlane.views.tables import INTERVAL, Column, Row, Table, change, columns, interval_of, with_change

ALL, BY_JOB, BY_CONDITION = "by treatment", "by job", "by condition"
LEVELS = {ALL: (), "by workload": ("workload",), BY_JOB: ("name", "workload"), BY_CONDITION: (CONDITION,)}
"""Rows of a level, besides the series: all of it, workloads, jobs, conditions."""
MOST_ROWS = 120
"""Rows of a level in the chart: of more, those with the greatest and the least effects."""
MOST_CHANGES = 150
"""Changes against another study that are drawn; of more, the greatest gains and losses."""
MOST_NAMES = 8
"""Jobs of one study only that are named."""
MOST_CELLS = 4_000
"""Cells that are shown at a time; of more, columns are conditions in place of points, and then rows are workloads."""
_STRONG = 0.75
"""The share of the greatest effect from which numbers are in the colour of the paper."""
_NOISE = {True: "beyond noise", False: "within noise", None: "not known whether beyond noise"}
_VERDICTS = ("more", "less", "within noise", "no interval")
_MARKS = {"worst": "worst job", "mean": "mean", "best": "best job"}


def effects_of(compared: Compared) -> pl.DataFrame:
    """Rows by ``level`` and series (``run``): W and improvement with intervals, and whether they are beyond noise.

    ``units`` is the number of replicates, ``unit`` what they are.
    """
    several = compared.work.select(pl.struct("run", CONDITION)).n_unique() > len(compared.names)
    rows: list[dict[str, Any]] = []
    for level, by in LEVELS.items():
        if several or level != BY_CONDITION:
            rows += _rows(compared, level, by)
    return pl.DataFrame(rows, infer_schema_length=None)


def _rows(compared: Compared, level: str, by: Sequence[str]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    estimates: dict[str, list[Estimate | None]] = {column: [] for column in EFFECTS}
    for (run, *key), group in compared.work.group_by("run", *by, maintain_order=True):
        of = {"run": run, "name": None, "workload": None, CONDITION: None, **dict(zip(by, key, strict=True))}
        unit = group["unit"][0]
        rows.append({"level": level, **of, "units": distinct(group)[unit].n_unique(), "unit": unit})
        for column in EFFECTS:
            estimates[column].append(estimate(group, column, unit))
    for column, column_estimates in estimates.items():
        verdicts = iter(beyond_noise([effect for effect in column_estimates if effect is not None]))
        for row, effect in zip(rows, column_estimates, strict=True):
            row.update(interval(column, effect), **{f"{column}_beyond": None if effect is None else next(verdicts)})
    return rows


def known(effects: pl.DataFrame, effect: str, level: str = ALL) -> list[dict[str, Any]]:
    """The rows of a level that have an effect, from the least to the greatest."""
    return effects.filter(level=level).drop_nulls(effect).sort(effect, maintain_order=True).to_dicts()


def _by_measure(
    compared: Compared,
    name: str,
    height: int,
    rows: Sequence[Row],
    columns: Sequence[Column],
    marks: Callable[[altair.Chart, Axis, list[altair.Tooltip]], Iterable[Layer]],
    *choices: tuple[altair.Parameter, str],
) -> Callable[[], altair.LayerChart]:
    """A chart of effects in rows of a ``height``, whose measure is chosen, and ``choices``."""

    def spec() -> altair.LayerChart:
        measure = choice(f"{name}_measure", "Measure", [*compared.effects.values()])
        base, tooltip, parameters = offered(rows, columns, measure, *choices)
        axis = Axis.chosen()
        drawn = rule(0.0, axis, vertical=True), caption(f"{name}_measure"), *marks(base, axis, tooltip)
        step = altair.Step(height, **{"for": "position"})
        return layers(step, *drawn, zoom=("x",), choices=parameters)

    return spec


def forest(compared: Compared, effects: pl.DataFrame) -> Chart:
    """Effects with their intervals, in order; measure, rows and treatment are chosen."""
    rows = long(effects, compared.effects, (*INTERVAL, "_beyond")).sort("value", maintain_order=True)
    label = pl.coalesce(CONDITION, "name", "workload")
    several = pl.col("run").n_unique().over("level", "of") > 1
    named = pl.when(several).then(pl.concat_str(label, "run", separator=", ")).otherwise(label)
    shown = rows.filter(outermost(MOST_ROWS, "level", "of")).with_columns(label=pl.coalesce(named, "run"))
    verdict = Column("verdict", lambda row: _NOISE[row["value_beyond"]])
    units = Column("replicates", lambda row: plural(row["units"], row["unit"]))
    told = [Column("row", "label"), VALUE, verdict, units]

    def marks(base: altair.Chart, axis: Axis, tooltip: list[altair.Tooltip]) -> Iterator[Layer]:
        base = base.encode(y=ordered("label", "value"))
        yield whiskers(base, axis, vertical=False)
        coloured = compared.colour(only=compared.with_effect(compared.effect))
        base = base.encode(x=axis.x("value"))
        yield hollow(base.transform_filter("datum.value_beyond !== true"), color=coloured, tooltip=tooltip)
        beyond = base.transform_filter("datum.value_beyond === true").mark_point(size=70)
        yield beyond.encode(color=coloured, tooltip=tooltip)

    level = choice("effects_rows", "Rows", effects["level"].unique(maintain_order=True).to_list(), "level")
    run = choice("effects_run", "Treatment", compared.names, "run", "all" if len(compared.names) > 1 else "")
    spec = _by_measure(compared, "effects", 22, shown.to_dicts(), told, marks, level, run)
    few = f" Of more than {MOST_ROWS} rows, those with the greatest and the least effects."
    note = (
        f"Means over jobs, placements and seeds. Whiskers: {COVERAGE:.0%} interval over {compared.units}; of a single "
        f"run, that within it. Filled: beyond noise (at most {FALSE_DISCOVERIES:.0%} of such findings are expected to "
        f"be false); hollow: within noise, or without an interval.{few if shown.height < rows.height else ''}"
    )
    title = "Effects of the treatments" if compared.treated else "Co-running jobs against isolated ones"
    sentence = effects_sentence(effects, compared.effect)
    return Chart("effects", title, spec, sentence, note, effects.to_dicts(), wide=True, only_page=True)


def effects_sentence(effects: pl.DataFrame, effect: str) -> str:
    """The greatest and the least effect over all jobs."""
    rows = known(effects, effect)
    worst, best = rows[0], rows[-1]
    sentence = f"{best['run']}: {in_words(best, effect)} throughput against {against(effect)}, mean over jobs"
    return f"{sentence}." if len(rows) == 1 else f"{sentence}; {worst['run']}: {in_words(worst, effect)}."


def has_extremes(effects: pl.DataFrame, effect: str) -> bool:
    """Whether several jobs have an effect."""
    return len({row["name"] for row in known(effects, effect, BY_JOB)}) > 1


def _extremes(compared: Compared, effects: pl.DataFrame, of: str) -> list[dict[str, Any]]:
    """For each series with an effect its worst and its best job and the mean; the least cost to a job first."""
    rows = []
    means = {row["run"]: row for row in effects.filter(level=ALL).to_dicts()}
    for run in compared.names:
        jobs = [row for row in known(effects, of, BY_JOB) if row["run"] == run]
        if jobs:
            below = sum(row[of] < 0 for row in jobs)
            three = {"worst": jobs[0], "mean": means[run], "best": jobs[-1]}
            rows.append({"run": run, **three, "below": below, "jobs": len(jobs)})
    return sorted(rows, key=lambda row: -row["worst"][of])


def extremes(compared: Compared, effects: pl.DataFrame) -> Chart:
    """Draw the effects of each treatment on its worst, average and best job."""
    rows = [
        {"of": effect_name, "run": row["run"], "which": which, **interval_of(row[key], of)}
        | {"job": row[key]["name"], "workload": row[key]["workload"], "below": row["below"], "jobs": row["jobs"]}
        | {"worst": row["worst"][of], "best": row["best"][of]}
        for of, effect_name in compared.effects.items()
        for row in _extremes(compared, effects, of)
        for key, which in _MARKS.items()
    ]
    below = Column("below zero", lambda row: f"{row['below']} of {plural(row['jobs'], 'job')}")
    told = [RUN, *columns(which="which", job="job", workload="workload"), VALUE, below]

    def marks(base: altair.Chart, axis: Axis, tooltip: list[altair.Tooltip]) -> Iterator[Layer]:
        base = base.encode(y=ordered("run", "worst"))
        worst = base.transform_filter("datum.which === 'worst job'")
        yield worst.mark_rule(style="muted", strokeWidth=5, opacity=0.35).encode(x=axis.x("worst"), x2="best:Q")
        yield whiskers(worst, axis, vertical=False)
        names = [*_MARKS.values()]
        shapes = altair.Scale(domain=names, range=["triangle-up", "circle", "diamond"])
        colours = altair.Scale(domain=names, range=[altair.ExprRef(f"palette{at}") for at in (1, 7, 0)])
        yield base.mark_point(size=80).encode(
            x=axis.x("value"),
            shape=altair.Shape("which:N", scale=shapes, title=None),
            color=altair.Color("which:N", scale=colours, title=None),
            tooltip=tooltip,
        )

    spec = _by_measure(compared, "extremes", 28, rows, told, marks)
    note = (
        "Jobs are compared by their means over placements and seeds. The treatment that costs its worst job least is "
        f"at the top. Whiskers: {COVERAGE:.0%} interval of the worst job."
    )
    effect_name = _extremes_sentence(effects, compared.effect)
    return Chart("extremes", "Cost to the worst job, gain of the best", spec, effect_name, note, rows, only_page=True)


def extremes_table(compared: Compared, effects: pl.DataFrame) -> Table:
    """The worst and the best job of each treatment by name."""
    of = compared.effect

    def changed(header: str, which: str) -> Column:
        return Column(header, lambda row: in_words(row[which], of))

    shown = [
        RUN,
        Column("worst job", lambda row: row["worst"]["name"], left=True),
        changed("change", "worst"),
        changed("mean over jobs", "mean"),
        Column("best job", lambda row: row["best"]["name"], left=True),
        changed("change", "best"),
        Column("below zero", lambda row: f"{row['below']} of {row['jobs']}", drop=1),
    ]
    title = f"Jobs by treatment: change against {against(of)}"
    sentence, jobs = _extremes_sentence(effects, of), effects.filter(level=BY_JOB)
    return Table(shown, _extremes(compared, effects, of), title, sentence=sentence, data=jobs)


def _extremes_sentence(effects: pl.DataFrame, effect: str) -> str:
    worst, *_, best = known(effects, effect, BY_JOB)
    if worst[effect] >= 0:
        first = f"No treatment costs a job throughput: the least gain is {in_words(worst, effect)}"
        first = first if effect == "improvement" else f"The lowest W is {in_words(worst, effect)}"
        return f"{first} ({worst['name']}, {worst['run']})."
    if effect == "w":
        return f"{worst['name']} loses most against its isolated run: {in_words(worst, effect)} throughput."
    cost = f"{worst['run']} costs {worst['name']} most: {in_words(worst, effect)} throughput"
    return f"{cost}; {best['name']} gains most, {in_words(best, effect)} with {best['run']}."


def replicates(compared: Compared, effects: pl.DataFrame) -> Chart:
    """Each placement's (or seed's) effect, with the mean and its interval: how certain the effects are."""
    by_unit = compared.work.group_by("run", pl.col("replicate").alias("what"), maintain_order=True)
    place = 2 * pl.int_range(pl.len()) / (pl.len() - 1) - 1
    dots = long(by_unit.agg(pl.col(*EFFECTS).mean()), compared.effects, ("",))
    means = long(effects.filter(level=ALL), compared.effects)
    means = means.select("run", "of", pl.lit("mean").alias("what"), *(f"value{end}" for end in INTERVAL))
    every = [dots.with_columns(place=place.over("run", "of").fill_nan(0.0)), means.with_columns(place=0.0)]
    rows = pl.concat(every, how="diagonal").to_dicts()

    def marks(base: altair.Chart, axis: Axis, tooltip: list[altair.Tooltip]) -> Iterator[Layer]:
        offset = altair.YOffset("place:Q", scale=altair.Scale(domain=[-2, 2]))
        base = base.encode(y=altair.Y("run:N", title=None, sort=compared.names), yOffset=offset)
        mean, dots = (base.transform_filter(f"datum.what {sign} 'mean'") for sign in ("===", "!=="))
        coloured = compared.colour(only=compared.with_effect(compared.effect))
        yield dots.mark_point(opacity=0.75).encode(x=axis.x("value"), color=coloured, tooltip=tooltip)
        yield whiskers(mean, axis, vertical=False)
        upright = mean.mark_tick(style="ink", orient="vertical", thickness=3, size=18)
        yield upright.encode(x=axis.x("value"), tooltip=tooltip)

    spec = _by_measure(compared, "replicates", 34, rows, [RUN, Column("of", "what"), VALUE], marks)
    note = (
        f"A dot is the mean over the jobs of one of the {compared.units}. Upright line: mean; whiskers: its "
        f"{COVERAGE:.0%} interval, which needs three {compared.units}."
    )
    sentence = _replicates_sentence(known(effects, compared.effect), compared.effect)
    return Chart("replicates", f"Variation over {compared.units}", spec, sentence, note, rows, only_page=True)


def needed(row: Row, effect: str) -> int | None:
    """About how many placements (or seeds) the interval of a row would need to exclude zero.

    None without an interval, or if it does exclude it. The width falls with the root of their number.
    """
    value, low, high = (row[f"{effect}{end}"] for end in INTERVAL)
    if value is None or low is None or high is None or not value or low > 0 or high < 0:
        return None
    count: int = ceil(row["units"] * ((high - low) / 2 / value) ** 2)
    return count


def _replicates_sentence(rows: Sequence[Row], effect: str) -> str:
    if not any(row[f"{effect}_low"] is not None for row in rows):
        most = max(rows, key=lambda row: row["units"])
        replicates = plural(most["units"], most["unit"])
        return f"There is no interval: with {replicates} it is not known how much effects vary; three are needed."
    counts = [(row, needed(row, effect)) for row in rows]
    unsure = [f"{row['run']} (about {plural(count, row['unit'])})" for row, count in counts if count is not None]
    if not unsure:
        return f"All {len(rows)} intervals exclude zero." if len(rows) > 1 else "1 interval excludes zero."
    sentence = f"The intervals of {listed(unsure)} include zero"
    return f"{sentence}; in brackets what would be needed if the means stay as they are."


def cells_chart(compared: Compared) -> Chart:
    """For each series a heat map with a row for each job and a column for each point; measure and series are chosen.

    A point is a condition with a placement and a seed.
    """
    row, column, cells = _cells(compared)
    greatest = pl.col("value").abs().max().over("of").replace(0.0, 1.0)
    every = long(cells, compared.effects, ("",)).with_columns(greatest=greatest, share=pl.col("value") / greatest)
    rows = every.with_columns(strong=pl.col("share").abs() > _STRONG).drop("greatest").to_dicts()
    across = cells["column"].unique(maintain_order=True).to_list()

    def spec() -> altair.LayerChart:
        treated = compared.with_effect(compared.effect)
        base, tooltip, choices = offered(
            rows,
            [RUN, Column(row, "row"), Column(column, "column"), Column(VALUE.header, "value", change)],
            choice("cells_measure", "Measure", [*compared.effects.values()]),
            choice("cells_run", "Runs", sorted(compared.names, key=lambda name: name not in treated), "run"),
        )
        look = altair.Axis(labelAngle=-60, labelLimit=220, grid=False)
        base = base.encode(
            x=altair.X("column:N", sort=across, title=column, axis=look),
            y=altair.Y("row:N", sort=cells["row"].unique(maintain_order=True).to_list(), title=row),
        )
        high, low = (_end(every, sign) for sign in "+−")
        label = f"datum.value > 0.8 ? {high} : datum.value < -0.9 ? {low} : abs(datum.value + 0.1) < 0.1 ? '0%' : ''"
        legend = altair.Legend(title=None, orient="right", labelExpr=label, gradientLength=160)
        scale = altair.Scale(type="quantize", domain=[-1, 1], range="diverging")
        cell = base.mark_rect().encode(color=altair.Color("share:Q", scale=scale, legend=legend), tooltip=tooltip)
        numbers = [
            base.transform_filter(f"{sign}datum.strong")
            .mark_text(style=style, fontSize=11)
            .encode(text=f"text{len(tooltip) - 1}:N")
            for sign, style in (("!", "text"), ("", "paper"))
        ]
        shown = numbers if len(across) <= MOST_NUMBERS else []
        return layers(altair.Step(24), cell, *shown, zoom=(), choices=choices)

    means = [what for what, wanted in ((row, "job"), (column, "point")) if what != wanted]
    note = "A cell is the change of a job's throughput at one point: a condition with a placement and a seed."
    if means:
        note = f"A cell is the mean change of throughput by {listed(means)}; the CSV has every job and point."
    note += " Blue: more; orange: less. Empty: not compared."
    data = compared.work.select("run", CONDITION, "placement", "seed", "name", "workload", *EFFECTS)
    sentence, title = _cells_sentence(compared), f"Effects by {row} and {column}"
    return Chart("cells", title, spec, sentence, note, data.to_dicts(), wide=True, only_page=True)


def _end(cells: pl.DataFrame, sign: str) -> str:
    """The label of an end of the colours, which depends on what is chosen, as an expression."""
    greatest = cells.group_by("of", maintain_order=True).agg(pl.col("greatest").first()).rows()
    cases = [f"cells_measure === '{case}' ? '{sign}{percent(value)}'" for case, value in greatest]
    return f"({' : '.join([*cases, repr('')])})"


def _cells(compared: Compared) -> tuple[str, str, pl.DataFrame]:
    """Return the meanings of rows and columns, and the effects of each cell of each series."""
    kinds = ("job", "name", "point", "where"), ("job", "name", "condition", CONDITION)
    by_run = [
        (
            row,
            column,
            compared.work.group_by("run", pl.col(of).alias("row"), pl.col(at).alias("column"), maintain_order=True),
        )
        for row, of, column, at in (*kinds, ("workload", "workload", "condition", CONDITION))
    ]
    every = [(row, column, cells.agg(pl.col(*EFFECTS).mean())) for row, column, cells in by_run]
    return next((of for of in every if max(of[2].group_by("run").len()["len"]) <= MOST_CELLS), every[-1])


def _cells_sentence(compared: Compared) -> str:
    values, jobs = compared.work[compared.effect].drop_nulls(), compared.work["name"].n_unique()
    points = sum(study.meta.points for study in compared.studies.values())
    sentence = f"{plural(jobs, 'job')} at {plural(points, 'point')}"
    worse = int((values < 0).sum())
    return f"{sentence}: {worse} of {len(values)} cells have less throughput than {against(compared.effect)}."


def changes_chart(others: Mapping[str, Comparison], note: str) -> Chart:
    """The change of each job from other studies to one, with its interval, as ``fairlane compare`` computes it.

    ``others`` are the comparisons by the name of the other study; ``note`` says what is compared.
    """
    rows = sorted(_changes(others), key=lambda row: row["change"])
    shown = rows if len(rows) <= MOST_CHANGES else [*rows[: MOST_CHANGES // 2], *rows[-MOST_CHANGES // 2 :]]
    told = [Column("job", "label"), Column("change", with_change("change")), *columns(verdict="verdict", of="of")]
    told += columns(seconds, before="before", after="now")

    def spec() -> altair.LayerChart:
        base, tooltip = with_tooltip(shown, told)
        axis = Axis.of([0.0, *ends_of(shown, "change")], "Change of throughput", "change")
        base = base.encode(y=ordered("label", "change", down=False))
        verdicts = colour("verdict", _VERDICTS, greys=_VERDICTS[2:])
        bar = base.mark_bar(size=12).encode(x=axis.x("change"), x2=altair.datum(0), color=verdicts, tooltip=tooltip)
        interval = whiskers(base, axis, "change_low", "change_high", vertical=False)
        return layers(altair.Step(20), rule(0.0, axis, vertical=True), bar, interval, zoom=("x",))

    apart = {name for comparison in others.values() for name in comparison.only_in_one}
    only = f" Jobs of one of the results only: {some(sorted(apart), MOST_NAMES)}." if apart else ""
    few = f" {MOST_CHANGES} of {len(rows):,} changes, the greatest and the least." if len(rows) > MOST_CHANGES else ""
    sentence = " ".join(f"Against {name}: {summary(comparison)}" for name, comparison in others.items())
    about = f"{note} Whiskers: {COVERAGE:.0%} interval.{few}{only}"
    title = f"Change of jobs against {', '.join(others)}"
    return Chart("comparison", title, spec, sentence, about, rows, wide=True, only_page=True)


def _changes(others: Mapping[str, Comparison]) -> Iterator[dict[str, Any]]:
    for name, comparison in others.items():
        for row in comparison.table.iter_rows(named=True):
            parts = [row["name"], row["treatment"], row["condition"], f"against {name}" if len(others) > 1 else None]
            direction = "more" if row["change"] > 0 else "less"
            verdict = {True: direction, False: "within noise", None: "no interval"}[row["beyond_noise"]]
            yield {"label": ", ".join(filter(None, parts)), "against": name, "verdict": verdict, **row}
