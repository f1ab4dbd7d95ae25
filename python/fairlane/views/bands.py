"""Numbers of claims against their bands: a dot for each replicate.

Rows have different units, so each has a scale of its own on which the edges of its band are at fixed places. Where a
band has two edges their distance is the unit; where it has one, the unit is the size of the edge: a value of twice the
edge is one unit from it. Where the edge is zero the unit is the largest distance.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from textwrap import shorten
from typing import Any

import altair

from fairlane.core.wording import listed, significant
from fairlane.views.charts import Layer, chart, chosen_key, highlighted, layers, linked, with_tooltip
from fairlane.views.model import Chart
from fairlane.views.tables import Column, Row, columns, naming

LOWER, UPPER = 0.0, 1.0
"""Places of a band's edges."""
LEFT, RIGHT = -1.2, 2.2
"""Ends of the scale: values beyond them are drawn there, as triangles."""
_SPREAD = 0.2
"""Share of a row over which replicates are spread, to each side."""
_ROW = 19
"""Height of a row, pixels."""
_LETTERS = 62
_WITHIN, _OUTSIDE = "in the band", "outside"
_TEXTS = {"spread": (0, "median (range)"), "band": (190, "band"), "held": (300, "in it"), "verdict": (372, "verdict")}
"""Columns of text at the right of a picture: places and titles."""
_TEXTS_OF = ("measured", "reported", "band", "spread", "held", "explained")
"""Texts of a number with each of its replicates."""
_TOLD = [
    *columns(claim="claim", measured="measured", replicate="replicate"),
    Column("value", "value", significant),
    *columns(band="band", spread="median (range)", held="in the band", reported="paper", explained="verdict"),
]


def place(value: float, low: float | None, high: float | None, unit: float) -> float:
    """Return the place of a value on the row's scale; ``unit`` is used unless the band has two edges."""
    if low is not None and high is not None:
        return LOWER + (value - low) / (high - low) if high > low else (LOWER + UPPER) / 2 + (value - low) / unit
    return LOWER + (value - low) / unit if low is not None else UPPER + (value - (high or 0.0)) / unit


def unit_of(number: Sequence[Row]) -> float:
    """The size of the only edge of the first replicate's band; where it is zero, the largest distance from it.

    ``number`` has a row for each replicate, with ``value``, ``low`` and ``high``.
    """
    edges = [abs(float(edge)) for edge in (number[0]["low"], number[0]["high"]) if edge]
    if edges:
        return max(edges)
    every = ((_finite(row["value"]), edge) for row in number for edge in (row["low"], row["high"]))
    distances = [abs(value - edge) for value, edge in every if value is not None and edge is not None]
    return max(distances, default=0.0) or 1.0


def _finite(value: float | None) -> float | None:
    """A value that has a place on a scale."""
    return value if value is not None and isfinite(value) else None


def band_chart(names: Iterable[str], rows: Sequence[Row], headline: str, sentence: str) -> Iterator[Chart]:
    """The chart of the numbers of results by name; of several results, dots have shapes. None without a number."""
    if not any(row["number"] is not None for row in rows):
        return
    names = list(names)
    first = [row for row in rows if row["result"] == rows[0]["result"]]
    # The label of a line, after a text that tells it from others and says whether it is that of a claim.
    lines = {
        row["line"]: f"{'number' if row['number'] else 'claim.'}{at:04}{_label(row)}" for at, row in enumerate(first)
    }
    numbers = [{**row, "line": lines[row["line"]]} for row in rows if row["number"] and row["line"] in lines]
    shapes = f" Circles, squares, diamonds: {listed(names)}." if len(names) > 1 else ""
    every = [*lines.values()]
    marks = _layers(names, numbers, every)
    yield Chart(
        "claims",
        "Numbers against their bands",
        linked(layers(_ROW * len(every), *marks, zoom=("x",), choices=[chosen_key()])),
        sentence,
        "A dot is a replicate, the one with a ring replicate 1; shaded is the band. Each row has its own scale: edges "
        "of bands are at fixed places; where a band has one edge, twice its value is one unit away. Triangles: farther "
        f"out.{shapes}",
        [row for number in rows if number["number"] for row in _replicates(number)],
        wide=True,
        headline=headline,
        aside=None if len(names) > 1 else _texts([{**row, "line": lines[row["line"]]} for row in first], every),
    )


def _label(row: Row) -> str:
    return shorten(row["measured"], _LETTERS, placeholder=" …") if row["number"] else row["claim"]


def _replicates(row: Row) -> Iterator[dict[str, Any]]:
    """A row for each replicate of a number, for export and for dots."""
    told = {key: row[key] for key in ("result", "claim", "clause", *_TEXTS_OF)}
    for of in row["number"]:
        edges = {key: of[key] for key in ("low", "high", "in_band")}
        yield {**told, "replicate": of["replicate"], "value": _finite(of["value"]), **edges}


def _in_lines(lines: Sequence[str], axis: altair.Axis | None) -> altair.Y:
    """The channel of lines."""
    scale = altair.Scale(type="band", domain=[*lines], padding=0)
    return altair.Y("line:N", sort=[*lines], axis=axis, scale=scale)


