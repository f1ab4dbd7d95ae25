"""Describe a fabric and its routing: counts, diameter, bisection, links without a route."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from fairlane.core import bridge
from fairlane.core.units import BANDWIDTH, DURATION
from fairlane.core.wording import html_table
from fairlane.inputs.hosts import shortened
from fairlane.model.fabric.graph import Graph
from fairlane.model.fabric.levels import exceptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BUDGET = 50_000_000  # hops that are followed, and links that are walked, before destinations and sources are sampled
_LOW = 0.75  # a smaller share of minimal routes, or of minimal paths, gets a warning
_NAMED = 3  # links of a class that are named


@dataclass(frozen=True)
class IdleLinks:
    """Links of one class that no route takes."""

    name: str
    """Of the class."""
    role: str
    links: int
    """Number that no route takes."""
    total: int
    """Number of the class."""
    first: tuple[str, ...]
    """Some of them, by name."""


@dataclass(frozen=True)
class Coverage:
    """Use of a fabric by the routes between all pairs of endpoints (adapters), whatever the loads."""

    idle: tuple[IdleLinks, ...]
    """Links that no route takes, by class."""
    idle_is_exact: bool
    """Whether every route was followed; else there may be fewer idle links."""
    minimal_paths: float
    """Of the minimal paths between two switches with hosts, the share all of whose links are on routes: the mean over
    all pairs of endpoints at different switches."""
    minimal_routes: float | None
    """Of the pairs of endpoints at different switches, the share whose route is a minimal path; None for a routing
    that goes by loads."""
    sources: tuple[int, int]
    """Switches from which the two shares were measured, and those that have hosts."""
    warnings: tuple[str, ...]
    """Idle links between switches, and shares that are low, as sentences."""


def measure(
    core: bridge.Fabric, links: Mapping[str, NDArray[Any]], name_of: Callable[[int], str]
) -> tuple[Coverage, NDArray[numpy.bool_]]:
    """Follows the routes of a fabric; also returns by link whether a route takes it. ``name_of`` names a link."""
    used, _, is_exact, paths, routes, sources = core.coverage(_BUDGET)
    flags = numpy.frombuffer(used, dtype=numpy.uint8).astype(bool)
    links_by_role: dict[tuple[int, str], list[int]] = defaultdict(list)
    totals: dict[tuple[int, str], int] = defaultdict(int)
    kinds = zip(links["class"].tolist(), links["role"].tolist(), flags.tolist(), strict=True)
    for link, (number, role, is_used) in enumerate(kinds):
        totals[number, role] += 1
        if not is_used:
            links_by_role[number, role].append(link)
    names = core.classes()
    idle = tuple(
        IdleLinks(names[number], role, len(some), totals[number, role], tuple(map(name_of, some[:_NAMED])))
        for (number, role), some in sorted(links_by_role.items())
    )
    warnings = tuple(_warnings(idle, is_exact, paths, routes))
    return Coverage(idle, is_exact, paths, routes, sources, warnings), flags


def _warnings(idle: Sequence[IdleLinks], is_exact: bool, paths: float, routes: float | None) -> Iterator[str]:
    bound = "" if is_exact else "up to "
    for some in idle:
        if some.role != "host":
            yield f"{bound}{some.links} of {some.total} {some.name} links are used by no route"
    if paths < _LOW:
        yield f"of only {share_text(paths)} of the minimal paths every link is used by some route"
    if routes is not None and routes < _LOW:
        yield f"only {share_text(routes)} of host pairs have a minimal route"


def share_text(share: float) -> str:
    """A share in percent, which is 100% only if it is exactly that."""
    if share == 1:
        return "100%"
    if share > 0.99:
        return "over 99%"
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{100 * share:.2g}%"


_MOST_STEPS = 200_000_000  # links that are walked to measure the diameter
_MOST_ALIKE = 2000  # kinds of hosts with several adapters between which distances are measured
_MOST_DISTANCES = 2**24  # distances that are held at a time
_VIRTUAL_LANES = 16  # virtual lanes whose channels a description counts: one for each service level there can be


@dataclass(frozen=True)
class LinkClass:
    """Links of one class that have the same bandwidth and latency."""

    name: str
    role: str
    """Their role: host, up, down, local, global, or a dimension of a grid."""
    links: int
    bandwidth: int
    """Bits per second."""
    latency: int
    """Picoseconds."""


@dataclass(frozen=True)
class FabricDescription:
    """Summary of a fabric."""

    hosts: int
    host_list: str
    """The names of the hosts as a list of Slurm's, cut off where it is long."""
    switch_list: str
    """The names of the switches, in the same way."""
    rails: int
    """Maximum number of adapters of a host."""
    adapters: dict[int, int]
    """Number of hosts by number of adapters, in descending order."""
    switches: dict[int, int]
    """How many switches there are at each level: level 1 are the leaves of a tree. Where a fabric has no levels, level
    n is n links from the nearest host."""
    plan: Mapping[str, Any]
    """Layout of the switches: ``kind`` is "free" (by levels only), "groups" or "grid", with its sizes."""
    links: tuple[LinkClass, ...]
    diameter: int
    """Maximum number of links between two hosts."""
    diameter_is_exact: bool
    """Whether all pairs of hosts were measured; otherwise it is from a sample, and the diameter may be larger."""
    bisection: int
    """Greatest flow from one half of the hosts to the other, bits per second: the least of the halves tried, which are
    the first hosts and the last ones, and on a grid those by each coordinate."""
    bisection_is_exact: bool
    """Whether the value is proven minimal; otherwise the bisection may be lower."""
    usable_bisection: int
    """The bisection over links that are on a route."""
    full_bisection: int
    """Bandwidth of the hosts' own links, bits per second."""
    virtual_channels: tuple[int, ...]
    """Virtual channels that packets of virtual lanes 0, 1, ... need; lanes beyond the last need as many as that one."""
    coverage: Coverage
    """Coverage of the fabric by the routing."""
    exceptions: tuple[str, ...]
    """Hosts, cables and links that do not fit the levels of a tree."""


