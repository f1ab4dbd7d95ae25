"""Allocations: a torus by planes, a tree by subtrees and leaves, a dragonfly by groups; a cell is a host.

Cells have the colour of the job that has the host. They stand in blocks: a block is a plane of the first two
dimensions of a grid, a group, or what hangs below one switch of the level under the top.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt

import matplotlib
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from fairlane.fabric.subtrees import subtrees
from fairlane.fabric.view import Fabric
from fairlane.plot.legend import SQUARE, legend_below
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import MUTED, PALETTE

FREE = "#ececec"
MOST_NAMED = 24  # jobs that the legend names
GAP = 1.6  # space between blocks, in cells
SHAPE = 1.5  # width over height that the blocks together should have

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Layout:
    """Where each host's cell is."""

    block: Ints
    column: Ints
    row: Ints
    names: Sequence[str]  # what each block is called
    what: str  # what blocks, columns and rows are, in words


def draw(fabric: Fabric, jobs: Mapping[str, Sequence[int]], title: str, axes: Given = None) -> Drawn:
    """The hosts of each job in the fabric."""
    layout = _layout(fabric)
    width, height = int(layout.column.max()) + 1, int(layout.row.max()) + 1
    blocks = len(layout.names)
    across = max(1, min(blocks, round(sqrt(blocks * SHAPE * (height + GAP) / (width + GAP)))))
    x = layout.block % across * (width + GAP) + layout.column
    y = layout.block // across * (height + GAP) + layout.row
    wide, tall = across * (width + GAP) - GAP, ceil(blocks / across) * (height + GAP) - GAP
    size = 11.0 / max(wide, 1.2 * tall, 12.0)
    rows = ceil(min(len(jobs) + 1, MOST_NAMED) / 4)
    panels = Panels.of(axes, (max(wide * size, 6.5) + 0.4, tall * size + 1.6 + 0.26 * rows))
    [panel] = panels.axes
    colours = _colours(list(jobs))
    owners: dict[int, list[str]] = defaultdict(list)
    for name, hosts in jobs.items():
        for host in set(hosts):
            owners[host].append(name)
    cells, faces = [], []
    for host, (left, top) in enumerate(zip(x, y, strict=True)):
        # Jobs that have a host one after the other share its cell.
        fills = [colours[name] for name in owners[host]] or [FREE]
        part = 0.88 / len(fills)
        cells += [Rectangle((left + 0.06, top + 0.06 + at * part), 0.88, part) for at in range(len(fills))]
        faces += fills
    panel.add_collection(PatchCollection(cells, facecolors=faces, edgecolors="none"))
    for number, name in enumerate(layout.names):
        left, top = number % across * (width + GAP), number // across * (height + GAP)
        panel.text(left, top - 0.2, name, ha="left", va="bottom", fontsize=9, color=MUTED)
    panel.set(xlim=(-0.3, wide + 0.3), ylim=(tall + 0.3, -1.2 if any(layout.names) else -0.3), aspect="equal")
    panel.set_axis_off()
    _legend(panel, colours)
    return panels.headline(title, f"A cell is a host; {layout.what}. Grey hosts are free.")


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


def _colours(names: list[str]) -> dict[str, str]:
    if len(names) <= len(PALETTE):
        return dict(zip(names, PALETTE, strict=False))
    shades = matplotlib.colormaps["turbo"](np.linspace(0.05, 0.95, len(names)))
    return {name: to_hex(shade) for name, shade in zip(names, shades, strict=True)}


def _legend(axes: Axes, colours: Mapping[str, str]) -> None:
    named = list(colours.items())[:MOST_NAMED]
    rest = len(colours) - len(named)
    free = "free" if not rest else f"free; {rest} more jobs are not named"
    legend_below(axes, [(name, colour, SQUARE) for name, colour in [*named, (free, FREE)]], size=9)
