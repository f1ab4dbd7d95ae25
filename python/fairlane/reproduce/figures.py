"""Figures as ``figures.toml`` describes them: boxes, strips, points, bars, lines and heat maps of queries."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import StrMethodFormatter

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems, under
from fairlane.plot.boxes import draw_boxes, spread, whiskers_of
from fairlane.plot.files import write
from fairlane.plot.heat import draw_heat
from fairlane.plot.style import INK, LETTERS_AN_INCH, PALETTE, canvas, headline_of, percentages, plain_ticks
from fairlane.reproduce.figure_data import figure_of
from fairlane.reproduce.folder import OWN_FILES, Figure, Panel, file_name
from fairlane.reproduce.planning import Plan
from fairlane.reproduce.running import Outcome, made
from fairlane.results.reproduction import FigureData
from fairlane.study.sql import Database, QueryError
from fairlane.views.scales import is_logarithmic

Floats = npt.NDArray[np.float64]
GROUP = 0.84
"""Share of a category's width that its boxes or bars take."""
MARGIN = 0.05
"""Above the greatest value, as a share of it, where an axis begins at zero."""
MARKERS = "osD^vP*X"


@dataclass(frozen=True)
class Picture:
    """A figure in the folder of a reproduction."""

    file: str
    title: str
    data: FigureData | None = None
    """What it shows, for pages that draw it anew."""


@dataclass(frozen=True)
class Series:
    """Rows of one colour."""

    name: str
    colour: str
    rows: pl.DataFrame
    number: int
    of: int

    @property
    def shift(self) -> float:
        """Offset of boxes or bars from the centre of their category."""
        return (self.number - (self.of - 1) / 2) * GROUP / self.of


def draw_all(plan: Plan, outcome: Outcome, folder: Path) -> tuple[list[Picture], list[Problem]]:
    """Draws the figures that there are data for; also returns what is wrong with those that cannot be drawn."""
    found: list[Picture] = []
    wrong: list[Problem] = []
    for figure in plan.folder.figures:
        if not made(plan, outcome, figure):
            continue
        try:
            for row in _rows(figure, outcome.tables):
                _named(figure, row, [*OWN_FILES, *(one.file for one in found)])
                picture = _draw(figure, row, outcome.tables, folder)
                found += [picture] if picture else []
        except Problems as problems:
            wrong += [problem.under(f"figure {figure.file}") for problem in problems.problems]
        except (KeyError, ValueError, pl.exceptions.PolarsError) as error:  # a QueryError is a ValueError
            if isinstance(error, QueryError) and outcome.partial(plan):
                continue
            what = f"there is no column {error}" if isinstance(error, KeyError) else str(error)
            wrong.append(Problem(f"figure {figure.file}", f"cannot be drawn: {what}"))
    file = str(plan.folder.path / "figures.toml")
    return found, [problem.at(file, None) for problem in wrong]


def _named(figure: Figure, row: Mapping[str, Any], taken: Collection[str]) -> None:
    """Raises ``Problems`` if a figure, with the columns of a row in its name, would be no new file in the folder."""
    name = figure.file.format(**row)
    with under("file"):
        file_name(name)
        if f"{name}.png" in taken:
            raise Problems(Problem("", "another file has this name", f"{name}.png"))


def _rows(figure: Figure, tables: Database) -> Iterator[Mapping[str, Any]]:
    """The rows with a figure each, each as the table ``this``."""
    rows = tables.ask(figure.each) if figure.each else pl.DataFrame({"one": [1]})
    for row in rows.iter_slices(1):
        tables.put("this", row)
        yield row.row(0, named=True)


def _draw(figure: Figure, row: Mapping[str, Any], tables: Database, folder: Path) -> Picture | None:
    """Draws one file; None if no panel has any rows."""
    blocks = [(panel, tables.ask(panel.sql)) for panel in figure.panel]
    for at, (panel, data) in enumerate(blocks):
        _check_columns(at, panel, data.columns)
    blocks = [(panel, data) for panel, data in blocks if data.height]
    if not blocks:
        return None
    title, note = figure.title.format(**row), figure.note.format(**row)

    def make() -> Canvas:
        drawn = canvas(figure.width, figure.height)
        columns = [_values(data, panel.column) for panel, data in blocks]
        rows = [_values(data, panel.row) for panel, data in blocks]
        grid = drawn.add_gridspec(max(map(len, rows)), sum(map(len, columns)))
        legend: dict[str, Any] = {}
        start = 0
        for (panel, data), across, down in zip(blocks, columns, rows, strict=True):
            for at, column in enumerate(across):
                for below, line in enumerate(down):
                    axes = drawn.add_subplot(grid[below, start + at])
                    part = _part(_part(data, panel.column, column), panel.row, line)
                    legend |= _panel(axes, panel, part, _values(data, panel.series))
                    _label(axes, panel, (column, line), first=at == 0, top=below == 0, bottom=line == down[-1])
                if panel.same_scale:
                    _same_scale(drawn.axes[-len(down) :])
            start += len(across)
        if len(legend) > 1:
            _legend(drawn, legend, title)
        headline_of(drawn, title, note)
        return drawn

    name = figure.file.format(**row)
    file = f"{name}.png"
    write(make, folder / file)
    return Picture(file, title, figure_of(name, title, note, blocks))