def describe(fabric: "Fabric") -> FabricDescription:
    """Counts, diameter and bisection."""
    halves = list(_halves(fabric))
    diameter, diameter_is_exact = _diameter(fabric)
    first, second = halves[0]
    bisection, used = min(_flow(fabric, *half) for half in halves), fabric.used_links
    usable = bisection if used.all() else min(_flow(fabric, *half, used) for half in halves)
    return FabricDescription(
        hosts=fabric.hosts,
        host_list=shortened(fabric.host_names, 60),
        switch_list=shortened(fabric.switch_names, 100),
        rails=fabric.rails,
        adapters=dict(sorted(Counter(fabric.adapters_of_hosts.tolist()).items(), reverse=True)),
        switches=dict(sorted(Counter(_switch_levels(fabric)).items())),
        links=link_classes(fabric),
        diameter=diameter,
        diameter_is_exact=diameter_is_exact,
        bisection=bisection,
        bisection_is_exact=_is_even_grid(fabric),
        full_bisection=min(_injection(fabric, first), _injection(fabric, second)),
        plan=fabric.plan,
        virtual_channels=_channels(fabric),
        usable_bisection=usable,
        coverage=fabric.coverage,
        exceptions=fabric.exceptions,
    )


def _channels(fabric: "Fabric") -> tuple[int, ...]:
    """The virtual channels of virtual lanes, without those at the end that need as many as the one before."""
    counts = Counter(lane for lane, _ in fabric.required_virtual_lanes(_VIRTUAL_LANES))
    lanes = [counts[lane] for lane in range(_VIRTUAL_LANES)]
    while len(lanes) > 1 and lanes[-1] == lanes[-2]:
        lanes.pop()
    return tuple(lanes)


