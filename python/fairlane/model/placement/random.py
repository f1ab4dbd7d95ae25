"""Random placements: hosts, runs of hosts, or runs of switches in random groups.

Random hosts are what the scheduler of a busy system allocates in the long run (Savoie 2020, section 5.2).
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy
from pydantic import Field
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.core.wording import plural
from fairlane.inputs.problems import Problems
from fairlane.model.placement.base import FabricView, PlacementPolicy, Request, by_leaf


class Random(PlacementPolicy):
    """Free hosts drawn uniformly at random, in random order."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        if len(free) < request.hosts:
            return None
        order = numpy.argsort(request.rng.random(len(free)), kind="stable")
        return [free[at] for at in order[: request.hosts]]


class Fragmented(PlacementPolicy):
    """Random runs of neighbouring free hosts, none longer than a leaf switch's hosts, in ascending order.

    What is left on a system where jobs of all sizes came and went: a launcher puts a job on some runs of free hosts and
    keeps the order of hosts (Wilke 2020, section V).
    """

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        if len(free) < request.hosts:
            return None
        longest = max(Counter(fabric.leaf_of).values())
        lengths = 1 + (request.rng.random(len(free)) * longest).astype(int)
        ends = numpy.cumsum(lengths)
        runs = numpy.split(numpy.asarray(free), ends[ends < len(free)])
        order = numpy.argsort(request.rng.random(len(runs)), kind="stable")
        taken = numpy.concatenate([runs[at] for at in order])[: request.hosts]
        chosen: list[int] = numpy.sort(taken).tolist()
        return chosen


class Groups(PlacementPolicy):
    """Runs of neighbouring switches in ``count`` random groups of a dragonfly, in ascending order.

    What a scheduler gives a large job on a busy dragonfly (Smith et al. 2018, section IV, between 2 and 14 groups of 15
    for the same job).
    """

    count: int = Field(ge=1)
    """Number of groups that a job is spread over; the hosts in each are random, at least one switch."""
    longest: int = Field(default=8, ge=1)
    """Maximum length of a run of switches; lengths are uniformly distributed."""

    @override
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        size = fabric.plan["switches"]
        groups: dict[int, dict[int, list[int]]] = defaultdict(dict)
        for leaf, hosts in by_leaf(free, fabric).items():
            groups[leaf // size][leaf] = hosts
        order = request.rng.permutation(sorted(groups)).tolist()
        chosen = order[: self.count]
        rooms = [sum(map(len, groups[group].values())) for group in chosen]
        if len(chosen) < self.count or sum(rooms) < request.hosts or request.hosts < self.count:
            return None
        parts = _parts(request.hosts, rooms, request.rng)
        taken = [
            host
            for group, part in zip(chosen, parts, strict=True)
            for host in self._runs(groups[group], request.rng)[:part]
        ]
        return sorted(taken)

    def _runs(self, leaves: dict[int, list[int]], rng: numpy.random.Generator) -> list[int]:
        """The hosts of a group, run by run in random order."""
        order = list(leaves)
        lengths = 1 + (rng.random(len(order)) * self.longest).astype(int)
        ends = numpy.cumsum(lengths)
        runs = numpy.split(numpy.asarray(order), ends[ends < len(order)])
        return [host for at in rng.permutation(len(runs)) for leaf in runs[at].tolist() for host in leaves[leaf]]

    @override
    def check(self, fabric: FabricView, hosts: Sequence[int]) -> None:
        if fabric.plan["kind"] != "groups":
            message = f"the fabric has no groups (it is laid out as {fabric.plan['kind']!r})"
            raise Problems(Problem("name", message, "groups", "a dragonfly"))
        there = 1 + max(fabric.leaf_of) // fabric.plan["switches"]
        most = min(there, *hosts) if hosts else there
        if self.count > most:
            raise Problems(Problem("count", "more groups than the fabric or the job has", self.count, f"1 to {most}"))

    @override
    def wanted(self) -> str:
        return f"in {plural(self.count, 'group')} drawn at random"


def _parts(hosts: int, rooms: Sequence[int], rng: numpy.random.Generator) -> list[int]:
    """How many hosts each group gives: at least one, at most its room, otherwise by random weights."""
    weights = 0.25 + rng.random(len(rooms))
    parts = [1] * len(rooms)
    left = hosts - len(rooms)
    while left:
        able = [at for at, room in enumerate(rooms) if parts[at] < room]
        whole = sum(weights[at] for at in able)
        for at in able:
            more = min(rooms[at] - parts[at], max(1, int(left * weights[at] / whole)), left)
            parts[at] += more
            left -= more
            whole -= weights[at]
            if not left:
                break
    return parts
