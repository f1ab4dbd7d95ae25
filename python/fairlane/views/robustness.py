"""Robustness maps: at which share of a paper's plausible space each clause holds, and what decides it.

The parts of a map are also those of the page of a reproduction, and a campaign's map has the same charts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from textwrap import shorten
from typing import Any

import altair
import polars as pl
from altair import ExprRef
from pydantic_core import to_json

from fairlane.core.statistics import COVERAGE
from fairlane.core.wording import listed, number, percent, plural, significant
from fairlane.results.reproduction import CALIBRATED, DEPENDS, MAP_VERDICTS, RARE, RobustnessResults
from fairlane.views.charts import (
    NUMBERS,
    Axis,
    Layer,
    caption,
    chart,
    choice,
    chosen_key,
    colour,
    described,
    highlighted,
    layers,
    legend_of,
    linked,
    offered,
    ordered,
    rule,
    with_tooltip,
)
from fairlane.views.heat import Heat
from fairlane.views.model import Chart, View, lines_of, remarks_of
from fairlane.views.rows import Rows
from fairlane.views.style import is_wide
from fairlane.views.tables import Column, Row, Table, columns, naming

PICTURES = {
    "robustness": "where clauses hold, and what decides them",
    "levels": "where a clause holds, by levels of parameters",
    "margins": "margins of a clause by a parameter",
}
"""Its pictures, and what they show."""
CLAUSE = ("a clause", "holds", "the clause's margin")
"""Meaning of a row, of its value at a point, and of the index."""
_LETTERS = 58
"""Of a clause in charts."""
_ROW = 20
"""Height of a row, px."""
_ROOM = 1.75
"""Length of the axis of shares: beyond 1 are the parameters that decide."""
_THRESHOLDS = (0.1, 0.9)
"""Shares at which the verdict changes."""
_CHANCE = {True: "beyond chance", False: "not beyond chance"}
_BAND = {True: "in the band", False: "outside"}
_VERDICTS = dict(zip(MAP_VERDICTS, (0, 1, 2, 4, 7), strict=True))
"""Colours of the palette: blue, orange, red, olive, grey."""


def view(maps: Mapping[str, RobustnessResults]) -> View:
    """One map, or several: clauses of the same paper are next to each other."""
    titles = dict.fromkeys(robustness.meta.title for robustness in maps.values())
    headlines = lines_of(
        maps, lambda robustness: f"{robustness.meta.title}: {_counts(robustness.frames['robustness-clauses'])}"
    )
    return View(
        title=f"{', '.join(titles)}: robustness",
        headline="\n".join(headlines),
        facts=lines_of(maps, lambda robustness: " ".join(robustness.meta.lines).removesuffix(".")),
        parts=parts(maps),
        remarks=[_EXPLAINED, *remarks_of(maps, lambda robustness: robustness.meta.left_out)],
        provenance={name: _provenance(robustness) for name, robustness in maps.items()},
    )


def papers(clauses: pl.DataFrame) -> View:
    """The clauses of the maps of several papers: a table of all of them, with the ``title`` of each."""
    by_title = {str(title): of for (title,), of in clauses.group_by("title", maintain_order=True)}
    short = [title.split(",")[0] for title in by_title]
    names = [name if short.count(name) == 1 else title for name, title in zip(short, by_title, strict=True)]
    tables = dict(zip(names, by_title.values(), strict=True))
    maps = f"{plural(len(tables), 'map')}, each of the plausible space of what a paper leaves open, on a small system"
    return View(
        title="Robustness of papers",
        headline="Which findings are robust, and what the others depend on",
        facts=[maps],
        parts=[shares(tables), _table(tables)],
        remarks=[_EXPLAINED],
    )


_EXPLAINED = (
    "Robust: holds at 90% of the points of the plausible space or more; rarely holds: at 10% or fewer; depends: "
    "between; calibrated: an input was chosen by it. Decided by: parameters whose first-order Sobol' index of the "
    "clause's margin is beyond chance, the largest first."
)


def parts(maps: Mapping[str, RobustnessResults]) -> list[Chart | Table]:
    """The charts and tables of maps."""
    tables = {name: robustness.frames["robustness-clauses"] for name, robustness in maps.items()}
    several = len(maps) > 1
    charts: list[Chart | Table] = [shares(tables)] if any(table.height for table in tables.values()) else []
    for at, (name, robustness) in enumerate(maps.items()):
        charts += _of_map(robustness, *((name, str(at)) if several else ("", "")))
    return [
        *charts,
        _table(tables),
        *(_parameters(robustness, name if several else "") for name, robustness in maps.items()),
    ]


def _of_map(robustness: RobustnessResults, name: str, suffix: str) -> Iterator[Chart]:
    clauses, levels = robustness.frames["robustness-clauses"], robustness.frames["robustness-levels"]
    if not clauses.height:
        return
    yield from indices(clauses, robustness.frames["robustness-indices"], name=name, suffix=suffix)
    if levels.height:
        yield _levels(clauses, levels, name, suffix)
    yield from _margins(robustness, name, suffix)


def _provenance(robustness: RobustnessResults) -> dict[str, object]:
    meta = robustness.meta
    of = {"paper": meta.paper, "fairlane": meta.version, "digest of the simulator": meta.simulator}
    return {"folder": robustness.folder, **of}


def _counts(clauses: pl.DataFrame) -> str:
    """Count the clauses of each verdict."""
    counts = dict(clauses.group_by("verdict").len().iter_rows())
    forms = {DEPENDS: "depend", RARE: "rarely hold"}
    known = [(verdict, counts[verdict]) for verdict in MAP_VERDICTS if counts.get(verdict)]
    counted = [f"{count} {verdict if count == 1 else forms.get(verdict, verdict)}" for verdict, count in known]
    return f"{plural(clauses.height, 'clause')}: {listed(counted)}" if counted else "No clause was judged"


def _titled(title: str, name: str) -> str:
    return f"{name}: {title[0].lower()}{title[1:]}" if name else title


def _keyed(table: pl.DataFrame) -> pl.DataFrame:
    """Rows of clauses with the ``key`` by which a page chooses them: the claim, and the clause's number in it."""
    return table.with_columns(key=pl.format("{} {}", "claim", "clause"))


