"""Use and stalls of ports: by level of the tree or class of link, and over time by role."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from fairlane.core.tables import PS
from fairlane.core.wording import percent, plural, seconds
from fairlane.results.run import Run
from fairlane.results.views import by_link, over_time
from fairlane.views.charts import Axis, Layer, choice, colour, course, described, drawing, layers, picked
from fairlane.views.model import Chart, sentences_of, together
from fairlane.views.rows import MOST_DOTS, Rows, boxes, dots, strips
from fairlane.views.run.series import Series
from fairlane.views.tables import Column

PICTURES = {
    "utilisation": "how busy and how blocked ports are, by class",
    "timeline": "how busy and how blocked ports are over time, by role",
}
"""Its pictures, and what they show."""
MOST_INTERVALS = 400
"""Of more intervals, successive ones are merged."""
MOST_LINKS = 20_000
"""Links of all runs that are exported."""
_ACTIVE, _STALLED = "port_active_share", "port_stalled_share"
_LEAST = 0.05
"""An axis reaches at least this share of time, so that next to nothing looks like it."""


def charts(series: Series) -> Iterator[Chart]:
    """The ports of each class over the whole run, and of each role over time."""
    yield from _utilisation(series)
    yield from _timeline(series)


def busiest(links: pl.DataFrame) -> str:
    """Compare the busiest port with the others of its class; ``links`` has a row for each."""
    most = links.sort(_ACTIVE, "link").row(-1, named=True)
    alike = links.filter(pl.col("class") == most["class"])[_ACTIVE]
    peak = percent(most[_ACTIVE])
    busiest_of = f"The busiest port ({most['class']}) transmits {peak} of the time"
    if len(alike) == 1:
        return busiest_of
    median = percent(float(np.median(alike.to_numpy())))
    return f"{busiest_of}; the median of {len(alike)} {most['class']} ports is {median}"


def _classes(links: pl.DataFrame) -> pl.DataFrame:
    """The classes of links from hosts to the top, with their level and the number of ports."""
    level = pl.max_horizontal("from_level", "to_level").alias("level")
    down = (pl.col("from_level") > pl.col("to_level")).alias("down")
    grouped = links.with_columns(level, down).group_by("class")
    classes = grouped.agg(pl.col("level", "down", "link").min(), pl.len().alias("count"))
    return classes.sort("level", "down", "link")


def _utilisation(series: Series) -> Iterator[Chart]:
    known = series.having(lambda run: by_link(run.ports).height)
    if not known:
        return
    links = together(known, "run", lambda run: by_link(run.ports))
    every = together(known, "run", lambda run: _classes(by_link(run.ports))).group_by("class", maintain_order=True)
    classes = every.agg(pl.col("count").max(), pl.col("level").min())
    labels = [[name, plural(count, "port")] for name, count in classes.select("class", "count").iter_rows()]
    places = Rows(classes["class"].to_list(), len(series.runs), labels)
    level = dict(classes.select("class", "level").iter_rows())
    many = int(classes["count"].to_numpy().max()) > MOST_DOTS
    thin = (
        f" Of more than {MOST_DOTS} ports of a class, those that are evenly spaced in order are drawn." if many else ""
    )
    for column, name, title, share, sentence in (
        (_ACTIVE, "utilisation", "Utilisation of ports", "Share of time carrying packets", _busiest),
        (_STALLED, "stalls", "Stalls of ports", "Share of time stalled: packets wait, no credits", stalled),
    ):
        yield Chart(
            name,
            title,
            drawing(places.height, _strips(series, links, places, level, column, share), zoom=("x",)),
            sentences_of(known, sentence),
            f"A dot is a port; boxes: quartiles and median; whiskers: extremes.{thin}{series.below()}",
            links.select("run", "class", column).head(MOST_LINKS).to_dicts(),
            picture="utilisation",
        )


def _busiest(run: Run) -> str:
    links = by_link(run.ports)
    return f"{busiest(links)} (busiest: {links.sort(_ACTIVE, 'link')['link_name'][-1]})"


def stalled(run: Run) -> str:
    """Say how many ports are stalled much of the time."""
    links = by_link(run.ports)
    many = int((links[_STALLED] > 0.1).sum())
    return f"{plural(many, 'port')} of {links.height} stalled for more than 10% of the time"


def _strips(
    series: Series, links: pl.DataFrame, places: Rows, level: Mapping[str, int], column: str, title: str
) -> Iterator[Layer]:
    groups = []
    for (run, of), ports in links.group_by("run", "class", maintain_order=True):
        row = {"run": run, "class": of, "series": run if series.several else f"level {level[str(of)]}"}
        groups.append((row, ports[column].to_numpy(), str(of), series.number(str(run))))
    boxed, dotted = strips(groups, places)
    axis = Axis.over(dotted, "value", title, "share", scale="linear", also=[_LEAST])
    axis = replace(axis, high=min(axis.high, 1.02))
    levels = dict.fromkeys(f"level {level[name]}" for name in places.names)
    channel = colour("series", list(series.runs if series.several else levels), shown=series.runs)
    told = [*series.run_column, Column("ports", "class"), Column("share of time", "value", percent)]
    shown, tooltip = described(dotted, told)
    yield boxes(boxed, axis, places, color=channel)
    yield dots(shown, axis, places, "value", color=channel, tooltip=tooltip)


def _timeline(series: Series) -> Iterator[Chart]:
    known = series.having(lambda run: not _samples(run).is_empty())
    if not known:
        return
    rows = [row for name, run in known.items() for row in _intervals(series, name, _samples(run))]
    roles = list(dict.fromkeys(row["role"] for row in sorted(rows, key=lambda row: -row[_ACTIVE])))
    names = list(series.runs if series.several else dict.fromkeys(row["label"] for row in rows))
    time = Axis.over(rows, "to_s", "Time", "time", scale="linear")
    only = f" Shown: {roles[0]} ports, or those that are chosen on a page." if series.several else ""
    for column, name, title, most in (
        (_ACTIVE, "timeline", "Carrying packets", "busiest"),
        (_STALLED, "timeline-stalls", "Stalled", "stalled most"),
    ):
        axis = Axis.over(rows, column, title, "share", scale="linear", also=[0.01])
        told = [*series.run_column, Column("ports", "label"), Column("from", "at_s", seconds)]
        looks: list[dict[str, Any]] = [{"interpolate": "step-after", "strokeWidth": 1.8}, {"size": 40, "opacity": 0}]
        channels: dict[str, Any] = {"x": time.x("at_s"), "y": axis.y(column), "color": colour("series", names)}
        line, points = course(rows, [*told, Column("share of time", column, percent)], *looks, **channels)
        if series.several:
            selected, wanted = choice("role", "Ports", roles)
            line, points = line.transform_filter(wanted), points.transform_filter(wanted).add_params(selected)
        yield Chart(
            name,
            f"Ports over time: {title.lower()}",
            layers(220, line, points),
            sentences_of(known, _most(column, most)),
            f"Mean share of time of all ports of a role.{only}",
            picked(rows, f"run role at_s to_s {column}"),
            picture="timeline",
        )


def _samples(run: Run) -> pl.DataFrame:
    """Return the samples of the ports of each role in each interval; no rows without samples."""
    known = run.samples is not None and not run.samples.is_empty()
    return over_time(run.samples, run.ports) if known else pl.DataFrame()  # type: ignore[arg-type]


def _intervals(series: Series, name: str, table: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """A row for each interval and role; a last one at the end of the last interval, which a line of steps needs."""
    together_ = -(-table["from_ps"].n_unique() // MOST_INTERVALS)
    number = pl.col("from_ps").rank("dense").sub(1) // together_
    merged = (
        table.group_by("role", group=number)
        .agg(pl.col("ports").first(), pl.col("from_ps").min(), pl.col("to_ps").max(), pl.col(_ACTIVE, _STALLED).mean())
        .sort("role", "from_ps")
    )
    last = merged.group_by("role").last().with_columns(from_ps="to_ps").select(merged.columns)
    rows = pl.concat([merged, last]).sort("role", "from_ps").with_columns(pl.col(_ACTIVE, _STALLED).round_sig_figs(5))
    for row in rows.with_columns(pl.col("from_ps", "to_ps") * PS).iter_rows(named=True):
        label = f"{row['role']} ({row['ports']})"
        at = {"at_s": row["from_ps"], "to_s": row["to_ps"], _ACTIVE: row[_ACTIVE], _STALLED: row[_STALLED]}
        series_ = name if series.several else label
        yield {"run": name, "role": row["role"], "of": row["role"], "label": label, "series": series_, **at}


def _most(column: str, word: str) -> Callable[[Run], str]:
    """The role and the time of the greatest mean share of a run."""

    def sentence(run: Run) -> str:
        most = _samples(run).sort(column, "from_ps", "role").row(-1, named=True)
        if column == _STALLED and most[column] == 0:
            return "No port was ever stalled"
        share, when = percent(most[column]), seconds(most["from_ps"] * PS)
        return f"{most['role'].capitalize()} ports are {word}, {share} of the time from {when} on"

    return sentence
