"""Parts of charts: axes whose scale, unit and ticks are decided here, whiskers, tooltips, zoom.

A chart is an ``altair.LayerChart`` without width, colours and fonts, which writers add. Values are in base units
(seconds, shares); an axis has the unit.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import ceil, floor, log10, sqrt
from typing import Any, Literal, cast

import altair
import polars as pl
from altair import Undefined

from fairlane.core.wording import duration_unit, time_unit
from fairlane.views.style import LIGHT, is_wide, steps
from fairlane.views.tables import INTERVAL, Column, Row

MARGIN = 0.04
"""Margin of an axis beyond its values, as a share of its length."""
RAISED = 30
"""Distance of a legend from a chart, px, that leaves room for a ``caption``."""
_LEGEND = 480
"""Room for a legend, px."""
PANEL = 640
"""Width of the only panel of a picture, without its axis, pixels."""
WHEEL = "wheel![event.ctrlKey || event.metaKey || event.shiftKey]"
DRAG = "[pointerdown[event.pointerType !== 'touch'], window:pointerup] > window:pointermove!"
CLEAR = "dblclick, window:input"
"""Events that zoom and move axes, and take that back: the wheel alone, and a touch, scroll the page."""
NUMBERS = ",.6~r"
SHARES = ".6~%"
Layer = altair.Chart | altair.LayerChart
Kind = Literal["number", "count", "share", "change", "time", "duration"]
"""A time is in s or its parts, a duration in units from s to days; a count has whole numbers only."""
_FORMATS = {"number": NUMBERS, "count": ",d", "share": SHARES}
CHANGES = f"datum.value ? format(datum.value, '+{SHARES}') : '0%'"
"""The label of a change: a share with its sign."""
_COLOURS, _GREYS = len(LIGHT.palette), 2
"""Colours and greys of the configuration (``views.style``)."""
_DURATIONS = {1.0: "s", 60.0: "min", 3600.0: "h", 86400.0: "d"}
"""Units of the labels of a logarithmic axis, which are at 1 and 10 of each and at powers of ten of days."""


@dataclass(frozen=True)
class Axis:
    """An axis for values."""

    title: str
    kind: Kind
    low: float
    high: float
    log: bool
    factor: float = 1.0
    """Of the unit of labels."""
    free: str = ""
    """The expression of a label, if its ends are those of the rows that are shown, in place of ``low`` and ``high``."""

    @classmethod
    def of(
        cls,
        values: Iterable[float | None],
        title: str,
        kind: Kind = "number",
        *,
        scale: Literal["auto", "linear", "log"] = "auto",
        zero: bool = True,
    ) -> "Axis":
        """An axis that all these values fit on; logarithmic by ``scale``, of ``auto`` where they differ much.

        With ``zero``, a linear axis begins at 0 unless some value is less.
        """
        known = [value for value in values if value is not None] or [1.0]
        low, high = min(known), max(known)
        log = low > 0 and (scale == "log" or (scale == "auto" and is_wide(low, high)))
        factor, unit = 1.0, ""
        if kind == "time":
            factor, unit = time_unit(sqrt(low * high) if log else high)
        elif kind == "duration" and not log:
            factor, unit = duration_unit(high)
        if log:
            margin = max(high / low, 1.1) ** MARGIN
            low, high = low / margin, high * margin
        else:
            margin = MARGIN * ((high - min(low, 0.0 if zero else low)) or abs(high) or 1.0)
            low = 0.0 if zero and low >= 0 else low - margin
            high += margin
        return cls(f"{title} [{unit}]" if unit else title, kind, low, high, log, factor)

    @classmethod
    def over(
        cls,
        rows: Iterable[Row],
        fields: str,
        title: str,
        kind: Kind = "number",
        *,
        also: Iterable[float | None] = (),
        scale: Literal["auto", "linear", "log"] = "auto",
        zero: bool = True,
    ) -> "Axis":
        """An axis that these fields of rows, named with spaces between, and other values fit on, as ``of``."""
        values = [row[field] for row in rows for field in fields.split()]
        return cls.of([*also, *values], title, kind, scale=scale, zero=zero)

    @classmethod
    def chosen(cls, labels: str = CHANGES) -> "Axis":
        """A linear axis for rows of which a reader chooses some: its ends are those of these rows.

        ``labels`` is the expression of a label.
        """
        return cls("", "number", 0.0, 0.0, log=False, free=labels)

    @property
    def ticks(self) -> list[float]:
        """Places of labels on a logarithmic axis, and on one of durations."""
        if self.kind == "duration" and not self.log:
            least = (self.high - self.low) / 5
            power = 10.0 ** floor(log10(least / self.factor)) * self.factor
            step = next(times * power for times in (1, 2, 5, 10) if times * power >= least)
            return [step * at for at in range(ceil(self.low / step), floor(self.high / step) + 1)]
        if self.kind == "duration":
            days = range(2, ceil(log10(self.high)) + 1)
            every = [step * unit for unit in _DURATIONS for step in (1, 10)] + [86400.0 * 10**power for power in days]
            return [tick for tick in every if self.low <= tick <= self.high]
        decades = range(floor(log10(self.low / self.factor)), ceil(log10(self.high / self.factor)) + 1)
        every = [self.factor * step * 10.0**decade for decade in decades for step in steps(self.low, self.high)]
        return [tick for tick in every if self.low <= tick <= self.high]

    @property
    def options(self) -> dict[str, Any]:
        """The axis and the scale of a channel."""
        axis = altair.Axis(
            title=self.title or None,
            values=self.ticks if self.log or self.kind == "duration" else Undefined,
            format=_FORMATS.get(self.kind, Undefined),
            labelExpr=self._label,
            labelOverlap=True,
            labelFlush=False,
            tickCount=Undefined if self.log else 6,
            tickMinStep=1 if self.kind == "count" else Undefined,
        )
        kind: Literal["log", "linear"] = "log" if self.log else "linear"
        zero = Undefined if self.log else False
        if self.free:
            return {"axis": axis, "scale": altair.Scale(zero=False, padding=10)}
        return {"axis": axis, "scale": altair.Scale(type=kind, domain=[self.low, self.high], nice=False, zero=zero)}

    @property
    def _label(self) -> Any:
        if self.free:
            return self.free
        if self.kind == "change":
            return CHANGES
        if self.kind not in ("time", "duration"):
            return Undefined
        if self.kind == "time" or not self.log:
            return f"format(datum.value / {self.factor}, '{NUMBERS}')"
        expression = "''"
        for size, unit in _DURATIONS.items():
            expression = f"datum.value >= {size} ? format(datum.value / {size}, '{NUMBERS}') + ' {unit}' : {expression}"
        return expression

    def x(self, field: str) -> altair.X:
        """The horizontal channel of a field on this axis."""
        return altair.X(f"{field}:Q", **self.options)

    def y(self, field: str) -> altair.Y:
        """The vertical channel."""
        return altair.Y(f"{field}:Q", **self.options)


@dataclass(frozen=True)
class Panels:
    """Panels without widths: a concatenation of Vega-Lite, which writers arrange in at most its number of columns.

    Its expressions call the width of a panel ``panel``.
    """

    content: dict[str, Any]

    def to_dict(self, *, validate: bool = True) -> dict[str, Any]:
        """The specification; raises ``SchemaValidationError`` if it is to be valid and is not."""
        if validate:
            altair.ConcatChart.from_dict(self.content)
        return deepcopy(self.content)


def chart(rows: Sequence[Row]) -> altair.Chart:
    """A chart of rows."""
    # Of lists, altair copies every row for each layer.
    return altair.Chart(altair.InlineData(values=tuple(dict(row) for row in rows)))


def layers(
    height: int | altair.Step,
    *every: Layer,
    zoom: Sequence[Literal["x", "y"]] = ("x", "y"),
    choices: Sequence[altair.Parameter] = (),
) -> altair.LayerChart:
    """A chart of layers, the last one on top. ``zoom`` are the channels of axes that move."""
    *below, top = every
    top = _with(top, *choices, *([moved(zoom)] if zoom else []))
    return stacked(*below, top).properties(height=height)


def drawing(
    height: int, every: Iterable[Layer], *, zoom: Sequence[Literal["x", "y"]] = ("x", "y")
) -> Callable[[], altair.LayerChart]:
    """Return a function that makes a chart of ``layers``; ``every`` may be a generator that has not begun."""
    return lambda: layers(height, *every, zoom=zoom)


def moved(channels: Sequence[Literal["x", "y"]], name: str | None = None) -> altair.Parameter:
    """The parameter that moves axes by dragging, and zooms by the wheel with Ctrl, Meta or Shift.

    The wheel alone, and a touch, scroll the page. A double click, and choices that change the data, take it back.
    """
    return altair.selection_interval(
        name=name,
        bind="scales",
        encodings=list(channels),
        zoom=WHEEL,
        translate=DRAG,
        clear=CLEAR,
    )


def stacked(*every: Layer) -> altair.LayerChart:
    """Layers as one, the last one on top."""
    return cast("altair.LayerChart", altair.layer(*every))


def _with(of: Layer, *parameters: altair.Parameter) -> Layer:
    """The chart with parameters of its last layer, which has the fields that are selected by."""
    if isinstance(of, altair.Chart) or not parameters:
        return of.add_params(*parameters)
    *below, top = cast("list[Layer]", of.layer)
    layer = stacked(*below, _with(top, *parameters))
    layer.data = of.data  # of all layers
    return layer


def colour(
    field: str,
    names: Sequence[str],
    greys: Sequence[str] = (),
    *,
    shown: Collection[str] | None = None,
    raised: bool = False,
) -> altair.Color:
    """A colour for each name, in this order, and a grey for each of ``greys``.

    The legend has the names that are ``shown``; there is none of a single one. If it is ``raised``, a ``caption`` has
    room below.
    """
    named = [name for name in names if shown is None or name in shown]
    legend = legend_of(named) if len(named) > 1 else None
    if legend is not None and raised:
        legend["offset"] = RAISED
    others = [name for name in names if name not in greys]
    places = {name: f"palette{at % _COLOURS}" for at, name in enumerate(others)}
    places |= {name: f"grey{at % _GREYS}" for at, name in enumerate(greys)}
    colours = [altair.ExprRef(places[name]) for name in names] if greys else Undefined
    return altair.Color(f"{field}:N", scale=altair.Scale(domain=list(names), range=colours), legend=legend)


def legend_of(names: Sequence[str], orient: Literal["top", "bottom"] = "top") -> altair.Legend:
    """A legend of these names without a title, in as many columns as fit beside each other."""
    wide = 7 * max(map(len, names)) + 40
    fits = len(names) * wide <= _LEGEND
    return altair.Legend(
        title=None, values=list(names), orient=orient, columns=Undefined if fits else max(1, _LEGEND // wide)
    )


def choice(
    name: str, label: str, options: Sequence[str], field: str = "of", every: str = ""
) -> tuple[altair.Parameter, str]:
    """A selection of one option below the chart, if there are several, and the filter of rows whose ``field`` it is.

    With ``every``, that is the first option, which all rows have.
    """
    offered = [*([every] if every else []), *options]
    bound = altair.binding_select(options=offered, name=f"{label} ") if len(offered) > 1 else Undefined
    chosen = f"datum['{field}'] === {name}"
    either = f"({name} === '{every}' || {chosen})" if every else chosen
    return altair.param(name=name, value=offered[0], bind=bound), either


def caption(parameter: str, *, vertical: bool = False) -> altair.Chart:
    """The title of an axis that says what is chosen: below the right end, or above the upper end if ``vertical``."""
    text: altair.Chart = chart([{}]).mark_text(
        style="text",
        clip=False,
        text=altair.ExprRef(parameter),
        align="left" if vertical else "right",
        baseline="bottom" if vertical else "top",
        dy=-8 if vertical else 24,
    )
    return text.encode(x=altair.value(0 if vertical else "width"), y=altair.value(0 if vertical else "height"))


def long(table: pl.DataFrame, measures: Mapping[str, str], ends: Sequence[str] = INTERVAL) -> pl.DataFrame:
    """A row for each measure that a row of the table has: in words as ``of``, and its ``value`` with interval.

    ``measures`` are the words by column; names of columns of a measure end with ``ends``.
    """
    others = pl.exclude([f"{key}{end}" for key in measures for end in ends])
    return pl.concat(
        [
            table.drop_nulls(key).select(
                others, pl.lit(label).alias("of"), *(pl.col(f"{key}{end}").alias(f"value{end}") for end in ends)
            )
            for key, label in measures.items()
        ]
    )


def outermost(most: int, *by: str) -> pl.Expr:
    """Whether a row is one of the first or last rows, so many in all; of each group, if it is ``by`` something."""
    half = pl.lit(most // 2)
    kept = (pl.int_range(pl.len()) < half) | (pl.int_range(pl.len()) >= pl.len().cast(pl.Int64) - half)
    return kept.over(by) if by else kept


def ends_of(rows: Iterable[Row], key: str = "value") -> list[float | None]:
    """The values of rows and the ends of their intervals, for an axis."""
    return [row.get(f"{key}{end}") for row in rows for end in INTERVAL]


def offered(
    rows: Sequence[Row], columns: Sequence[Column], *choices: tuple[altair.Parameter, str]
) -> tuple[altair.Chart, list[altair.Tooltip], list[altair.Parameter]]:
    """A chart of the rows that a reader chooses, what its tooltips say (``columns``), and the choices, for ``layers``.

    ``choices`` are those of ``choice``.
    """
    base, tooltip = with_tooltip(rows, columns)
    parameters, tests = zip(*choices, strict=True)
    return base.transform_filter(" && ".join(tests)), tooltip, list(parameters)


def with_tooltip(rows: Sequence[Row], columns: Sequence[Column]) -> tuple[altair.Chart, list[altair.Tooltip]]:
    """A chart of rows, and what its tooltips say, written as in a table of these columns."""
    told, tooltip = described(rows, columns)
    return chart(told), tooltip


def described(rows: Iterable[Row], columns: Sequence[Column]) -> tuple[list[dict[str, Any]], list[altair.Tooltip]]:
    """Rows with what a tooltip says of them, written as in a table of these columns."""
    texts = [{f"text{at}": str(column.cell(row)) for at, column in enumerate(columns)} for row in rows]
    titles = [" ".join(column.header.split()) or "value" for column in columns]
    shown = [altair.Tooltip(f"text{at}:N", title=title) for at, title in enumerate(titles)]
    return [{**row, **text} for row, text in zip(rows, texts, strict=True)], shown


def course(
    rows: Sequence[Row], columns: Sequence[Column], line: Mapping[str, Any], point: Mapping[str, Any], **encoding: Any
) -> Iterator[altair.Chart]:
    """A line through rows, and on it points with a tooltip of these columns; ``line`` and ``point`` are their looks."""
    base, tooltip = with_tooltip(rows, columns)
    base = base.encode(**encoding)
    yield base.mark_line(**line)
    yield base.mark_point(**point).encode(tooltip=tooltip)


def picked(rows: Iterable[Row], fields: str) -> list[dict[str, Any]]:
    """Rows with some of their fields, named with spaces between: what a chart exports."""
    return [{field: row[field] for field in fields.split()} for row in rows]


def whiskers(
    of: altair.Chart,
    axis: Axis,
    low: str = "value_low",
    high: str = "value_high",
    *,
    vertical: bool,
    style: str = "ink",
    width: float = 1.2,
    **encoding: Any,
) -> altair.LayerChart:
    """Intervals from one field to another, where both are known, with ends; the other channels are ``encoding``.

    They are of ink where the chart has no colour.

    On a logarithmic axis, an interval that reaches zero or less goes to the end of the axis.
    """
    known = of.transform_filter(f"isValid(datum['{low}']) && isValid(datum['{high}'])")
    known = known.transform_calculate(_low=f"max(datum['{low}'], {axis.low})" if axis.log else f"datum['{low}']")
    along, name, end = (axis.y, "y", altair.Y2) if vertical else (axis.x, "x", altair.X2)
    line = known.mark_rule(style=style, strokeWidth=width).encode(
        **{name: along("_low"), f"{name}2": end(f"{high}:Q")}, **encoding
    )
    turned = 0 if vertical else 90
    ends = known.mark_point(style=style, strokeWidth=width, shape="stroke", size=40, filled=False, angle=turned)
    lower = ends.transform_filter(f"datum._low > {axis.low}" if axis.log else "true").encode(
        **{name: along("_low")}, **encoding
    )
    return stacked(line, lower, ends.encode(**{name: along(high)}, **encoding))


def hollow(of: altair.Chart, **encoding: Any) -> altair.LayerChart:
    """Hollow points: on a line they cover it. ``encoding`` has their colour and tooltip."""
    return stacked(of.mark_point(style="paper"), of.mark_point(filled=False, strokeWidth=1.6).encode(**encoding))


def ordered(field: str, by: str, *, down: bool = True, **look: Any) -> altair.Y:
    """The vertical channel of rows with names, in the order of another field; from the greatest ``down``.

    ``look`` is that of the axis.
    """
    order = altair.EncodingSortField(by, op="max" if down else "min", order="descending" if down else "ascending")
    return altair.Y(f"{field}:N", title=None, sort=order, axis=altair.Axis(**look) if look else Undefined)


def rule(at: float, axis: Axis, *, vertical: bool, style: str = "ink") -> altair.Chart:
    """A line across the chart at a value."""
    line: altair.Chart = chart([{"at": at}]).mark_rule(style=style)
    channel = {"x": axis.x("at")} if vertical else {"y": axis.y("at")}
    return line.encode(**channel)


def chosen_key() -> altair.Parameter:
    """The key of the row that is chosen on a page, of its parent, or of its child."""
    return altair.param(name="chosen_key", value="")


def highlighted(most: float = 1.0, least: float = 0.25) -> altair.OpacityValue:
    """Paler marks of rows that are not chosen, where a ``chosen_key`` is; rows have a ``key``."""
    ends = "datum.key + ' '", "chosen_key + ' '"
    test = f"!chosen_key || indexof({ends[0]}, {ends[1]}) === 0 || indexof({ends[1]}, {ends[0]}) === 0"
    return altair.OpacityValue(least, condition={"test": test, "value": most})


def chosen_rows() -> altair.Chart:
    """The rows of what is chosen on a page, which fills them in; none elsewhere."""
    return altair.Chart(altair.NamedData("chosen"))


def linked(
    spec: altair.LayerChart,
    choices: Mapping[str, Mapping[str, str] | None] | None = None,
    rows: tuple[str, str] | None = None,
) -> altair.LayerChart:
    """A chart whose choices are those of the page.

    ``choices`` are its parameters: their options by key, or None if they are keys. ``rows`` are the chart whose CSV has
    the ``chosen_rows``, and its column that is their key.
    """
    of = {} if rows is None else {"rows": dict(zip(("chart", "field"), rows, strict=True))}
    return spec.properties(usermeta={"choices": choices or {}, **of})