def _layers(names: Sequence[str], numbers: Sequence[Row], lines: Sequence[str]) -> Iterator[Layer]:
    bold = {"condition": {"test": "slice(datum.value, 0, 6) === 'claim.'", "value": "bold"}, "value": "normal"}
    y = _in_lines(lines, altair.Axis(labelExpr="slice(datum.value, 10)", labelFontWeight=bold, title=None))
    ends = altair.Scale(domain=[LEFT - 0.1, RIGHT + 0.1], nice=False, zero=False)
    edges = "datum.value < 0.5 ? 'lower edge' : 'upper edge'"
    across = altair.Axis(values=[LOWER, UPPER], labelExpr=edges, title=None, grid=False, orient="top")

    def x(field: str) -> altair.X:
        return altair.X(f"{field}:Q", scale=ends, axis=across)

    base = chart([_band(row) for row in numbers if row["result"] == names[0]]).encode(y=y)
    yield base.mark_bar(style="shade", height=_ROW - 5).encode(x=x("begin"), x2="end:Q")
    for edge in ("lower", "upper"):
        shown = base.transform_filter(f"isValid(datum.{edge})").mark_tick(style="muted", height=_ROW - 5, thickness=1.5)
        yield shown.encode(x=x(edge))
    dots = [dot for row in numbers for dot in _dots(row, names.index(row["result"]), len(names))]
    point, tooltip = with_tooltip(dots, [*naming(names, "result"), *_TOLD])
    shift = altair.YOffset("shift:Q", scale=altair.Scale(domain=[-0.5, 0.5]))
    kinds = ["inside", "left", "right", *names[1:]]
    forms = ["circle", "triangle-left", "triangle-right", "square", "diamond", "cross"]
    shape = altair.Shape("shape:N", legend=None, scale=altair.Scale(domain=kinds, range=forms[: len(kinds)]))
    point = point.encode(y=y, yOffset=shift, x=x("place"), shape=shape, tooltip=tooltip)
    holds = altair.Color("holds:N", title=None, scale=altair.Scale(domain=[_WITHIN, _OUTSIDE]))
    yield point.mark_point(size=38).encode(color=holds, opacity=highlighted(0.85))
    yield point.transform_filter("datum.first").mark_point(size=60, style="ink", filled=False)


def _band(row: Row) -> dict[str, Any]:
    """The ends of the shaded part, and the edges that there are."""
    low, high = row["number"][0]["low"], row["number"][0]["high"]
    begin, end = LEFT - 0.1 if low is None else LOWER, RIGHT + 0.1 if high is None else UPPER
    if low is not None and low == high:
        begin, end = (LOWER + UPPER) / 2 - 0.02, (LOWER + UPPER) / 2 + 0.02
    edges = {"lower": None if low is None else begin, "upper": None if high is None else end}
    return {"line": row["line"], "key": row["key"], "begin": begin, "end": end, **edges}


def _dots(row: Row, result: int, results: int) -> Iterator[dict[str, Any]]:
    unit = unit_of(row["number"])
    known = [replicate for replicate in _replicates(row) if replicate["value"] is not None]
    for at, replicate in enumerate(known):
        x = place(replicate["value"], replicate["low"], replicate["high"], unit)
        shift = (at / (len(known) - 1) - 0.5) * 2 * _SPREAD if len(known) > 1 else 0.0
        beyond = "left" if x < LEFT else "right" if x > RIGHT else row["result"] if result else "inside"
        yield {
            **replicate,
            "line": row["line"],
            "key": row["key"],
            "place": min(max(x, LEFT), RIGHT),
            "shift": shift / results + ((result + 0.5) / results - 0.5) * 0.7,
            "shape": beyond,
            "holds": _WITHIN if replicate["in_band"] else _OUTSIDE,
            "first": replicate["replicate"] == 1 and results == 1,
        }


def _texts(rows: Sequence[Row], lines: Sequence[str]) -> altair.LayerChart:
    """Medians, bands and verdicts, in line with the dots."""
    told = [{key: row.get(key) for key in ("line", "number", "claim", *_TEXTS)} for row in rows]
    numbers = [{**row, "number": None} for row in told if row["number"]]
    heads = chart([row for row in told if not row["number"]]).encode(y=_in_lines(lines, None))
    bold = heads.mark_text(style="text", align="left", fontWeight="bold")
    texts: list[Layer] = [bold.encode(x=altair.value(0), text="verdict:N")]
    for key, (x, title) in _TEXTS.items():
        text = chart(numbers).mark_text(style="text", align="left")
        texts.append(text.encode(y=_in_lines(lines, None), x=altair.value(x), text=f"{key}:N"))
        head = chart([{"title": title}]).mark_text(style="note", align="left", baseline="bottom")
        texts.append(head.encode(x=altair.value(x), y=altair.value(-6), text="title:N"))
    return layers(_ROW * len(lines), *texts, zoom=()).properties(width=560)
