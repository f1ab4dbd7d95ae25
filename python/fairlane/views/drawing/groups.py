"""Dragonfly, Cascade, Dragonfly+: a ring of groups with global links as chords; if there are many, one by itself."""

from collections import Counter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from fairlane.core.wording import plural
from fairlane.model.fabric.places import shapes
from fairlane.model.fabric.places.shapes import Floats, Shape, in_group, outwards, radius_of
from fairlane.model.fabric.view import Fabric
from fairlane.views.drawing import parts
from fairlane.views.drawing.parts import DOT, LINE, SQUARE
from fairlane.views.drawing.runs import Drawn, Given
from fairlane.views.drawing.style import INK, PALETTE

MOST_IN_FULL = 64  # switches up to which all of them are drawn
MOST_HOSTS = 8  # hosts of a switch up to which all of them are drawn
MOST_CHORDS = 48  # groups up to which the cables of all are drawn, not only those of one
GREEN, BLACK, BLUE = "#2e8b57", "#333333", PALETTE[0]  # Cray's colours of a Cascade's links


class _Shape(Shape):
    @property
    def name(self) -> str:
        if self.row != self.size:
            return "Cascade"
        return "Dragonfly+" if len(set(self.levels)) > 1 else "Dragonfly"

    @property
    def kinds(self) -> dict[str, str]:
        """What the kinds are called, and their colours."""
        return {"leaf": parts.SWITCH, "spine": INK} if len(set(self.levels)) > 1 else {"switch": parts.SWITCH}

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """A row for each kind of switch."""
        return [(name, colour, DOT) for name, colour in self.kinds.items()]

    @property
    def switch_colour(self) -> str:
        return INK if self.row != self.size else parts.SWITCH

    @property
    def global_colour(self) -> str:
        return BLUE if self.row != self.size else parts.GLOBAL


def draw(fabric: Fabric, axes: Given = None) -> Drawn:
    """The picture."""
    shape = _Shape.of(fabric).plane(shapes.planes(fabric))
    size = shape.size
    title = f"{shape.name}: {plural(shape.groups, 'group')} of {size} switches, {parts.hosts_in_words(fabric)}"
    if shape.groups * size <= MOST_IN_FULL and max(shape.hosts.values()) <= MOST_HOSTS and shape.row == size:
        panels = parts.blank(axes, 9, 9.6)
        _full(panels.axes[0], shape)
    elif shape.groups == 1:
        panels = parts.blank(axes, 9, 9)
        _group(panels.axes[0], shape)
    else:
        panels = parts.blank(axes, 15, 8.6, 2, rows_of_legend=2)
        _overview(panels.axes[0], shape)
        _group(panels.axes[1], shape)
    hosts = f"{parts.span(shape.hosts.values(), 'host')} at a {'leaf' if shape.name == 'Dragonfly+' else 'switch'}."
    note = f"{parts.span(shape.between().values(), 'global cable')} between two groups. {hosts}"
    if shape.groups > MOST_CHORDS:
        note += " Drawn are the global cables of the group at the top only."
    return parts.headline(panels, title, (note if shape.groups > 1 else hosts) + parts.planes_in_words(fabric))