def _together(tables: Mapping[str, pl.DataFrame]) -> list[dict[str, Any]]:
    """The rows of several maps, with the name of each."""
    return [{"map": name, **row} for name, table in tables.items() for row in _keyed(table).to_dicts()]


def _short(says: str) -> str:
    return shorten(says, _LETTERS, placeholder=" …")


def _decided(row: Row) -> str:
    """The parameters that decide a clause, as text."""
    return str(row.get("decided_by") or "").replace("_", " ").replace(", ", " · ")


def _holds(row: Row) -> str:
    share = percent(row["share"])
    return f"{row['held']} of {row['points']} ({share})" if row.get("points") else share


_COLUMNS = [
    Column("verdict", lambda row: f"{row['verdict']}{', near certain' if row.get('near_certain') else ''}", left=True),
    Column("holds at", _holds),
    Column("95% interval", lambda row: f"{percent(row['share_low'])} to {percent(row['share_high'])}"),
    Column("at the\ndefaults", lambda row: f"{row['default_held']} of {row['default_points']}"),
    Column("decided by", lambda row: _decided(row) or None, left=True, wrap=True),
]


def _table(tables: Mapping[str, pl.DataFrame]) -> Table:
    claim = [Column("claim", "claim", left=True), Column("clause", "says", left=True, wrap=True)]
    data = pl.concat([table.cast({"decided_by": pl.String}) for table in tables.values()], how="diagonal_relaxed")
    shown = [*naming(tables, "map"), *claim, *_COLUMNS]
    return Table(shown, _together(tables), "Clauses", sentence=f"{_counts(data)}.", keyed=True, data=data)


