"""Specifications of Vega-Lite that others write: checked against its schema, and completed for the rows of a query.

Types of fields default to those of the columns and the order of names to that of the rows (``channels``). Facets become
panels, which a page arranges by its width. The mark ``boxplot`` is computed here, so that a page need not hold every
value. ``problems`` says what is wrong.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import altair
import polars as pl

from fairlane.views.charts import CLEAR, DRAG, PANEL, WHEEL, Panels
from fairlane.views.vegalite.channels import Panel, Spec, complete, is_number
from fairlane.views.vegalite.problems import problems_of, unknown_fields, walk

__all__ = ["completed", "fields_of", "has_boxes", "problems_of", "unknown_fields"]
HEIGHT = 230
"""Of a panel, pixels."""
MOST_COLUMNS = 3
"""Panels beside each other, unless the specification says how many."""
_FACETS = ("row", "column", "facet")


def has_boxes(spec: Mapping[str, Any]) -> bool:
    """Whether a specification has box plots, which need all rows."""
    return any("boxplot" in (value, key) for _, key, value in walk(spec) if isinstance(value, str))


def fields_of(spec: Mapping[str, Any]) -> Iterator[tuple[str, Spec]]:
    """Channels and facets of a specification that have a field, with their definitions."""
    for part in spec.get("layer", ()):
        yield from fields_of(part)
    yield from fields_of(spec["spec"]) if "spec" in spec else ()
    facet = spec.get("facet", {})
    channels = {**spec.get("encoding", {}), **({"facet": facet} if "field" in facet else facet)}
    for channel, of in channels.items():
        if isinstance(of, dict) and isinstance(of.get("field"), str) and "aggregate" not in of:
            yield channel, of


def completed(
    charts: Sequence[tuple[Mapping[str, Any], pl.DataFrame]], columns: int | None = None
) -> tuple[Panels, str]:
    """Panels of specifications with their rows, and what their boxes are, as a note."""
    panels = [panel for at, (spec, rows) in enumerate(charts) for panel in _panels(at, deepcopy(dict(spec)), rows)]
    columns_of = [panel.columns for panel in panels if panel.columns]
    contents = [_panel(at, panel) for at, panel in enumerate(panels)]
    alike = len({frozenset(map(repr, panel.colours)) for panel in panels if panel.colours}) <= 1
    resolve: Spec = {"scale": {} if alike else {"color": "independent", "shape": "independent"}}
    shared = [channel for channel in ("x", "y") if any(channel in panel.shared for panel in panels)]
    resolve["scale"] |= dict.fromkeys(shared, "shared")
    zoomed = [(at, panel.zoomed - {*shared}) for at, panel in enumerate(panels)]
    content: Spec = {
        "$schema": altair.SCHEMA_URL,
        "datasets": {name: rows for panel in panels for name, rows in panel.datasets.items()},
        "params": [{"name": "panel", "value": PANEL}, *(_zoom(at, channels) for at, channels in zoomed if channels)],
        "concat": contents,
        "columns": columns or max(columns_of, default=min(len(contents), MOST_COLUMNS)),
        "resolve": resolve,
    }
    return Panels(content), " ".join(dict.fromkeys(sentence for panel in panels for sentence in panel.words))


def _panels(at: int, spec: Spec, rows: pl.DataFrame) -> Iterator[Panel]:
    """A panel for each value of the facets of a specification, in the order of the rows."""
    encoding = spec.get("encoding", {})
    facets = {channel: encoding.pop(channel) for channel in _FACETS if channel in encoding}
    resolve, columns = spec.get("resolve", {}).get("scale", {}), None
    if facets:
        spec.pop("resolve", None)
    if "facet" in spec:
        given = spec.pop("facet")
        every = {"facet": given} if "field" in given else given
        facets = {channel: every[channel] for channel in _FACETS if channel in every}
        columns, inner = spec.pop("columns", None), spec.pop("spec")
        spec.pop("resolve", None)
        spec = spec | inner
    names = [rows[facets[channel]["field"]].unique(maintain_order=True) for channel in _FACETS if channel in facets]
    if facets:
        wrapped = facets.get("facet", {}).get("columns")
        columns = columns or wrapped or (len(names[-1]) if {"row", "column"} & {*facets} else None)
        columns = 1 if [*facets] == ["row"] else columns
    order = {
        name: rows[name].unique(maintain_order=True).to_list() for name in rows.columns if not is_number(rows, name)
    }
    shared = frozenset(channel for channel in ("x", "y") if facets and resolve.get(channel, "shared") == "shared")
    by = [definition["field"] for definition in facets.values()]
    for number, (values, part) in enumerate(_facets(rows, by)):
        yield Panel(
            f"rows{at}_{number}", deepcopy(spec), part, order, rows, ", ".join(map(str, values)), columns, shared
        )


def _facets(rows: pl.DataFrame, by: Sequence[str]) -> Iterator[tuple[list[Any], pl.DataFrame]]:
    if not by:
        yield [], rows
        return
    first, *rest = by
    for value in rows[first].unique(maintain_order=True):
        part = rows.filter(pl.col(first).eq_missing(pl.lit(value)))
        # A grid has the columns of its first row in all.
        yield from (([value, *values], inner) for values, inner in _facets(part, rest))


def _panel(at: int, panel: Panel) -> Spec:
    title = {"title": {"text": panel.title, "limit": {"expr": "panel + 20"}}} if panel.title else {}
    spec: Spec = {"height": HEIGHT, **title, **panel.spec}
    for part in _parts(spec):
        for channel, of in part.get("encoding", {}).items():
            if not isinstance(of, dict) or channel not in ("x", "y"):
                continue
            for key in ("axis", "scale"):
                panel.given.setdefault((channel, key), {}).update(of.get(key) or {})
            if "title" in of:
                panel.given[channel, "title"] = {"title": of["title"]}
    for channel, of in dict(fields_of(spec)).items() if "layer" in spec else ():  # by default that of the last layer
        if of["field"] in panel.rows.columns and is_number(panel.rows, of["field"]):
            panel.given.setdefault((channel, "title"), {"title": of["field"].replace("_", " ")})
    complete(panel, spec, {})
    zoomed = _top(spec, panel.zoomed)
    zoomed["name"] = f"panel{at}"
    if _draws_rows(spec):
        panel.datasets[panel.name] = panel.rows.to_dicts()
        spec["data"] = {"name": panel.name}
    else:
        spec["data"] = {"values": [{}]}
    return spec


def _top(spec: Spec, channels: set[str]) -> Spec:
    """The last unit that has a field on one of the channels; selections belong to it."""
    units = [*_units(spec)]
    encodings = ((part, part.get("encoding", {}).get(channel, {})) for part in reversed(units) for channel in channels)
    return next((part for part, of in encodings if "field" in of and "aggregate" not in of), units[-1])


def _units(spec: Spec) -> Iterator[Spec]:
    if "layer" not in spec:
        yield spec
    for part in spec.get("layer", ()):
        yield from _units(part)


def _parts(spec: Spec) -> Iterator[Spec]:
    """A specification and its layers."""
    yield spec
    for part in spec.get("layer", ()):
        yield from _parts(part)


def _zoom(at: int, channels: set[str]) -> Spec:
    """A selection that moves the axes of a panel."""
    select = {"type": "interval", "encodings": sorted(channels), "zoom": WHEEL, "translate": DRAG, "clear": CLEAR}
    return {"name": f"zoom{at}", "select": select, "bind": "scales", "views": [f"panel{at}"]}


def _draws_rows(spec: Spec) -> bool:
    """Whether any unit draws the rows themselves."""
    if "data" in spec:
        return False
    outer = {key: value for key, value in spec.items() if key != "layer"}
    return any(key == "field" for _, key, _ in walk(outer)) or any(map(_draws_rows, spec.get("layer", ())))
