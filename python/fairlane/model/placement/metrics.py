"""Metrics of an allocation: how far apart its hosts are, in how many pieces, and who else uses its links.

Distances are links between the hosts' switches, so two hosts of one switch are at distance 0. Where hosts have several
adapters, distances and links are those of the adapters that the job's messages use.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy

if TYPE_CHECKING:
    from fairlane.model.fabric.graph import Rails
    from fairlane.model.fabric.view import Fabric


@dataclass(frozen=True)
class AllocationMetrics:
    """Metrics of one job's hosts."""

    hosts: int
    """Number of hosts."""
    switches: int
    """Number of switches that its messages leave or enter hosts by."""
    average_distance: float
    """Mean distance between two different hosts; 0 for one host."""
    diameter: int
    """Maximum distance between two hosts; of a mean over adapters rounded up."""
    pieces: int
    """Number of connected parts, see ``pieces``."""
    contiguity: float
    """Share of the hosts that are in the largest part."""
    links: int
    """Links between switches on the routes between any two of its hosts."""
    shared: float
    """Share of these links that are on routes of other jobs, too; 0 without links."""


def measure(
    fabric: "Fabric", jobs: Mapping[str, Sequence[int]], rails: Mapping[str, "Rails"] | None = None
) -> dict[str, AllocationMetrics]:
    """The metrics of each job's hosts; ranks on one host count once. ``rails`` are the jobs' rail policies."""
    policy = {name: (rails or {}).get(name) for name in jobs}
    used = {name: fabric.job_links(hosts, policy[name]) for name, hosts in jobs.items()}
    between = (fabric.links["from_switch"] >= 0) & (fabric.links["to_switch"] >= 0)
    users = numpy.sum(list(used.values()), axis=0)
    by_name = {}
    for name, every in jobs.items():
        hosts, ranks = list(dict.fromkeys(every)), fabric.ranks_by_route(every, policy[name])
        apart = fabric.distances(ranks, policy[name])
        pairs = len(ranks) ** 2 - sum(count**2 for count in Counter(ranks).values())
        parts = pieces(fabric, hosts, used[name])
        used_by_job = used[name] & between
        by_name[name] = AllocationMetrics(
            hosts=len(hosts),
            switches=len({at for some in switches_at(fabric, hosts, used[name]) for at in some}),
            average_distance=float(apart.sum() / pairs) if pairs else 0.0,
            diameter=ceil(apart.max()),
            pieces=len(parts),
            contiguity=max(parts) / len(hosts),
            links=int(used_by_job.sum()),
            shared=float((users[used_by_job] > 1).mean()) if used_by_job.any() else 0.0,
        )
    return by_name


def switches_at(
    fabric: "Fabric", hosts: Sequence[int], used: "numpy.typing.NDArray[numpy.bool_] | None" = None
) -> list[list[int]]:
    """The switches of each host, at the adapters that are on ``used`` links, or at its first adapter if none is."""
    switches = []
    for host in hosts:
        at, links = fabric.adapter_switches(host), fabric.adapter_links(host)
        chosen = at[used[links]] if used is not None and used[links].any() else at[:1]
        switches.append(list(dict.fromkeys(chosen.tolist())))
    return switches


def pieces(
    fabric: "Fabric", hosts: Sequence[int], used: "numpy.typing.NDArray[numpy.bool_] | None" = None
) -> list[int]:
    """How many hosts each connected part has.

    Hosts of one switch belong together, and so do those of two switches that a cable joins or, in a tree, a switch
    directly above both. ``used`` are the links of the job, by which adapters count.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    levels = numpy.asarray(list(fabric.levels))
    at = switches_at(fabric, hosts, used)
    leaves = numpy.array([switch for switches in at for switch in switches])
    if (leaves < 0).any():  # cabled to each other, without a switch
        return [len(hosts)]
    inside = levels == 2
    inside[leaves] = True
    a, b = fabric.links["from_switch"], fabric.links["to_switch"]
    keep = (a >= 0) & (b >= 0)
    a, b = a[keep], b[keep]
    keep = inside[a] & inside[b]
    # A host joins the switches of its adapters.
    members = numpy.repeat(numpy.arange(len(hosts)), list(map(len, at))) + len(levels)
    ends = numpy.concatenate([a[keep], leaves]), numpy.concatenate([b[keep], members])
    size = len(levels) + len(hosts)
    graph = coo_array((numpy.ones(len(ends[0])), ends), shape=(size, size))
    parts = connected_components(graph.tocsr(), directed=False)[1][len(levels) :]
    counts: list[int] = numpy.unique(parts, return_counts=True)[1].tolist()
    return counts
