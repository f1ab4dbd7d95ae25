"""Charts as files: PNG, SVG and PDF, without a browser."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from re import sub
from textwrap import wrap
from typing import Any

import vl_convert
from altair import SCHEMA_URL
from pydantic_core import from_json, to_json

from fairlane.views.charts import PANEL
from fairlane.views.model import Chart, View
from fairlane.views.style import THEMES, Look, config

AXIS = 64
"""Room for the axis of a panel, pixels."""
NARROWEST = 170
"""Of panels beside each other; where they do not fit, the picture is wider."""
LABELS = 420
"""Room for the labels of an axis, pixels: a picture is as wide as they need."""
RESOLUTION = 1.75
"""Pixels of a PNG for each pixel of the specification."""
_LETTERS_OF_TITLE, _LETTERS_OF_NOTE = 0.119, 0.175
"""Letters of a line for each pixel."""


def figure(view: View, charts: list[Chart]) -> dict[str, Any]:
    """The picture of charts: a title, a panel for each of them, and what their marks are.

    The title is the headline of the view; of a view with several pictures, that of the first chart. The picture is
    put together of specifications: ``altair.vconcat`` copies all of them several times.
    """
    panels = [_specification(chart.spec, chart.name) for chart in charts]
    width = max(map(_arrange, panels))
    for at, chart in enumerate(charts):
        if len(charts) > 1:
            said = chart.sentence if len(view.pictures) > 1 and at else ""
            panels[at]["title"] = {"text": chart.title, "subtitle": _lines(said, _LETTERS_OF_NOTE * width), "offset": 8}
        if chart.aside is not None:
            panels[at] = _joined(panels[at], _specification(chart.aside, f"{chart.name}_aside"))
    datasets = {name: rows for panel in panels for name, rows in panel.pop("datasets", {}).items()}
    parameters = {parameter["name"]: parameter for panel in panels for parameter in panel.pop("params", [])}
    shown = charts[0].headline or (charts[0].sentence if len(view.pictures) > 1 else view.headline)
    title = "\n".join(line.removesuffix(".") for line in shown.split("\n"))
    facts = [] if charts[0].alone or not view.facts else [f"{'; '.join(view.facts)}."]
    notes = " ".join([*facts, *dict.fromkeys(chart.note for chart in charts)])
    return {
        "$schema": SCHEMA_URL,
        "datasets": datasets,
        "params": list(parameters.values()),
        "title": {"text": _lines(title, _LETTERS_OF_TITLE * width), "fontSize": 16, "offset": 14, "frame": "bounds"},
        "vconcat": [*panels, _note(_lines(notes, _LETTERS_OF_NOTE * width))],
        "spacing": 26,
        "resolve": {"scale": dict.fromkeys(("color", "shape", "strokeDash"), "independent")},
    }


def _lines(text: str, letters: float) -> list[str]:
    """A text in lines of at most so many letters."""
    return [part for line in text.split("\n") for part in wrap(line, int(letters))]


def _specification(spec: Any, name: str) -> dict[str, Any]:
    """The specification of a chart. Altair gives charts that differ only in their data the same names."""
    text = to_json(spec.to_dict(validate=False)).decode()
    specification: dict[str, Any] = from_json(sub(r"\b(view|param)_[0-9a-f]+", rf"{name}_\g<0>", text))
    return {key: value for key, value in specification.items() if key not in ("$schema", "config")}


def _joined(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """A chart with another one at its right, in line with it."""
    datasets = {**left.pop("datasets", {}), **right.pop("datasets", {})}
    return {"datasets": datasets, "params": left.pop("params", []), "hconcat": [left, right], "spacing": 10}


def _arrange(spec: dict[str, Any]) -> int:
    """Gives a chart, or each of its panels, a width; returns that of all."""
    if "concat" not in spec:
        spec["width"] = PANEL
        return PANEL
    columns: int = min(spec["columns"], len(spec["concat"]))
    spec["columns"] = columns
    each = max(NARROWEST, (PANEL + AXIS) // columns - AXIS, *(panel.get("width", 0) for panel in spec["concat"]))
    for panel in spec["concat"]:
        panel["width"] = each
    for parameter in spec.get("params", ()):
        if parameter["name"] == "panel":
            parameter["value"] = each
    return int(columns * (each + AXIS) - AXIS)


def _note(lines: list[str]) -> dict[str, Any]:
    """A panel with small text; a title below is not possible, because there is one above."""
    mark = {"type": "text", "style": "note", "text": lines, "align": "left", "baseline": "top"}
    place = {"x": {"value": 0}, "y": {"value": 0}}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": place, "width": PANEL, "height": 15 * len(lines)}


def picture(view: View, charts: list[Chart], look: Look) -> bytes:
    """The file of the picture of charts."""
    spec = figure(view, charts)
    # Nothing is chosen or moved in a picture; filters need the names of their selections.
    text = to_json(spec)
    spec["params"] = [
        parameter
        for parameter in spec["params"]
        if "select" not in parameter or text.count(parameter["name"].encode()) > 1
    ]
    return rendered(spec, look)


def rendered(specification: dict[str, Any], look: Look) -> bytes:
    """The file of any specification of Vega-Lite, in the colours of a theme; a configuration of its own comes first."""
    _fonts()
    base = config(THEMES[look.theme], background=not look.transparent)
    base["axis"]["labelLimit"] = LABELS
    spec = {**specification, "config": {**base, **specification.get("config", {})}}
    if look.format == "svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    if look.format == "pdf":
        return vl_convert.vegalite_to_pdf(spec)
    return vl_convert.vegalite_to_png(spec, scale=RESOLUTION)


@cache
def _fonts() -> None:
    """Registers the fonts of Matplotlib, so that pictures are the same on every machine."""
    module = find_spec("matplotlib")
    for folder in module.submodule_search_locations or () if module else ():
        vl_convert.register_font_directory(str(Path(folder) / "mpl-data" / "fonts" / "ttf"))
