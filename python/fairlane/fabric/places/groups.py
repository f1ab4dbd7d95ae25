"""Dragonfly, Cascade, Dragonfly+: a ring of groups."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from fairlane.fabric.places import base
from fairlane.fabric.places.base import Floats, Pair
from fairlane.fabric.view import Fabric


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
        """That of a fabric whose plan has groups."""
        plan, size = fabric.plan, fabric.plan["switches"]
        hosts, groups = base.hosts_at(fabric), fabric.switches // size
        return cls(size, plan["row"], groups, base.cables(fabric), hosts, fabric.levels)

    @cached_property
    def hosts(self) -> Counter[int]:
        """How many hosts each switch has."""
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
        found: Counter[Pair] = Counter()
        for (a, b), count in self.cables.items():
            if self.group(a) != self.group(b):
                found[self.group(a), self.group(b)] += count
        return found


def places(shape: Shape) -> tuple[Floats, Floats, Floats]:
    """All switches, the way from each to its hosts, and the room that these have (see ``places.places_of``)."""
    centres = base.circle(shape.groups) if shape.groups > 1 else np.zeros((1, 2))
    radius = radius_of(shape)
    outward = []
    found = []
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
        found.append(spots)
    step = 0.9 * radius / max(shape.row, shape.size // shape.row) if shape.row != shape.size else 0.14 * radius
    across = step if shape.row != shape.size else 5.0 * radius / shape.size
    return np.concatenate(found), np.concatenate(outward), np.array([across, step])


def radius_of(shape: Shape) -> float:
    """Of a group, so that neighbours on the ring have room between them."""
    radius = 0.62 * np.sin(np.pi / shape.groups) if shape.groups > 2 else 0.42 if shape.groups == 2 else 0.8
    return float(min(radius, 0.34)) if shape.groups > 1 else float(radius)


def in_group(shape: Shape, centre: Floats, radius: float) -> Floats:
    """Where the switches of a group stand: on a circle; leaves outside and spines inside if there are levels."""
    out = outwards(centre)
    leaves = sum(level <= 1 for level in shape.levels[: shape.size])
    if leaves == shape.size:
        # Two switches stand side by side, not one behind the other.
        first = float(np.arctan2(out[1], out[0])) + (np.pi / 2 if shape.size == 2 else 0.0)
        return base.circle(shape.size, radius if shape.size > 1 else 0.0, centre, first)
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