def _parameters(robustness: RobustnessResults, name: str) -> Table:
    headings = {"name": "parameter", "title": "meaning", "range": "range", "default": "default", "source": "source"}
    shown = [Column(heading, key, left=True, wrap=key != "name") for key, heading in headings.items()]
    title = f"{plural(len(robustness.meta.parameters), 'parameter')} that the paper leaves open."
    return Table(shown, robustness.meta.parameters, _titled("Plausible space", name), sentence=title, only_page=True)


def shares(tables: Mapping[str, pl.DataFrame], of: Sequence[str] = CLAUSE) -> Chart:
    """The share of points at which each clause holds, by verdict, and the parameters that decide it.

    Clauses that several maps have are compared in one row; others are below the name of their map.
    """
    rows = _together(tables)
    keys = [row["key"] for row in rows]
    compared = len(tables) > 1 and len(set(keys)) < len(keys)
    names = [*dict.fromkeys(keys)]
    if len(tables) > 1 and not compared:
        names = [
            name
            for of_map, group in groupby(rows, lambda row: row["map"])
            for name in (of_map, *(row["key"] for row in group))
        ]
    labels = {row["key"]: _short(row["says"]) for row in rows}
    places = Rows(names, len(tables) if compared else 1, [labels.get(name, name) for name in names])
    series = {name: at if compared else 0 for at, name in enumerate(tables)}
    shown = [places.place(_share(row), row["key"], series[row["map"]]) for row in rows]
    bold = [at for at, name in enumerate(names) if name not in labels]
    height = len(names) * (_ROW + 8 * (places.series - 1))
    counts = "; ".join(f"{_called(name, table, len(tables))}{_counts(table)}" for name, table in tables.items())
    calibrated = " Calibrated: an input was chosen by it." if any(row["verdict"] == CALIBRATED for row in rows) else ""
    order = f" In each row from top to bottom: {listed([*tables])}." if compared else ""
    return Chart(
        "shares",
        f"Where {of[0].removeprefix('a ')}s {of[1].removesuffix('s') if of[1] == 'holds' else 'are predicted'}",
        linked(layers(height, *_share_layers(shown, places, bold), zoom=("x",), choices=[chosen_key()])),
        f"{counts}.",
        f"Share of the points at which {of[0]} {of[1]}, with its {COVERAGE:.0%} interval. Blue: at 90% or more; "
        "red: at 10% or fewer. Triangles: share at the defaults, over seeds. At the right: what decides it beyond "
        f"chance.{calibrated}{order}",
        [
            {key: value for key, value in row.items() if key != "key" and isinstance(value, str | int | float)}
            for row in rows
        ],
        picture="robustness",
        wide=True,
    )


def _called(name: str, table: pl.DataFrame, maps: int) -> str:
    """Name a map in a title: by its name among others, by its paper's title alone."""
    title = table["title"][0] if table.height and "title" in table.columns else ""
    called = name if maps > 1 else title
    return f"{called}: " if called else ""


def _colour(field: str, places: Mapping[str, int]) -> altair.Color:
    """Colours by their places in the palette."""
    scale = altair.Scale(domain=[*places], range=[ExprRef(f"palette{at}") for at in places.values()])
    return altair.Color(f"{field}:N", scale=scale, legend=legend_of([*places]))


def _share(row: Row) -> dict[str, Any]:
    usual = row["default_held"] / row["default_points"] if row["default_points"] else None
    return {**row, "usual": usual, "decided": _decided(row), "zero": 0.0}


