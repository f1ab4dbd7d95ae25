"""Complete the channels of a specification from the columns of its rows: types, orders, axes, tooltips.

The mark ``boxplot`` of Vega-Lite is computed from all rows: quartiles, medians, whiskers, values beyond them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from fairlane.views.charts import NUMBERS, Axis
from fairlane.views.rows import EXTREMES, box_numbers, thinned, whisker_words, whiskers_of
from fairlane.views.style import is_logarithmic

Spec = dict[str, Any]
_LETTER = 6.3
"""Width of a letter of a label, pixels."""
_LINES = "split(datum.label, '\\n')"
"""Labels of names have a line break where the name has one."""
GIVEN = ("least", "low", "q1", "median", "q3", "high", "most", "values")
"""Columns of a query that has the boxes themselves: ends of whiskers, extremes, and how many values there are."""
MOST_DOTS = 60
"""Of more values beyond the whiskers of a box, those that are evenly spaced in order, the extremes among them."""
_DOT = {"type": "point", "size": 12, "stroke": "gray", "strokeWidth": 0.5, "clip": True}
_END = {"type": "point", "shape": "stroke", "style": "ink", "size": 50, "filled": False, "strokeWidth": 1}


@dataclass
class Panel:
    """A unit or layered specification and its rows; what is found out while it is completed."""

    name: str
    spec: Spec
    rows: pl.DataFrame
    order: Mapping[str, list[Any]]
    """The names in each column of text, in the order of the rows of all panels."""
    every: pl.DataFrame
    """The rows of all panels."""
    title: str = ""
    columns: int | None = None
    shared: frozenset[str] = frozenset()
    given: dict[tuple[str, str], Spec] = field(default_factory=dict)
    """Titles, axes and scales of channels in layers: they hold for all of them."""
    facets: Sequence[str] = ()
    datasets: dict[str, Any] = field(default_factory=dict)
    zoomed: set[str] = field(default_factory=set)
    colours: list[Any] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


def complete(panel: Panel, spec: Spec, outer: Spec) -> None:
    """Fills in types, orders, axes and tooltips of a specification and its layers, and expands its boxes."""
    channels = {channel: _channel(panel, channel, of) for channel, of in spec.get("encoding", {}).items()}
    if channels:
        spec["encoding"] = channels
    every = {**outer, **channels}
    for part in spec.get("layer", ()):
        complete(panel, part, every)
    if "mark" not in spec:
        return
    mark = spec["mark"] if isinstance(spec["mark"], dict) else {"type": spec["mark"]}
    if mark["type"] == "boxplot" and every.get("y", {}).get("type") == "quantitative":  # others are Vega-Lite's
        most = _most_values(panel.every, [*panel.facets, *_boxed_by(every)], every["y"]["field"])
        sentence, datasets = _expanded(spec, mark, every, panel.rows, most, f"{panel.name}_{len(panel.datasets)}")
        panel.words.append(sentence)
        panel.datasets |= datasets
    elif mark["type"] not in ("rule", "area", "errorband", "errorbar") and "tooltip" not in every:
        spec.setdefault("encoding", {})["tooltip"] = _tooltip(every)


def _channel(panel: Panel, channel: str, given: Any) -> Any:
    """The definition of a channel with what follows from the column."""
    if not isinstance(given, dict) or not isinstance(given.get("field", ""), str):
        return given
    if channel in ("x", "y") and isinstance(given.get("datum"), int | float) and given.get("axis", {}) is not None:
        return {**given, "axis": {"grid": True, **given.get("axis", {})}}  # which Vega-Lite has of fields only
    name = str(given.get("field", ""))
    known = name in panel.rows.columns
    number = "aggregate" in given or (known and is_number(panel.rows, name))
    channel_spec = (
        {"type": "quantitative" if number else "nominal", **given} if name or "aggregate" in given else dict(given)
    )
    kind = channel_spec.get("type")
    if kind == "quantitative" and channel in ("x", "y"):
        panel.zoomed.add(channel)
        return _numeric(panel, channel, channel_spec)
    if kind == "quantitative" or channel in ("x2", "y2") or not known:
        return channel_spec
    if not is_number(panel.rows, name):
        channel_spec.setdefault("sort", panel.rows[name].unique(maintain_order=True).to_list())
    if channel in ("x", "y"):
        return _names(panel, channel, channel_spec)
    if channel in ("color", "fill", "stroke", "shape"):
        scale = channel_spec["scale"] = _present(channel_spec.get("scale", {}), panel.order.get(name))
        legend = channel_spec.get("legend", {})
        channel_spec["legend"] = (
            None
            if legend is None or len(scale.get("domain", "  ")) < 2
            else {"title": None, "symbolOpacity": 1, **legend}
        )
        panel.colours.append((name, channel_spec["scale"]))
    return channel_spec


def _present(scale: Spec, names: Sequence[Any] | None) -> Spec:
    """A scale of names: by default in the order of the rows; of those given, those that occur, with their ranges."""
    if names is None:
        return scale
    if "domain" not in scale:
        return {**scale, "domain": list(names)}
    every, ends = scale["domain"], scale.get("range")
    if not isinstance(every, list) or not (ends is None or (isinstance(ends, list) and len(ends) == len(every))):
        return scale
    kept = [at for at, name in enumerate(every) if name in names]
    ranges = {} if ends is None else {"range": [ends[at] for at in kept]}
    return {**scale, "domain": [every[at] for at in kept], **ranges}


def _numeric(panel: Panel, channel: str, given: Spec) -> Spec:
    """A channel of numbers: formats, and of a logarithmic axis its ends and labels, are those of all charts."""
    if given.get("axis", {}) is None:
        return given
    axis, scale = ({**panel.given.get((channel, key), {}), **given.get(key, {})} for key in ("axis", "scale"))
    log = scale.get("type") == "log"
    if log and "domain" not in scale and "base" not in scale and given.get("field") in panel.rows.columns:
        rows = panel.every if channel in panel.shared else panel.rows
        values = [value for value in rows[given["field"]] if value and value > 0]
        of = Axis.of(values, "", scale="log")
        scale, axis = {**scale, "domain": [of.low, of.high], "nice": False}, {"values": of.ticks, **axis}
    if channel == "x" and not {"domain", "padding", "bins"} & {*scale}:
        scale = {**scale, "padding": 6}  # points at the ends are whole
    title = panel.given.get((channel, "title"), {})
    ticks = {} if "values" in axis else {"tickCount": 5}  # Vega leaves out values that are more
    look = {"format": NUMBERS, "labelOverlap": True, "labelFlush": False, **ticks}
    return {**title, **given, "scale": scale, "axis": {**look, **axis}}


def _names(panel: Panel, channel: str, given: Spec) -> Spec:
    """A channel of names: upright where there is room, else slanted."""
    if given.get("axis", {}) is None:
        return given
    axis = {**panel.given.get((channel, "axis"), {}), **given.get("axis", {})}
    names = [str(name) for name in panel.rows[given["field"]].unique()]
    untitled = {} if is_number(panel.rows, given["field"]) else {"title": None}
    title = {} if "title" in given else panel.given.get((channel, "title"), untitled)
    defaults: Spec = {**title, "labelExpr": _LINES}
    if channel == "x" and not {"labelAngle", "labelOverlap"} & {*axis}:
        longest = max((len(line) for name in names for line in name.split("\n")), default=0)
        slanted = f"panel < {len(names) * (_LETTER * longest + 10):.0f}"
        defaults["labelAngle"] = {"expr": f"{slanted} ? -40 : 0"}
        defaults["labelAlign"] = {"expr": f"{slanted} ? 'right' : 'center'"}
    return {**given, "axis": {**defaults, **axis}}


def _tooltip(encoding: Mapping[str, Any]) -> list[Spec]:
    """A tooltip with the fields of a unit, each once."""
    by_field: dict[str, Spec] = {}
    for of in encoding.values():
        if not isinstance(of, dict) or not isinstance(of.get("field"), str) or "aggregate" in of:
            continue
        axis = of.get("axis") or {}
        title = of.get("title") or axis.get("title") or of["field"].replace("_", " ")
        number = of.get("type") == "quantitative"
        form = {"format": axis["format"] if axis.get("format", NUMBERS) != NUMBERS else ",.4~r"} if number else {}
        by_field.setdefault(
            of["field"], {"field": of["field"], "type": of.get("type", "nominal"), "title": title, **form}
        )
    return list(by_field.values())


def is_number(rows: pl.DataFrame, name: str) -> bool:
    """Whether a column has numbers."""
    return rows[name].dtype.is_numeric()


def _boxed_by(encoding: Mapping[str, Any]) -> list[str]:
    """The columns of whose values each combination has a box: those of all channels but y."""
    fields = (of["field"] for channel, of in encoding.items() if channel != "y" and "field" in of)
    return list(dict.fromkeys(fields))


def _most_values(rows: pl.DataFrame, by: Sequence[str], y: str) -> int:
    """Return the number of values of the largest box of a chart."""
    counts = rows.drop_nulls(y).group_by(by).len()["len"] if by else pl.Series([rows[y].count()])
    most = counts.max()
    return most if isinstance(most, int) else 0


def _expanded(
    spec: dict[str, Any], mark: Mapping[str, Any], encoding: Mapping[str, Any], rows: pl.DataFrame, most: int, name: str
) -> tuple[str, dict[str, Any]]:
    """Makes a unit with the mark ``boxplot`` layers of boxes; returns what they are, and their data by name.

    ``extent`` of the mark is that of Vega-Lite; without one, whiskers are by ``most``, the values of the largest box.
    """
    y = encoding["y"]
    if y["field"] == "median" and {*GIVEN} <= {*rows.columns}:
        sentence = "Boxes: quartiles and median; dots: the extremes."
        boxes = rows.to_dicts()
        dots = [{**row, "value": row[end]} for row in boxes for end in ("least", "most")]
        values = pl.concat([rows[name].cast(pl.Float64) for name in GIVEN[:-1]])
    else:
        extent = mark.get("extent") or whiskers_of(most)
        whiskers = EXTREMES if extent == "min-max" else extent
        sentence = f"Boxes: quartiles and median; whiskers: {whisker_words(whiskers)}; dots: values beyond."
        boxes, dots = _computed(rows, _boxed_by(encoding), y["field"], whiskers)
        values = rows[y["field"]]
    spec.pop("mark")
    spec.pop("encoding", None)
    others = {channel: dict(of) for channel, of in encoding.items() if channel != "y"}
    inner = "xOffset" if "xOffset" in others else "x"
    if inner in others:
        others[inner]["scale"] = {"paddingInner": 0.2, **others[inner].get("scale", {})}
    axis = _box_axis(y, values)
    every = _box_layers(axis, others, mark, f"{name}_boxes", f"{name}_dots")
    spec["layer"] = every if dots else every[1:]
    return sentence, {f"{name}_boxes": boxes, **({f"{name}_dots": dots} if dots else {})}


def _computed(
    rows: pl.DataFrame, by: Sequence[str], field: str, whiskers: float | tuple[float, float]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Boxes of a column, and the values beyond their whiskers."""
    groups = rows.group_by(by, maintain_order=True).agg(pl.col(field).drop_nulls().alias("_values"))
    boxes: list[dict[str, Any]] = []
    dots: list[dict[str, Any]] = []
    for row in groups.filter(pl.col("_values").list.len() > 0).iter_rows(named=True):
        values = np.asarray(row.pop("_values"), np.float64)
        numbers = box_numbers(values, whiskers)
        boxes.append({**row, **numbers, "values": values.size})
        beyond = values[(values < numbers["low"]) | (values > numbers["high"])]
        dots += [{**row, "value": value} for value in thinned(beyond, MOST_DOTS).tolist()]
    return boxes, dots


