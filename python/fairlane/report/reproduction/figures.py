"""Figures of a paper as a page draws them: panels with their columns; boxes as numbers, of many points a part."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from fairlane.plot.boxes import box_numbers, whisker_words, whiskers_of
from fairlane.results.reproduction import FigureData, PanelData
from fairlane.views.scales import is_logarithmic
from fairlane.wording import plural, significant

MOST_ROWS = 4_000
"""Rows of a panel in a page; of more, evenly spaced ones. Of boxes all rows count."""
_ROUNDED = pl.col(pl.Float64).round_sig_figs(5)


def figures_of(figures: Sequence[FigureData]) -> list[dict[str, Any]]:
    """The figures, each with a sentence about its data."""
    return [
        {
            "id": one.file,
            "title": one.title,
            "note": one.note,
            "sentence": _sentence(one),
            "panels": [_panel(panel) for panel in one.panels],
        }
        for one in figures
    ]


def _panel(panel: PanelData) -> dict[str, Any]:
    table = _table(panel)
    shown = _boxes(panel, table) if panel.look["kind"] == "box" else table
    kept = shown.gather_every(max(1, -(-shown.height // MOST_ROWS)))
    kept = kept.with_columns(_ROUNDED)
    return {
        "look": panel.look,
        "columns": kept.to_dict(as_series=False),
        "rows": table.height,
        "shown": kept.height,
        "logarithmic": _logarithmic(panel, table.with_columns(_ROUNDED)),
    }


def _logarithmic(panel: PanelData, table: pl.DataFrame) -> list[list[Any]]:
    """The facets, as values of ``row`` and ``column``, whose values are on a logarithmic axis, as in the PNG file."""
    look = panel.look
    if look["kind"] == "heatmap" or not table.height or not table[look["y"]].dtype.is_numeric():
        return []
    by = [name for name in dict.fromkeys((look["row"], look["column"])) if name]
    facets = table.group_by(by, maintain_order=True) if by else [((), table)]
    found = []
    for key, rows in facets:
        values = rows[look["y"]].drop_nulls().cast(pl.Float64).to_numpy()
        if values.size and values.min() > 0 and is_logarithmic(look["y_scale"], values):
            at = dict(zip(by, key, strict=True))
            found.append([at.get(look["row"]), at.get(look["column"])])
    return found


def _table(panel: PanelData) -> pl.DataFrame:
    return pl.DataFrame(panel.columns, strict=False)


def _boxes(panel: PanelData, table: pl.DataFrame) -> pl.DataFrame:
    """A row for each box: ``q0`` to ``q4`` as the PNG draws them, and ``whiskers``, what the first and the last are.

    Whiskers are by the largest box of a facet, that is of the same ``column`` and ``row``.
    """
    look = panel.look
    by = [name for name in dict.fromkeys((look["x"], look["series"], look["column"], look["row"])) if name]
    facet = [name for name in dict.fromkeys((look["column"], look["row"])) if name]
    kept = [name for name in (*look["lines"], *look["x_lines"]) if name not in by]
    groups = table.group_by(by, maintain_order=True).agg(look["y"], *(pl.col(name).first() for name in kept))
    most = pl.col(look["y"]).list.len().max()
    rows = groups.with_columns(most=most.over(facet) if facet else most).to_dicts()
    made = []
    for row in rows:
        values = np.array([value for value in row.pop(look["y"]) if value is not None], float)
        whiskers = whiskers_of(row.pop("most"))
        numbers = box_numbers(values, whiskers) if values.size else [None] * 5
        made.append(
            row | {f"q{at}": number for at, number in enumerate(numbers)} | {"whiskers": whisker_words(whiskers)}
        )
    return pl.DataFrame(made, infer_schema_length=None)


def _sentence(figure: FigureData) -> str:
    """The range of the first panel's values, and where its ends are."""
    panel = figure.panels[0]
    look, table = panel.look, _table(panel)
    name = look["value"] if look["kind"] == "heatmap" else look["y"]
    if name not in table.columns or not table[name].dtype.is_numeric() or not table[name].count():
        return f"{plural(table.height, 'row')}."
    rows = table.drop_nulls(name).sort(name)
    label = (look["title"] or ("" if look["kind"] == "heatmap" else look["y_label"]) or name).replace("_", " ")
    ends = [
        f"{_value(row[name], look)} ({_where(row, look)})"
        for row in (rows.row(0, named=True), rows.row(-1, named=True))
    ]
    return f"{label[0].upper()}{label[1:]}: from {ends[0]} to {ends[1]}."


def _value(value: float, look: dict[str, Any]) -> str:
    return f"{significant(100 * value)}%" if look["percent"] else significant(value)


def _where(row: dict[str, Any], look: dict[str, Any]) -> str:
    names = [look["row"], look["column"], look["series"], look["x"]]
    names += [look["y"]] if look["kind"] == "heatmap" else []
    parts = []
    for name in dict.fromkeys(one for one in names if one and row.get(one) is not None):
        value = row[name]
        parts.append(f"{name.replace('_', ' ')} {significant(value)}" if isinstance(value, float) else str(value))
    return ", ".join(parts)