def _share_layers(rows: Sequence[Row], places: Rows, bold: Sequence[int]) -> Iterator[Layer]:
    used = {row["verdict"] for row in rows}
    which = [Column("map", "map")] if places.series > 1 or bold else []
    told, tooltip = described(rows, [*which, Column("clause", "says"), *_COLUMNS])
    base = chart([{key: row[key] for key in row if key not in ("paper", "title", "p", "chance")} for row in told])
    ticks = altair.Axis(
        title="Share of points",
        values=[0, _THRESHOLDS[0], 0.5, _THRESHOLDS[1], 1],
        labelExpr=f"indexof({list(_THRESHOLDS)}, datum.value) < 0 ? format(datum.value, '.0%') : ''",
    )

    def x(field: str) -> altair.X:
        return altair.X(f"{field}:Q", axis=ticks, scale=altair.Scale(domain=[0, _ROOM], nice=False))

    at, top = places.y("at", bold), places.y("top", bold)
    coloured = _colour("verdict", {verdict: at for verdict, at in _VERDICTS.items() if verdict in used})
    look: dict[str, Any] = {"color": coloured, "tooltip": tooltip, "opacity": highlighted()}
    yield base.mark_rect(clip=True).encode(x=x("zero"), x2="share:Q", y=top, y2="bottom:Q", **look)
    texts = base.mark_text(style="text", fontSize=11, align="left", limit=ExprRef(f"width * {(_ROOM - 1.04) / _ROOM}"))
    yield texts.encode(x=altair.value(ExprRef(f"width * {1.04 / _ROOM}")), y=at, text="decided:N")
    none = base.transform_filter("datum.share === 0")  # bars without length, which show no colour
    yield none.mark_point(size=26).encode(x=x("share"), y=at, **look)
    yield base.mark_rule(style="ink", strokeWidth=1.3, clip=True).encode(x=x("share_low"), x2="share_high:Q", y=at)
    usual = base.transform_filter("isValid(datum.usual)")
    triangle = usual.mark_point(shape="triangle-down", style="ink", size=34, yOffset=-1)
    yield triangle.encode(x=x("usual"), y=top, tooltip=tooltip)


def indices(
    clauses: pl.DataFrame, table: pl.DataFrame, of: Sequence[str] = CLAUSE, *, name: str = "", suffix: str = ""
) -> Iterator[Chart]:
    """First-order Sobol' indices of the margins of clauses, by parameter; nothing without parameters."""
    known = _keyed(table).filter(pl.col("index").is_not_null())
    if not known.height:
        return
    names = [parameter.replace("_", " ") for parameter in known["parameter"].unique(maintain_order=True)]
    says = dict(_keyed(clauses).select("key", "says").iter_rows())
    places = Rows([*says], labels=[*map(_short, says.values())])
    heat = Heat(0.0, 1.0, log=False)
    rows = [
        {
            **places.place(row, row["key"]),
            "says": says[row["key"]],
            "column": row["parameter"].replace("_", " "),
            "shade": heat.shade(row["index"]),
            "text": f"{row['index']:.2f}".removeprefix("0") if row["beyond_chance"] else "",
            "ink": heat.text(row["index"]),
        }
        for row in known.iter_rows(named=True)
    ]
    shown = [Column(of[0].removeprefix("a "), "says"), Column("parameter", "column"), Column("index", _index)]
    base, tooltip = with_tooltip(rows, [*shown, Column("", lambda row: _CHANCE[bool(row["beyond_chance"])])])
    look = altair.Axis(title=None, labelAngle=-40, labelOverlap=False)
    base = base.encode(x=altair.X("column:N", scale=altair.Scale(domain=names, padding=0.04), axis=look))
    colours: dict[str, Any] = {"color": heat.colour("shade", "index", share=False), "opacity": highlighted()}
    cells = base.mark_rect().encode(y=places.y("top"), y2="bottom:Q", tooltip=tooltip, **colours)
    ink = altair.Color("ink:N", scale=None)
    numbers = base.mark_text(fontSize=11).encode(y=places.y("at"), text="text:N", color=ink)
    most = known.filter("beyond_chance").group_by("parameter").len()
    sentence = "No parameter decides a clause beyond chance."
    if most.height:
        first, count = most.sort("len", "parameter").row(-1)
        sentence = f"{first.replace('_', ' ')} decides most beyond chance: {count} of {clauses.height}."
    yield Chart(
        f"indices{suffix}",
        _titled("What decides", name),
        linked(layers(len(says) * (_ROW + 4), cells, numbers, zoom=(), choices=[chosen_key()])),
        sentence,
        f"First-order Sobol' index of {of[2]}: the share of its variance that the parameter explains by itself. "
        "Numbers: beyond chance.",
        frame=table,
        picture="robustness",
        wide=True,
    )