def _check_columns(at: int, panel: Panel, columns: Sequence[str]) -> None:
    """Raises ``Problems`` for a column that the query of a panel does not have."""
    keys = ["x", "y", "series", "low", "high", "column", "row", *(["value"] if panel.kind == "heatmap" else [])]
    named = [(key, getattr(panel, key)) for key in keys]
    named += [(key, name) for key in ("lines", "x_lines") for name in getattr(panel, key)]
    wrong = [
        Problem.unknown(f"panel[{at}].{key}", "column of the query", name, columns, name)
        for key, name in named
        if name is not None and name not in columns
    ]
    if wrong:
        raise Problems(*wrong)


def _same_scale(column: Sequence[Axes]) -> None:
    """The same limits for the values of all panels of a column."""
    limits = [axes.get_ylim() for axes in column]
    for axes in column:
        axes.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))


def _legend(drawn: Canvas, legend: Mapping[str, Any], title: str) -> None:
    """On the title's line if it fits, else at the right."""
    letters = len(title) * 1.6 + sum(len(name) + 4 for name in legend)
    fits = letters < LETTERS_AN_INCH * drawn.get_figwidth()
    look: dict[str, Any] = {"loc": "outside right upper"}
    if fits:
        look = {"loc": "outside upper right", "ncols": len(legend)}
    look |= {"columnspacing": 1.2, "handletextpad": 0.2}
    drawn.legend(list(legend.values()), list(legend), frameon=False, fontsize=10, **look)


def _values(data: pl.DataFrame, column: str | None) -> list[Any]:
    """The values of a column in order of appearance; without a column, one value for all rows."""
    return [None] if column is None else data[column].unique(maintain_order=True).to_list()


def _part(data: pl.DataFrame, column: str | None, value: Any) -> pl.DataFrame:
    return data if column is None else data.filter(pl.col(column).eq_missing(pl.lit(value)))


def _label(axes: Axes, panel: Panel, of: tuple[Any, Any], *, first: bool, top: bool, bottom: bool) -> None:
    """Titles and labels: those of columns at the top, those of rows at the left."""
    column, row = of
    title = panel.title or ("" if column is None else str(column))
    if top and title:
        axes.set_title(title.replace("_", " "), loc="left", fontsize=12)
    if first:
        axes.set_ylabel("\n".join(it for it in ("" if row is None else str(row), panel.y_label) if it))
    if bottom and panel.x_label:
        axes.set_xlabel(panel.x_label)


def _panel(axes: Axes, panel: Panel, data: pl.DataFrame, names: Sequence[Any]) -> dict[str, Any]:
    """Draws one panel; its legend."""
    if panel.kind == "heatmap":
        _heatmap(axes, panel, data)
        return {}
    palette = {name: panel.colours.get(str(name), PALETTE[at % len(PALETTE)]) for at, name in enumerate(names)}
    series = [
        Series(str(name), palette[name], _part(data, panel.series, name), at, len(names))
        for at, name in enumerate(names)
    ]
    categories = None if data[panel.x].dtype.is_numeric() else _values(data, panel.x)
    _KINDS[panel.kind](axes, panel, series, categories)
    if categories is not None:
        axes.set_xticks(range(len(categories)), [str(name).replace("_", "\n") for name in categories])
        axes.set_xlim(-0.6, len(categories) - 0.4)
    for column in panel.lines:
        axes.axhline(data[column][0], color=INK, linestyle="--", linewidth=1.2)
    for column in panel.x_lines:
        axes.axvline(data[column][0], color=INK, linestyle="--", linewidth=1.2)
    _scales(axes, panel, data[panel.y])
    axes.grid(axis="y")
    if panel.series is None:
        return {}
    square: dict[str, Any] = {"marker": "s", "s": 80, "edgecolors": INK, "linewidths": 0.5}
    shown = [one for one in series if one.rows.height]
    return {one.name.replace("_", " "): axes.scatter([], [], color=one.colour, **square) for one in shown}


def _scales(axes: Axes, panel: Panel, values: pl.Series) -> None:
    if panel.x_scale != "linear":
        axes.set_xscale("log", base=2 if panel.x_scale == "log2" else 10)
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    numbers = values.drop_nulls().to_numpy() if values.dtype.is_numeric() else np.zeros(0)
    if is_logarithmic(panel.y_scale, numbers):
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
    elif panel.y_scale != "linear":
        axes.set_ylim(0, max(axes.get_ylim()[1], (1 + MARGIN) * numbers.max(initial=0)))
    if panel.percent:
        percentages(axes.yaxis, signed=panel.y_scale == "linear")


def _places(rows: pl.DataFrame, x: str, categories: Sequence[Any] | None) -> Floats:
    """Positions of rows along the axis: their values, or the indices of their categories."""
    given = rows[x].to_list()
    return np.array(given if categories is None else [categories.index(it) for it in given], np.float64)