def _overview(axes: Axes, shape: _Shape) -> None:
    """Groups as discs on a ring, and a chord for each pair, as wide as it has cables."""
    places = shapes.circle(shape.groups)
    radius = min(0.16, 0.8 * np.pi / shape.groups)
    between = shape.between()
    shown = [(pair, count) for pair, count in between.items() if shape.groups <= MOST_CHORDS or 0 in pair]
    most = max(between.values(), default=1)
    for (a, b), count in shown:
        width = 0.6 + 1.6 * count / most * min(1.0, 12 / shape.groups)
        parts.lines(axes, [(places[a], places[b])], shape.global_colour, width, 0.6, bend=0.35)
    first_switches = range(0, shape.groups * shape.size, shape.size)
    members = [range(first, first + shape.size) for first in first_switches]
    hosts = sorted({len(set[int]().union(*(shape.hosts_at.get(at, ()) for at in group))) for group in members})
    for number, (x, y) in enumerate(places):
        look: dict[str, Any] = {"facecolor": "white", "edgecolor": shape.switch_colour, "linewidth": 1.8, "zorder": 3}
        axes.add_patch(Circle((x, y), radius, **look))
        if radius > 0.1:
            parts.words(axes, x, y, f"group {number}", 10)
        elif radius > 0.03:
            parts.words(axes, x, y, str(number), min(10, 260 * radius))
    limit = 1.08 + radius
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit))
    range_of_hosts = " to ".join(map(str, dict.fromkeys((hosts[0], hosts[-1]))))
    size = f"{plural(shape.size, 'switch', 'switches')} and {range_of_hosts} hosts"
    rows = [(f"a group: {size}", shape.switch_colour, DOT), ("global cables", shape.global_colour, LINE)]
    parts.legend(axes, rows)


def _full(axes: Axes, shape: _Shape) -> None:
    """Every switch and every cable; hosts as grey dots outside of their switch."""
    centres = shapes.circle(shape.groups) if shape.groups > 1 else np.zeros((1, 2))
    radius = radius_of(shape)
    places = np.concatenate([in_group(shape, centre, radius) for centre in centres])
    inner = [(a, b) for a, b in shape.cables if shape.group(a) == shape.group(b)]
    outer = [(a, b) for a, b in shape.cables if shape.group(a) != shape.group(b)]
    parts.lines(axes, [(places[a], places[b]) for a, b in inner], parts.LOCAL, 0.9)
    parts.lines(axes, [(places[a], places[b]) for a, b in outer], parts.GLOBAL, 1.1, 0.75, bend=0.25)
    hosts = _host_places(shape, places, centres, radius)
    parts.dots(axes, hosts, parts.HOST, 9)
    _switches(axes, shape, places, max(24, 1400 * radius**2))
    for number, centre in enumerate(centres):
        if shape.groups > 1:
            x, y = np.asarray(centre) * (1 + 1.62 * radius)
            parts.words(axes, x, y, str(number), 11)
    limit = 1.12 + 1.62 * radius if shape.groups > 1 else 1.25
    axes.set(xlim=(-limit, limit), ylim=(-limit, limit))
    several = sum(shape.hosts.values()) > len(set[int]().union(*shape.hosts_at.values()))
    host = "adapter of a host" if several else "host"
    rows = [*shape.legend, (host, parts.HOST, DOT), ("within a group", parts.LOCAL, LINE)]
    parts.legend(axes, [*rows, ("between groups", parts.GLOBAL, LINE)] if shape.groups > 1 else rows, 5)


def _switches(axes: Axes, shape: _Shape, places: Floats, size: float) -> None:
    """Dots at the places of the first switches, or of all: leaves and spines in colours of their own."""
    spines = np.array(list(shape.levels[: len(places)])) > 1
    for kind, colour in zip((~spines, spines), shape.kinds.values(), strict=False):
        parts.dots(axes, places[kind], colour, size)


def _host_places(shape: _Shape, places: Floats, centres: Floats, radius: float) -> list[Floats]:
    """A row of dots behind each switch, seen from the middle of its group; outside of leaves if there are levels."""
    places_of_hosts = []
    flat = len(set(shape.levels)) <= 1
    for switch, place in enumerate(places):
        centre = centres[shape.group(switch)]
        out = outwards(place - centre) if flat and shape.size > 1 else outwards(centre)
        along = np.array([-out[1], out[0]])
        count = shape.hosts[switch]
        step = min(0.14, 0.5 / max(count, 1)) * radius * (1.6 if flat else 1.0)
        middle = place + 0.32 * radius * out
        places_of_hosts += [middle + (number - (count - 1) / 2) * step * along for number in range(count)]
    return places_of_hosts


