"""Trees by levels: hosts below, tops above. Large ones by subtree: what hangs together below the top."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

from fairlane.core.wording import plural
from fairlane.model.fabric.places import shapes
from fairlane.model.fabric.places.shapes import Tree, columns
from fairlane.model.fabric.view import Fabric
from fairlane.views.drawing import parts
from fairlane.views.drawing.parts import DOT, LINE, SQUARE, WIDE
from fairlane.views.drawing.runs import Drawn, Given
from fairlane.views.drawing.style import PALETTE

MOST_IN_FULL = 48  # switches of a level up to which all are drawn
MOST_HOSTS = 160
MOST_SUBTREES = 10
NAME_LETTERS = 150  # letters of names of switches that fit side by side
SHORTEST_NAME = 5  # names are left out where each would have fewer letters
NAMES: dict[int, tuple[str, ...]] = {1: ("switch",), 2: ("leaf", "spine"), 3: ("leaf", "aggregation", "core")}


def draw(fabric: Fabric, axes: Given = None) -> Drawn:
    """The picture."""
    tree = _Tree(fabric)
    panels = parts.blank(axes, 13, 7.2)
    [panel] = panels.axes
    panel.set_aspect("auto")
    full = max(Counter(fabric.levels).values()) <= MOST_IN_FULL
    (_full if full else _subtrees)(panel, tree)
    shape = " + ".join(f"{len(tree.rows[level])} {tree.name(level)}" for level in sorted(tree.rows))
    kind = "One switch" if fabric.switches == 1 else f"Tree of {plural(len(tree.rows), 'level')}: {shape} switches"
    return parts.headline(panels, f"{kind}, {parts.hosts_in_words(fabric)}", _note(tree))


class _Tree(Tree):
    @property
    def drawn(self) -> bool:
        """Whether there are few enough hosts to draw each."""
        return max(self.fabric.hosts, len(self.adapters) / 2) <= MOST_HOSTS

    def name(self, level: int) -> str:
        """Return the name of the switches of a level."""
        names = NAMES.get(self.top)
        return names[level - 1] if names else f"level {level}"


def _full(axes: Axes, tree: _Tree) -> None:
    """Every switch; hosts as dots, or as a number where there are many."""
    x = columns(tree)
    places = {switch: (x[switch], float(level)) for switch, level in enumerate(tree.levels)}
    rates = _rates(tree.fabric)
    colour = {rate: PALETTE[(at + 1) % len(PALETTE)] for at, rate in enumerate(sorted(set(rates.values())))}
    if len(colour) == 1:
        colour = dict.fromkeys(colour, parts.LOCAL)
    alpha = float(np.clip(400 / max(len(tree.cables), 1), 0.3, 0.95))
    for (a, b), count in tree.cables.items():
        across = 0.0 if tree.levels[a] != tree.levels[b] else 0.25
        middle = ((places[a][0] + places[b][0]) / 2, tree.levels[a] + across)
        spots = [places[a], middle, places[b]] if across else [places[a], places[b]]
        width = 0.8 + 0.55 * min(count - 1, 8)
        axes.plot(*zip(*spots, strict=True), color=colour[rates[a, b]], linewidth=width, alpha=alpha, zorder=1)
    spread = 1 / max(len(row) for row in tree.rows.values())
    adapters = _hosts(axes, tree, places, 0.86 * spread)
    size = float(np.clip(9000 * spread, 60, 420))
    for level, row in tree.rows.items():
        parts.dots(axes, [places[switch] for switch in row], parts.SWITCH, size, "s")
        axes.text(-0.02, level, tree.name(level), ha="right", va="center", fontsize=11)
        room = NAME_LETTERS // len(row)
        names = parts.cut([tree.fabric.switch_names[switch] for switch in row], room)
        for switch, name in zip(row, names, strict=True) if room >= SHORTEST_NAME else []:
            parts.words(axes, places[switch][0], level + 0.16, name, 7.5, "#555555", on="white")
    axes.set(xlim=(-0.1, 1.02), ylim=(0.05, tree.top + 0.35))
    rows = [(parts.rate(rate), colour_of_rate, LINE) for rate, colour_of_rate in colour.items()]
    trunk = max(tree.cables.values(), default=1)
    first = [("switch", parts.SWITCH, SQUARE), *([("host", parts.HOST, DOT)] if tree.drawn else [])]
    trunks = [(f"up to {trunk} cables side by side", parts.LOCAL, WIDE)] if trunk > 1 else []
    parts.legend(axes, [*first, *rows, *trunks, *adapters], 6)


def _rates(fabric: Fabric) -> dict[shapes.Pair, int]:
    links = fabric.links
    ends = zip(*(links[key].tolist() for key in ("from_switch", "to_switch", "bandwidth")), strict=True)
    return {(a, b): rate for a, b, rate in ends if 0 <= a < b}


def _hosts(axes: Axes, tree: _Tree, places: dict[int, tuple[float, float]], room: float) -> list[tuple[str, str, str]]:
    """Hosts as dots, each once, with a line for each adapter, or numbers of them. Returns rows of the legend."""
    spread = tree.spread
    axes.text(-0.02, 0.48, "adapters" if spread and not tree.drawn else "hosts", ha="right", va="center", fontsize=11)
    if not tree.drawn:
        for switch, count in tree.links_of_hosts().items():
            x, y = places[switch]
            axes.plot([x, x], [y, y - 0.42], color=parts.HOST, linewidth=0.8, zorder=1)
            parts.words(axes, x, y - 0.52, f"{count}", 9, "#555555")
        return []
    if spread:
        spots = {host: (x, 0.45) for host, x in tree.columns_of_hosts({at: x for at, (x, _) in places.items()}).items()}
    else:
        spots = {
            host: (places[switch][0] + (at - (len(hosts) - 1) / 2) * room / max(len(hosts), 2), places[switch][1] - 0.5)
            for switch, hosts in tree.hosts_at.items()
            for at, host in enumerate(sorted(hosts))
        }
    rails: dict[int, list[tuple[tuple[float, float], tuple[float, float]]]] = defaultdict(list)
    for host, switch, rail in tree.adapters:
        # Adapters of a host at one switch are side by side.
        (x, y), (left, below) = places[switch], spots[host]
        shift = (rail - (tree.count[host] - 1) / 2) * min(0.005, room / 20)
        rails[rail].append(((x if spread else x + shift, y), (left + (0.3 * shift if spread else shift), below)))
    colours = (
        {rail: PALETTE[(rail + 1) % len(PALETTE)] for rail in sorted(rails)} if len(rails) > 1 else {0: parts.HOST}
    )
    for rail, ends in rails.items():
        parts.lines(axes, ends, colours[rail], 0.6 if len(rails) > 1 else 0.5, 0.7 if spread else 1.0)
    parts.dots(axes, list(spots.values()), parts.HOST, 26 if len(rails) > 1 else 14)
    return [(f"adapter {rail}", colour, LINE) for rail, colour in colours.items()] if len(rails) > 1 else []


def _subtrees(axes: Axes, tree: _Tree) -> None:
    """A box for each subtree and one for the top; the first ones, and how many more."""
    subtrees = tree.subtrees()
    kinds = Counter(_summary(tree, subtree) for subtree in subtrees)
    shown = subtrees if len(subtrees) <= MOST_SUBTREES else [*subtrees[: MOST_SUBTREES - 2], subtrees[-1]]
    gap = len(subtrees) - len(shown)
    count = len(shown) + (1 if gap else 0)
    spots = [(at + 0.5) / count for at in range(count)]
    if gap:
        parts.words(axes, spots[-2], 0.62, f"… {gap} more …", 12)
        spots = [*spots[:-2], spots[-1]]
    top = tree.rows[tree.top]
    number = {switch: at for at, subtree in enumerate(shown) for switch in subtree}
    to_top: Counter[int] = Counter()
    for (a, b), cables in tree.cables.items():
        for low in (a, b):
            if low in number and tree.levels[a] != tree.levels[b] and tree.top in (tree.levels[a], tree.levels[b]):
                to_top[number[low]] += cables
    _box(axes, 0.5, 2.35, 0.62, 0.5, [f"{len(top)} {tree.name(tree.top)} switches"], parts.GLOBAL)
    for at, (x, subtree) in enumerate(zip(spots, shown, strict=True)):
        axes.plot([x, 0.2 + 0.6 * x], [1.22, 2.1], color=parts.LOCAL, linewidth=3, zorder=1)
        parts.words(axes, 0.5 * x + 0.5 * (0.2 + 0.6 * x), 1.66, f" {to_top[at]} ", 9.5, "#444444", on="white")
        _box(axes, x, 0.62, 0.88 / count, 1.2, _summary(tree, subtree), parts.SWITCH)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.15, 2.75))
    boxes = [(f"a subtree, {plural(len(kinds), 'kind')}", parts.SWITCH, SQUARE), ("the top", parts.GLOBAL, SQUARE)]
    parts.legend(axes, [*boxes, ("cables to the top, counted", parts.LOCAL, LINE)])


def _summary(tree: _Tree, subtree: Sequence[int]) -> tuple[str, ...]:
    """Return the content of a subtree, top down."""
    counts = Counter(tree.levels[switch] for switch in subtree)
    counted = [f"{counts[level]} {tree.name(level)}" for level in sorted(counts, reverse=True)]
    hosts = set().union(*(tree.hosts_at.get(switch, set()) for switch in subtree))
    return (*counted, plural(len(hosts), "host"))


def _box(axes: Axes, x: float, y: float, width: float, height: float, rows: Sequence[str], colour: str) -> None:
    look: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=0.012", "mutation_aspect": 4, "zorder": 3}
    look |= {"facecolor": "white", "edgecolor": colour, "linewidth": 2}
    axes.add_patch(FancyBboxPatch((x - width / 2, y - height / 2), width, height, **look))
    size = 13 if width > 0.3 else float(np.clip(110 * width, 7, 11))
    for at, row in enumerate(rows):
        parts.words(axes, x, y + ((len(rows) - 1) / 2 - at) * height / (len(rows) + 0.6), row, size)


def _note(tree: _Tree) -> str:
    within = sum(count for (a, b), count in tree.cables.items() if tree.levels[a] == tree.levels[b])
    at_leaf = parts.span(tree.links_of_hosts().values(), "adapter" if tree.fabric.rails > 1 else "host")
    note = f"{sum(tree.cables.values())} cables between switches, {at_leaf} at a leaf."
    links = tree.fabric.links
    rates = sorted(set(links["bandwidth"][links["from_host"] >= 0].tolist()))
    if len(rates) > 1:
        note += f" Hosts' links have {parts.rate(rates[0])} to {parts.rate(rates[-1])}."
    return note + (f" {within} cables stay within a level." if within else "")
