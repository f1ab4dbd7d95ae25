"""Communication patterns: a job's communication matrix, its communities of ranks, and what kind of pattern it is.

``analyse`` does it all for a trace's or a workload's program.

Classify the pattern of a job's traffic, with the evidence, and communities of its ranks.

The kinds are those of Yang et al. 2016: *nearest neighbour*, *many-to-many*, and *hybrid*, which is intense within
units of consecutive ranks and goes far beyond them too. The rules, in this order; bytes are those of all kinds of
traffic, and what "by chance" would be is the share of all pairs of ranks:

1. Without any bytes, or with fewer than ``FEWEST_RANKS`` ranks, it is *unclear*.
2. *Nearest neighbour*: in some Cartesian grid of the ranks, ``GRID_SHARE`` of the bytes go to neighbours, and by chance
   it would be at most half of that. Neighbours are those along an axis, around the ends or not; or those across edges
   and corners too, with open or with periodic ends.
3. *Many-to-many*: half of the ranks or more need ``MANY_PARTNERS`` of all others to account for ``BULK`` of their
   bytes.
4. *Hybrid*: units of consecutive ranks of some size hold ``LOCAL_GAIN`` more of the bytes than by chance.
5. *Nearest neighbour* without a grid: half of the ranks or more have ``BULK`` of their bytes with at most
   ``FEW_PARTNERS`` others.
6. Else *many-to-many*.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Literal

import numpy
from numpy.typing import NDArray

from fairlane.core import bridge
from fairlane.core.errors import require
from fairlane.core.wording import significant
from fairlane.model.pattern.traffic import KINDS, MOST_RANKS, Traffic, observe, program_of

__all__ = [
    "BULK",
    "KINDS",
    "MOST_RANKS",
    "Communities",
    "Evidence",
    "Kind",
    "Pattern",
    "Traffic",
    "Verdict",
    "analyse",
    "communities",
    "evidence",
    "grids",
    "judge",
    "observe",
    "program_of",
]


Kind = Literal["nearest neighbour", "many-to-many", "hybrid", "unclear"]

FEWEST_RANKS = 8
"""Minimum number of ranks for a classification."""
GRID_SHARE = 0.75
"""Share of the bytes between neighbours of a grid from which the grid is the pattern."""
MANY_PARTNERS = 1 / 3
"""Share of the other ranks from which it is many."""
BULK = 0.9
"""Share of a rank's bytes that its partners must account for."""
LOCAL_GAIN = 0.25
"""Share of the bytes, beyond chance, that units of consecutive ranks must hold to be local units."""
FEW_PARTNERS = 8
"""Partners up to which it is few: the neighbours in four dimensions."""
MOST_DIMENSIONS = 4
"""Dimensions of the grids that are tried."""

Ints = NDArray[numpy.int64]


@dataclass(frozen=True)
class Evidence:
    """The evidence for a class."""

    partners: float
    """Ranks with which the median rank exchanges bytes."""
    bulk_partners: float
    """Minimum number of ranks that account for ``BULK`` of the bytes of the median rank."""
    grid: tuple[int, ...]
    """The Cartesian grid (last dimension fastest) whose neighbours exchange most, compared with chance."""
    grid_neighbours: str
    """Neighbours that are meant: along an axis, across edges and corners too, or all around."""
    grid_share: float
    """Share of the bytes between these neighbours."""
    grid_chance: float
    """Share of all pairs of ranks that are such neighbours."""
    unit: int
    """The size, up to a quarter of the ranks, of units of consecutive ranks that hold most, compared with chance."""
    unit_share: float
    """Share of the bytes within these units."""
    unit_chance: float
    """Share of all pairs of ranks that are within these units."""


@dataclass(frozen=True)
class Verdict:
    """The class of a job's pattern, and the reason in words."""

    kind: Kind
    unit: int | None
    """Size of the local unit in adjacent hosts. For *nearest neighbour* a rank and the ranks with ``BULK`` of its
    bytes; for *hybrid* the unit of the evidence; None for the others."""
    reason: str


