"""Placement by domains: the leaf switches, subtrees or groups that a fabric consists of.

A job goes into one domain if one has room, else into as few as possible, like Slurm's best fit on a tree.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Literal

from pydantic import Field
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.model.fabric.levels import subtrees
from fairlane.model.placement.base import FabricView, PlacementPolicy, Request, by_leaf

Fit = Literal["first", "best"]
"""The first place that has room, or the one that leaves least behind."""


class Domain(PlacementPolicy):
    """Hosts of one leaf switch, subtree or group if one has room for the job, else of as few as possible."""

    of: Literal["leaf", "subtree", "group"] = "leaf"
    """The domains: leaf switches, the subtrees below the switches of a level, or the groups of a dragonfly."""
    level: int = Field(default=2, ge=1)
    """For subtrees: the level of their root switches; level 1 are the leaf switches."""
    fit: Fit = "best"
    """Among the domains with room: the first one (first fit), or the one with least room (best fit)."""
    split: bool = True
    """Whether a job that fits into no single domain may use several."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        return fewest(self._rooms(free, fabric), request.hosts, self.fit, split=self.split)

    @override
    def check(self, fabric: FabricView, hosts: Sequence[int]) -> None:
        if self.of == "group" and fabric.plan["kind"] != "groups":
            message = f"the fabric has no groups (it is laid out as {fabric.plan['kind']!r})"
            raise Problems(Problem("of", message, self.of, "leaf; subtree on a fabric with levels"))
        top = max(fabric.levels, default=0)
        if self.of == "subtree" and top < 2:
            raise Problems(Problem("of", "the fabric has no levels above its leaf switches", self.of, "leaf, group"))
        if self.of == "subtree" and self.level > top:
            raise Problems(Problem("level", "the fabric has no such level", self.level, f"1 to {top}"))

    @override
    def wanted(self) -> str:
        return "free hosts" if self.split else f"free hosts of one {self.of}"

    def _rooms(self, free: Sequence[int], fabric: FabricView) -> dict[int, list[int]]:
        match self.of:
            case "leaf":
                return by_leaf(free, fabric)
            case "group":
                size = fabric.plan["switches"]
                domain_of = [leaf // size for leaf in fabric.leaf_of]
            case "subtree":
                tree = subtrees(fabric, self.level)
                domain_of = [tree[leaf] for leaf in fabric.leaf_of]
        rooms: dict[int, list[int]] = defaultdict(list)
        for host in free:
            rooms[domain_of[host]].append(host)
        return dict(sorted(rooms.items()))


class Packed(PlacementPolicy):
    """Hosts under as few leaf switches as possible; the last switch is the fullest one that has room for the rest."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        return fewest(by_leaf(free, fabric), request.hosts, "best", split=True)


class Spread(PlacementPolicy):
    """Free hosts of the leaf switches, round-robin: neighbouring ranks are under different switches."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        if len(free) < request.hosts:
            return None
        rounds = zip_longest(*by_leaf(free, fabric).values())
        return [host for hosts in rounds for host in hosts if host is not None][: request.hosts]


def fewest(rooms: Mapping[int, list[int]], count: int, fit: Fit, *, split: bool) -> list[int] | None:
    """Hosts of as few domains as possible; None if there are too few."""
    left, taken = dict(rooms), list[int]()
    for largest in sorted(rooms, key=lambda domain: len(rooms[domain]), reverse=True):
        missing = count - len(taken)
        if len(left[largest]) >= missing:
            enough = [domain for domain, hosts in left.items() if len(hosts) >= missing]
            chosen = enough[0] if fit == "first" else min(enough, key=lambda domain: len(left[domain]))
            return taken + left[chosen][:missing]
        if not split:
            return None
        taken += left.pop(largest)
    return None
