"""Trees by levels: hosts below, tops above."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fairlane.fabric.places import base
from fairlane.fabric.places.base import Floats
from fairlane.fabric.subtrees import subtrees
from fairlane.fabric.view import Fabric


@dataclass
class Tree:
    """Levels, cables and hosts of a fabric."""

    fabric: Fabric

    def __post_init__(self) -> None:
        self.levels = self.fabric.levels
        self.top = max(self.levels)
        self.cables = base.cables(self.fabric)
        self.hosts_at = base.hosts_at(self.fabric)
        self.adapters = base.adapters(self.fabric)
        self.count = self.fabric.adapters_of_hosts.tolist()
        self.rows: dict[int, list[int]] = defaultdict(list)
        for switch, level in enumerate(self.levels):
            self.rows[level].append(switch)

    @property
    def spread(self) -> bool:
        """Whether some hosts have adapters at several switches."""
        return sum(map(len, self.hosts_at.values())) > len(set[int]().union(*self.hosts_at.values()))

    def links_of_hosts(self) -> Counter[int]:
        """How many adapters of hosts each switch has."""
        return Counter(switch for _, switch, _ in self.adapters)

    def columns_of_hosts(self, x: Mapping[int, float]) -> dict[int, float]:
        """Where hosts stand from left to right in a row of their own: by the mean of their switches."""
        above: dict[int, list[float]] = defaultdict(list)
        for host, switch, _ in self.adapters:
            above[host].append(x[switch])
        order = sorted(above, key=lambda host: (round(float(np.mean(above[host])), 9), host))
        return {host: (at + 0.5) / len(order) for at, host in enumerate(order)}

    def subtrees(self) -> list[list[int]]:
        """The switches of each subtree below the top level."""
        found: dict[int, list[int]] = defaultdict(list)
        for switch, label in enumerate(subtrees(self.fabric, self.top - 1)):
            if self.levels[switch] < self.top:
                found[label].append(switch)
        return list(found.values())


def places(fabric: Fabric, shape: float) -> tuple[Floats, Floats, Floats]:
    """All switches, the way from each to its hosts, and the room that these have (see ``places.places_of``).

    ``shape`` is the width over the height of the whole.
    """
    tree = Tree(fabric)
    x = columns(tree)
    height = tree.top + 0.5
    found = np.array([[shape * x[switch], level / height] for switch, level in enumerate(tree.levels)], float)
    widest = max(len(tree.hosts_at), *(len(row) for row in tree.rows.values()))
    room = np.array([0.86 * shape / max(widest, 1), 0.3])
    return found, np.tile([0.0, -0.5 / height], (len(found), 1)), room


def row_of_hosts(fabric: Fabric, shape: float) -> Floats | None:
    """Places of all hosts in a row below the leaves, if some have adapters at several switches; else None."""
    tree = Tree(fabric)
    if not tree.spread:
        return None
    x = tree.columns_of_hosts(columns(tree))
    low = 0.35 / (tree.top + 0.5)
    return np.array([[shape * x.get(host, np.nan), low] for host in range(fabric.hosts)])


def columns(tree: Tree) -> dict[int, float]:
    """Where each switch stands from left to right: in order of the mean of those below it."""
    x: dict[int, float] = {}
    below: dict[int, list[int]] = defaultdict(list)
    for a, b in tree.cables:
        low, high = sorted((a, b), key=lambda end: tree.levels[end])
        if tree.levels[low] < tree.levels[high]:
            below[high].append(low)
    for level in sorted(tree.rows):
        row = tree.rows[level]
        if level > 1:
            row = sorted(row, key=lambda switch: (float(np.mean([x[low] for low in below[switch]] or [0.5])), switch))
        step = 1 / len(row)
        x |= {switch: (at + 0.5) * step for at, switch in enumerate(row)}
    return x