def _index(row: Row) -> str:
    low, high = row.get("index_low"), row.get("index_high")
    interval = "" if low is None or high is None else f" ({number(low)} to {number(high)})"
    return f"{number(row['index'])}{interval}"


def _clauses(clauses: pl.DataFrame, of: pl.DataFrame) -> dict[str, str]:
    """Unique texts of the clauses of a table by key, for a choice; first the one that depends on something."""
    rows = _keyed(clauses).join(of, on=["claim", "clause"], how="semi", maintain_order="left").to_dicts()
    rows.sort(key=lambda row: not (row["verdict"] == DEPENDS and row["decided_by"]))
    texts = [row["says"] for row in rows]
    return {
        row["key"]: row["says"] if texts.count(row["says"]) == 1 else f"{row['says']} ({row['key']})" for row in rows
    }


def _levels(clauses: pl.DataFrame, levels: pl.DataFrame, name: str, suffix: str) -> Chart:
    """The share of points at which a clause holds, by levels of parameters."""
    texts, by_key = _clauses(clauses, levels), {row["key"]: row for row in _keyed(clauses).to_dicts()}
    order = pl.int_range(pl.len()).over("key")
    rows = [
        {
            **row,
            "of": texts[row["key"]],
            "label": f"{row['parameter'].replace('_', ' ')}: {row['level']}",
            "certain": _CHANCE[row["parameter"] in str(by_key[row["key"]]["decided_by"] or "").split(", ")],
        }
        for row in _keyed(levels).with_columns(order=order).to_dicts()
    ]
    parameter = f"level_clause{suffix}"
    clause = choice(parameter, "Clause", [*texts.values()])
    base, tooltip, choices = offered(rows, [Column("level", "label"), Column("holds at", _holds)], clause)
    share = Axis.of([0.0, 1.0], "Share of points", "share", scale="linear")
    base = base.encode(y=ordered("label", "order", down=False, labelLimit=260))
    colours = _colour("certain", {_CHANCE[True]: 0, _CHANCE[False]: 5})
    bars = base.mark_bar(size=12).encode(x=share.x("share"), color=colours, tooltip=tooltip)
    lines = base.mark_rule(style="ink", strokeWidth=1.3).encode(x=share.x("share_low"), x2="share_high:Q")
    most = max(row["order"] for row in rows) + 1
    first = by_key[next(iter(texts))]
    decided = listed((first["decided_by"] or "").split(", ")).replace("_", " ")
    by = f"decided by {decided}" if decided else "no parameter decides it beyond chance"
    return Chart(
        f"levels{suffix}",
        _titled("A clause by levels of parameters", name),
        linked(layers(most * 19, bars, lines, zoom=(), choices=choices), {parameter: texts}),
        f"{first['says']}: holds at {percent(first['share'])} of the points; {by}.",
        f"Share of the points with a level, or in a third of a range, at which the clause holds, with its "
        f"{COVERAGE:.0%} interval. Blue: parameters that decide it {_CHANCE[True]}.",
        frame=levels,
        picture="levels",
        only_page=True,
    )


