"""The fabric as a graph to look at: hosts, switches, links, their levels and classes, diameter and bisection."""

import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import TYPE_CHECKING, Any, Self

import numpy
from numpy.typing import NDArray

from fairlane import _core
from fairlane.fabric.coverage import Coverage, measure
from fairlane.fabric.exceptions import exceptions
from fairlane.units import BANDWIDTH, DURATION
from fairlane.wording import html_table, plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fairlane.inputs.hosts import Host

_MOST_STEPS = 200_000_000  # links that are walked to measure the diameter
_MOST_DISTANCES = 2**24  # distances that are held at a time
_VIRTUAL_LANES = 16  # virtual lanes whose channels a description counts: one for each service level there can be


def columns(table: Mapping[str, tuple[str, bytes]]) -> dict[str, NDArray[Any]]:
    """The simulator's columns, a type and raw bytes each, as arrays; text comes as JSON."""
    return {
        name: numpy.array(json.loads(data)) if dtype == "json" else numpy.frombuffer(data, dtype=dtype)
        for name, (dtype, data) in table.items()
    }


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
    """How the switches are laid out: ``kind`` is "free" (by levels only), "groups" or "grid", with its sizes."""
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


class Fabric:
    """A read-only view of a fabric's graph."""

    def __init__(self, core: _core.Fabric) -> None:
        self._core = core

    @classmethod
    def build(cls, spec: Mapping[str, Any]) -> Self:
        """Builds a fabric from its resolved specification; raises ``BuildError`` if that is not possible."""
        return cls(_core.Fabric(json.dumps(spec)))

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self._core.hosts

    @property
    def switches(self) -> int:
        """Number of switches."""
        return self._core.switches

    @cached_property
    def links(self) -> dict[str, NDArray[Any]]:
        """The links' columns; ``from_host`` and ``to_host`` are -1 where a link ends at a switch, and the reverse."""
        return columns(self._core.links())

    @property
    def classes(self) -> list[str]:
        """The names of the links' classes, by the numbers in ``links``."""
        return self._core.classes()

    @cached_property
    def plan(self) -> dict[str, Any]:
        """How the switches are laid out: ``kind`` is "free" (by levels only), "groups" or "grid", with its sizes."""
        found: dict[str, Any] = json.loads(self._core.plan())
        return found

    @cached_property
    def levels(self) -> list[int]:
        """The level of each switch in a tree, 1 for leaves; 0 where the fabric has no levels."""
        return self._core.levels()

    @cached_property
    def host_names(self) -> list[str]:
        """The name of each host: as an imported fabric names it, else ``host0`` and so on."""
        return self._core.host_names()

    @cached_property
    def switch_names(self) -> list[str]:
        """The name of each switch: as an imported fabric names it, else by its place, as ``leaf0`` or ``spine0``."""
        return self._core.switch_names()

    def link_name(self, link: int) -> str:
        """A link by its sending end: ``leaf4 port 7 to spine2``."""
        begin, port, end = (self.links[key][link] for key in ("from_name", "from_port", "to_name"))
        return f"{begin} port {port} to {end}"

    @property
    def rails(self) -> int:
        """Maximum number of adapters of a host."""
        return self._core.rails

    @cached_property
    def adapters_of_hosts(self) -> NDArray[numpy.int64]:
        """Number of adapters of each host."""
        return numpy.frombuffer(self._core.adapters(), "<u4").astype(numpy.int64)

    def bandwidths_of_hosts(self, adapter: int | None = None) -> NDArray[numpy.float64]:
        """Bandwidth of each host's adapters together, or of its adapter of this number (0 without), bits per second."""
        adapters, rates = self.adapters_of_hosts, numpy.frombuffer(self._core.bandwidths(), "<u8").astype(float)
        first = numpy.cumsum(adapters) - adapters
        if adapter is None:
            return numpy.add.reduceat(rates, first)
        return numpy.where(adapter < adapters, rates[numpy.minimum(first + adapter, rates.size - 1)], 0.0)

    def wires(self) -> tuple[float, float]:
        """Mean bandwidth of the hosts' links, bits per second, and mean latency of all links, ps."""
        return self._core.wires()

    def host_numbers(self, hosts: "Host | Sequence[Host]") -> list[int]:
        """The numbers of hosts given by number, name, Slurm's lists as ``"cn[001-016],login1"``, or lists of these.

        Raises ``ScenarioError`` for hosts that the fabric does not have.
        """
        from fairlane.inputs.hosts import host_numbers, read_hosts
        from fairlane.inputs.problems import refusing

        with refusing("hosts"):
            return host_numbers(read_hosts(hosts), self.host_names)

    def route(self, source: "Host", destination: "Host", rail: int = 0, to_rail: int | None = None) -> list[int]:
        """The links from adapter ``rail`` of the source to adapter ``to_rail`` of the destination, in order.

        By default ``to_rail`` is the adapter that ``rail`` is paired with. Hosts are given by number or by name.
        """
        begin, end = (one if isinstance(one, int) else self.host_numbers(one)[0] for one in (source, destination))
        return self._core.route(begin, end, rail, to_rail)

    def rail_pairs(self, source: int, destination: int) -> list[tuple[int, int]]:
        """The adapters that messages between two hosts use: pairs of the sender's and the receiver's."""
        return self._core.rail_pairs(source, destination)

    def forwarding(self) -> NDArray[numpy.int64] | None:
        """The port of each switch for each endpoint, 0 where no packets pass; None if it depends on their source.

        Endpoints are the adapters, host by host. Shape: switches x endpoints.
        """
        found = self._core.forwarding()
        return None if found is None else numpy.frombuffer(found, "<u4").astype(numpy.int64).reshape(self.switches, -1)

    def loads(self, hosts: Sequence[int], traffic: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
        """The load of every link if ``hosts[i]`` sends ``traffic[i, j]`` to ``hosts[j]``."""
        weights = numpy.ascontiguousarray(traffic, dtype="<f8")
        return numpy.frombuffer(self._core.loads(list(hosts), weights.tobytes()), dtype="<f8")

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

    @cached_property
    def is_tree(self) -> bool:
        """Whether its levels describe it as a tree: most cables join adjacent levels, most hosts are at level 1."""
        return self._core.is_tree()

    @property
    def exceptions(self) -> tuple[str, ...]:
        """Hosts above level 1 and cables that do not join adjacent levels, if the fabric is a tree."""
        return tuple(exceptions(self)) if self.is_tree else ()

    def required_virtual_lanes(self, virtual_lanes: int) -> list[tuple[int, int]]:
        """Every pair of a virtual lane, below ``virtual_lanes``, and a virtual channel that it has."""
        return self._core.required_virtual_lanes(virtual_lanes)

    def round_trip(self, network: Mapping[str, Any], answer: int) -> int:
        """The round trip of a full packet and an answer of ``answer`` bytes on the longest path without load, ps.

        ``network`` has the network's parameters as the simulator takes them.
        """
        return self._core.round_trip(json.dumps(network), answer)

    @cached_property
    def leaf_of(self) -> Sequence[int]:
        """The switch at each host's first link; -1 for a host joined to another host."""
        return array("i", self._core.leaves())

    def check_simulation(self, spec: Mapping[str, Any], programs: Sequence[_core.Program]) -> None:
        """Raises ``BuildError`` if this specification, of this fabric, and these programs cannot be simulated."""
        self._core.check_simulation(json.dumps(spec), list(programs))

    def distances(self, hosts: Sequence[int]) -> NDArray[numpy.int64]:
        """Links on a shortest path between the switches of every two of ``hosts``, or between switchless hosts."""
        leaves = [self.leaf_of[host] for host in hosts]
        if min(leaves, default=0) < 0:
            return self._distances(list(hosts), whole=True)[:, list(hosts)].astype(numpy.int64)
        distinct, place = numpy.unique(numpy.array(leaves, dtype=numpy.int64), return_inverse=True)
        between = self._distances(distinct.tolist())[:, distinct].astype(numpy.int64)
        return between[numpy.ix_(place, place)]

    def plot(self, ax: "Axes | Sequence[Axes] | None" = None) -> Any:
        """Draws the fabric and returns the axes: one, or a list of two for a fabric of many groups.

        ``ax`` are axes to draw on, as many; without them there is a new figure, which notebooks show.
        """
        from fairlane.plot import draw_new
        from fairlane.plot.fabric import draw

        return draw_new(self, "fabric", draw, ax)

    def __repr__(self) -> str:
        return f"<Fabric of {self._headline()}>"

    def _repr_html_(self) -> str:
        rows = [
            (one.name, one.role, one.links, BANDWIDTH.format(one.bandwidth), DURATION.format(one.latency))
            for one in self._link_classes()
        ]
        headings = ("links", "role", "number", "bandwidth", "latency")
        return html_table(f"Fabric of {self._headline()}", headings, rows)

    def _headline(self) -> str:
        switches = plural(self.switches, "switch", "switches")
        return f"{plural(self.hosts, 'host')}, {switches}, {plural(len(self.links['link']), 'link')}"

    def describe(self) -> FabricDescription:
        """Counts, diameter and bisection."""
        from fairlane.slurm import shortened

        halves = list(self._halves())
        diameter, diameter_is_exact = self._diameter()
        first, second = halves[0]
        bisection, used = min(self._flow(*half) for half in halves), self.used_links
        usable = bisection if used.all() else min(self._flow(*half, used) for half in halves)
        return FabricDescription(
            hosts=self.hosts,
            host_list=shortened(self.host_names, 60),
            switch_list=shortened(self.switch_names, 100),
            rails=self.rails,
            adapters=dict(sorted(Counter(self.adapters_of_hosts.tolist()).items(), reverse=True)),
            switches=dict(sorted(Counter(self._switch_levels()).items())),
            links=self._link_classes(),
            diameter=diameter,
            diameter_is_exact=diameter_is_exact,
            bisection=bisection,
            bisection_is_exact=self._is_even_grid(),
            full_bisection=min(self._injection(first), self._injection(second)),
            plan=self.plan,
            virtual_channels=self._channels(),
            usable_bisection=usable,
            coverage=self.coverage,
            exceptions=self.exceptions,
        )

    def _channels(self) -> tuple[int, ...]:
        """The virtual channels of virtual lanes, without those at the end that need as many as the one before."""
        counts = Counter(lane for lane, _ in self._core.required_virtual_lanes(_VIRTUAL_LANES))
        found = [counts[lane] for lane in range(_VIRTUAL_LANES)]
        while len(found) > 1 and found[-1] == found[-2]:
            found.pop()
        return tuple(found)

    def _halves(self) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """The halves of the hosts that are tried for the bisection."""
        hosts = numpy.arange(self.hosts)
        yield hosts[: self.hosts // 2], hosts[self.hosts // 2 :]
        if self.plan["kind"] == "grid":
            place = numpy.array(self.leaf_of)
            for side in self.plan["sides"]:
                coordinate, place = place % side, place // side
                if side % 2 == 0:
                    yield hosts[coordinate < side // 2], hosts[coordinate >= side // 2]

    def _is_even_grid(self) -> bool:
        """A grid whose longest side is even and whose links are alike is halved best across that side."""
        plan, between = self.plan, self.links["from_host"] + self.links["to_host"] == -2
        rates = numpy.unique(self.links["bandwidth"][between])
        alike = len(rates) == 1 and len(set(Counter(zip(*self._ends, strict=True)).values())) == 1
        return plan["kind"] == "grid" and plan["line"] != "full" and max(plan["sides"]) % 2 == 0 and alike

    def _link_classes(self) -> tuple[LinkClass, ...]:
        names = self.classes
        kinds = zip(*(self.links[key].tolist() for key in ("class", "role", "bandwidth", "latency")), strict=True)
        counts = sorted(Counter(kinds).items())
        return tuple(LinkClass(names[kind], role, count, rate, delay) for (kind, role, rate, delay), count in counts)

    @cached_property
    def _ends(self) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
        """Both ends of each link as vertices: hosts first, then switches."""
        ends = []
        for side in ("from", "to"):
            host, switch = self.links[f"{side}_host"], self.links[f"{side}_switch"]
            ends.append(numpy.where(host >= 0, host, self.hosts + switch).astype(numpy.int64))
        return ends[0], ends[1]

    def _graph(self, *, whole: bool) -> Any:
        """A sparse matrix of the switches, by number, or of the ``whole`` fabric, hosts first."""
        from scipy.sparse import csr_array

        first = 0 if whole else self.hosts
        keep = (self._ends[0] >= first) & (self._ends[1] >= first)
        ends = (self._ends[0][keep] - first, self._ends[1][keep] - first)
        size = self.hosts + self.switches - first
        return csr_array((numpy.ones(len(ends[0])), ends), shape=(size, size))

    def _distances(self, sources: list[int], *, whole: bool = False) -> NDArray[numpy.float64]:
        """Links from each of ``sources`` to every vertex of the graph."""
        from scipy.sparse.csgraph import dijkstra

        distances: NDArray[numpy.float64] = dijkstra(self._graph(whole=whole), unweighted=True, indices=sources)
        return distances

    def _switch_levels(self) -> list[int]:
        """The level of each switch; without levels, one more than the links to the nearest switch that has hosts."""
        if min(self.levels, default=0) > 0:
            return self.levels
        from scipy.sparse.csgraph import dijkstra

        graph = self._graph(whole=True)
        nearest = dijkstra(graph, unweighted=True, indices=range(self.hosts), min_only=True)
        return [int(distance) for distance in nearest[self.hosts :]]

    def _diameter(self) -> tuple[int, bool]:
        """Links between the hosts furthest apart, and whether every pair was looked at: in large fabrics some are."""
        if self.hosts == 1:
            return 0, True
        if min(self.leaf_of) < 0:
            return int(self._distances(list(range(self.hosts)), whole=True)[:, : self.hosts].max()), True
        leaves = sorted(set(self.leaf_of))
        most = max(1, _MOST_STEPS // len(self._ends[0]))
        sources = leaves[:: -(-len(leaves) // most)]
        chunk = max(1, _MOST_DISTANCES // self.switches)
        parts = (self._distances(sources[at : at + chunk]) for at in range(0, len(sources), chunk))
        return 2 + int(max(part[:, leaves].max() for part in parts)), len(sources) == len(leaves)

    def _injection(self, hosts: NDArray[Any]) -> int:
        return int(self.links["bandwidth"][numpy.isin(self.links["from_host"], hosts)].sum())

    def _flow(self, first: NDArray[Any], second: NDArray[Any], used: NDArray[numpy.bool_] | None = None) -> int:
        """The greatest flow between two sets of hosts, over the links in ``used`` if it is given.

        Capacities are counted in their greatest common divisor.
        """
        from scipy.sparse import coo_array, csr_array
        from scipy.sparse.csgraph import maximum_flow

        if not len(first):
            return 0
        unit = gcd(*self.links["bandwidth"].tolist())
        capacity = self.links["bandwidth"] // unit
        if used is not None:
            capacity = numpy.where(used, capacity, 0)
        source = self.hosts + self.switches
        bound = int(capacity.sum())
        # The solver counts in 32 bits. Without a large common divisor the flow is rounded down a little.
        scale = max(1, -(-bound // (2**31 - 1)))
        rows = numpy.concatenate([self._ends[0], numpy.full(len(first), source), second])
        cols = numpy.concatenate([self._ends[1], first, numpy.full(len(second), source + 1)])
        both = numpy.full(len(first) + len(second), bound // scale)
        data = numpy.concatenate([capacity // scale, both]).astype(numpy.int32)
        graph = csr_array(coo_array((data, (rows, cols)), shape=(source + 2, source + 2)))
        return int(maximum_flow(graph, source, source + 1).flow_value) * unit * scale
