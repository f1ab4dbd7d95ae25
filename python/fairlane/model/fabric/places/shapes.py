"""Places of hosts and switches of a fabric: trees, groups, grids and rings, and their cables."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from fairlane.model.fabric.levels import subtrees
from fairlane.model.fabric.view import Fabric

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
Point = Sequence[float] | Floats


def cables(fabric: Fabric) -> Counter[Pair]:
    """Count the cables between each pair of switches, the lower number first."""
    ends = zip(fabric.links["from_switch"].tolist(), fabric.links["to_switch"].tolist(), strict=True)
    return Counter((a, b) for a, b in ends if 0 <= a < b)


def hosts_of(fabric: Fabric) -> Counter[int]:
    """Count the hosts at each switch. One that has links to several counts at each of them."""
    return Counter({switch: len(hosts) for switch, hosts in hosts_at(fabric).items()})


def hosts_at(fabric: Fabric) -> dict[int, set[int]]:
    """The hosts of each switch that has some."""
    by_switch: dict[int, set[int]] = defaultdict(set)
    for host, switch, _ in adapters(fabric):
        by_switch[switch].add(host)
    return by_switch


def adapters(fabric: Fabric) -> list[tuple[int, int, int]]:
    """The host, switch and rail of each adapter that has a cable to a switch."""
    ends = zip(fabric.links["from_host"].tolist(), fabric.links["to_switch"].tolist(), strict=True)
    of_hosts = [(host, switch) for host, switch in ends if host >= 0]
    rails = (rail for count in fabric.adapters_of_hosts.tolist() for rail in range(count))
    return [(host, switch, rail) for (host, switch), rail in zip(of_hosts, rails, strict=True) if switch >= 0]


def planes(fabric: Fabric) -> int:
    """Count the parts that no cable between switches joins: copies of one network, if hosts have rails."""
    return len(set(subtrees(fabric, max(fabric.levels, default=0)))) if fabric.rails > 1 else 1


def circle(count: int, radius: float = 1.0, centre: Point = (0.0, 0.0), start: float = np.pi / 2) -> Floats:
    """Points around a circle, clockwise from the top."""
    angles = start - 2 * np.pi * np.arange(count) / max(count, 1)
    return np.asarray(centre) + radius * np.column_stack([np.cos(angles), np.sin(angles)])


SHAPE = 1.3  # width over height that the whole should have


def places_of_grid(fabric: Fabric) -> tuple[Floats, Floats, Floats]:
    """All switches, the way from each to its hosts, and the room that these have (see ``places.places_of``).

    The planes of a fabric with rails stand side by side.
    """
    sides = list(fabric.plan["sides"])
    if fabric.plan["line"] == "ring" and sum(side > 1 for side in sides) == 1:
        count = int(np.prod(sides))
        spots = circle(count, count / 2 / np.pi + 0.5)
        outward, room = 0.4 * spots / np.hypot(*spots.T)[:, None], np.array([0.7, 0.2])
    else:
        spots = places_in(sides, steps_of(sides))
        outward, room = np.tile([0.25, -0.25], (len(spots), 1)), np.array([0.45, 0.2])
    step = np.array([float(np.ptp(spots[:, 0])) + 2.0, 0.0])
    copies = fabric.switches // len(spots)
    return np.concatenate([spots + at * step for at in range(copies)]), np.tile(outward, (copies, 1)), room


def longest(sides: list[int]) -> int:
    """The number of the longest side."""
    return int(np.argmax(sides))


@dataclass(frozen=True)
class Step:
    """Direction (axis 0 to the right, 1 down) and distance of the switches along one dimension."""

    axis: int
    offset: float
    block: tuple[float, float]  # width and height of what is repeated along it


def steps_of(sides: list[int]) -> list[Step]:
    """A step for each dimension: the first two span a plane, each further one goes where it makes the better shape."""
    steps: list[Step] = []
    extent = [0.0, 0.0]
    for number, side in enumerate(sides):
        gaps = [1.6 + 0.9 * sum(step.axis == axis for step in steps[2:]) for axis in (0, 1)]
        grown = [extent[axis] + (extent[axis] + gaps[axis]) * (side - 1) + 1 for axis in (0, 1)]
        wide, tall = grown[0] / (extent[1] + 1), (extent[0] + 1) / grown[1]
        axis = number if number < 2 else int(abs(np.log(tall / SHAPE)) < abs(np.log(wide / SHAPE)))
        offset = 1.0 if number < 2 else extent[axis] + gaps[axis]
        steps.append(Step(axis, offset, (extent[0], extent[1])))
        extent[axis] += offset * (side - 1)
    return steps


def places_in(sides: list[int], steps: list[Step]) -> Floats:
    """All switches of a plane, x to the right and y upwards."""
    count = int(np.prod(sides))
    rest, places_of_grid = np.arange(count), np.zeros((count, 2))
    for side, step in zip(sides, steps, strict=True):
        places_of_grid[:, step.axis] += rest % side * step.offset * (-1 if step.axis else 1)
        rest = rest // side
    return places_of_grid


@dataclass(frozen=True)
class Shape:
    """Sizes, cables and levels of a fabric of groups."""

    size: int
    row: int
    groups: int
    cables: Counter[Pair]
    hosts_at: Mapping[int, set[int]]
    levels: list[int]

    @classmethod
    def of(cls, fabric: Fabric) -> Self:
        """Read the shape of a fabric whose plan has groups."""
        plan, size = fabric.plan, fabric.plan["switches"]
        hosts, groups = hosts_at(fabric), fabric.switches // size
        return cls(size, plan["row"], groups, cables(fabric), hosts, fabric.levels)

    @cached_property
    def hosts(self) -> Counter[int]:
        """Count the hosts of each switch."""
        return Counter({switch: len(hosts) for switch, hosts in self.hosts_at.items()})

    def plane(self, count: int) -> Self:
        """The first of so many planes."""
        groups = self.groups // count
        switches = groups * self.size
        cables = Counter({pair: cables for pair, cables in self.cables.items() if max(pair) < switches})
        hosts = {switch: hosts for switch, hosts in self.hosts_at.items() if switch < switches}
        return replace(self, groups=groups, cables=cables, hosts_at=hosts, levels=self.levels[:switches])

    def group(self, switch: int) -> int:
        """The group of a switch."""
        return switch // self.size

    def between(self) -> Counter[Pair]:
        """Cables between groups."""
        counts: Counter[Pair] = Counter()
        for (a, b), count in self.cables.items():
            if self.group(a) != self.group(b):
                counts[self.group(a), self.group(b)] += count
        return counts


def places_of_groups(shape: Shape) -> tuple[Floats, Floats, Floats]:
    """All switches, the way from each to its hosts, and the room that these have (see ``places.places_of``)."""
    centres = circle(shape.groups) if shape.groups > 1 else np.zeros((1, 2))
    radius = radius_of(shape)
    outward = []
    places = []
    for centre in centres:
        if shape.row != shape.size:
            rows = shape.size // shape.row
            at = np.arange(shape.size)
            spots = np.column_stack([at % shape.row, -(at // shape.row)]) - [(shape.row - 1) / 2, -(rows - 1) / 2]
            spots = centre + spots * 1.7 * radius / max(shape.row, rows)
            outward.append(np.tile([0.0, -0.5 * radius / max(shape.row, rows)], (shape.size, 1)))
        else:
            spots = in_group(shape, centre, radius)
            flat = len(set(shape.levels)) <= 1 and shape.size > 1
            directions = [outwards(spot - centre if flat else centre) for spot in spots]
            outward.append(0.3 * radius * np.array(directions))
        places.append(spots)
    step = 0.9 * radius / max(shape.row, shape.size // shape.row) if shape.row != shape.size else 0.14 * radius
    across = step if shape.row != shape.size else 5.0 * radius / shape.size
    return np.concatenate(places), np.concatenate(outward), np.array([across, step])


def radius_of(shape: Shape) -> float:
    """Of a group, so that neighbours on the ring have room between them."""
    radius = 0.62 * np.sin(np.pi / shape.groups) if shape.groups > 2 else 0.42 if shape.groups == 2 else 0.8
    return float(min(radius, 0.34)) if shape.groups > 1 else float(radius)


def in_group(shape: Shape, centre: Floats, radius: float) -> Floats:
    """Place the switches of a group on a circle; leaves outside and spines inside if there are levels."""
    out = outwards(centre)
    leaves = sum(level <= 1 for level in shape.levels[: shape.size])
    if leaves == shape.size:
        # Two switches stand side by side, not one behind the other.
        first = float(np.arctan2(out[1], out[0])) + (np.pi / 2 if shape.size == 2 else 0.0)
        return circle(shape.size, radius if shape.size > 1 else 0.0, centre, first)
    along = np.array([-out[1], out[0]])
    spots = []
    for count, depth in ((leaves, 0.75), (shape.size - leaves, -0.75)):
        steps = np.linspace(-1.2, 1.2, count) if count > 1 else np.zeros(1)
        spots.append(centre + radius * (depth * out + steps[:, None] * along))
    return np.concatenate(spots)


def outwards(centre: Floats) -> Floats:
    """The direction from the middle of the ring to a place; upwards in the middle."""
    length = float(np.hypot(*centre))
    return np.asarray(centre) / length if length > 0 else np.array([0.0, 1.0])


@dataclass
class Tree:
    """Levels, cables and hosts of a fabric."""

    fabric: Fabric

    def __post_init__(self) -> None:
        self.levels = self.fabric.levels
        self.top = max(self.levels)
        self.cables = cables(self.fabric)
        self.hosts_at = hosts_at(self.fabric)
        self.adapters = adapters(self.fabric)
        self.count = self.fabric.adapters_of_hosts.tolist()
        self.rows: dict[int, list[int]] = defaultdict(list)
        for switch, level in enumerate(self.levels):
            self.rows[level].append(switch)

    @property
    def spread(self) -> bool:
        """Whether some hosts have adapters at several switches."""
        return sum(map(len, self.hosts_at.values())) > len(set[int]().union(*self.hosts_at.values()))

    def links_of_hosts(self) -> Counter[int]:
        """Count the adapters of hosts at each switch."""
        return Counter(switch for _, switch, _ in self.adapters)

    def columns_of_hosts(self, x: Mapping[int, float]) -> dict[int, float]:
        """Place hosts from left to right in a row of their own: by the mean of their switches."""
        above: dict[int, list[float]] = defaultdict(list)
        for host, switch, _ in self.adapters:
            above[host].append(x[switch])
        order = sorted(above, key=lambda host: (round(float(np.mean(above[host])), 9), host))
        return {host: (at + 0.5) / len(order) for at, host in enumerate(order)}

    def subtrees(self) -> list[list[int]]:
        """The switches of each subtree below the top level."""
        by_label: dict[int, list[int]] = defaultdict(list)
        for switch, label in enumerate(subtrees(self.fabric, self.top - 1)):
            if self.levels[switch] < self.top:
                by_label[label].append(switch)
        return list(by_label.values())


def places_of_levels(fabric: Fabric, shape: float) -> tuple[Floats, Floats, Floats]:
    """All switches, the way from each to its hosts, and the room that these have (see ``places.places_of``).

    ``shape`` is the width over the height of the whole.
    """
    tree = Tree(fabric)
    x = columns(tree)
    height = tree.top + 0.5
    spots = np.array([[shape * x[switch], level / height] for switch, level in enumerate(tree.levels)], float)
    widest = max(len(tree.hosts_at), *(len(row) for row in tree.rows.values()))
    room = np.array([0.86 * shape / max(widest, 1), 0.3])
    return spots, np.tile([0.0, -0.5 / height], (len(spots), 1)), room


def row_of_hosts(fabric: Fabric, shape: float) -> Floats | None:
    """Places of all hosts in a row below the leaves, if some have adapters at several switches; else None."""
    tree = Tree(fabric)
    if not tree.spread:
        return None
    x = tree.columns_of_hosts(columns(tree))
    low = 0.35 / (tree.top + 0.5)
    return np.array([[shape * x.get(host, np.nan), low] for host in range(fabric.hosts)])


def columns(tree: Tree) -> dict[int, float]:
    """Place each switch from left to right: in order of the mean of those below it."""
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


MOST_BY_SPECTRUM = 1500


def places_of_ring(fabric: Fabric) -> tuple[Floats, Floats, Floats]:
    """All switches, the way from each to its hosts, and the room that these have (see ``places.places_of``)."""
    spots = around(fabric)
    room = 2 * np.pi * 1.15 / max(fabric.switches, 1)
    return spots, 0.15 * spots, np.array([0.9 * room, 0.04])


def around(fabric: Fabric) -> Floats:
    """All switches around a circle."""
    spots = np.empty((fabric.switches, 2))
    spots[_order(fabric.switches, list(cables(fabric)))] = circle(fabric.switches)
    return spots


def _order(switches: int, pairs: list[Pair]) -> list[int]:
    """The switches in an order in which joined ones are near each other.

    By angle in the plane of the Laplacian's second and third eigenvectors, which shows a ring as a ring; in large
    fabrics by reverse Cuthill-McKee. By number if that is nearer, as where all eigenvectors are equally good.
    """
    natural = list(range(switches))
    return min(_by_neighbours(switches, pairs), natural, key=lambda order: _apart(order, pairs))


def _apart(order: list[int], pairs: list[Pair]) -> int:
    """Steps around the circle between joined switches, summed."""
    place = {switch: number for number, switch in enumerate(order)}
    steps = (abs(place[a] - place[b]) for a, b in pairs)
    return sum(min(step, len(order) - step) for step in steps)


def _by_neighbours(switches: int, pairs: list[Pair]) -> list[int]:
    if not pairs or switches < 4:
        return list(range(switches))
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    a, b = np.array(pairs).T
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(switches, switches)).tocsr()
    graph = graph + graph.T
    if switches > MOST_BY_SPECTRUM:
        arranged: list[int] = reverse_cuthill_mckee(graph, symmetric_mode=True).tolist()
        return arranged
    joined = graph.toarray()
    _, vectors = np.linalg.eigh(np.diag(joined.sum(axis=0)) - joined)
    order: list[int] = np.argsort(np.arctan2(vectors[:, 2], vectors[:, 1]), kind="stable").tolist()
    return order
