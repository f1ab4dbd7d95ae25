"""The fabric as a graph to look at: hosts, switches, links, their levels and classes, diameter and bisection."""

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy
from numpy.typing import NDArray

from fairlane.core import bridge
from fairlane.core.errors import Problem
from fairlane.core.wording import plural
from fairlane.inputs.hosts import host_numbers, read_hosts, shortened
from fairlane.inputs.problems import Problems, refusing

if TYPE_CHECKING:
    from fairlane.inputs.hosts import Host


Rails = Mapping[str, Any] | None
"""A job's rail policy as the simulator takes it; None for round-robin."""
ANY_RAILS: Rails = {"policy": "any"}
"""In place of a policy that is not known: messages may use all adapters that are joined."""
_ROUND_ROBIN = {"policy": "round_robin"}
_WHATEVER_RANK = ("any", "round_robin", "stripe", "only")
"""Policies that do not look at the numbers of ranks."""


def columns(table: Mapping[str, tuple[str, bytes]]) -> dict[str, NDArray[Any]]:
    """The simulator's columns, a type and raw bytes each, as arrays; text comes as JSON."""
    return {
        name: numpy.array(json.loads(data)) if dtype == "json" else numpy.frombuffer(data, dtype=dtype)
        for name, (dtype, data) in table.items()
    }


