"""A view: results as data for every writer. Numbers, scales, thresholds and sentences are decided when it is made.

Writers are ``fairlane.cli.terminal`` (text), ``views.picture`` (PNG, SVG, PDF) and ``views.page`` (HTML).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from fairlane.views.tables import Row, Table

if TYPE_CHECKING:
    import altair
    import polars as pl

    from fairlane.results.base import Results
    from fairlane.views.charts import Panels

_R = TypeVar("_R", bound="Results")


@dataclass(frozen=True)
class Chart:
    """A chart, as a specification of Vega-Lite without a width."""

    name: str
    """Its name, also of its file."""
    title: str
    made: altair.LayerChart | Panels | Callable[[], altair.LayerChart | Panels]
    """What it is, or what makes it where it is drawn: a terminal needs none, and a picture only its own."""
    sentence: str
    """Its message."""
    note: str
    """Its marks, explained."""
    data: Sequence[Row] = ()
    """Rows that a page exports as CSV: columns of numbers and text."""
    picture: str = ""
    """The picture that it is a panel of; by default it is one of its own."""
    headline: str = ""
    """The title of the picture that it is the first panel of; by default what it shows."""
    wide: bool = False
    """Whether it takes the whole width of a page."""
    aside: altair.Chart | altair.LayerChart | None = None
    """Chart that pictures have at its right; a page has tables and tooltips for it."""
    alone: bool = False
    """Whether its note is all that is written below its picture."""
    only_picture: bool = False
    """Whether a page leaves it out: it has a ``Custom`` part in its place."""
    only_page: bool = False
    """Whether it is a picture only where that is asked for by name."""
    frame: pl.DataFrame | None = None
    """Frame that it exports in place of ``data``."""

    @cached_property
    def spec(self) -> altair.LayerChart | Panels:
        """The chart."""
        from altair.utils.schemapi import debug_mode

        with debug_mode(False):  # specifications of fairlane's own are checked by its tests
            return self.made() if callable(self.made) else self.made


@dataclass(frozen=True)
class Custom:
    """A part of a page that a module of JavaScript draws; other writers leave it out."""

    name: str
    """Name of its files when they are exported."""
    title: str
    module: str
    """Its module in ``views/browser``, which exports ``start(section, data, page)``."""
    data: Callable[[], Any]
    """Makes what the module gets, as JSON."""
    sentence: str
    note: str


@dataclass(frozen=True)
class View:
    """View of one or more results of a kind."""

    title: str
    """Title of the results."""
    headline: str
    """The main result, in a line; of several results a line each."""
    facts: Sequence[str]
    """The simulated systems: a line for each of the results."""
    parts: Sequence[Table | Chart | Custom]
    """In the order of a page; a terminal has the tables."""
    remarks: Sequence[str] = ()
    """Explanations of columns, and weaknesses of the numbers: a sentence each."""
    provenance: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Terms and values by result; those that are None or empty are not shown."""

    @property
    def charts(self) -> list[Chart]:
        """Its charts."""
        return [part for part in self.parts if isinstance(part, Chart)]

    @property
    def tables(self) -> list[Table]:
        """Its tables."""
        return [part for part in self.parts if isinstance(part, Table)]

    @property
    def drawn(self) -> dict[str, list[Chart]]:
        """The pictures that are drawn if none is asked for by name."""
        return {name: charts for name, charts in self.pictures.items() if not charts[0].only_page}

    @property
    def pictures(self) -> dict[str, list[Chart]]:
        """The charts of each picture, from top to bottom."""
        by_picture: dict[str, list[Chart]] = {}
        for chart in self.charts:
            by_picture.setdefault(chart.picture or chart.name, []).append(chart)
        return by_picture


def scenario_of(results: Results) -> str:
    """The name of the scenario of results whose ``meta`` is that of their JSON file."""
    return str(results.meta["scenario"].get("name", "scenario"))  # type: ignore[attr-defined]


def title_of(every: Mapping[str, Results], what: str) -> str:
    """The scenarios by name, and what was made of them."""
    return f"{', '.join(dict.fromkeys(map(scenario_of, every.values())))}: {what}"


def lines_of(every: Mapping[str, _R], line: Callable[[_R], str]) -> list[str]:
    """A line for each of the results, which names it if there are several."""
    return [f"{name}: {line(results)}" if len(every) > 1 else line(results) for name, results in every.items()]


def sentences_of(every: Mapping[str, _R], sentence: Callable[[_R], str]) -> str:
    """The same as sentences, a line each."""
    return "\n".join(f"{line}." for line in lines_of(every, sentence))


def remarks_of(every: Mapping[str, _R], remarks: Callable[[_R], Iterable[str]]) -> list[str]:
    """Sentences on each of the results, which name it if there are several."""
    return [
        f"{name}: {line}" if len(every) > 1 else line for name, results in every.items() for line in remarks(results)
    ]


def together(every: Mapping[str, _R], key: str, table: Callable[[_R], pl.DataFrame]) -> pl.DataFrame:
    """A table of each of the results as one, with their names as the column ``key``."""
    import polars as pl

    return pl.concat([table(results).select(pl.lit(name).alias(key), pl.all()) for name, results in every.items()])


def provenance_of(every: Mapping[str, Results]) -> dict[str, dict[str, object]]:
    """Return the folders of results and the terms of their ``meta``."""
    terms_by_name: dict[str, dict[str, object]] = {}
    for name, results in every.items():
        meta = {key: value for key, value in results.meta.items() if not isinstance(value, dict)}  # type: ignore[attr-defined]
        lists = {key: ", ".join(map(str, value)) if isinstance(value, list) else value for key, value in meta.items()}
        terms = {"folder": results.folder, "scenario": scenario_of(results), **lists}
        terms_by_name[name] = {term.replace("_", " "): value for term, value in terms.items()}
    return terms_by_name
