"""The data of figures, which pages draw anew."""

from collections.abc import Sequence

import polars as pl

from fairlane.reproduce.folder import Panel
from fairlane.results.plain import plain_columns
from fairlane.results.reproduction import FigureData, PanelData

MOST_ROWS = 100_000
"""Rows of a panel that are kept; of more, evenly spaced ones."""


def figure_of(file: str, title: str, note: str, blocks: Sequence[tuple[Panel, pl.DataFrame]]) -> FigureData:
    """A figure's data: of each panel the columns that it shows."""
    return FigureData(file=file, title=title, note=note, panels=[_panel(panel, data) for panel, data in blocks])


def _panel(panel: Panel, data: pl.DataFrame) -> PanelData:
    shown = [
        panel.x,
        panel.y,
        panel.series,
        panel.low,
        panel.high,
        panel.column,
        panel.row,
        *panel.lines,
        *panel.x_lines,
    ]
    shown += [panel.value] if panel.kind == "heatmap" else []
    names = [name for name in dict.fromkeys(shown) if name in data.columns]
    kept = data.select(names).gather_every(max(1, -(-data.height // MOST_ROWS)))
    return PanelData(look=panel.model_dump(exclude={"sql"}), columns=plain_columns(kept))