class Graph:
    """A fabric's hosts, switches and links, its levels and routes."""

    def __init__(self, core: bridge.Fabric) -> None:
        self._core = core

    @classmethod
    def build(cls, spec: Mapping[str, Any]) -> Self:
        """Builds a fabric from its resolved specification; raises ``BuildError`` if that is not possible."""
        return cls(bridge.fabric(spec))

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

    def link_rows(self) -> bridge.RawTable:
        """The columns of ``links`` as the simulator has them."""
        return self._core.links()

    @cached_property
    def link_kinds(self) -> dict[str, NDArray[Any]]:
        """The kinds of links, in the order of their first links, by columns of ``links``; ``to_host`` is 0 or 1.

        ``links`` is how many there are of each. Kinds are few, also where there are millions of links.
        """
        return columns(self._core.link_kinds())

    @property
    def classes(self) -> list[str]:
        """The names of the links' classes, by the numbers in ``links``."""
        return self._core.classes()

    @cached_property
    def plan(self) -> dict[str, Any]:
        """Layout of the switches: ``kind`` is "free" (by levels only), "groups" or "grid", with its sizes."""
        lanes: dict[str, Any] = json.loads(self._core.plan())
        return lanes

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
        """Bandwidth of each host's adapters together, or of the one of this number, bits per second; 0 without one."""
        rates, first = numpy.frombuffer(self._core.bandwidths(), "<u8").astype(float), self._first_adapters
        if adapter is None:
            return numpy.add.reduceat(rates, first)
        has = self.adapters_of_hosts > adapter
        return numpy.where(has, rates[numpy.where(has, first + adapter, 0)], 0.0)

    def wires(self) -> tuple[float, float]:
        """Mean bandwidth of the hosts' links, bits per second, and mean latency of all links, ps."""
        return self._core.wires()

    def host_numbers(self, hosts: "Host | Sequence[Host]") -> list[int]:
        """The numbers of hosts given by number, name, Slurm's lists as ``"cn[001-016],login1"``, or lists of these.

        Raises ``ScenarioError`` for hosts that the fabric does not have.
        """
        with refusing("hosts"):
            return host_numbers(read_hosts(hosts), self.host_names)

    def route(self, source: "Host", destination: "Host", rail: int = 0, to_rail: int | None = None) -> list[int]:
        """The links from adapter ``rail`` of the source to adapter ``to_rail`` of the destination, in order.

        By default ``to_rail`` is the adapter that ``rail`` is paired with. Hosts are given by number or by name.
        """
        begin, end = (host if isinstance(host, int) else self.host_numbers(host)[0] for host in (source, destination))
        return self._core.route(begin, end, rail, to_rail)

    def rail_pairs(self, source: int, destination: int) -> list[tuple[int, int]]:
        """The adapters that messages between two hosts use: pairs of the sender's and the receiver's."""
        return self._core.rail_pairs(source, destination)

    def forwarding(self) -> NDArray[numpy.int64] | None:
        """The port of each switch for each endpoint, 0 where no packets pass; None if it depends on their source.

        Endpoints are the adapters, host by host. Shape: switches x endpoints.
        """
        table = self._core.forwarding()
        return None if table is None else numpy.frombuffer(table, "<u4").astype(numpy.int64).reshape(self.switches, -1)

    def loads(
        self, hosts: Sequence[int], traffic: NDArray[numpy.float64], rails: Rails = None
    ) -> NDArray[numpy.float64]:
        """The load of every link if the rank at ``hosts[i]`` sends ``traffic[i, j]`` to that at ``hosts[j]``.

        ``rails`` is the job's rail policy as the simulator takes it, by default round-robin.
        """
        return self._loads(hosts, traffic, rails)

    def job_links(self, hosts: Sequence[int], rails: Rails = None) -> NDArray[numpy.bool_]:
        """By link: whether messages between ranks at these hosts, or the answers to them, may take it."""
        ranks = self.ranks_by_route(hosts, rails)
        traffic = numpy.ones((len(ranks), len(ranks)))
        used: NDArray[numpy.bool_] = self._loads(ranks, traffic, rails) > 0
        return used | (self._loads(ranks, traffic, rails, answers=True) > 0)

    def _loads(
        self, hosts: Sequence[int], traffic: NDArray[numpy.float64], rails: Rails, *, answers: bool = False
    ) -> NDArray[numpy.float64]:
        weights = numpy.ascontiguousarray(traffic, dtype="<f8").tobytes()
        loads = self._core.loads(list(hosts), weights, self._policy(hosts, rails), answers=answers)
        return numpy.frombuffer(loads, dtype="<f8")

    def ranks_by_route(self, hosts: Sequence[int], rails: Rails) -> list[int]:
        """The hosts of ranks whose messages take all links that those of a job take: one of each host, or all ranks."""
        by_rank = self.rails > 1 and rails is not None and rails["policy"] not in _WHATEVER_RANK
        return list(hosts) if by_rank else list(dict.fromkeys(hosts))

    def message_rails(self, hosts: Sequence[int], rails: Rails = None) -> Iterator[NDArray[numpy.int64]]:
        """Adapters that messages between ranks at these hosts use, for each sender.

        Rows: the receiver, the adapter of the sender's host, that of the receiver's. Messages within a host have none.
        """
        ranks, policy = list(hosts), self._policy(hosts, rails)
        for sender in range(len(ranks)):
            rails_of_messages = self._core.message_rails(ranks, sender, policy)
            yield numpy.frombuffer(rails_of_messages, "<u4").astype(numpy.int64).reshape(-1, 3)

    def check_rails(self, hosts: Sequence[int], rails: Mapping[str, Any]) -> None:
        """Raises ``Problems`` if a host lacks an adapter that the rail policy of ranks at these hosts names."""
        for key in ("only", "to"):
            rail = rails.get(key)
            lack = [] if rail is None else [host for host in hosts if self.adapters_of_hosts[host] <= rail]
            if lack:
                fewest = int(min(self.adapters_of_hosts[lack]))
                names = shortened([self.host_names[host] for host in dict.fromkeys(lack)], 60)
                message = f"{names} {'has' if len(set(lack)) == 1 else 'have'} no such adapter"
                raise Problems(Problem(f"rails.{key}", message, rail, f"0 to {fewest - 1}" if fewest > 1 else "0"))

    def _policy(self, hosts: Sequence[int], rails: Rails) -> str | None:
        """A rail policy as JSON, or nothing if it is not known."""
        if rails == ANY_RAILS:
            return None
        policy = dict(rails or _ROUND_ROBIN)
        self.check_rails(hosts, policy)
        return json.dumps(policy)

    @cached_property
    def is_tree(self) -> bool:
        """Whether its levels describe it as a tree: most cables join adjacent levels, most hosts are at level 1."""
        return self._core.is_tree()

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

    def check_simulation(self, spec: Mapping[str, Any], programs: Sequence[bridge.Program]) -> None:
        """Raises ``BuildError`` if this specification, of this fabric, and these programs cannot be simulated."""
        self._core.check_simulation(json.dumps(spec), list(programs))

    def simulation(
        self, spec: Mapping[str, Any], programs: Sequence[bridge.Program], *, threads: int, automatic: bool
    ) -> bridge.Simulation:
        """A simulation of this specification, of this fabric, on its graph; ``BuildError`` if the parts do not fit."""
        return bridge.simulation(spec, programs, fabric=self._core, threads=threads, automatic=automatic)

    def distances(self, hosts: Sequence[int], rails: Rails = None) -> NDArray[numpy.float64]:
        """Links between the switches of every two ranks at these hosts, or between switchless hosts.

        It is the number on a shortest path, and its mean over the adapters that messages from one to the other use.
        """
        if self.rails > 1 and self.is_switched:
            return self._rail_distances(hosts, rails)
        leaves = [self.leaf_of[host] for host in hosts]
        if min(leaves, default=0) < 0:
            return self.distances_from(list(hosts), whole=True)[:, list(hosts)]
        distinct, place = numpy.unique(numpy.array(leaves, dtype=numpy.int64), return_inverse=True)
        between = self.distances_from(distinct.tolist())[:, distinct]
        return between[numpy.ix_(place, place)]

    def _rail_distances(self, hosts: Sequence[int], rails: Rails) -> NDArray[numpy.float64]:
        distances = numpy.zeros((len(hosts), len(hosts)))
        for sender, (receivers, lengths) in enumerate(self.rail_lengths(hosts, rails)):
            count = numpy.bincount(receivers, minlength=len(hosts))
            distances[sender] = numpy.bincount(receivers, lengths, len(hosts)) / numpy.maximum(count, 1)
        return distances

    def rail_lengths(
        self, hosts: Sequence[int], rails: Rails
    ) -> Iterator[tuple[NDArray[numpy.int64], NDArray[numpy.float64]]]:
        """For each sender the receivers of its messages, by adapter, and the links between their switches."""
        first = self._first_adapters[list(hosts)]
        distinct = numpy.unique(numpy.concatenate([self.adapter_switches(host) for host in dict.fromkeys(hosts)]))
        place = numpy.zeros(self.switches, dtype=numpy.int64)
        place[distinct] = numpy.arange(len(distinct))
        between = self.distances_from(distinct.tolist())[:, distinct]
        for sender, rows in enumerate(self.message_rails(hosts, rails)):
            begin = place[self._switches[first[sender] + rows[:, 1]]]
            end = place[self._switches[first[rows[:, 0]] + rows[:, 2]]]
            yield rows[:, 0], between[begin, end]

    def adapter_links(self, host: int) -> slice:
        """The links that leave a host, one for each adapter."""
        first = self._first_adapters[host]
        return slice(first, first + self.adapters_of_hosts[host])

    def adapter_switches(self, host: int) -> NDArray[numpy.int64]:
        """The switch at each adapter of a host; -1 for one that is joined to another host."""
        return self._switches[self.adapter_links(host)]

    @cached_property
    def _switches(self) -> NDArray[numpy.int64]:
        """The switch at each adapter, host by host: links of hosts come first."""
        switches: NDArray[numpy.int64] = self.links["to_switch"][: self.adapters_of_hosts.sum()].astype(numpy.int64)
        return switches

    @property
    def is_switched(self) -> bool:
        """Whether all adapters are joined to switches, none to another host."""
        return bool(self._switches.min(initial=0) >= 0)

    @cached_property
    def _first_adapters(self) -> NDArray[numpy.int64]:
        return numpy.cumsum(self.adapters_of_hosts) - self.adapters_of_hosts

    def _headline(self) -> str:
        switches = plural(self.switches, "switch", "switches")
        return f"{plural(self.hosts, 'host')}, {switches}, {plural(len(self.links['link']), 'link')}"

    @cached_property
    def ends(self) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
        """Both ends of each link as vertices: hosts first, then switches."""
        ends = []
        for side in ("from", "to"):
            host, switch = self.links[f"{side}_host"], self.links[f"{side}_switch"]
            ends.append(numpy.where(host >= 0, host, self.hosts + switch).astype(numpy.int64))
        return ends[0], ends[1]

    def graph(self, *, whole: bool) -> Any:
        """A sparse matrix of the switches, by number, or of the ``whole`` fabric, hosts first."""
        from scipy.sparse import csr_array

        first = 0 if whole else self.hosts
        keep = (self.ends[0] >= first) & (self.ends[1] >= first)
        ends = (self.ends[0][keep] - first, self.ends[1][keep] - first)
        size = self.hosts + self.switches - first
        return csr_array((numpy.ones(len(ends[0])), ends), shape=(size, size))

    def distances_from(self, sources: list[int], *, whole: bool = False) -> NDArray[numpy.float64]:
        """Links from each of ``sources`` to every vertex of the graph."""
        from scipy.sparse.csgraph import dijkstra

        distances: NDArray[numpy.float64] = dijkstra(self.graph(whole=whole), unweighted=True, indices=sources)
        return distances