def _group(axes: Axes, shape: _Shape) -> None:
    if shape.row != shape.size:
        _rows_and_columns(axes, shape)
        return
    inner = {pair: count for pair, count in shape.cables.items() if max(pair) < shape.size}
    places = in_group(shape, np.zeros(2), 1.0)
    alpha = min(1.0, 60 / max(len(inner), 1) + 0.25)
    parts.lines(axes, [(places[a], places[b]) for a, b in inner], parts.LOCAL, 0.9, alpha)
    _switches(axes, shape, places, max(20, 4200 / shape.size))
    hosts, leaves = shape.hosts[0], [place for at, place in enumerate(places) if shape.hosts[at]]
    flat = len(set(shape.levels)) <= 1
    if len(leaves) <= 64:
        for place in leaves:
            out = outwards(place) if flat else np.array([0.0, 1.0])
            x, y = np.asarray(place) + 0.13 * out
            parts.words(axes, x, y, str(hosts), 8.5, "#555555")
    axes.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
    reach = [count for (a, b), count in shape.cables.items() if min(a, b) < shape.size <= max(a, b)]
    leave = f"; {sum(reach)} cables leave it" if reach else ""
    axes.set_title(f"One group; numbers are hosts of a switch{leave}", fontsize=12)
    parts.legend(axes, [*shape.legend, (f"{sum(inner.values())} cables within", parts.LOCAL, LINE)])


def _rows_and_columns(axes: Axes, shape: _Shape) -> None:
    """A group as a grid: rows joined all to all, and columns; the first row and column strong, the others faint."""
    rows = shape.size // shape.row
    stretch = 1.0 if rows > 1 else 0.0
    places = np.array([(at % shape.row, -1.6 * stretch * (at // shape.row)) for at in range(shape.size)], float)
    for a, b in (pair for pair in shape.cables if max(pair) < shape.size):
        same_row = a // shape.row == b // shape.row
        first = a < shape.row if same_row else a % shape.row == 0
        colour = GREEN if same_row else BLACK
        _bow(axes, places[a], places[b], colour, 1.3 if first else 0.5, 0.9 if first else 0.12, up=same_row)
    ends: Counter[int] = Counter()
    for (a, b), count in shape.cables.items():
        if min(a, b) < shape.size <= max(a, b):
            ends[min(a, b)] += count
    for at, count in ends.items():
        out = places[at] + np.array([0.26, -0.42])
        axes.plot(*zip(places[at], out, strict=True), color=BLUE, linewidth=0.6 + 0.35 * min(count, 6), zorder=2)
        parts.words(axes, out[0] + 0.08, out[1] - 0.14, str(count), 7.5, BLUE)
    parts.dots(axes, places, INK, 80, "s")
    axes.set(xlim=(-1.9, shape.row), ylim=(-1.6 * rows, 1.9))
    axes.set_title(
        f"One group: {plural(rows, 'row')} of {shape.row} switches; global links: {sum(ends.values())}", fontsize=12
    )
    black = {count for (a, b), count in shape.cables.items() if b < shape.size and a // shape.row != b // shape.row}
    legend = [("switch", INK, SQUARE), ("green: along a row, one each", GREEN, LINE)]
    if black:
        legend.append((f"black: along a column, {parts.span(black, 'cable')} each", BLACK, LINE))
    blue = ("blue: how many leave for other groups", BLUE, LINE)
    parts.legend(axes, [*legend, blue] if ends else legend, 2)


def _bow(axes: Axes, a: Floats, b: Floats, colour: str, width: float, alpha: float, *, up: bool) -> None:
    """An arc beside the line from ``a`` to ``b``: above it, or to its left."""
    length = float(np.hypot(*(b - a)))
    middle = (a + b) / 2 + (np.array([0.0, 0.16 * length + 0.1]) if up else np.array([-0.18 * length - 0.1, 0.0]))
    axes.plot(*parts.arc(a, middle, b).T, color=colour, linewidth=width, alpha=alpha, zorder=1)