def _halves(fabric: "Fabric") -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """The halves of the hosts that are tried for the bisection."""
    hosts = numpy.arange(fabric.hosts)
    yield hosts[: fabric.hosts // 2], hosts[fabric.hosts // 2 :]
    if fabric.plan["kind"] == "grid":
        place = numpy.array(fabric.leaf_of)
        for side in fabric.plan["sides"]:
            coordinate, place = place % side, place // side
            if side % 2 == 0:
                yield hosts[coordinate < side // 2], hosts[coordinate >= side // 2]


def _is_even_grid(fabric: "Fabric") -> bool:
    """A grid whose longest side is even and whose links are alike is halved best across that side."""
    plan, between = fabric.plan, fabric.links["from_host"] + fabric.links["to_host"] == -2
    rates = numpy.unique(fabric.links["bandwidth"][between])
    alike = len(rates) == 1 and len(set(Counter(zip(*fabric.ends, strict=True)).values())) == 1
    return plan["kind"] == "grid" and plan["line"] != "full" and max(plan["sides"]) % 2 == 0 and alike


def link_classes(fabric: "Fabric") -> tuple[LinkClass, ...]:
    """The links by class, role, bandwidth and latency."""
    names = fabric.classes
    kinds = zip(*(fabric.links[key].tolist() for key in ("class", "role", "bandwidth", "latency")), strict=True)
    counts = sorted(Counter(kinds).items())
    return tuple(LinkClass(names[kind], role, count, rate, delay) for (kind, role, rate, delay), count in counts)


def _switch_levels(fabric: "Fabric") -> list[int]:
    """The level of each switch; without levels, one more than the links to the nearest switch that has hosts."""
    if min(fabric.levels, default=0) > 0:
        return fabric.levels
    from scipy.sparse.csgraph import dijkstra

    graph = fabric.graph(whole=True)
    nearest = dijkstra(graph, unweighted=True, indices=range(fabric.hosts), min_only=True)
    return [int(distance) for distance in nearest[fabric.hosts :]]


def _diameter(fabric: "Fabric") -> tuple[int, bool]:
    """Links between the hosts furthest apart, and whether every pair was looked at: in large fabrics some are."""
    if fabric.hosts == 1:
        return 0, True
    if not fabric.is_switched:
        return _longest(fabric.distances_from(list(range(fabric.hosts)), whole=True)[:, : fabric.hosts]), True
    if fabric.rails > 1:
        # Hosts with their adapters at the same switches are alike.
        alike = {tuple(fabric.adapter_switches(host).tolist()): host for host in range(fabric.hosts)}
        some = list(alike.values())[:: -(-len(alike) // _MOST_ALIKE)]
        longest = max(_longest(lengths) for _, lengths in fabric.rail_lengths(some, None))
        return 2 + longest, len(some) == len(alike)
    leaves = sorted(set(fabric.leaf_of))
    most = max(1, _MOST_STEPS // len(fabric.ends[0]))
    sources = leaves[:: -(-len(leaves) // most)]
    chunk = max(1, _MOST_DISTANCES // fabric.switches)
    parts = (fabric.distances_from(sources[at : at + chunk]) for at in range(0, len(sources), chunk))
    return 2 + max(_longest(part[:, leaves]) for part in parts), len(sources) == len(leaves)


def _injection(fabric: "Fabric", hosts: NDArray[Any]) -> int:
    return int(fabric.links["bandwidth"][numpy.isin(fabric.links["from_host"], hosts)].sum())


def _flow(fabric: "Fabric", first: NDArray[Any], second: NDArray[Any], used: NDArray[numpy.bool_] | None = None) -> int:
    """The greatest flow between two sets of hosts, over the links in ``used`` if it is given.

    Capacities are counted in their greatest common divisor.
    """
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import maximum_flow

    if not len(first):
        return 0
    unit = gcd(*fabric.links["bandwidth"].tolist())
    capacity = fabric.links["bandwidth"] // unit
    if used is not None:
        capacity = numpy.where(used, capacity, 0)
    source = fabric.hosts + fabric.switches
    bound = int(capacity.sum())
    # The solver counts in 32 bits. Without a large common divisor the flow is rounded down a little.
    scale = max(1, -(-bound // (2**31 - 1)))
    rows = numpy.concatenate([fabric.ends[0], numpy.full(len(first), source), second])
    cols = numpy.concatenate([fabric.ends[1], first, numpy.full(len(second), source + 1)])
    both = numpy.full(len(first) + len(second), bound // scale)
    data = numpy.concatenate([capacity // scale, both]).astype(numpy.int32)
    graph = csr_array(coo_array((data, (rows, cols)), shape=(source + 2, source + 2)))
    return int(maximum_flow(graph, source, source + 1).flow_value) * unit * scale


def _longest(distances: NDArray[numpy.float64]) -> int:
    """The greatest of the distances that are finite: switches of different planes or subnets are not joined."""
    return int(distances[numpy.isfinite(distances)].max(initial=0.0))


class Fabric(Graph):
    """A read-only view of a fabric's graph."""

    @cached_property
    def _coverage(self) -> tuple[Coverage, NDArray[numpy.bool_]]:
        return measure(self._core, self.links, self.link_name)

    @property
    def coverage(self) -> Coverage:
        """Coverage of the fabric by the routing."""
        return self._coverage[0]

    @property
    def used_links(self) -> NDArray[numpy.bool_]:
        """By link: whether it is on a route between two hosts."""
        return self._coverage[1]

    @property
    def exceptions(self) -> tuple[str, ...]:
        """Hosts above level 1 and cables that do not join adjacent levels, if the fabric is a tree."""
        return tuple(exceptions(self)) if self.is_tree else ()

    def plot(self, ax: "Axes | Sequence[Axes] | None" = None) -> Any:
        """Draws the fabric and returns the axes: one, or a list of two for a fabric of many groups.

        ``ax`` are axes to draw on, as many; without them there is a new figure, which notebooks show.
        """
        return resolve_name("fairlane.views.methods:plot_fabric")(self, ax)

    def __repr__(self) -> str:
        return f"<Fabric of {self._headline()}>"

    def _repr_html_(self) -> str:
        rows = [
            (
                link_class.name,
                link_class.role,
                link_class.links,
                BANDWIDTH.format(link_class.bandwidth),
                DURATION.format(link_class.latency),
            )
            for link_class in link_classes(self)
        ]
        headings = ("links", "role", "number", "bandwidth", "latency")
        return html_table(f"Fabric of {self._headline()}", headings, rows)

    def describe(self) -> FabricDescription:
        """Counts, diameter and bisection."""
        return describe(self)
