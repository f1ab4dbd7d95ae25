"""Communities of ranks that exchange most bytes among themselves, by networkx's Louvain method."""

from dataclasses import dataclass

import numpy

from fairlane.inputs.extras import require
from fairlane.pattern.traffic import Traffic

__all__ = ["Communities", "communities"]


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
    found = sorted(tuple(sorted(ranks)) for ranks in louvain_communities(graph, weight="weight", seed=1))
    of = numpy.empty(traffic.ranks, int)
    for number, ranks in enumerate(found):
        of[list(ranks)] = number
    inside = float(both[of[:, None] == of[None, :]].sum() / both.sum())
    return Communities(tuple(found), inside, float(modularity(graph, [set(ranks) for ranks in found], weight="weight")))
