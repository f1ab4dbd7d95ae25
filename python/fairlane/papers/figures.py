"""Figures as ``figures.toml`` describes them: charts of queries, checked, with their rows; ``views`` draws them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import polars.selectors as cs

from fairlane.core.errors import Problem
from fairlane.inputs.problems import Problems, under
from fairlane.papers.folder import OWN_FILES, Figure, file_name
from fairlane.papers.planning import Plan
from fairlane.papers.running import Outcome, made
from fairlane.results.parquet import plain_columns
from fairlane.results.reproduction import ChartData, FigureData
from fairlane.study.sql import Database, QueryError
from fairlane.views.vegalite import completed, has_boxes, unknown_fields

MOST_ROWS, MOST_BOXED = 10_000, 100_000
"""Rows of a chart that are kept, and of one with boxes; of more, evenly spaced ones."""
EXTREME = 100
"""Rows at each end of each column of numbers that are kept as well, without boxes."""


def figures_of(plan: Plan, outcome: Outcome) -> tuple[list[FigureData], list[Problem]]:
    """The figures that there are data for, and what is wrong with those that cannot be drawn."""
    figures: list[FigureData] = []
    wrong: list[Problem] = []
    for figure in plan.folder.figures:
        if not made(plan, outcome, figure):
            continue
        try:
            figures += data_of(figure, outcome.tables, [figure_data.file for figure_data in figures])
        except Problems as problems:
            wrong += [problem.under(f"figure {figure.file}") for problem in problems.problems]
        except (KeyError, ValueError, TypeError, pl.exceptions.PolarsError) as error:  # a QueryError is a ValueError
            if isinstance(error, QueryError) and outcome.partial(plan):
                continue
            what = f"there is no column {error}" if isinstance(error, KeyError) else str(error)
            wrong.append(Problem(f"figure {figure.file}", f"cannot be drawn: {what}"))
    file = str(plan.folder.path / "figures.toml")
    return figures, [problem.at(file, None) for problem in wrong]


def data_of(figure: Figure, tables: Database, names: Sequence[str] = ()) -> Iterator[FigureData]:
    """The figures of a description that there are rows for; other ones have ``names``."""
    taken = [*OWN_FILES, *(f"{name}.png" for name in names)]
    for row in _rows(figure, tables):
        taken.append(_named(figure, row, taken))
        yield from _figure(figure, row, tables)


def _named(figure: Figure, row: Mapping[str, Any], taken: Collection[str]) -> str:
    """The file of a figure, with the columns of a row in its name. Raises ``Problems`` if it is none, or ``taken``."""
    name = f"{figure.file.format(**row)}.png"
    with under("file"):
        file_name(name.removesuffix(".png"))
        if name in taken:
            raise Problems(Problem("", "another file has this name", name))
    return name


def _rows(figure: Figure, tables: Database) -> Iterator[Mapping[str, Any]]:
    """The rows with a figure each, each as the table ``this``."""
    rows = tables.ask(figure.each) if figure.each else pl.DataFrame({"one": [1]})
    for row in rows.iter_slices(1):
        tables.put("this", row)
        yield row.row(0, named=True)


def _figure(figure: Figure, row: Mapping[str, Any], tables: Database) -> Iterator[FigureData]:
    """The figure of a row; none if no chart has any rows."""
    charts = [(chart.spec, tables.ask(chart.sql)) for chart in figure.chart]
    wrong = [
        problem.under(f"chart[{at}].spec")
        for at, (spec, rows) in enumerate(charts)
        for problem in unknown_fields(spec, rows.columns)
    ]
    if wrong:
        raise Problems(*wrong)
    kept = [_chart(spec, rows) for spec, rows in charts if rows.height]
    if kept:
        completed(
            [(drawing.spec, pl.DataFrame(drawing.columns, strict=False)) for drawing in kept]
        )  # raises if it cannot be
        texts = {key: getattr(figure, key).format(**row) for key in ("file", "title", "note")}
        yield FigureData(**texts, columns=figure.columns, charts=kept)


def _chart(spec: dict[str, Any], rows: pl.DataFrame) -> ChartData:
    boxed = has_boxes(spec)
    step = max(1, -(-rows.height // (MOST_BOXED if boxed else MOST_ROWS)))
    chosen = [pl.int_range(pl.len()) % step == 0]
    if step > 1 and not boxed:  # of boxes they would move the quantiles
        numbers = [pl.col(name) for name in rows.select(cs.numeric()).columns]
        chosen += [of.rank("ordinal", descending=down) <= EXTREME for of in numbers for down in (False, True)]
    kept = rows.filter(pl.any_horizontal(chosen)).with_columns(cs.float().fill_nan(None))
    return ChartData(spec=spec, columns=plain_columns(kept), rows=rows.height)
