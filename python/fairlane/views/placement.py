"""Allocations: which hosts jobs have, how far apart they are and who shares their links; drawn as a cell for each host.

A torus stands there by planes, a tree by subtrees and leaves, a dragonfly by groups: blocks are planes of the first two
dimensions of a grid, groups, or what hangs below one switch of the level under the top.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt
from typing import Any

import altair
import numpy as np
import numpy.typing as npt
from altair import Undefined

from fairlane.core.wording import percent, plural, shortened
from fairlane.model.fabric.levels import subtrees
from fairlane.model.fabric.view import Fabric
from fairlane.views.charts import PANEL, Layer, chart, described, drawing, legend_of
from fairlane.views.model import Chart, View
from fairlane.views.tables import Column, Row, Table, columns, fixed

MOST_NAMED = 24
"""Jobs that the legend names."""
MOST_COLOURS = 8
"""Of more jobs, colours are those of a rainbow."""
_GAP = 1.6
"""Space between blocks, in cells."""
_SHAPE = 1.5
"""Width over height that the blocks together should have."""
_LISTED = 48
"""Letters of a list of hosts that a terminal shows."""
_LETTERS = 30
"""Letters of the name of a job."""
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Layout:
    """Place of each host's cell."""

    block: Ints
    column: Ints
    row: Ints
    names: Sequence[str]
    """Names of the blocks."""
    what: str
    """Meaning of blocks, columns and rows."""


def view(name: str, fabric: Fabric, jobs: Mapping[str, Sequence[int]], rows: Mapping[str, Mapping[str, Any]]) -> View:
    """The hosts of each job of the scenario ``name``; ``rows`` are the jobs' measures and node lists."""
    busy = len({host for hosts in jobs.values() for host in hosts})
    said = f"{name}: {plural(len(jobs), 'job')} on {busy} of {plural(fabric.hosts, 'host')}"
    layout = _layout(fabric)
    rest = f" {len(jobs) - MOST_NAMED} more jobs are not named." if len(jobs) > MOST_NAMED else ""
    note = f"A cell is a host; {layout.what}. Grey hosts are free.{rest}"
    chart_of = Chart("placement", "Hosts of each job", _cells(layout, fabric, jobs), f"{said}.", note, wide=True)
    return View(
        title=f"{name}: hosts of jobs",
        headline=said,
        facts=[],
        parts=[chart_of, _table(rows)],
    )


def _table(rows: Mapping[str, Mapping[str, Any]]) -> Table:
    shown = [
        Column("job", "job", lambda job: shortened(job, _LETTERS)),
        *columns(hosts="hosts", switches="switches"),
        Column("average\ndistance", "average_distance", fixed(2)),
        Column("diameter", "diameter", drop=2),
        Column("pieces", "pieces", drop=1),
        Column("in the\nlargest", "contiguity", percent, drop=1),
        Column("links", "links", drop=3),
        Column("shared", "shared", percent),
        Column("on", "node_list", left=True, width=_LISTED),
    ]
    worst = max(rows.items(), key=lambda item: item[1]["shared"] or 0.0, default=None)
    said = f"{worst[0]} shares most of its links, {percent(worst[1]['shared'])}." if worst else "No job has a host."
    return Table(shown, [{"job": name, **row} for name, row in rows.items()], "Jobs", sentence=said)