def evidence(traffic: Traffic) -> Evidence:
    """Measure the pattern; needs two ranks and some bytes."""
    both = (traffic.total + traffic.total.T).astype(float)
    grid, neighbours, grid_share, grid_chance = max(_grid_rows(both), key=lambda row: round(row[2] - row[3], 9))
    unit, unit_share, unit_chance = max(unit_rows(both), key=lambda row: row[1] - row[2])
    return Evidence(
        partners=float(numpy.median((both > 0).sum(axis=1))),
        bulk_partners=float(numpy.median(_bulk_partners(both))),
        grid=grid,
        grid_neighbours=neighbours,
        grid_share=grid_share,
        grid_chance=grid_chance,
        unit=unit,
        unit_share=unit_share,
        unit_chance=unit_chance,
    )


def judge(traffic: Traffic) -> tuple[Verdict, Evidence | None]:
    """The verdict, and the evidence for it if there is any."""
    if traffic.ranks < 2 or not traffic.total.any():
        return Verdict("unclear", None, "no bytes are sent"), None
    seen = evidence(traffic)
    return _verdict(seen, traffic.ranks), seen


def _verdict(seen: Evidence, ranks: int) -> Verdict:
    ball = round(seen.bulk_partners) + 1
    if ranks < FEWEST_RANKS:
        return Verdict("unclear", None, f"too few ranks to tell (fewer than {FEWEST_RANKS})")
    if seen.grid_share >= GRID_SHARE and seen.grid_chance <= seen.grid_share / 2:
        sides = " x ".join(map(str, seen.grid))
        reason = (
            f"{seen.grid_share:.0%} of the bytes go to neighbours in a grid of {sides} ranks, {seen.grid_neighbours}"
        )
        return Verdict("nearest neighbour", ball, f"{reason} (by chance {seen.grid_chance:.0%})")
    many = (
        f"half of the ranks need {significant(seen.bulk_partners)} of {ranks - 1} others for {BULK:.0%} of their bytes"
    )
    if seen.bulk_partners >= MANY_PARTNERS * (ranks - 1):
        return Verdict("many-to-many", None, many)
    if seen.unit_share - seen.unit_chance >= LOCAL_GAIN:
        reason = f"units of {seen.unit} consecutive ranks hold {seen.unit_share:.0%} of the bytes"
        return Verdict(
            "hybrid",
            seen.unit,
            f"{reason} (by chance {seen.unit_chance:.0%}), and the rest goes beyond",
        )
    if seen.bulk_partners <= FEW_PARTNERS:
        reason = (
            f"half of the ranks have {BULK:.0%} of their bytes with {significant(seen.bulk_partners)} others or fewer"
        )
        return Verdict("nearest neighbour", ball, f"{reason}, in no grid")
    return Verdict("many-to-many", None, f"{many}, and no unit holds much of them")


def _bulk_partners(both: NDArray[numpy.float64]) -> Ints:
    """For each rank that exchanges anything, the fewest others that account for ``BULK`` of it."""
    active = both[both.any(axis=1)]
    share = numpy.sort(active, axis=1)[:, ::-1].cumsum(axis=1) / active.sum(axis=1, keepdims=True)
    partners: Ints = (share < BULK - 1e-9).sum(axis=1) + 1
    return partners


