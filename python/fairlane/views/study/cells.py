"""Effects by cell: for each series a heat map with a row for each job and a column for each point.

A point is a condition with a placement and a seed.
"""

from collections.abc import Mapping
from typing import Any

import altair
import polars as pl

from fairlane.study.conditions import CONDITION
from fairlane.study.replication import EFFECTS
from fairlane.views.charts import Layer, chart, choice, described, layers
from fairlane.views.model import Chart
from fairlane.views.study.effects import placement_name
from fairlane.views.study.series import RUN, VALUE, WORDS, Compared, Series, against
from fairlane.views.tables import Column, change
from fairlane.wording import listed, percent, plural

MOST_CELLS = 4_000
"""Cells that are shown at a time; of more, columns are conditions in place of points, and then rows are workloads."""
MOST_NUMBERS = 12
"""Columns up to which cells have numbers."""
_STRONG = 0.75
"""The share of the greatest effect from which numbers are in the colour of the paper."""


def cells_chart(compared: Compared) -> Chart:
    """The heat map; measure and series are chosen."""
    row, column, cells = _cells(compared)
    measures = {name: WORDS[name] for name in compared.effects}
    rows, columns = ([*dict.fromkeys(cell[name] for cell in cells)] for name in ("row", "column"))
    greatest = {
        of: max((abs(cell[of]) for cell in cells if cell[of] is not None), default=0.0) or 1.0 for of in measures
    }
    long = []
    for cell in cells:
        for of, words in measures.items():
            if cell[of] is not None:
                share = cell[of] / greatest[of]
                shared = {"run": cell["run"], "row": cell["row"], "column": cell["column"], "of": words}
                long.append({**shared, "value": cell[of], "share": share, "strong": abs(share) > _STRONG})

    def spec() -> altair.LayerChart:
        told, tooltip = described(
            long, [RUN, Column(row, "row"), Column(column, "column"), Column(VALUE.header, "value", change)]
        )
        measure, chosen = choice("cells_measure", "Measure", list(measures.values()))
        treated = [name for name in compared.names if name in compared.with_effect(compared.effects[0])]
        run, chosen_run = choice(
            "cells_run", "Runs", [*treated, *(name for name in compared.names if name not in treated)], "run"
        )
        base = (
            chart(told)
            .transform_filter(f"{chosen} && {chosen_run}")
            .encode(
                x=altair.X(
                    "column:N", sort=columns, title=column, axis=altair.Axis(labelAngle=-60, labelLimit=220, grid=False)
                ),
                y=altair.Y("row:N", sort=rows, title=row),
            )
        )
        high, low = (_end(measures, greatest, sign) for sign in "+−")
        label = f"datum.value > 0.8 ? {high} : datum.value < -0.9 ? {low} : abs(datum.value + 0.1) < 0.1 ? '0%' : ''"
        legend = altair.Legend(title=None, orient="right", labelExpr=label, gradientLength=160)
        scale = altair.Scale(type="quantize", domain=[-1, 1], range="diverging")
        every: list[Layer] = [
            base.mark_rect()
            .encode(color=altair.Color("share:Q", scale=scale, legend=legend), tooltip=tooltip)
            .add_params(measure, run)
        ]
        if len(columns) <= MOST_NUMBERS:
            for sign, style in (("!", "text"), ("", "paper")):
                numbers = base.transform_filter(f"{sign}datum.strong").mark_text(style=style, fontSize=11)
                every.append(numbers.encode(text=f"text{len(tooltip) - 1}:N"))
        return layers(0, *every, zoom=()).properties(height=altair.Step(24))

    means = [what for what, wanted in ((row, "job"), (column, "point")) if what != wanted]
    note = "A cell is the change of a job's throughput at one point: a condition with a placement and a seed."
    note = (
        f"A cell is the mean change of throughput by {listed(means)}; the CSV has every job and point."
        if means
        else note
    )
    note += " Blue: more; orange: less. Empty: not compared."
    data = [one for series in compared.series for one in _all(series)]
    title = f"Effects by {row} and {column}"
    return Chart("cells", title, spec, _sentence(compared), note, data, wide=True, only_page=True)


def _end(measures: Mapping[str, str], greatest: Mapping[str, float], sign: str) -> str:
    """The label of an end of the colours, which depends on what is chosen, as an expression."""
    cases = [f"cells_measure === '{words}' ? '{sign}{percent(greatest[of])}'" for of, words in measures.items()]
    return f"({' : '.join([*cases, repr('')])})"


def _all(series: Series) -> list[dict[str, Any]]:
    """A row for each job and point of a series."""
    work = series.work.select(
        pl.lit(series.name).alias("run"), CONDITION, "placement", "seed", "name", "workload", *EFFECTS
    )
    return work.to_dicts()


def _cells(compared: Compared) -> tuple[str, str, list[dict[str, Any]]]:
    """What rows and columns are, and the effects of each cell of each series."""
    for row, column in (("job", "point"), ("job", "condition"), ("workload", "condition")):
        keys = ["name" if row == "job" else row, "point" if column == "point" else CONDITION]
        size = max(one.work.select(key).n_unique() for one in compared.series for key in [keys])
        if size <= MOST_CELLS:
            break
    cells = []
    for series in compared.series:
        labels = _labels(series) if column == "point" else {}
        means = series.work.group_by(keys, maintain_order=True).agg(pl.col(*EFFECTS).mean())
        for name, key, *effects in means.iter_rows():
            label = labels.get(key, key)
            cells.append({"run": series.name, "row": name, "column": label, **dict(zip(EFFECTS, effects, strict=True))})
    return row, column, cells


def _labels(series: Series) -> dict[int, str]:
    """Each point in words: those of condition, placement and seed of which there are several."""
    work = series.results.work
    placements, seeds = (work[name].n_unique() > 1 for name in ("placement", "seed"))
    several = series.work[CONDITION].n_unique() > 1
    names = series.results.meta.placements
    found = {}
    for row in series.work.unique("point", maintain_order=True).iter_rows(named=True):
        parts = [row[CONDITION]] if several else []
        parts += [f"placement: {placement_name(names, row['placement'])}"] if placements else []
        parts += [f"seed {row['seed']}"] if seeds else []
        found[row["point"]] = ", ".join(parts) or f"point {row['point']}"
    return found


def _sentence(compared: Compared) -> str:
    effect = compared.effects[0]
    values = pl.concat([one.work[effect].drop_nulls() for one in compared.series])
    jobs = len({name for one in compared.series for name in one.work["name"]})
    points = sum(study.meta.points for study in compared.studies.values())
    words = f"{plural(jobs, 'job')} at {plural(points, 'point')}"
    worse = int((values < 0).sum())
    return f"{words}: {worse} of {len(values)} cells have less throughput than {against(effect)}."