def _cells(layout: _Layout, fabric: Fabric, jobs: Mapping[str, Sequence[int]]) -> Callable[[], altair.LayerChart]:
    width, height = int(layout.column.max()) + 1, int(layout.row.max()) + 1
    blocks = len(layout.names)
    across = max(1, min(blocks, round(sqrt(blocks * _SHAPE * (height + _GAP) / (width + _GAP)))))
    wide, tall = across * (width + _GAP) - _GAP, ceil(blocks / across) * (height + _GAP) - _GAP
    left = layout.block % across * (width + _GAP) + layout.column
    top = layout.block // across * (height + _GAP) + layout.row
    owners: dict[int, list[str | None]] = defaultdict(list)
    for name, hosts in jobs.items():
        for host in set(hosts):
            owners[host].append(name)
    cells: list[dict[str, Any]] = []
    for host, (x, y) in enumerate(zip(left.tolist(), top.tolist(), strict=True)):
        sharers = owners[host] or [None]
        for at, job in enumerate(sharers):  # jobs that have a host one after the other share its cell
            above, below = (y + 0.06 + 0.88 * edge / len(sharers) for edge in (at, at + 1))
            place = {"x": x + 0.06, "x2": x + 0.94, "y": above, "y2": below}
            cells.append({"host": fabric.host_names[host], "job": job, **place})
    titles = [
        {"x": number % across * (width + _GAP), "y": number // across * (height + _GAP) - 0.2, "name": name}
        for number, name in enumerate(layout.names)
        if name
    ]
    ends = {"x": (-0.3, wide + 0.3), "y": (-1.2 if titles else -0.3, tall + 0.3)}
    size = PANEL * (ends["y"][1] - ends["y"][0]) / (ends["x"][1] - ends["x"][0])
    return drawing(max(40, round(min(size, 1.4 * PANEL))), _layers(cells, titles, ends, list(jobs)))


def _layers(
    cells: Sequence[Row], titles: Sequence[Row], ends: Mapping[str, tuple[float, float]], jobs: Sequence[str]
) -> Iterator[Layer]:
    x = altair.X("x:Q", scale=altair.Scale(domain=ends["x"], nice=False), axis=None)
    y = altair.Y("y:Q", scale=altair.Scale(domain=ends["y"], nice=False, reverse=True), axis=None)
    shown, tooltip = described(cells, [Column("host", "host"), Column("job", "job", lambda job: job or "free")])
    free, busy = ([row for row in shown if (row["job"] is None) == is_free] for is_free in (True, False))
    for rect in [
        *([chart(free).mark_rect(style="free")] if free else []),
        *([chart(busy).mark_rect().encode(color=_colour(jobs))] if busy else []),
    ]:
        yield rect.encode(x=x, x2="x2:Q", y=y, y2="y2:Q", tooltip=tooltip)
    if titles:
        yield chart(titles).mark_text(style="note", align="left", baseline="bottom").encode(x=x, y=y, text="name:N")


def _colour(jobs: Sequence[str]) -> altair.Color:
    """A colour for each job; a legend of the first ones, below."""
    named = [*jobs[:MOST_NAMED]]
    legend = legend_of(named, "bottom")
    legend["values"] = named
    scheme: Any = "turbo" if len(jobs) > MOST_COLOURS else Undefined
    return altair.Color("job:N", scale=altair.Scale(domain=list(jobs), scheme=scheme), legend=legend)


def _layout(fabric: Fabric) -> _Layout:
    leaf = np.asarray(fabric.leaf_of, dtype=np.int64)
    plan = fabric.plan
    if (leaf < 0).any():
        side = ceil(sqrt(fabric.hosts))
        hosts = np.arange(fabric.hosts)
        return _Layout(np.zeros_like(hosts), hosts % side, hosts // side, [""], "they are cabled to each other")
    place = _place_at_leaf(leaf)
    if plan["kind"] == "grid":
        return _of_grid(leaf, place, plan["sides"])
    if plan["kind"] == "groups":
        block, names, what = leaf // plan["switches"], "group {}", "a block is a group, a column a switch of it"
    else:
        levels = list(fabric.levels)
        top = max(levels)
        block = np.asarray(subtrees(fabric, top - 1) if top > 2 else [0] * len(levels))[leaf]
        names = "subtree {}" if top > 2 else ""
        leaf_of = "leaf switch" if fabric.rails <= 1 else "leaf switch of first adapters"
        what = f"a block is a subtree, a column a {leaf_of}" if top > 2 else f"a column is a {leaf_of}"
    block = np.unique(block, return_inverse=True)[1]
    column = np.zeros_like(leaf)
    for number in range(int(block.max()) + 1):
        column[block == number] = np.unique(leaf[block == number], return_inverse=True)[1]
    return _Layout(block, column, place, [names.format(number) for number in range(int(block.max()) + 1)], what)


def _of_grid(leaf: Ints, place: Ints, sides: Sequence[int]) -> _Layout:
    """Planes of the first two dimensions; hosts of one switch stand side by side."""
    first, second, *others = [*sides, *([1] * max(0, 2 - len(sides)))]
    planes = leaf // (first * second)
    places = [np.unravel_index(number, others, order="F") for number in range(prod(others))] if others else [()]
    names = [f"plane {', '.join(map(str, place))}" if others else "" for place in places]
    hosts = int(place.max()) + 1
    what = "to the right is dimension 0, down dimension 1" + (", and a block is a plane of them" if others else "")
    return _Layout(planes, leaf % first * hosts + place, leaf // first % second, names, what)


def _place_at_leaf(leaf: Ints) -> Ints:
    """The number of each host among those of its switch."""
    order = np.argsort(leaf, kind="stable")
    starts = np.searchsorted(leaf[order], leaf[order])
    place = np.empty_like(leaf)
    place[order] = np.arange(len(leaf)) - starts
    return place