def grids(ranks: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    """All grids of exactly so many ranks with up to so many dimensions, all sides at least 2."""
    yield (ranks,)
    for side in range(2, ranks // 2 + 1):
        if dimensions > 1 and ranks % side == 0:
            yield from ((side, *rest) for rest in grids(ranks // side, dimensions - 1))


def _grid_rows(both: NDArray[numpy.float64]) -> Iterator[tuple[tuple[int, ...], str, float, float]]:
    """Sides of each grid, its neighbours, the share of the bytes between them, and what it would be by chance."""
    ranks = len(both)
    total, pairs = both.sum(), ranks * (ranks - 1)
    for sides in dict.fromkeys(grids(ranks, MOST_DIMENSIONS)):
        axis, corner, around = neighbour_bytes(both, sides)
        shares = (
            (axis, ranks * sum(min(2, side - 1) for side in sides), "along an axis"),
            (corner, prod(3 * side - 2 for side in sides) - ranks, "edges and corners too"),
            (around, prod(side * min(3, side) for side in sides) - ranks, "all around, periodic"),
        )
        for bytes_of_neighbours, by_chance, neighbours in shares:
            yield sides, neighbours, float(bytes_of_neighbours / total), by_chance / pairs


def neighbour_bytes(both: NDArray[numpy.float64], sides: tuple[int, ...]) -> tuple[float, float, float]:
    """Bytes with neighbours along an axis (periodic), with those across edges and corners too: open, and periodic."""
    everyone = numpy.arange(len(both))
    at = numpy.stack(numpy.unravel_index(everyone, sides))
    axis = corner = around = 0.0
    # Both directions along a side of two lead to the same rank.
    for steps in product(*((0, 1) if side == 2 else (0, 1, -1) for side in sides)):
        if not any(steps):
            continue
        there = (at + numpy.array(steps)[:, None]) % numpy.array(sides)[:, None]
        values = both[everyone, numpy.ravel_multi_index(tuple(there), sides)]
        exchanged = float(values.sum())
        around += exchanged
        axis += exchanged if sum(map(bool, steps)) == 1 else 0.0
        corner += float(values[numpy.abs(there - at).max(axis=0) == 1].sum())
    return axis, corner, around


def unit_rows(both: NDArray[numpy.float64]) -> Iterator[tuple[int, float, float]]:
    """For each size of units the share of the bytes within them, and what it would be by chance."""
    ranks = len(both)
    total, pairs = both.sum(), ranks * (ranks - 1)
    up_to = numpy.zeros((ranks + 1, ranks + 1))
    up_to[1:, 1:] = both.cumsum(axis=0).cumsum(axis=1)
    for size in range(2, max(2, ranks // 4) + 1):
        low = numpy.arange(0, ranks, size)
        high = numpy.minimum(low + size, ranks)
        within = (up_to[high, high] - up_to[low, high] - up_to[high, low] + up_to[low, low]).sum()
        whole, rest = divmod(ranks, size)
        chance = (whole * size * (size - 1) + rest * (rest - 1)) / pairs
        yield size, float(within / total), chance


@dataclass(frozen=True)
class Communities:
    """A division of the ranks into communities."""

    members: tuple[tuple[int, ...], ...]
    """The ranks of each community, the community of rank 0 first."""
    inside: float
    """Share of the bytes that stay in their community."""
    modularity: float
    """Modularity: the excess over random partners; near 0 there are no communities."""


def communities(traffic: Traffic) -> Communities:
    """Communities by bytes exchanged; the same traffic always gives the same ones."""
    require("schedule")
    from networkx import Graph
    from networkx.algorithms.community import louvain_communities, modularity

    both = numpy.triu(traffic.total + traffic.total.T)
    graph: Graph[int] = Graph()
    graph.add_nodes_from(range(traffic.ranks))
    graph.add_weighted_edges_from(
        (int(a), int(b), float(both[a, b])) for a, b in zip(*numpy.nonzero(both), strict=True)
    )
    if not both.any():
        return Communities(tuple((rank,) for rank in range(traffic.ranks)), 0.0, 0.0)
    members = sorted(tuple(sorted(ranks)) for ranks in louvain_communities(graph, weight="weight", seed=1))
    of = numpy.empty(traffic.ranks, int)
    for number, ranks in enumerate(members):
        of[list(ranks)] = number
    inside = float(both[of[:, None] == of[None, :]].sum() / both.sum())
    return Communities(
        tuple(members), inside, float(modularity(graph, [set(ranks) for ranks in members], weight="weight"))
    )


@dataclass(frozen=True)
class Pattern:
    """The communication pattern of a job: matrix, communities of ranks, and class."""

    traffic: Traffic
    communities: Communities
    verdict: Verdict
    evidence: Evidence | None
    """The evidence for the class; None if nothing is sent."""


def analyse(program: bridge.Program) -> Pattern:
    """The pattern of a program that ends."""
    traffic = observe(program)
    verdict, shown = judge(traffic)
    return Pattern(traffic, communities(traffic), verdict, shown)