def _box_axis(y: Mapping[str, Any], values: pl.Series) -> dict[str, Any]:
    """The axis of values; logarithmic where the specification has no type of scale and most values need it."""
    scale = y.get("scale", {})
    known = values.drop_nulls().to_numpy()
    if "type" in scale or "domain" in scale or not is_logarithmic("auto", known):
        return {"scale": scale, "axis": y.get("axis", {}), **({"title": y["title"]} if "title" in y else {})}
    of = Axis.of(known.tolist(), "", scale="log")
    domain = {"type": "log", "domain": [of.low, of.high], "nice": False}
    axis = {key: value for key, value in y.get("axis", {}).items() if key != "tickCount"}
    return {"scale": {**scale, **domain}, "axis": {"values": of.ticks, **axis}, "title": y.get("title")}


def _box_layers(
    axis: dict[str, Any], others: dict[str, Any], mark: Mapping[str, Any], boxes: str, dots: str
) -> list[dict[str, Any]]:
    """Dots, whiskers, boxes and medians."""
    title = axis.pop("title", None) or axis["axis"].get("title") or ""
    y = {"type": "quantitative", "title": title, **axis}
    form = axis["axis"].get("format", NUMBERS)
    number = {"type": "quantitative", "format": ",.4~r" if form == NUMBERS else form}
    named = [
        {"field": of["field"], "type": "nominal", "title": of["field"].replace("_", " ")}
        for of in {of["field"]: of for of in others.values() if "field" in of}.values()
    ]
    titles = {"high": "upper whisker", "q3": "upper quartile", "median": "median", "q1": "lower quartile"}
    titles |= {"low": "lower whisker"}
    tooltip = [*named, *({"field": key, "title": of, **number} for key, of in titles.items())]
    tooltip.append({"field": "values", "type": "quantitative", "format": ","})
    told = [*named, {"field": "value", "title": title or "value", **number}]
    neutral = {channel: of for channel, of in others.items() if channel not in ("color", "fill")}

    def layer(look: Mapping[str, Any], field: str, channels: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        return {"mark": dict(look), "encoding": {**channels, "y": {"field": field, **y}, **more}}

    box = {"type": "bar", "stroke": "gray", "strokeWidth": 1, "opacity": 1, **mark.get("box", {})}
    whole = [
        layer({"type": "rule", "style": "ink"}, "low", neutral, y2={"field": "high"}),
        *(layer(_END, key, neutral) for key in ("low", "high")),
        layer(box, "q1", others, y2={"field": "q3"}, tooltip=tooltip),
        layer({"type": "tick", "style": "ink", "thickness": 2.5, "opacity": 1}, "median", neutral, tooltip=tooltip),
    ]
    return [
        {"data": {"name": dots}, **layer(_DOT, "value", others, tooltip=told)},
        {"data": {"name": boxes}, "layer": whole},
    ]
