"""How busy and how blocked ports are: by level of the tree or class of link, and over time by role."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from fairlane.engine.tables import PS
from fairlane.results.run import Run
from fairlane.results.views import by_link, over_time
from fairlane.views.charts import Axis, Layer, chart, choice, colour, described, layers
from fairlane.views.model import Chart, sentences_of
from fairlane.views.rows import MOST_DOTS, Rows, box_numbers, boxes, dots, spread, thinned
from fairlane.views.run.series import Series
from fairlane.views.tables import Column, Row
from fairlane.wording import percent, plural, seconds

MOST_INTERVALS = 400
"""Of more intervals, successive ones are merged."""
_ACTIVE, _STALLED = "port_active_share", "port_stalled_share"
_SHARES = {_ACTIVE: "Share of time carrying packets", _STALLED: "Share of time stalled: packets wait, no credits"}
_LEAST = {_ACTIVE: 0.05, _STALLED: 0.05}
"""An axis reaches at least this share of time, so that next to nothing looks like it."""


def charts(series: Series) -> Iterator[Chart]:
    """The ports of each class over the whole run, and of each role over time."""
    yield from _utilisation(series)
    yield from _timeline(series)


def busiest(links: pl.DataFrame) -> str:
    """How busy the busiest port is, compared with the others of its class; ``links`` has a row for each."""
    most = links.sort(_ACTIVE, "link").row(-1, named=True)
    alike = links.filter(pl.col("class") == most["class"])[_ACTIVE]
    peak = percent(most[_ACTIVE])
    words = f"The busiest port ({most['class']}) transmits {peak} of the time"
    if len(alike) == 1:
        return words
    median = percent(float(np.median(alike.to_numpy())))
    return f"{words}; the median of {len(alike)} {most['class']} ports is {median}"


def _classes(links: pl.DataFrame) -> pl.DataFrame:
    """The classes of links from hosts to the top, with their level and the number of ports."""
    level = pl.max_horizontal("from_level", "to_level").alias("level")
    down = (pl.col("from_level") > pl.col("to_level")).alias("down")
    grouped = links.with_columns(level, down).group_by("class")
    found = grouped.agg(pl.col("level", "down", "link").min(), pl.len().alias("count"))
    return found.sort("level", "down", "link")


def _utilisation(series: Series) -> Iterator[Chart]:
    known = {name: links for name, run in series.runs.items() if (links := by_link(run.ports)).height}
    if not known:
        return
    every = pl.concat([_classes(links) for links in known.values()])
    classes = every.group_by("class", maintain_order=True).agg(pl.col("count").max(), pl.col("level").min())
    names = classes["class"].to_list()
    labels = [[name, plural(count, "port")] for name, count in classes.select("class", "count").iter_rows()]
    places = Rows(names, len(series.runs), labels)
    level = dict(classes.select("class", "level").iter_rows())
    many = int(classes["count"].to_numpy().max()) > MOST_DOTS
    thin = (
        f" Of more than {MOST_DOTS} ports of a class, those that are evenly spaced in order are drawn." if many else ""
    )
    note = f"A dot is a port; boxes: quartiles and median; whiskers: extremes.{thin}{series.below()}"
    runs = {name: series.runs[name] for name in known}
    sentences = {
        _ACTIVE: sentences_of(runs, lambda run: busiest(by_link(run.ports)) + _named(run)),
        _STALLED: sentences_of(runs, _stalled),
    }
    for column in _SHARES:
        yield Chart(
            "utilisation" if column == _ACTIVE else "stalls",
            "Utilisation of ports" if column == _ACTIVE else "Stalls of ports",
            layers(places.height, *_strips(series, known, places, level, column), zoom=("x",)),
            sentences[column],
            note,
            [
                {"run": name, "class": row["class"], column: row[column]}
                for name, links in known.items()
                for row in links.select("class", column).iter_rows(named=True)
            ][:20_000],
            picture="utilisation",
        )


def _named(run: Run) -> str:
    """The name of the busiest port."""
    most = by_link(run.ports).sort(_ACTIVE, "link").row(-1, named=True)
    return f" (busiest: {most['link_name']})"


def _stalled(run: Run) -> str:
    links = by_link(run.ports)
    stalled = int((links[_STALLED] > 0.1).sum())
    return f"{plural(stalled, 'port')} of {links.height} stalled for more than 10% of the time"


def _strips(
    series: Series, known: dict[str, pl.DataFrame], places: Rows, level: dict[str, int], column: str
) -> Iterator[Layer]:
    boxed: list[Row] = []
    points: list[Row] = []
    for name, links in known.items():
        number = series.number(name)
        for of in places.names:
            values = links.filter(pl.col("class") == of)[column].to_numpy()
            if not values.size:
                continue
            row = {"run": name, "class": of, "series": name if series.several else f"level {level[of]}"}
            boxed.append(places.place({**row, **box_numbers(values, (0, 100))}, of, number))
            some = thinned(values)
            at = places.at(of, number)
            shift = spread(some.size, 0.7 * places.reach)
            points += [
                {**row, "value": float(f"{value:.5g}"), "at": at + off} for value, off in zip(some, shift, strict=True)
            ]
    axis = Axis.of([_LEAST[column], *(row["value"] for row in points)], _SHARES[column], "share", scale="linear")
    axis = replace(axis, high=min(axis.high, 1.02))
    names = list(series.runs) if series.several else list(dict.fromkeys(row["series"] for row in boxed))
    told, tooltip = described(
        points, [*series.run_column, Column("ports", "class"), Column("share of time", "value", percent)]
    )
    channel = colour("series", names, shown=names if series.several else ())
    yield boxes(boxed, axis, places, color=channel)
    yield dots(told, axis, places, "value", color=channel, tooltip=tooltip)


def _timeline(series: Series) -> Iterator[Chart]:
    tables = {
        name: table
        for name, run in series.runs.items()
        if run.samples is not None
        and not run.samples.is_empty()
        and not (table := over_time(run.samples, run.ports)).is_empty()
    }
    if not tables:
        return
    rows = [row for name, table in tables.items() for row in _intervals(series, name, table)]
    runs = {name: series.runs[name] for name in tables}
    roles = list(dict.fromkeys(row["role"] for row in sorted(rows, key=lambda row: -row[_ACTIVE])))
    time = Axis.of((row["to_s"] for row in rows), "Time", "time", scale="linear")
    for column, title in {_ACTIVE: "Carrying packets", _STALLED: "Stalled"}.items():
        axis = Axis.of([0.01, *(row[column] for row in rows)], title, "share", scale="linear")
        columns = [
            *series.run_column,
            Column("ports", "label"),
            Column("from", "at_s", seconds),
            Column("share of time", column, percent),
        ]
        told, tooltip = described(rows, columns)
        base = chart(told)
        names = list(series.runs) if series.several else list(dict.fromkeys(row["label"] for row in rows))
        encoding: dict[str, Any] = {"x": time.x("at_s"), "y": axis.y(column), "color": colour("series", names)}
        parameters = []
        if series.several:
            selected, wanted = choice("role", "Ports", roles)
            base, parameters = base.transform_filter(wanted), [selected]
        line = base.mark_line(interpolate="step-after", strokeWidth=1.8).encode(**encoding)
        points = base.mark_point(size=40, opacity=0).encode(**encoding, tooltip=tooltip)
        what = "Mean share of time of all ports of a role."
        yield Chart(
            "timeline" if column == _ACTIVE else "timeline-stalls",
            f"Ports over time: {title.lower()}",
            layers(220, line, points.add_params(*parameters)),
            sentences_of(runs, _most_active if column == _ACTIVE else _most_stalled),
            what if not series.several else f"{what} Shown: {roles[0]} ports, or those that are chosen on a page.",
            [{key: row[key] for key in ("run", "role", "at_s", "to_s", column)} for row in rows],
            picture="timeline",
        )


def _intervals(series: Series, name: str, table: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """A row for each interval and role; a last one at the end of the last interval, which a line of steps needs."""
    together = -(-table["from_ps"].n_unique() // MOST_INTERVALS)
    number = pl.col("from_ps").rank("dense").sub(1) // together
    merged = (
        table.with_columns(group=number)
        .group_by("role", "group")
        .agg(pl.col("ports").first(), pl.col("from_ps").min(), pl.col("to_ps").max(), pl.col(_ACTIVE, _STALLED).mean())
        .sort("role", "from_ps")
    )
    for (role,), rows in merged.group_by("role", maintain_order=True):
        label = f"{role} ({rows['ports'][0]})"
        last = rows[-1].with_columns(from_ps=pl.col("to_ps"))
        for row in pl.concat([rows, last]).iter_rows(named=True):
            yield {
                "run": name,
                "role": role,
                "of": role,
                "label": label,
                "series": name if series.several else label,
                "at_s": row["from_ps"] * PS,
                "to_s": row["to_ps"] * PS,
                **{key: float(f"{row[key]:.5g}") for key in (_ACTIVE, _STALLED)},
            }


def _most_stalled(run: Run) -> str:
    assert run.samples is not None, "invariant: there are samples"
    most = over_time(run.samples, run.ports).sort(_STALLED, "from_ps", "role").row(-1, named=True)
    if most[_STALLED] == 0:
        return "No port was ever stalled"
    share, when = percent(most[_STALLED]), seconds(most["from_ps"] * PS)
    return f"{most['role'].capitalize()} ports are stalled most, {share} of the time from {when} on"


def _most_active(run: Run) -> str:
    assert run.samples is not None, "invariant: there are samples"
    most = over_time(run.samples, run.ports).sort(_ACTIVE, "from_ps", "role").row(-1, named=True)
    share, when = percent(most[_ACTIVE]), seconds(most["from_ps"] * PS)
    return f"{most['role'].capitalize()} ports are busiest, {share} of the time from {when} on"
