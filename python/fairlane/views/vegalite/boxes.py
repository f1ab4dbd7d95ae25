"""The mark ``boxplot`` of Vega-Lite, computed from all rows: quartiles, medians, whiskers, values beyond them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from fairlane.views.charts import NUMBERS, Axis
from fairlane.views.rows import EXTREMES, box_numbers, thinned, whisker_words, whiskers_of
from fairlane.views.scales import is_logarithmic

MOST_DOTS = 60
"""Of more values beyond the whiskers of a box, those that are evenly spaced in order, the extremes among them."""
_DOT = {"type": "point", "size": 12, "stroke": "gray", "strokeWidth": 0.5, "clip": True}
_END = {"type": "point", "shape": "stroke", "style": "ink", "size": 50, "filled": False, "strokeWidth": 1}


def boxed_by(encoding: Mapping[str, Any]) -> list[str]:
    """The columns of whose values each combination has a box: those of all channels but y."""
    fields = (of["field"] for channel, of in encoding.items() if channel != "y" and "field" in of)
    return list(dict.fromkeys(fields))


def most_values(rows: pl.DataFrame, by: Sequence[str], y: str) -> int:
    """How many values the largest box of a chart has."""
    counts = rows.drop_nulls(y).group_by(by).len()["len"] if by else pl.Series([rows[y].count()])
    most = counts.max()
    return most if isinstance(most, int) else 0


def expanded(
    spec: dict[str, Any], mark: Mapping[str, Any], encoding: Mapping[str, Any], rows: pl.DataFrame, most: int, name: str
) -> tuple[str, dict[str, Any]]:
    """Makes a unit with the mark ``boxplot`` layers of boxes; returns what they are, and their data by name.

    ``extent`` of the mark is that of Vega-Lite; without one, whiskers are by ``most``, the values of the largest box.
    """
    y = encoding["y"]
    by = boxed_by(encoding)
    groups = rows.group_by(by, maintain_order=True).agg(pl.col(y["field"]).drop_nulls().alias("_values"))
    groups = groups.filter(pl.col("_values").list.len() > 0)
    extent = mark.get("extent") or whiskers_of(most)
    whiskers = EXTREMES if extent == "min-max" else extent
    boxes: list[dict[str, Any]] = []
    dots: list[dict[str, Any]] = []
    for row in groups.iter_rows(named=True):
        values = np.asarray(row.pop("_values"), np.float64)
        numbers = box_numbers(values, whiskers)
        boxes.append({**row, **numbers, "values": values.size})
        beyond = values[(values < numbers["low"]) | (values > numbers["high"])]
        dots += [{**row, "value": value} for value in thinned(beyond, MOST_DOTS).tolist()]
    spec.pop("mark")
    spec.pop("encoding", None)
    others = {channel: dict(of) for channel, of in encoding.items() if channel != "y"}
    inner = "xOffset" if "xOffset" in others else "x"
    if inner in others:
        others[inner]["scale"] = {"paddingInner": 0.2, **others[inner].get("scale", {})}
    axis = _axis(y, rows[y["field"]])
    every = _layers(axis, others, mark, f"{name}_boxes", f"{name}_dots")
    spec["layer"] = every if dots else every[1:]
    words = f"Boxes: quartiles and median; whiskers: {whisker_words(whiskers)}; dots: values beyond."
    return words, {f"{name}_boxes": boxes, **({f"{name}_dots": dots} if dots else {})}


def _axis(y: Mapping[str, Any], values: pl.Series) -> dict[str, Any]:
    """The axis of values; logarithmic where the specification has no type of scale and most values need it."""
    scale = y.get("scale", {})
    known = values.drop_nulls().to_numpy()
    if "type" in scale or "domain" in scale or not is_logarithmic("auto", known):
        return {"scale": scale, "axis": y.get("axis", {}), **({"title": y["title"]} if "title" in y else {})}
    of = Axis.of(known.tolist(), "", scale="log")
    domain = {"type": "log", "domain": [of.low, of.high], "nice": False}
    return {"scale": {**scale, **domain}, "axis": {"values": of.ticks, **y.get("axis", {})}, "title": y.get("title")}


def _layers(
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
        layer({"type": "tick", "style": "ink", "thickness": 2.5}, "median", neutral, tooltip=tooltip),
    ]
    return [
        {"data": {"name": dots}, **layer(_DOT, "value", others, tooltip=told)},
        {"data": {"name": boxes}, "layer": whole},
    ]
