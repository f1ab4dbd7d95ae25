"""Parts of the pictures of fabrics: dots, lines, chords, a title."""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from textwrap import wrap

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from fairlane.core.units import BANDWIDTH
from fairlane.core.wording import plural, significant
from fairlane.model.fabric.places import shapes
from fairlane.model.fabric.places.shapes import Floats, Point
from fairlane.model.fabric.view import Fabric
from fairlane.views.drawing.runs import Drawn, Given, Panels
from fairlane.views.drawing.style import INK, LETTERS_AN_INCH, MUTED, PALETTE, title_of

SWITCH = PALETTE[0]
HOST = "#9a9a9a"
LOCAL = "#8fa3b5"
GLOBAL = PALETTE[1]
LINE, WIDE, DOT, SQUARE = "-", "=", "o", "s"
"""Marks of a legend."""
_WIDTHS = {LINE: 2.0, WIDE: 5.0}


def blank(given: Given, width: float, height: float, columns: int = 1, rows_of_legend: int = 1) -> Panels:
    """Panels side by side without axis lines, in which circles are round, and room for legends below."""
    panels = Panels.of(given, (width, height), 1, columns)
    if panels.own:
        margin = (0.5 + 0.24 * rows_of_legend) / height
        panels.figure.get_layout_engine().set(rect=(0.0, margin, 1.0, 1.0 - margin))  # type: ignore[union-attr,call-arg]
    for axes in panels.axes:
        axes.set_axis_off()
        axes.set_aspect("equal")
    return panels


def headline(panels: Panels, title: str, note: str) -> Drawn:
    """A title, and a note at the foot of the figure; returns what ``draw`` returns."""
    if not panels.own:
        return panels.headline(title, note)
    made = panels.figure
    title_of(made, title)
    note = "\n".join(wrap(note, width=int(LETTERS_AN_INCH * made.get_figwidth())))
    made.text(0.012, 0.1 / made.get_figheight(), note, ha="left", va="bottom", fontsize=10, color=MUTED)
    return panels.drawn


def legend(axes: Axes, rows: Iterable[tuple[str, str, str]], columns: int = 4) -> None:
    """A legend below the panel: words, colour and mark, which is a line, a wide one, a dot or a square."""
    known = list(rows)
    marks = [
        Line2D([], [], color=colour, linewidth=_WIDTHS[mark])
        if mark in _WIDTHS
        else Line2D([], [], color=colour, marker=mark, linestyle="")
        for _, colour, mark in known
    ]
    names = [label for label, _, _ in known]
    made = axes.legend(marks, names, fontsize=10, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=columns)
    made.set_in_layout(False)  # the panel keeps its size; ``blank`` leaves room below


def hosts_in_words(fabric: Fabric) -> str:
    """Say how many hosts there are, and how many adapters they have if that is more than one each."""
    hosts = plural(fabric.hosts, "host")
    each = span(fabric.adapters_of_hosts.tolist(), "adapter")
    return hosts if fabric.rails <= 1 else f"{hosts} with {each}{' each' if fabric.hosts > 1 else ''}"


def planes_in_words(fabric: Fabric) -> str:
    """Say what a picture of the first plane leaves out; nothing if there is no other plane."""
    count = shapes.planes(fabric)
    return f" Drawn is one of {count} planes: each host has an adapter in every one." if count > 1 else ""


def lines(
    axes: Axes,
    ends: Iterable[tuple[Point, Point]],
    colour: str,
    width: float | Sequence[float] = 0.8,
    alpha: float = 1.0,
    *,
    bend: float = 0.0,
) -> None:
    """Lines between points, bent towards the origin by a share of the way there (0 straight, 1 through it)."""
    both = [(np.asarray(a, float), np.asarray(b, float)) for a, b in ends]
    paths = [arc(a, (a + b) / 2 * (1 - bend), b) if bend else np.array([a, b]) for a, b in both]
    if paths:
        axes.add_collection(LineCollection(paths, colors=colour, linewidths=width, alpha=alpha, zorder=1))


def arc(a: Floats, control: Floats, b: Floats) -> Floats:
    """Points of the quadratic curve from ``a`` to ``b`` with this control point."""
    t = np.linspace(0, 1, 24)[:, None]
    path: Floats = (1 - t) ** 2 * a + 2 * t * (1 - t) * control + t**2 * b
    return path


def dots(axes: Axes, points: Sequence[Point] | Floats, colour: str, size: float, shape: str = "o") -> None:
    """Marks at points; size in points squared."""
    places = np.asarray(points, float).reshape(-1, 2)
    edge = "white" if size > 12 else "none"
    axes.scatter(places[:, 0], places[:, 1], s=size, c=colour, marker=shape, linewidths=0.5, edgecolors=edge, zorder=3)


def words(
    axes: Axes, x: float, y: float, text: str, size: float = 10, colour: str = INK, on: str | None = None
) -> None:
    """Text in the middle of a point, on a patch of colour if there are lines below it."""
    patch = {"boxstyle": "square,pad=0.15", "facecolor": on, "edgecolor": "none"} if on else None
    axes.text(x, y, text, ha="center", va="center", fontsize=size, color=colour, zorder=5, bbox=patch)


def cut(names: Sequence[str], letters: int) -> list[str]:
    """Names of at most so many letters, as they are if all fit.

    Otherwise they lack the words that all begin and end with, and what is still too long lacks its beginning: names
    differ at their ends mostly, as "MF0;rack7-spine02:MQM9700/U1" does.
    """
    shortened = list(names)
    if len(set(shortened)) > 1 and max(map(len, shortened)) > letters:
        begin = len(re.sub(r"\w+$", "", _beginning(shortened)))
        end = len(re.sub(r"\w+$", "", _beginning([name[begin:][::-1] for name in shortened])))
        shortened = [name[begin : len(name) - end] for name in shortened]
    return [name if len(name) <= letters else f"…{name[len(name) - letters + 1 :]}" for name in shortened]


def _beginning(names: Sequence[str]) -> str:
    """Return the common beginning of names."""
    columns = zip(*names, strict=False)
    return "".join(column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns))


def classes(count: int) -> list[str]:
    """A colour for each of so many classes of cables: that of local cables comes first if there are several."""
    colours = [LOCAL, GLOBAL, *PALETTE[2:]]
    return [GLOBAL] if count == 1 else [colours[number % len(colours)] for number in range(count)]


def rate(bandwidth: int) -> str:
    """A bandwidth in few letters: exact if that is short, else to four digits."""
    exact = BANDWIDTH.format(bandwidth)
    return exact if len(exact) <= 10 else f"{significant(bandwidth / 8e9, 4)} GB/s"


def span(counts: Iterable[int], word: str) -> str:
    """A number with its word, or the least and the greatest of several."""
    values = sorted(set(counts)) or [0]
    return plural(values[0], word) if len(values) == 1 else f"{values[0]} to {values[-1]} {word}s"
