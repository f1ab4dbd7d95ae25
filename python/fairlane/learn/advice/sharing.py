"""Estimate which jobs share cables on a Dragonfly+, whom they are likely to slow down, and what a move would change.

Every node sends a given share of its bandwidth, in equal parts to all other nodes of its job, on minimal paths.
Adaptive routing is taken to spread packets evenly over parallel cables: those from a leaf to the spines, back, and
between two cells. Such a bundle of cables has a utilisation: the bytes that jobs send over it by what it can carry.
From that follow

- the slowdown of a job: by the most utilised bundle that it uses, if that is asked for more than it can carry;
- its waiting: packets of the M/D/1 queue, rho / (2 (1 - rho)), summed over the bundles of a path and averaged over its
  messages; rho is bounded by 0.95.

What one job does to another is the difference that its absence makes. Left out: contention at receivers and the
congestion trees that it causes, bursts, storage traffic, and what non-minimal paths add elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray

from fairlane.learn.advice.allocations import NodeMap, moment, read_allocations
from fairlane.model.fabric.view import Fabric

_BOUND = 0.95  # utilisation above which a queue is taken to be no longer
_OWN_LEVEL = 0.5  # share of a bundle that a service level of its own is guaranteed, against all others together

Floats = NDArray[numpy.float64]


class Bundles:
    """Bundles of parallel cables of a Dragonfly+: up and down of each leaf, and between each two cells."""

    def __init__(self, fabric: Fabric, cells: Sequence[str]) -> None:
        """Counts the cables of each bundle and what they can carry; ``cells`` are the names of the groups."""
        self.fabric, self._names = fabric, cells
        size = fabric.plan["switches"]
        links, level = fabric.links, numpy.array(list(fabric.levels))
        begin, end = links["from_switch"].astype(numpy.int64), links["to_switch"].astype(numpy.int64)
        self._leaf = numpy.array(fabric.leaf_of, dtype=numpy.int64)
        self._cell_of = numpy.arange(fabric.switches) // size
        self.cells = fabric.switches // size
        between = (begin >= 0) & (end >= 0)
        first_down, first_global = fabric.switches, 2 * fabric.switches
        begin_at, end_at = numpy.where(between, begin, 0), numpy.where(between, end, 0)
        pair = first_global + self._cell_of[begin_at] * self.cells + self._cell_of[end_at]
        is_global = self._cell_of[begin_at] != self._cell_of[end_at]
        bundle = numpy.where(is_global, pair, numpy.where(level[begin_at] == 1, begin, first_down + end))[between]
        self.count = first_global + self.cells**2
        self.cables = numpy.bincount(bundle, minlength=self.count)
        self.capacity = numpy.bincount(bundle, links["bandwidth"][between].astype(float), self.count)
        self.rates = fabric.bandwidths_of_hosts()

    def name(self, bundle: int) -> str:
        """A bundle in words."""
        switches, names = self.fabric.switches, self.fabric.switch_names
        if bundle < switches:
            return f"leaf {names[bundle]} up"
        if bundle < 2 * switches:
            return f"leaf {names[bundle - switches]} down"
        begin, end = divmod(bundle - 2 * switches, self.cells)
        return f"cell {self._names[begin]} to {self._names[end]}"

    def kind(self, bundle: int) -> str:
        """``up``, ``down`` or ``global``."""
        return ("up", "down", "global")[min(bundle // self.fabric.switches, 2)]

    def traffic(self, hosts: Sequence[int], load: float) -> tuple[Floats, float]:
        """The bytes that a job sends over each bundle, in bits per second, and those that it sends in all."""
        place, found = numpy.array(hosts, dtype=numpy.int64), numpy.zeros(self.count)
        sent = load * self.rates[place]
        others = len(place) - 1
        if not others:
            return found, float(sent.sum())
        leaves, at = numpy.unique(self._leaf[place], return_inverse=True)
        nodes, rate = numpy.bincount(at).astype(float), numpy.bincount(at, sent)
        found[leaves] = rate * (len(place) - nodes) / others
        found[self.fabric.switches + leaves] = (sent.sum() - rate) * nodes / others
        cells, inside = numpy.unique(self._cell_of[leaves], return_inverse=True)
        flow = numpy.outer(numpy.bincount(inside, rate), numpy.bincount(inside, nodes)) / others
        numpy.fill_diagonal(flow, 0)
        pair = 2 * self.fabric.switches + cells[:, None] * self.cells + cells[None, :]
        found[pair.ravel()] = flow.ravel()
        return found, float(sent.sum())


@dataclass(frozen=True)
class Estimate:
    """Contention that a job suffers, or that one job adds to it."""

    slowdown: float
    """Communication time by that on free cables; of a pair, by that without the other job."""
    waiting: float
    """Mean number of packets that a packet waits for at cables between switches."""


@dataclass(frozen=True)
class Pair:
    """Two jobs with cables in common, and what the aggressor does to the victim."""

    victim: str
    aggressor: str
    cables: dict[str, int]
    """Number of shared cables by kind: ``up``, ``down``, ``global``."""
    busiest: str
    """The shared bundle with the highest utilisation."""
    utilisation: float
    """Its utilisation by all jobs."""
    by_aggressor: float
    """Its utilisation by the aggressor."""
    harm: Estimate


@dataclass(frozen=True)
class Move:
    """Contention of the victim of a pair with its aggressor elsewhere."""

    pair: Pair
    own_level: Estimate
    """On a service level of its own."""
    place: tuple[str, ...]
    """Free nodes where the victim suffers less; empty if there are none."""
    elsewhere: Estimate | None
    """There, from the same aggressor."""
    all_before: Estimate
    """Contention of the victim from all jobs."""
    all_after: Estimate | None
    """There."""


class Sharing:
    """The jobs of one moment on the cables of a fabric."""

    def __init__(self, bundles: Bundles, jobs: Mapping[str, Sequence[int]], load: float) -> None:
        """``jobs`` are the hosts of each; ``load`` is the share of its bandwidth that a node sends."""
        self.bundles, self.jobs, self.load = bundles, dict(jobs), load
        self.names = list(self.jobs)
        capacity = numpy.maximum(self.bundles.capacity, 1.0)
        found = [self.bundles.traffic(hosts, load) for hosts in self.jobs.values()]
        self._capacity = capacity
        self.used = numpy.array([traffic / capacity for traffic, _ in found]).reshape(len(found), self.bundles.count)
        """Utilisation of each bundle by each job."""
        self.total = self.used.sum(axis=0)

    def _share(self, used: Floats, hosts: Sequence[int]) -> Floats:
        """Return the messages of a job on each bundle, on average per message."""
        sent = self.load * self.bundles.rates[list(hosts)].sum()
        shares: Floats = used * self._capacity / sent
        return shares

    def estimate(self, used: Floats, hosts: Sequence[int], total: Floats) -> Estimate:
        """Estimate the contention of a job with this utilisation where all jobs together have ``total``."""
        at = used > 0
        return Estimate(_slowdown(total[at]), float(self._share(used, hosts)[at] @ _queue(total[at])))

    @cached_property
    def pairs(self) -> list[Pair]:
        """All pairs of jobs with cables in common, those with the greatest harm first."""
        found = [pair for number in range(len(self.names)) for pair in self._pairs_of(number)]
        return sorted(found, key=lambda pair: (-pair.harm.slowdown, -pair.harm.waiting, pair.victim, pair.aggressor))

    def _pairs_of(self, victim: int) -> Iterator[Pair]:
        at = numpy.flatnonzero(self.used[victim])
        hosts = self.jobs[self.names[victim]]
        shares, total = self._share(self.used[victim], hosts)[at], self.total[at]
        slowdown, waiting = _slowdown(total), _queue(total)
        for other in numpy.flatnonzero((self.used[:, at] > 0).any(axis=1)).tolist():
            if other == victim:
                continue
            by_other = self.used[other, at]
            shared = at[by_other > 0]
            kinds: dict[str, int] = {}
            for bundle in shared.tolist():
                kind = self.bundles.kind(bundle)
                kinds[kind] = kinds.get(kind, 0) + int(self.bundles.cables[bundle])
            busiest = int(shared[self.total[shared].argmax()])
            less = total - by_other
            harm = Estimate(slowdown / _slowdown(less), float(shares @ (waiting - _queue(less))))
            busy, part = float(self.total[busiest]), float(self.used[other, busiest])
            name = self.bundles.name(busiest)
            yield Pair(self.names[victim], self.names[other], kinds, name, busy, part, harm)

    def move(self, pair: Pair) -> Move:
        """Return the effect on the victim of a service level of its own, or of the best place among free nodes."""
        victim, other = self.names.index(pair.victim), self.names.index(pair.aggressor)
        hosts, used = self.jobs[pair.victim], self.used[victim]
        now = self.estimate(used, hosts, self.total)
        others = self.total - used
        found = [(self._used(place), place) for place in self._places(hosts)]
        estimates = [self.estimate(there, place, others + there) for there, place in found]
        order = sorted(range(len(found)), key=lambda at: (estimates[at].slowdown, estimates[at].waiting))
        level = self._own_level(victim, other)
        after = estimates[order[0]] if order else now
        if (after.slowdown, after.waiting) >= (now.slowdown, now.waiting):
            return Move(pair, level, (), None, now, None)
        there, place = found[order[0]]
        alone = self.estimate(there, place, others + there - self.used[other])
        elsewhere = Estimate(after.slowdown / alone.slowdown, after.waiting - alone.waiting)
        names = self.bundles.fabric.host_names
        return Move(pair, level, tuple(names[host] for host in place), elsewhere, now, after)

    def _used(self, hosts: Sequence[int]) -> Floats:
        utilisation: Floats = self.bundles.traffic(hosts, self.load)[0] / self._capacity
        return utilisation

    def _own_level(self, victim: int, other: int) -> Estimate:
        """The harm of a pair if the victim has a service level of its own, with half of each cable guaranteed."""
        at = self.used[victim] > 0
        own, by_other = self.used[victim, at], self.used[other, at]
        rest = self.total[at] - own

        def slowdown(rest: Floats) -> float:
            return max(1.0, float((own / numpy.maximum(_OWN_LEVEL, 1 - rest)).max(initial=0)))

        shares = self._share(self.used[victim], self.jobs[self.names[victim]])[at]
        waiting = shares @ (numpy.minimum(by_other, 1) / 2 / (1 - numpy.minimum(own, _BOUND)))
        return Estimate(slowdown(rest) / slowdown(rest - by_other), float(waiting))

    def _places(self, hosts: Sequence[int]) -> Iterator[list[int]]:
        """Free nodes of the same bandwidth for a job: in one leaf, in one cell, or in the cells with most of them."""
        rates, leaf = self.bundles.rates, self.bundles.fabric.leaf_of
        taken = {host for job in self.jobs.values() for host in job}
        kinds = {float(rates[host]) for host in hosts}
        by_cell: dict[int, dict[int, list[int]]] = {}
        size = self.bundles.fabric.plan["switches"]
        for host in range(self.bundles.fabric.hosts):
            if host not in taken and float(rates[host]) in kinds:
                by_cell.setdefault(leaf[host] // size, {}).setdefault(leaf[host], []).append(host)
        count = len(hosts)
        fullest = []
        for leaves in by_cell.values():
            free = [host for nodes in sorted(leaves.values(), key=len, reverse=True) for host in nodes]
            fullest.append(free)
            yield from (nodes[:count] for nodes in leaves.values() if len(nodes) >= count)
            if len(free) >= count:
                yield free[:count]
        every = [host for free in sorted(fullest, key=len, reverse=True) for host in free]
        if len(every) >= count:
            yield every[:count]


def _slowdown(total: Floats) -> float:
    return max(1.0, float(total.max(initial=0)))


def _queue(total: Floats) -> Floats:
    bounded = numpy.minimum(total, _BOUND)
    waiting: Floats = bounded / (2 * (1 - bounded))
    return waiting


LOAD = 0.5
"""Default share of its bandwidth that a node sends."""
MOVES = 10
"""Pairs with the greatest harm whose victims are moved."""


@dataclass(frozen=True)
class Cables:
    """A bundle of parallel cables and the jobs that use it."""

    name: str
    kind: str
    cables: int
    utilisation: float
    """By all jobs together; above 1 they ask for more than it can carry."""
    jobs: dict[str, float]
    """The part of each job."""


@dataclass(frozen=True)
class Neighbours:
    """The jobs of one moment on the cables that they share."""

    moment: int
    nodes: int
    """Nodes of the map."""
    jobs: dict[str, int]
    """Nodes of each job of the moment."""
    left_out: int
    """Jobs of the file that are not of this moment."""
    outside: dict[str, tuple[str, ...]]
    """Jobs of the file without any node of the map, with their nodes."""
    load: float
    sharing: Sharing
    moves: tuple[Move, ...]

    @property
    def pairs(self) -> list[Pair]:
        """Pairs of a victim and an aggressor with cables in common, those with the greatest harm first."""
        return self.sharing.pairs

    def cables(self) -> Iterator[Cables]:
        """Bundles that several jobs share, those with the highest utilisation first."""
        sharing = self.sharing
        users = (sharing.used > 0).sum(axis=0)
        order = sorted((-float(sharing.total[at]), int(at)) for at in (users > 1).nonzero()[0])
        for utilisation, at in order:
            jobs = {
                name: float(part) for name, part in zip(sharing.names, sharing.used[:, at], strict=True) if part > 0
            }
            bundles = sharing.bundles
            yield Cables(bundles.name(at), bundles.kind(at), int(bundles.cables[at]), -utilisation, jobs)

    def data(self) -> dict[str, Any]:
        """Everything, for JSON."""
        assumed = {"load": self.load, "traffic": "uniform all-to-all", "paths": "minimal, evenly spread"}
        counts = {"moment": self.moment, "nodes": self.nodes, "jobs": self.jobs}
        counts |= {"left_out": self.left_out, "outside": self.outside}
        found = {"cables": [asdict(one) for one in self.cables()], "pairs": [asdict(pair) for pair in self.pairs]}
        return {**counts, "assumed": assumed, **found, "moves": [asdict(move) for move in self.moves]}


def neighbours(
    allocations: str | Path,
    nodes: str | Path,
    *,
    number: int = 1,
    load: float = LOAD,
    assignments: Sequence[str] = (),
    moves: int = MOVES,
) -> Neighbours:
    """Reads jobs and the map of a cluster, and estimates what the jobs of a moment do to each other.

    ``number`` is that of the moment; ``load`` the share of its bandwidth that a node sends; ``assignments``
    (``KEY=VALUE``) set parameters of the fabric; ``moves`` is the number of victims that are moved. Raises
    ``ScenarioError`` naming file and line for what is wrong in the files.
    """
    cluster = NodeMap.read(Path(nodes))
    every, outside = read_allocations(Path(allocations), cluster)
    chosen = moment(every, number)
    fabric = cluster.fabric(assignments)
    jobs = {one.job: [cluster.hosts[node] for node in one.nodes] for one in chosen}
    sharing = Sharing(Bundles(fabric, list(cluster.cells)), jobs, load)
    worst: dict[str, Pair] = {}
    for pair in sharing.pairs:
        worst.setdefault(pair.victim, pair)
    moved = tuple(sharing.move(pair) for pair in list(worst.values())[:moves])
    counts = {name: len(hosts) for name, hosts in jobs.items()}
    left_out, beyond = len(every) - len(chosen), {job.job: job.nodes for job in outside}
    return Neighbours(number, len(cluster.hosts), counts, left_out, beyond, load, sharing, moved)
