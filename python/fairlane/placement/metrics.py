"""Metrics of an allocation: how far apart its hosts are, in how many pieces, and who else uses its links.

Distances are links between the hosts' switches, so two hosts of one switch are at distance 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from fairlane.fabric.view import Fabric


@dataclass(frozen=True)
class AllocationMetrics:
    """Metrics of one job's hosts."""

    hosts: int
    """Number of hosts."""
    switches: int
    """Number of switches that they are attached to."""
    average_distance: float
    """Mean distance between two different hosts; 0 for one host."""
    diameter: int
    """Maximum distance between two hosts."""
    pieces: int
    """Number of connected parts, see ``pieces``."""
    contiguity: float
    """Share of the hosts that are in the largest part."""
    links: int
    """Links between switches on the routes between any two of its hosts."""
    shared: float
    """Share of these links that are on routes of other jobs, too; 0 without links."""


def measure(fabric: "Fabric", jobs: Mapping[str, Sequence[int]]) -> dict[str, AllocationMetrics]:
    """The metrics of each job's hosts; ranks on one host count once."""
    allocations = {name: list(dict.fromkeys(hosts)) for name, hosts in jobs.items()}
    used = {name: links_used(fabric, hosts) for name, hosts in allocations.items()}
    users = numpy.sum(list(used.values()), axis=0)
    found = {}
    for name, hosts in allocations.items():
        apart = fabric.distances(hosts)
        pairs = len(hosts) * (len(hosts) - 1)
        parts = pieces(fabric, hosts)
        own = used[name]
        found[name] = AllocationMetrics(
            hosts=len(hosts),
            switches=len({fabric.leaf_of[host] for host in hosts}),
            average_distance=float(apart.sum() / pairs) if pairs else 0.0,
            diameter=int(apart.max()),
            pieces=len(parts),
            contiguity=max(parts) / len(hosts),
            links=int(own.sum()),
            shared=float((users[own] > 1).mean()) if own.any() else 0.0,
        )
    return found


def links_used(fabric: "Fabric", hosts: Sequence[int]) -> "numpy.typing.NDArray[numpy.bool_]":
    """For each link whether it joins switches and lies on a route between two of ``hosts``."""
    used = fabric.loads(hosts, numpy.ones((len(hosts), len(hosts)))) > 0
    between = (fabric.links["from_switch"] >= 0) & (fabric.links["to_switch"] >= 0)
    return used & between


def pieces(fabric: "Fabric", hosts: Sequence[int]) -> list[int]:
    """How many hosts each connected part has.

    Hosts of one switch belong together, and so do those of two switches that a cable joins or, in a tree, a switch
    directly above both.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    levels = numpy.asarray(list(fabric.levels))
    leaves = numpy.asarray([fabric.leaf_of[host] for host in hosts])
    if (leaves < 0).any():  # cabled to each other, without a switch
        return [len(hosts)]
    inside = levels == 2
    inside[leaves] = True
    a, b = fabric.links["from_switch"], fabric.links["to_switch"]
    keep = (a >= 0) & (b >= 0)
    a, b = a[keep], b[keep]
    keep = inside[a] & inside[b]
    graph = coo_array((numpy.ones(keep.sum()), (a[keep], b[keep])), shape=(len(levels), len(levels)))
    parts = connected_components(graph.tocsr(), directed=False)[1][leaves]
    counts: list[int] = numpy.unique(parts, return_counts=True)[1].tolist()
    return counts