def _box(axes: Axes, panel: Panel, series: Sequence[Series], categories: Sequence[Any] | None) -> None:
    """Quartiles and medians, with whiskers by the number of values (``whiskers_of``)."""
    whiskers = whiskers_of(max(count for one in series for count in [0, *Counter(one.rows[panel.x]).values()]))
    width = 0.85 * GROUP / series[0].of
    for one in series:
        names = categories or sorted(set(one.rows[panel.x].to_list()))
        groups = [one.rows.filter(pl.col(panel.x) == name)[panel.y].drop_nulls().to_numpy() for name in names]
        places = [at + one.shift for at in (range(len(names)) if categories else names)]
        draw_boxes(axes, groups, [one.colour] * len(groups), positions=places, width=width, whiskers=whiskers)


def _strip(axes: Axes, panel: Panel, series: Sequence[Series], categories: Sequence[Any] | None) -> None:
    """A dot for every value, with a small random offset within its category."""
    for one in series:
        scattered = spread(one.rows.height, 0.3 * GROUP / one.of)
        places = _places(one.rows, panel.x, categories) + one.shift + scattered
        axes.scatter(places, one.rows[panel.y], s=14, color=one.colour, alpha=0.6, linewidths=0, zorder=3)


def _scatter(axes: Axes, panel: Panel, series: Sequence[Series], categories: Sequence[Any] | None) -> None:
    """Points, with intervals where there are some."""
    size = 36 if sum(one.rows.height for one in series) <= 200 else 7
    for one in series:
        places = _places(one.rows, panel.x, categories)
        axes.scatter(places, one.rows[panel.y], s=size, color=one.colour, alpha=0.75, linewidths=0, zorder=3)
        if panel.low and panel.high:
            axes.vlines(places, one.rows[panel.low], one.rows[panel.high], color=one.colour, linewidth=1)


def _bars(axes: Axes, panel: Panel, series: Sequence[Series], categories: Sequence[Any] | None) -> None:
    """Bars, grouped or stacked, with intervals where there are some.

    Groups are centred on their category, also where some series have no bar in it.
    """
    numeric = categories is None
    base: dict[float, float] = {}
    of = Counter(place for one in series for place in {*_places(one.rows, panel.x, categories)})
    before: Counter[float] = Counter()
    for one in series:
        places, heights = _places(one.rows, panel.x, categories), one.rows[panel.y].to_numpy()
        if panel.stacked or numeric:
            bottom = [base.get(place, 0.0) for place in places] if panel.stacked else 0.0
            axes.bar(places, heights, bottom=bottom, width=0.9, color=one.colour, linewidth=0)
            base |= {place: base.get(place, 0.0) + height for place, height in zip(places, heights, strict=True)}
        else:
            shifts = [(before[place] - (of[place] - 1) / 2) * GROUP / one.of for place in places]
            before.update({*places})
            places = places + shifts
            axes.bar(places, heights, width=0.9 * GROUP / one.of, color=one.colour)
        if panel.low and panel.high:
            axes.vlines(places, one.rows[panel.low], one.rows[panel.high], color=INK, linewidth=1.3)


def _lines(axes: Axes, panel: Panel, series: Sequence[Series], categories: Sequence[Any] | None) -> None:
    """Lines through points, with a band where there is one."""
    for one in series:
        places = _places(one.rows, panel.x, categories)
        marker = MARKERS[one.number % len(MARKERS)]
        axes.plot(places, one.rows[panel.y], color=one.colour, marker=marker, markersize=5, linewidth=1.6)
        if panel.low and panel.high:
            low, high = one.rows[panel.low].to_numpy(), one.rows[panel.high].to_numpy()
            axes.fill_between(places, low, high, color=one.colour, alpha=0.25, linewidth=0)


def _heatmap(axes: Axes, panel: Panel, data: pl.DataFrame) -> None:
    """A colour for each pair of categories."""
    across, down = _values(data, panel.x), _values(data, panel.y)
    values = np.full((len(down), len(across)), np.nan)
    for x, y, value in data.select(panel.x, panel.y, panel.value).iter_rows():
        if value is not None and (value > 0 or panel.y_scale != "log"):
            values[down.index(y), across.index(x)] = value
    scale = LogNorm if panel.y_scale == "log" else Normalize
    norm = scale(np.nanmin(values), np.nanmax(values)) if np.isfinite(values).any() else Normalize(0, 1)
    draw_heat(axes, np.ma.masked_invalid(values), norm, aspect="auto")
    for axis, names in ((axes.xaxis, across), (axes.yaxis, down)):
        shown = [*range(len(names))] if len(names) <= 12 else [*range(0, len(names), -(-len(names) // 8))]
        axis.set_ticks(shown, [str(names[at]) for at in shown])


_KINDS: Mapping[str, Callable[[Axes, Panel, Sequence[Series], Sequence[Any] | None], None]] = {
    "box": _box,
    "strip": _strip,
    "scatter": _scatter,
    "bars": _bars,
    "lines": _lines,
}
"""How each kind is drawn."""
