"""Tori, meshes and HyperX as grids of grids: dimensions 0 and 1 span planes, 2 and 3 a grid of planes, and so on.

*Fabrics without levels or plan: switches around a circle, so that joined ones stand near each other.* Cables have a
colour for each class of links, as within racks and between racks of a Slim Fly.
"""

from collections import Counter, defaultdict

import numpy as np
from matplotlib.axes import Axes

from fairlane.core.wording import plural
from fairlane.model.fabric.places import shapes
from fairlane.model.fabric.places.shapes import Floats, Step, around, longest, places_in, steps_of
from fairlane.model.fabric.view import Fabric
from fairlane.views.drawing import parts
from fairlane.views.drawing.parts import DOT, LINE
from fairlane.views.drawing.runs import Drawn, Given
from fairlane.views.drawing.style import PALETTE

MOST_SWITCHES = 4096  # switches up to which all of them are drawn; beyond it, those at the beginning of each dimension
MOST_ARCS = 6  # switches of a line that are joined all to all, up to which the links of all lines are drawn alike
SHAPE = 1.3  # width over height that the whole should have
NAMES = {"ring": "Torus", "open": "Mesh", "full": "HyperX"}


def draw_grid(fabric: Fabric, axes: Given = None) -> Drawn:
    """The picture."""
    sides, line = list(fabric.plan["sides"]), fabric.plan["line"]
    shown = _shown(sides)
    size_of = f"{plural(fabric.switches, 'switch', 'switches')}, {parts.hosts_in_words(fabric)}"
    title = f"{NAMES[line]} {' × '.join(map(str, sides))}: {size_of}"
    steps = steps_of(shown)
    places = places_in(shown, steps)
    width, height = float(np.ptp(places[:, 0])) + 2, float(np.ptp(places[:, 1])) + 2
    is_circle = line == "ring" and sum(side > 1 for side in sides) == 1
    if is_circle:
        places = shapes.circle(len(places), len(places) / 2 / np.pi + 0.5)
        width = height = float(np.ptp(places[:, 0])) + 2
    scale = 11 / max(width, 1.35 * height, 6)
    rows = _rows(fabric, sides)
    wide = max(width * scale + 0.4, 9.5)
    columns = max(1, min(len(rows), int(wide / 3.4)))
    panels = parts.blank(axes, wide, height * scale + 1.9, rows_of_legend=-(-len(rows) // columns))
    [panel] = panels.axes
    size = float(np.clip((52 * scale) ** 2 * 0.09, 5, 120))
    if is_circle:
        parts.lines(panel, zip(places, np.roll(places, -1, axis=0), strict=True), _colour(longest(sides)), 1.4)
    plane_rows = shown[1] if len(shown) > 1 else 1
    for number, (side, step) in enumerate(zip(shown, steps, strict=True)):
        stride = int(np.prod(shown[:number]))
        if side == 1 or is_circle:
            continue
        if number < 2:
            _line(panel, places, number, side, stride, line, plane_rows, whole=side == sides[number])
        else:
            _between(panel, places, number, side, stride, line, step)
    parts.dots(panel, places, parts.SWITCH, size, "o")
    # Arcs reach beyond what they join.
    beyond = 1.1 + (0.06 * np.ptp(places, axis=0) if line == "full" else np.zeros(2))
    panel.set_xlim(places[:, 0].min() - beyond[1], places[:, 0].max() + beyond[1])
    panel.set_ylim(places[:, 1].min() - beyond[0], places[:, 1].max() + beyond[0])
    parts.legend(panel, rows, columns)
    return parts.headline(panels, title, _note(fabric, sides, shown, line))


def _shown(sides: list[int]) -> list[int]:
    """The sides, the longest cut down until what is left can be drawn."""
    shown = list(sides)
    while np.prod(shown) > MOST_SWITCHES:
        shown[longest(shown)] = max(2, int(max(shown) * 0.75))
    return shown


def _line(
    axes: Axes, places: Floats, number: int, side: int, stride: int, line: str, rows: int, *, whole: bool
) -> None:
    """The links along one of the dimensions that span a plane, of all switches."""
    at = np.arange(len(places))
    digit = at // stride % side
    colour = _colour(number)
    if line == "full":
        across = at % stride if number else at // side % rows
        for a, here, other in zip(at.tolist(), digit.tolist(), across.tolist(), strict=True):
            faint = side > MOST_ARCS and other > 0
            for step in range(1, side - here):
                _arc(axes, places[a], places[a + step * stride], colour, *((0.5, 0.1) if faint else (1.1, 0.9)))
        return
    parts.lines(axes, [(places[a], places[a + stride]) for a in at[digit + 1 < side]], colour, 1.1, 0.9)
    reach = 0.42 * (np.array([1.0, 0.0]) if number == 0 else np.array([0.0, -1.0]))
    if line == "ring" or not whole:
        _dotted(axes, [(places[a], places[a] + reach) for a in at[digit == side - 1]], colour)
    if line == "ring" and whole:
        _dotted(axes, [(places[a], places[a] - reach) for a in at[digit == 0]], colour)


def _between(axes: Axes, places: Floats, number: int, side: int, stride: int, line: str, step: Step) -> None:
    """One stroke for all links between two blocks that are neighbours along a dimension."""
    at = np.arange(0, len(places), stride)
    digit = at // stride % side
    right, down = np.array([1.0, 0.0]), np.array([0.0, -1.0])
    along, across = (down, right) if step.axis else (right, down)
    length, breadth = step.block[step.axis], step.block[1 - step.axis]
    # Strokes of different dimensions leave a block at different places.
    shift = across * breadth * (0.5 + 0.11 * ((number - 2) % 5 - 1))
    first, last = 0.28 * along, (length + 0.28) * along
    colour = _colour(number)
    for a, here in zip(at.tolist(), digit.tolist(), strict=True):
        begin = places[a] + shift
        if line == "full":
            top = places[a] + along * length / 2
            for more in range(1, side - here):
                _arc(axes, top, top + more * step.offset * along, colour, 1.6, 0.7)
        elif here + 1 < side:
            parts.lines(axes, [(begin + last, begin + step.offset * along - 0.28 * along)], colour, 2.2, 0.85)
        if line == "ring" and here in (0, side - 1):
            end, beyond = (begin - first, -0.55 * along) if here == 0 else (begin + last, 0.55 * along)
            _dotted(axes, [(end, end + beyond)], colour, 2.0)


def _dotted(axes: Axes, ends: list[tuple[Floats, Floats]], colour: str, width: float = 1.1) -> None:
    """Short ends where a line goes on: round to its other end, or beyond what is drawn."""
    for a, b in ends:
        axes.plot([a[0], b[0]], [a[1], b[1]], color=colour, linewidth=width, linestyle=(0, (1.5, 1.2)), zorder=1)


def _colour(number: int) -> str:
    return PALETTE[(number + 1) % len(PALETTE)]


def _arc(axes: Axes, a: Floats, b: Floats, colour: str, width: float, alpha: float) -> None:
    """A bent line, so that those over the same places can be distinguished."""
    across = np.array([-(b - a)[1], (b - a)[0]])
    length = float(np.hypot(*(b - a)))
    middle = (a + b) / 2 + across * (0.12 if length > 1.01 else 0.0)
    axes.plot(*parts.arc(a, middle, b).T, color=colour, linewidth=width, alpha=alpha, zorder=1)


def _rows(fabric: Fabric, sides: list[int]) -> list[tuple[str, str, str]]:
    counts = Counter(zip(fabric.links["role"].tolist(), fabric.links["bandwidth"].tolist(), strict=True))
    rows = [("switch", parts.SWITCH, DOT)]
    for number, side in enumerate(sides):
        rates = [(rate, count) for (role, rate), count in counts.items() if role == f"dimension {number}"]
        if rates:
            rate, count = rates[0]
            label = f"dimension {number} ({side}): {plural(count, 'link')}, {parts.rate(rate)}"
            rows.append((label, _colour(number), LINE))
    return rows


def _note(fabric: Fabric, sides: list[int], shown: list[int], line: str) -> str:
    note = f"{parts.span(shapes.hosts_of(fabric).values(), 'host')} at a switch."
    if len([side for side in sides if side > 1]) > 2:
        note += " One stroke between two planes, or blocks of planes, stands for the links of all their switches."
    if line == "ring" and len([side for side in sides if side > 1]) > 1:
        note += " Dotted ends go round to the other end of their line."
    if line == "full" and max(sides[:2]) > MOST_ARCS:
        note += " The links of the first line of each plane are strong, those of the others, which are alike, faint."
    if shown != sides:
        note += f" Drawn are {' × '.join(map(str, shown))} of the switches."
    return note + parts.planes_in_words(fabric)


MOST_BY_SPECTRUM = 1500
MOST_NAMES = 60
UPRIGHT_NAMES = 24
"""More names than these stand along the radii of the circle."""


def draw_ring(fabric: Fabric, axes: Given = None) -> Drawn:
    """The picture."""
    cables, hosts = shapes.cables(fabric), shapes.hosts_of(fabric)
    places = around(fabric)
    panels = parts.blank(axes, 9, 9.4)
    [panel] = panels.axes
    alpha = float(np.clip(300 / max(len(cables), 1), 0.1, 0.8))
    by_class = _by_class(fabric)
    colours = parts.classes(len(by_class))
    for colour, pairs in zip(colours, by_class.values(), strict=True):
        widths = [0.8 + 0.5 * min(cables[pair] - 1, 6) for pair in pairs]
        parts.lines(panel, [(places[a], places[b]) for a, b in pairs], colour, widths, alpha, bend=0.2)
    parts.dots(panel, places, parts.SWITCH, float(np.clip(9000 / fabric.switches, 8, 260)))
    alike = {hosts[switch] for switch in range(fabric.switches)}
    if fabric.switches <= MOST_NAMES:
        names = parts.cut(fabric.switch_names, 14)
        counted = {switch: plural(hosts[switch], "host") for switch in hosts if len(alike) > 1 and hosts[switch]}
        _write_names(panel, places, names, counted)
    panel.set(xlim=(-1.28, 1.28), ylim=(-1.28, 1.28))
    labels = [f"{name} cable" for name in by_class] if len(by_class) > 1 else ["cable"]
    lines = [(word, colour, LINE) for word, colour in zip(labels, colours, strict=False)]
    if lines and max(cables.values(), default=1) > 1:
        lines[-1] = (f"{lines[-1][0]}; wider: a trunk", *lines[-1][1:])
    parts.legend(panel, [("switch", parts.SWITCH, DOT), *lines])
    switches = plural(fabric.switches, "switch", "switches")
    title = f"Fabric without levels: {switches}, {parts.hosts_in_words(fabric)}"
    each = f", {plural(min(alike), 'host')} at every switch" if len(alike) == 1 else ""
    return parts.headline(
        panels, title, f"{sum(cables.values())} cables between {len(cables)} pairs of switches{each}."
    )


def _by_class(fabric: Fabric) -> dict[str, list[shapes.Pair]]:
    """The joined pairs of switches, the lower number first, by the class of their first cable."""
    columns = (fabric.links[name].tolist() for name in ("from_switch", "to_switch", "class"))
    class_of_pair: dict[shapes.Pair, int] = {}
    for a, b, number in zip(*columns, strict=True):
        if 0 <= a < b:
            class_of_pair.setdefault((a, b), number)
    by_class: dict[str, list[shapes.Pair]] = defaultdict(list)
    for pair, number in sorted(class_of_pair.items(), key=lambda item: item[1]):
        by_class[fabric.classes[number]].append(pair)
    return by_class


def _write_names(panel: Axes, places: shapes.Floats, names: list[str], hosts: dict[int, str]) -> None:
    """Names outside the circle, with the numbers of hosts that are given; many names stand along the radii."""
    for switch, (x, y) in enumerate(places):
        lines = [names[switch], *([hosts[switch]] if switch in hosts else [])]
        if len(places) <= UPRIGHT_NAMES:
            parts.words(panel, 1.13 * x, 1.13 * y, "\n".join(lines), 8, "#555555")
            continue
        angle, left = float(np.degrees(np.arctan2(y, x))), x < 0
        panel.text(
            1.05 * x,
            1.05 * y,
            ", ".join(lines),
            ha="right" if left else "left",
            va="center",
            rotation=angle + 180 if left else angle,
            rotation_mode="anchor",
            fontsize=8,
            color="#555555",
        )
