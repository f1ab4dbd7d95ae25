"""Fabrics without levels or plan: switches around a circle, so that joined ones stand near each other.

Cables have a colour for each class of links, as within racks and between racks of a Slim Fly.
"""

from collections import defaultdict

import numpy as np
from matplotlib.axes import Axes

from fairlane.fabric.places import shapes
from fairlane.fabric.places.shapes import around
from fairlane.fabric.view import Fabric
from fairlane.plot.fabric import parts
from fairlane.plot.fabric.parts import DOT, LINE
from fairlane.plot.runs import Drawn, Given
from fairlane.wording import plural

MOST_BY_SPECTRUM = 1500
MOST_NAMES = 60
UPRIGHT_NAMES = 24
"""More names than these stand along the radii of the circle."""


def draw(fabric: Fabric, axes: Given = None) -> Drawn:
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
    words = [f"{name} cable" for name in by_class] if len(by_class) > 1 else ["cable"]
    lines = [(word, colour, LINE) for word, colour in zip(words, colours, strict=False)]
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
    found: dict[shapes.Pair, int] = {}
    for a, b, number in zip(*columns, strict=True):
        if 0 <= a < b:
            found.setdefault((a, b), number)
    by_class: dict[str, list[shapes.Pair]] = defaultdict(list)
    for pair, number in sorted(found.items(), key=lambda item: item[1]):
        by_class[fabric.classes[number]].append(pair)
    return by_class


def _write_names(panel: Axes, places: shapes.Floats, names: list[str], hosts: dict[int, str]) -> None:
    """Names outside the circle, with the numbers of hosts that are given; many names stand along the radii."""
    for switch, (x, y) in enumerate(places):
        words = [names[switch], *([hosts[switch]] if switch in hosts else [])]
        if len(places) <= UPRIGHT_NAMES:
            parts.words(panel, 1.13 * x, 1.13 * y, "\n".join(words), 8, "#555555")
            continue
        angle, left = float(np.degrees(np.arctan2(y, x))), x < 0
        panel.text(
            1.05 * x,
            1.05 * y,
            ", ".join(words),
            ha="right" if left else "left",
            va="center",
            rotation=angle + 180 if left else angle,
            rotation_mode="anchor",
            fontsize=8,
            color="#555555",
        )
