"""The walk from the longest wait back to its cause: its ranks over time, and where the slow message waited for whom."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

import polars as pl

from fairlane.core.tables import PS
from fairlane.core.wording import percent, seconds, shortened
from fairlane.sim.analysis.delays import LATE
from fairlane.sim.analysis.links import NO_ROOM, OWN
from fairlane.sim.analysis.result import Analysis
from fairlane.sim.analysis.walk import Walk
from fairlane.views.analysis.ranks import NETWORK, OWN_WORK, stretch
from fairlane.views.charts import Axis, Layer, chart, colour, described, drawing, layers, picked
from fairlane.views.model import Chart
from fairlane.views.rows import Rows, bars, stacked_rows
from fairlane.views.tables import Column, Row, Table, columns, time_ps

MOST_RANKS = 10
"""Rows of the chart; of longer walks it has the first wait and the last ones before the cause."""
MOST_LINKS = 10
"""Links that are drawn, those with most queueing delay of the slow message."""
MOST_LISTED = 5
"""Links that a terminal lists."""
_LETTERS = 34
"""Of a line of the name of a link in the chart."""
_SLOWEST = "slowest message"
_COLOURS = (LATE, NETWORK, OWN_WORK, _SLOWEST)
_HEIGHT = 46
"""Of a row, px."""
_HALF = 0.18
"""Half the height of a wait, in rows."""
_GAP = -1
"""Row of left out steps, in place of a rank."""
_NO_RANK = str(_GAP)


def headline(walk: Walk | None) -> str:
    """The cause, in a line."""
    if walk is None:
        return "No rank waited"
    if walk.cause == "computing":
        return f"A rank computed {time_ps(walk.worked_ps)} longer than the one that waited for it"
    if walk.slow is None:
        return "What made the longest wait long lies before the record"
    step = walk.steps.row(walk.slow, named=True)
    whose = walk.jobs.row(0, named=True) if walk.jobs.height else None
    by = f", mostly delayed by {whose['by']} ({percent(whose['share'])})" if whose else ""
    return f"A message from rank {step['from_rank']} to {step['to_rank']} took {time_ps(step['under_way_ps'])}{by}"


def cause(analysis: Analysis) -> Iterator[str]:
    """The cause in sentences."""
    walk = analysis.walk
    if walk is None:
        return
    hosts = analysis.view.host_names(analysis.job)
    if walk.cause == "computing":
        who = _rank(walk.steps.row(-1, named=True)["origin_rank"], hosts)
        longer = f"{time_ps(walk.worked_ps)} longer before its call than the rank that waited for it"
        yield f"Cause: {who} computed {longer}."
        return
    if walk.cause == "beginning":
        yield "No single message or rank explains half of it: it is a sum of smaller delays, or lies before the record."
        yield _shares(walk)
    if walk.slow is None:
        return
    step = walk.steps.row(walk.slow, named=True)
    word = "Cause" if walk.cause == "slow message" else "The slowest on the path"
    ends = " to ".join(_rank(step[key], hosts) for key in ("from_rank", "to_rank"))
    yield (
        f"{word}: the message of {step['bytes']:,} B from {ends} was in flight for {time_ps(step['under_way_ps'])}, "
        f"{time_ps(step['excess_ps'])} more than its bytes take."
    )
    if walk.links.is_empty():
        yield "It went through the host's memory."
    if walk.jobs.height:
        yield f"In all its packets waited for: {_whose(walk.delayers)}."


def _rank(rank: int, hosts: Sequence[str]) -> str:
    return f"rank {rank} on {hosts[rank]}"


def _shares(walk: Walk) -> str:
    """The shares of transfer and computation in the critical path, as far as recorded."""
    known = walk.steps.drop_nulls("origin_ps")
    if known.is_empty():
        return "What ended the wait is not in the record."
    end, begin, in_flight = known["end_ps"][0], known["origin_ps"][-1], int(known["under_way_ps"].sum())
    computing = time_ps(end - begin - in_flight)
    in_flight_for = f"messages were in flight for {time_ps(in_flight)}"
    return f"Of the last {time_ps(end - begin)} {in_flight_for}; ranks computed for {computing}."


def parts(analysis: Analysis) -> Iterator[Table | Chart]:
    """The walk, and the links of the slow message, drawn and as tables."""
    walk = analysis.walk
    if walk is None:
        return
    hosts = analysis.view.host_names(analysis.job)
    steps = _steps(walk)
    visible = [step for step in steps if step["message"] is not None]
    said = f"{headline(walk)}."
    if visible:
        yield Chart(
            "walk",
            "From the longest wait back to its cause",
            _walk(walk, visible, hosts),
            said if any(letter.isdigit() for letter in said) else f"{said[:-1]}, {len(visible)} waits back.",
            f"{analysis.job}, {analysis.chosen.span.name}: from its longest wait (1) back along the critical path. "
            "Lines: messages that end waits, triangles their ends.",
            [{key: value for key, value in step.items() if key != "number"} for step in walk.steps.to_dicts()],
            wide=True,
        )
    with_delay = walk.links.filter(pl.col("queueing_ps") > 0)
    if not walk.delayers.is_empty():
        yield links_chart(walk, analysis.view.names)
    yield _table(analysis, steps, hosts)
    if with_delay.height:
        yield _links_table(walk, with_delay)


def _steps(walk: Walk) -> list[dict[str, Any]]:
    """The steps that are shown, with their numbers: all, or the first one and the last ones of so many ranks."""
    steps = [{**step, "number": at} for at, step in enumerate(walk.steps.to_dicts(), 1)]
    first, *rest = steps
    last, ranks = [], set(_ranks(first))
    for step in reversed(rest):
        ranks |= set(_ranks(step))
        if len(ranks) > MOST_RANKS - 1 and step["number"] > 2:
            break
        last.append(step)
    return [first, *reversed(last)]


def _ranks(step: Row) -> list[int]:
    return [rank for rank in (step["rank"], step["from_rank"], step["to_rank"]) if rank is not None]


def _table(analysis: Analysis, steps: Sequence[Row], hosts: Sequence[str]) -> Table:
    """A row for each step, and one for those that are left out."""

    def message(row: Row) -> str | None:
        if row["from_rank"] is None:
            return "not in the record"
        receives = row["to_rank"] == row["rank"]
        other = row["from_rank"] if receives else row["to_rank"]
        return f"{'from' if receives else 'to'} {_rank(other, hosts)}"

    rows: list[dict[str, Any]] = []
    for step in steps:
        if rows and step["number"] > rows[-1]["number"] + 1:
            between = step["number"] - rows[-1]["number"] - 1
            rows.append({"number": step["number"] - 1, "step": f"… {between} steps"})
        wait = step["end_ps"] - step["since_ps"]
        rows.append({**step, "step": str(step["number"]), "on": hosts[step["rank"]], "wait_ps": wait})
    shown = [
        Column("step", "step"),
        Column("rank", "rank", str),
        Column("host", "on", left=True),
        *columns(time_ps, wait_ps="waited", since_ps="from"),
        Column("in", "call", left=True),
        Column("for its message", lambda row: message(row) if "call" in row else None, left=True),
        *columns(time_ps, late_ps="late\npartner", network_ps="network"),
    ]
    first = steps[0]
    said = f"The longest wait is that of rank {first['rank']}, {time_ps(first['end_ps'] - first['since_ps'])}."
    data = analysis.walk.steps if analysis.walk else None
    return Table(shown, rows, f"Why the longest wait, {stretch(analysis)}", sentence=said, data=data)


def _links_table(walk: Walk, waited: pl.DataFrame) -> Table:
    rows = []
    for row in waited.sort("queueing_ps", "link", descending=[True, False]).iter_rows(named=True):
        delayers = walk.delayers.filter(pl.col("link") == row["link"])
        total = int(delayers["queueing_ps"].sum())
        stalled = int(delayers.filter(pl.col("how") == NO_ROOM)["queueing_ps"].sum())
        whose = _whose(delayers) if total else "before the record began"
        rows.append({**row, "stalled": stalled / total if total else None, "whose": whose})
    shown = [
        Column("link", "link_name"),
        Column("class", "class", left=True),
        Column("waited", "queueing_ps", time_ps),
        Column("stalled", "stalled", percent, note="stalled: for credits"),
        Column("for packets of", "whose", left=True, wrap=True),
    ]
    most = rows[0]
    said = f"Most at {most['link_name']}: {time_ps(most['queueing_ps'])}."
    return Table(
        shown, rows, "Where packets of the slowest message waited", sentence=said, most=MOST_LISTED, data=walk.delayers
    )


def _whose(delayers: pl.DataFrame) -> str:
    """The jobs that caused queueing delay, with their shares."""
    total = int(delayers["queueing_ps"].sum())
    by_job = delayers.group_by("by").agg(pl.col("queueing_ps").sum())
    ordered = by_job.sort("queueing_ps", "by", descending=[True, False]).head(5)
    return ", ".join(f"{row['by']} {percent(row['queueing_ps'] / total)}" for row in ordered.iter_rows(named=True))


def _walk(walk: Walk, steps: Sequence[dict[str, Any]], hosts: Sequence[str]) -> Any:
    """A row for each rank with its waits, numbered, its work between them, and the messages that ended them."""
    order: list[int] = []
    labels: list[list[str]] = []
    for before, step in zip([None, *steps], steps, strict=False):
        if before is not None and step["number"] > before["number"] + 1:
            order.append(_GAP)
            labels.append(["…", f"{step['number'] - before['number'] - 1} steps"])
        new = [rank for rank in dict.fromkeys(_ranks(step)) if rank not in order]
        order += new
        labels += [[f"rank {rank}", shortened(hosts[rank], 24)] for rank in new]
    places = Rows([str(rank) for rank in order], labels=labels)
    begin = min(min(step["since_ps"], step["origin_ps"]) for step in steps)
    ends = ((step["end_ps"] - begin) * PS for step in steps)
    axis = Axis.of(ends, f"Time from {time_ps(begin)} of the run on", "time", scale="linear")
    made = _layers(walk, steps, hosts, places, axis, begin)
    return drawing(max(120, _HEIGHT * len(order)), made, zoom=("x",))


def _layers(
    walk: Walk, steps: Sequence[dict[str, Any]], hosts: Sequence[str], places: Rows, axis: Axis, begin: int
) -> Iterator[Layer]:
    def at(picoseconds: int) -> float:
        return (picoseconds - begin) * PS

    def bar(rank: int, since: int, until: int, part: str, half: float) -> dict[str, Any]:
        ends = {"begin": at(since), "end": at(until), "top": place(rank) - half, "bottom": place(rank) + half}
        return {**ends, "part": part, "rank": rank, "on": hosts[rank]}

    def place(rank: int) -> float:
        return places.at(str(rank))

    lines = [{"at": places.at(name), "left": axis.low, "right": axis.high} for name in places.names if name != _NO_RANK]
    yield chart(lines).mark_rule(style="muted", opacity=0.35).encode(x=axis.x("left"), x2="right:Q", y=places.y("at"))
    waits, labels, legs = [], [], []
    for step in steps:
        since, late_until = step["since_ps"], step["since_ps"] + step["late_ps"]
        waited = {**step, "wait_ps": step["end_ps"] - since}
        text = f"{step['number']}: waited {time_ps(waited['wait_ps'])}"
        left = at(since) < 0.7 * axis.high
        labels.append({"x": at(since), "at": place(step["rank"]) - _HALF, "text": text, "left": left})
        for ends, part in (((since, late_until), LATE), ((late_until, late_until + step["network_ps"]), NETWORK)):
            waits.append({**waited, **bar(step["rank"], *ends, part, _HALF)})
        legs += [{**leg, "part": _SLOWEST, "slow": step["number"] - 1 == walk.slow} for leg in _legs(step, at, place)]
    waits += [
        bar(before["rank"], before["end_ps"], after["origin_ps"], OWN_WORK, 0.06)
        for after, before in pairwise(steps)
        if before["rank"] == after["origin_rank"] and after["origin_ps"] > before["end_ps"]
    ]  # what the rank did between the end of a wait and the message that ended the wait after it
    present = [part for part in _COLOURS if any(row["part"] == part for row in waits)]
    coloured = colour("part", _COLOURS, shown=[*present, _SLOWEST] if walk.slow is not None else present)
    told = [Column("rank", "rank", str), *columns(on="host", part="spent on"), Column("step", "number", str)]
    told += [Column("in", "call"), *columns(time_ps, wait_ps="waited", late_ps="late partner", network_ps="network")]
    shown, tooltip = described(waits, told)
    yield bars(shown, axis, places, "begin", "end", color=coloured, tooltip=tooltip)
    for slow, width in ((False, 1.2), (True, 3.0)):
        shown_legs = [leg for leg in legs if leg["slow"] == slow]
        if shown_legs:
            yield from _arrows(shown_legs, axis, places, {"color": coloured} if slow else {}, width)
    aligned: tuple[tuple[bool, Literal["left", "right"]], ...] = ((True, "left"), (False, "right"))
    for left_half, align in aligned:
        texts = [label for label in labels if label["left"] == left_half]
        for style in ("halo", "text") if texts else ():
            mark = chart(texts).mark_text(style=style, fontSize=11, align=align, baseline="bottom", dx=1, dy=-5)
            yield mark.encode(x=axis.x("x"), y=places.y("at"), text="text:N")


def _legs(step: Row, at: Any, place: Any) -> list[dict[str, float]]:
    """The message that ended a wait as lines; of one whose sender waited also its acknowledgement."""
    other = step["from_rank"] if step["to_rank"] == step["rank"] else step["to_rank"]
    origin, end = (at(step["origin_ps"]), place(other)), (at(step["end_ps"]), place(step["rank"]))
    points = [origin, end]
    if step["origin_rank"] == step["rank"] == step["from_rank"] and step["received_ps"] is not None:
        points = [(origin[0], end[1]), (at(step["received_ps"]), place(other)), end]
    return [{"x": start[0], "at": start[1], "x2": stop[0], "at2": stop[1]} for start, stop in pairwise(points)]


def _arrows(
    legs: Sequence[Mapping[str, Any]], axis: Axis, places: Rows, coloured: Mapping[str, Any], width: float
) -> Iterator[Layer]:
    style = "" if coloured else "ink"
    line = chart(legs).mark_rule(strokeWidth=width, style=style)
    yield line.encode(x=axis.x("x"), x2="x2:Q", y=places.y("at"), y2="at2:Q", **coloured)
    for down, shape in ((True, "triangle-down"), (False, "triangle-up")):
        ends = [leg for leg in legs if (leg["at2"] > leg["at"]) == down]
        if ends:
            mark = chart(ends).mark_point(shape=shape, size=30 + 15 * width, style=style)
            yield mark.encode(x=axis.x("x2"), y=places.y("at2"), **coloured)


def links_chart(walk: Walk, jobs: Sequence[str]) -> Chart:
    """Draw the queueing of the packets of the slow message by link, in the order of its route."""
    waiting = pl.col("queueing_ps").sum()
    most = walk.delayers.group_by("link").agg(waiting).sort("queueing_ps", "link").tail(MOST_LINKS)["link"]
    links = walk.links.filter(pl.col("link").is_in(most.implode())).to_dicts()
    names = [*jobs, OWN]
    places = Rows([str(link["link"]) for link in links], labels=[_two_lines(link) for link in links])
    sums = walk.delayers.group_by("link", "by").agg(waiting)
    by_job = {(link, by): delay * PS for link, by, delay in sums.iter_rows()}
    waits = [
        places.place({"link": link["link_name"], "class": link["class"], "by": by, "time": time}, str(link["link"]))
        for link in links
        for by in names
        if (time := by_job.get((link["link"], by)))
    ]
    rows = stacked_rows(waits, "at", "time")
    axis = Axis.over(rows, "end", "Queueing delay of its packets", "time", scale="linear", also=[0.0])
    told = columns(link="link", **{"class": "class"}, by="for packets of")
    shown, tooltip = described(rows, [*told, Column("queueing delay", "time", seconds)])
    coloured = colour("by", names, shown={row["by"] for row in rows})
    worst = max(rows, key=lambda row: row["end"])
    return Chart(
        "walk-links",
        "Where the slowest message waited, by job",
        layers(
            max(80, 40 * len(links)),
            bars(shown, axis, places, "begin", "end", color=coloured, tooltip=tooltip),
            zoom=("x",),
        ),
        f"Most of it at {worst['link']}, {seconds(worst['end'])}.",
        "Links in the order of the path.",
        picked(rows, "link class by time"),
        picture="walk",
        wide=True,
    )


def _two_lines(link: Row) -> list[str]:
    """A link by name, with its class, for a narrow margin."""
    begin, _, end = link["link_name"].rpartition(" to ")
    return [shortened(begin, _LETTERS), f"to {shortened(end, _LETTERS - 14)} ({link['class']})"]
