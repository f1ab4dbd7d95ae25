"""Charts as files: PNG, SVG and PDF, without a browser."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from re import sub
from textwrap import wrap
from typing import Any

import vl_convert
from pydantic_core import from_json, to_json

from fairlane.colours import THEMES
from fairlane.views.look import Look
from fairlane.views.model import Chart, View
from fairlane.views.style import config

WIDTH = 640
"""Of a panel, without its axis, pixels."""
RESOLUTION = 1.75
"""Pixels of a PNG for each pixel of the specification."""
_LETTERS_OF_TITLE, _LETTERS_OF_NOTE = 76, 112
"""Letters that fit on a line."""


def figure(view: View, charts: list[Chart]) -> dict[str, Any]:
    """The picture of charts: a title, a panel for each of them, and what their marks are.

    The title is the headline of the view; of a view with several pictures, that of the first chart. The picture is
    put together of specifications: ``altair.vconcat`` copies all of them several times.
    """
    panels = [_specification(chart) for chart in charts]
    datasets = {name: rows for panel in panels for name, rows in panel.pop("datasets", {}).items()}
    parameters = {parameter["name"]: parameter for panel in panels for parameter in panel.pop("params", [])}
    schema = {panel.pop("$schema") for panel in panels}.pop()
    one_of_several = len(view.pictures) > 1
    for number, (chart, panel) in enumerate(zip(charts, panels, strict=True)):
        panel.pop("config", None)
        panel["width"] = WIDTH
        if len(charts) > 1:
            lines = chart.sentence.split("\n") if one_of_several and number else []
            subtitle = [part for line in lines for part in wrap(line, _LETTERS_OF_NOTE)]
            panel["title"] = {"text": chart.title, "subtitle": subtitle, "offset": 8}
    shown = charts[0].sentence.removesuffix(".") if one_of_several else view.headline
    title = charts[0].headline or shown
    notes = " ".join(
        [*([f"{'; '.join(view.facts)}."] if view.facts else []), *dict.fromkeys(chart.note for chart in charts)]
    )
    return {
        "$schema": schema,
        "datasets": datasets,
        "params": list(parameters.values()),
        "title": {
            "text": [part for line in title.split("\n") for part in wrap(line.removesuffix("."), _LETTERS_OF_TITLE)],
            "fontSize": 16,
            "offset": 14,
            "frame": "bounds",
        },
        "vconcat": [*panels, _note(wrap(notes, _LETTERS_OF_NOTE))],
        "spacing": 26,
        "resolve": {"scale": dict.fromkeys(("color", "shape", "strokeDash"), "independent")},
    }


def _specification(chart: Chart) -> dict[str, Any]:
    """The specification of a chart. Altair gives charts that differ only in their data the same names."""
    text = to_json(chart.spec.to_dict(validate=False)).decode()
    found: dict[str, Any] = from_json(sub(r"\b(view|param)_[0-9a-f]+", rf"{chart.name}_\g<0>", text))
    return found


def _note(lines: list[str]) -> dict[str, Any]:
    """A panel with small text; a title below is not possible, because there is one above."""
    mark = {"type": "text", "style": "note", "text": lines, "align": "left", "baseline": "top"}
    place = {"x": {"value": 0}, "y": {"value": 0}}
    return {"data": {"values": [{}]}, "mark": mark, "encoding": place, "width": WIDTH, "height": 15 * len(lines)}


def picture(view: View, charts: list[Chart], look: Look) -> bytes:
    """The file of the picture of charts."""
    spec = figure(view, charts)
    # Nothing is chosen or moved in a picture; filters need the names of their selections.
    text = to_json(spec)
    spec["params"] = [one for one in spec["params"] if "select" not in one or text.count(one["name"].encode()) > 1]
    return rendered(spec, look)


def rendered(specification: dict[str, Any], look: Look) -> bytes:
    """The file of any specification of Vega-Lite, in the colours of a theme; a configuration of its own comes first."""
    _fonts()
    own = config(THEMES[look.theme], background=not look.transparent)
    spec = {**specification, "config": {**own, **specification.get("config", {})}}
    if look.format == "svg":
        return vl_convert.vegalite_to_svg(spec).encode()
    if look.format == "pdf":
        return vl_convert.vegalite_to_pdf(spec)
    return vl_convert.vegalite_to_png(spec, scale=RESOLUTION)


@cache
def _fonts() -> None:
    """Registers the fonts of Matplotlib, so that pictures are the same on every machine."""
    found = find_spec("matplotlib")
    for folder in found.submodule_search_locations or () if found else ():
        vl_convert.register_font_directory(str(Path(folder) / "mpl-data" / "fonts" / "ttf"))
