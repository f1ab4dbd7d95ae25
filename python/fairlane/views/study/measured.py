"""Tables that a study measures: each as a chart of two of its columns, which are chosen, and as rows."""

from collections.abc import Iterator, Mapping
from typing import Any

import altair
import polars as pl

from fairlane.results.study import StudyResults
from fairlane.views.charts import NUMBERS, RAISED, Axis, Layer, caption, chart, choice, described, layers
from fairlane.views.model import Chart
from fairlane.views.scales import is_wide
from fairlane.views.tables import Column, Table
from fairlane.wording import plural, significant

MOST_SERIES = 8
"""Colours of a chart."""
MOST_DOTS = 2_000
"""Rows of a table that have a dot; of more, evenly spaced ones."""
MOST_MEASURED = 24
"""Rows of a table that a terminal shows."""
STUDY = "study"
_NONE = "none"


def measured_tables(studies: Mapping[str, StudyResults]) -> dict[str, pl.DataFrame]:
    """The tables by name, those of several studies as one."""
    found: dict[str, list[pl.DataFrame]] = {}
    for name, study in studies.items():
        for key, table in (study.measured or {}).items():
            own = table.select(pl.lit(name).alias(STUDY), pl.all()) if len(studies) > 1 else table
            found.setdefault(key, []).append(own)
    return {key: pl.concat(tables, how="diagonal_relaxed") for key, tables in found.items()}


def rows_table(name: str, table: pl.DataFrame) -> Table:
    """The rows of a table, without conditions that are the same in all of them."""
    conditions = table.columns[: table.columns.index("seed") + 1]
    same = [key for key in conditions if key == "point" or table[key].n_unique() < 2]
    shown = [Column(key, key, left=not kind.is_numeric()) for key, kind in table.schema.items() if key not in same]
    words = f"{plural(table.height, 'row')}, {plural(table.width, 'column')}."
    return Table(shown, table.to_dicts(), name, sentence=words, most=MOST_MEASURED, data=table)


def measured_charts(tables: Mapping[str, pl.DataFrame]) -> Iterator[Chart]:
    """Of each table with numbers a chart of two columns, and of one that gives colours."""
    for at, (name, table) in enumerate(tables.items()):
        numbers = [key for key, kind in table.schema.items() if kind.is_numeric() and table[key].count()]
        if table.height and numbers:
            yield _chart(f"measured{at or ''}", name, table, numbers)


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


def _chart(key: str, name: str, table: pl.DataFrame, numbers: list[str]) -> Chart:
    """Dots of two columns. Text columns are at whole numbers, by the order of their values."""
    x, y, series = usual(table, numbers)
    texts = {
        key: table[key].drop_nulls().unique(maintain_order=True).to_list()
        for key in table.columns
        if key not in numbers
    }
    wide = [of for of in numbers if is_wide(float(table[of].min()), float(table[of].max()))]  # type: ignore[arg-type]
    kept = table.gather_every(-(-table.height // MOST_DOTS))
    places = kept.with_columns(
        *(pl.col(of).log10() for of in wide),
        *(
            pl.col(of).replace_strict(values, list(range(len(values))), default=None, return_dtype=pl.Int64)
            for of, values in texts.items()
        ),
    )
    columns = {of: f"c{at}" for at, of in enumerate(table.columns)}
    rows = [
        {columns[of]: value for of, value in place.items()}
        | {f"t{columns[of]}": _text(value) for of, value in row.items()}
        for place, row in zip(places.to_dicts(), kept.to_dicts(), strict=True)
    ]

    def spec() -> altair.LayerChart:
        told, tooltip = described(rows, [Column(of, f"t{columns[of]}") for of in table.columns])
        few = [of for of in table.columns if 1 < table[of].n_unique() <= MOST_SERIES]
        across = choice(f"{key}_x", "Horizontal", _first(x, [*texts, *numbers]))[0]
        along = choice(f"{key}_y", "Vertical", _first(y, numbers))[0]
        colours = choice(f"{key}_colours", "Colours", _first(series, [*few, _NONE]))[0]
        field = {end: _lookup(columns, f"{key}_{end}") for end in ("x", "y")}
        base = (
            chart(told)
            .transform_calculate(x=f"datum[{field['x']}]", y=f"datum[{field['y']}]")
            .transform_calculate(
                series=f"{key}_colours === '{_NONE}' ? '{name}' : datum['t' + {_lookup(columns, f'{key}_colours')}]"
            )
            .transform_filter("isValid(datum.x) && isValid(datum.y)")
        )
        labels = {end: _labels(f"{key}_{end}", wide, texts) for end in ("x", "y")}
        coloured = altair.Color("series:N", legend=altair.Legend(title=None, offset=RAISED))
        every: list[Layer] = [
            caption(f"{key}_x"),
            caption(f"{key}_y", vertical=True),
            base.mark_point(size=26, opacity=0.75)
            .encode(
                x=Axis.chosen(labels["x"]).x("x"), y=Axis.chosen(labels["y"]).y("y"), color=coloured, tooltip=tooltip
            )
            .add_params(across, along, colours),
        ]
        return layers(340, *every)

    known = table[y].drop_nulls()
    least, most = (significant(float(end)) for end in (known.min(), known.max()))  # type: ignore[arg-type]
    words = f"{y} from {least} to {most} in {plural(table.height, 'row')}."
    note = "A dot is a row."
    note += f" {kept.height} of {plural(table.height, 'row')}, evenly spaced." if kept.height < table.height else ""
    note += f" Logarithmic: {', '.join(wide)}." if wide else ""
    return Chart(key, f"Table {name}", spec, words, note, table.to_dicts(), wide=True, only_page=True)


def _first(name: str, names: list[str]) -> list[str]:
    return [name, *(other for other in names if other != name)]


def _text(value: Any) -> str:
    return "–" if value is None else significant(value, 4) if isinstance(value, float) else str(value)


def _lookup(columns: Mapping[str, str], parameter: str) -> str:
    """The field of the column that is chosen, as an expression."""
    return f"({{{', '.join(f'{_quoted(of)}: {_quoted(field)}' for of, field in columns.items())}}})[{parameter}]"


def _labels(parameter: str, wide: list[str], texts: Mapping[str, list[Any]]) -> str:
    """The label of an axis: of a logarithm its number, of a place among texts the text."""
    from pydantic_core import to_json

    number = f"format(datum.value, '{NUMBERS}')"
    if wide:
        chosen = f"indexof({to_json(wide).decode()}, {parameter}) >= 0"
        number = f"{chosen} ? format(pow(10, datum.value), ',.2~r') : {number}"
    for of, values in texts.items():
        names = to_json([_text(value) for value in values]).decode()
        number = f"{parameter} === {_quoted(of)} ? ({names}[datum.value] || '') : {number}"
    return number


def _quoted(text: str) -> str:
    from pydantic_core import to_json

    return to_json(text).decode()