def _margins(robustness: RobustnessResults, name: str, suffix: str) -> Iterator[Chart]:
    """The margin of a clause at every point, by a parameter, which is chosen, too."""
    points, clauses = robustness.frames["robustness"], robustness.frames["robustness-clauses"]
    titles = {
        row["name"]: row["title"] or row["name"] for row in robustness.meta.parameters if row["name"] in points.columns
    }
    known = points.filter(pl.col("margin").is_not_null(), pl.col("point") > 0)
    if not titles or not known.height:
        return
    texts, every = _clauses(clauses, known), [*titles.values()]
    placed = {title: _placed(known[key]) for key, title in titles.items()}
    places = [values.alias(f"x{at}") for at, (_, values) in enumerate(placed.values())]
    table = known.select("point", "claim", "clause", "measured", "margin", "holds").with_columns(places)
    rows = [
        {**row, "of": texts[row["key"]], "held": _BAND[bool(row["holds"])]}
        for row in _keyed(table).to_dicts()
        if row["key"] in texts
    ]
    told = [*columns(point="point", measured="measured"), Column("margin", "margin", significant)]
    parameter, of_clause = f"margin_parameter{suffix}", f"margin_clause{suffix}"
    base, tooltip, choices = offered(rows, told, choice(of_clause, "Clause", [*texts.values()]))
    bound = altair.binding_select(options=every, name="Parameter ")
    choices.append(altair.param(parameter, value=every[0], bind=bound))
    labels = f"({to_json({title: labels for title, (labels, _) in placed.items()}).decode()})[{parameter}]"
    text = f"{labels}.text[indexof({labels}.at, datum.value)]"
    axis = altair.Axis(title=" ", values=ExprRef(f"{labels}.at"), labelExpr=text, grid=False)
    margin = replace(Axis.chosen(f"format(datum.value, '{NUMBERS}')"), title="Margin")
    dots = base.transform_calculate(x=f"datum['x' + indexof({to_json(every).decode()}, {parameter})]")
    inside = [*_BAND.values()]
    dots = dots.mark_point(opacity=0.8, clip=True).encode(
        x=altair.X("x:Q", scale=altair.Scale(domain=[-0.03, 1.03], nice=False), axis=axis),
        y=margin.y("margin"),
        color=colour("held", inside),
        shape=altair.Shape("held:N", scale=altair.Scale(domain=inside, range=["circle", "triangle-up"])),
        tooltip=tooltip,
    )
    line, title_of = rule(0.0, margin, vertical=False), caption(parameter)
    first = next(iter(texts.values()))
    held = [row["held"] == _BAND[True] for row in rows if row["of"] == first]
    yield Chart(
        f"margins{suffix}",
        _titled("Margins by parameter", name),
        linked(layers(320, line, title_of, dots, zoom=("y",), choices=choices), {of_clause: texts}),
        f"{first}: {sum(held)} of {len(held)} values are in their band.",
        "Distance of a value from the nearest edge of its band, in units of the value; below zero it is outside. A dot "
        "is a number of the clause at one point.",
        frame=points,
        picture="margins",
        only_page=True,
    )


def _placed(values: pl.Series) -> tuple[dict[str, list[Any]], pl.Series]:
    """Return the places of labels on the axis of a parameter, from 0 to 1, and those of its values."""
    if not values.dtype.is_numeric():
        names = values.cast(pl.String).unique().sort().to_list()
        at = [place / max(1, len(names) - 1) for place in range(len(names))]
        return {"at": at, "text": names}, values.cast(pl.String).replace_strict(names, at, return_dtype=pl.Float64)
    low, high = float(values.to_numpy().min()), float(values.to_numpy().max())
    log = is_wide(low, high)
    at = [0.0, 0.25, 0.5, 0.75, 1.0]
    ends = [low * (high / low) ** place if log else low + (high - low) * place for place in at]
    width = (high - low) or 1.0
    places = (values / low).log() / pl.Series([high / low]).log() if log else (values - low) / width
    return {"at": at, "text": [significant(value) for value in ends]}, places
