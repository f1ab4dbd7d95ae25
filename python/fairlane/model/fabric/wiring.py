"""A fabric cable by cable: what every reader makes, and what a scenario's ``topology = "imported"`` takes."""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.core.errors import BuildError, Problem, ScenarioError
from fairlane.core.units import BANDWIDTH, DURATION, Kind
from fairlane.inputs.files import write_text
from fairlane.inputs.parameters import NODES
from fairlane.model.fabric.nodes import Node
from fairlane.model.fabric.view import Fabric

if TYPE_CHECKING:
    import networkx

_MOST_CABLES = 1 << 20


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable between two vertices, by name."""

    ends: tuple[str, str]
    ports: tuple[int, int] | None = None
    """The numbers of the ports at the two ends, if they are known."""
    bandwidth: int | None = None
    """Data rate of either direction, bits per second; None for the fabric's default."""
    latency: int | None = None
    """Picoseconds; None for the fabric's default."""
    kind: str = ""
    """The source's name of it, as ``4xQDR``."""
    line: int | None = None
    """Its line in the source."""
    link_class: str | None = None
    """The class of its links, as ``blue``; None for one by the levels of its ends."""

    def __str__(self) -> str:
        if self.ports is None:
            return " to ".join(self.ends)
        return " to ".join(f"{end} port {port}" for end, port in zip(self.ends, self.ports, strict=True))

    def parameters(self) -> dict[str, Any]:
        """The cable as a scenario takes it."""
        texts = {"bandwidth": BANDWIDTH.format, "latency": DURATION.format}
        return {key: texts[key](value) if key in texts else value for key, value in self.spec().items()}

    def spec(self) -> dict[str, Any]:
        """The cable as the simulator takes it."""
        values = {
            "ends": list(self.ends),
            "ports": list(self.ports) if self.ports else None,
            "bandwidth": self.bandwidth,
            "latency": self.latency,
            "class": self.link_class,
        }
        return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True)
class Wiring:
    """Hosts and the cables between them and switches: every name in a cable that is no host's is a switch's."""

    hosts: tuple[str, ...]
    cables: tuple[Cable, ...]
    tables: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Forwarding tables: for each switch the port for each endpoint (adapter), host by host; 0 for none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The source's description of a switch, by name."""
    guids: Mapping[int, str] = field(default_factory=dict)
    """Switches by GUID, where there are some."""
    nodes: tuple[Node, ...] = ()
    """Switches and adapters with their GUIDs, where the source has them: those of switches and hosts with a cable."""
    groups: tuple[int, int] | None = None
    """Switches of a group and of a row of it, if it is a fabric of groups: switches are numbered group by group."""
    remarks: tuple[str, ...] = ()
    """Anomalies that its reader found."""
    source: Path | None = None
    """The file that it was read from."""
    tables_source: Path | None = None
    """The file that its tables were read from, if it is another."""

    @property
    def switches(self) -> tuple[str, ...]:
        """The switches, in order of first appearance, as the simulator numbers them."""
        hosts = set(self.hosts)
        names = dict.fromkeys(end for cable in self.cables for end in cable.ends)
        return tuple(name for name in names if name not in hosts)

    def parameters(self) -> dict[str, Any]:
        """The parameters of the topology ``imported``, as a scenario takes them."""
        return {**self._spec(), "links": [cable.parameters() for cable in self.cables]}

    def _spec(self) -> dict[str, Any]:
        """The parameters as the simulator takes them."""
        spec: dict[str, Any] = {"hosts": list(self.hosts), "links": [cable.spec() for cable in self.cables]}
        if self.groups:
            spec["groups"] = dict(zip(("switches", "row"), self.groups, strict=True))
        if self.tables:
            spec["tables"] = {switch: list(ports) for switch, ports in self.tables.items()}
        return spec

    def save(self, path: Path) -> None:
        """Writes a file for ``topology = "imported"``, a line for each cable, table and node."""
        parameters = self.parameters()
        parts = [f'"{key}": {json.dumps(parameters[key])}' for key in ("hosts", "groups") if key in parameters]
        parts.append('"links": [\n' + ",\n".join(f"  {json.dumps(link)}" for link in parameters["links"]) + "\n]")
        if self.tables:
            rows = (f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in parameters["tables"].items())
            parts.append('"tables": {\n' + ",\n".join(rows) + "\n}")
        if self.nodes:
            lines = (f"  {json.dumps(node.saved())}" for node in self.nodes)
            parts.append(f'"{NODES}": [\n' + ",\n".join(lines) + "\n]")
        write_text(path, "{\n" + ",\n".join(parts) + "\n}\n")

    def table(self, routing: str | None = None) -> dict[str, Any]:
        """The table ``fabric`` of a scenario that has it; the routing as in ``fabric``."""
        return {"topology": "imported", "routing": routing or self._usual, **self.parameters()}

    @property
    def _usual(self) -> str:
        return "tables" if self.tables else "minimal" if self.groups else "up_down"

    def fabric(self, routing: str | None = None) -> Fabric:
        """The fabric with a routing: by default its own tables if it has some, minimal if it has groups, else up/down.

        Raises ``ScenarioError`` with the file if it was read from one, else ``BuildError``.
        """
        try:
            return Fabric.build({"topology": "imported", "routing": routing or self._usual, "params": self._spec()})
        except BuildError as error:
            if self.source is None:
                raise
            message = str(error).removeprefix(f"{error.path}: ")
            file = self.tables_source if (error.path or "").startswith("fabric.tables") else None
            raise ScenarioError(Problem.of_file(file or self.source, message)) from None


def within_cables(count: int, file: Path) -> None:
    """Raises ``ScenarioError`` if the few numbers of a file stand for more cables than are built."""
    if count > _MOST_CABLES:
        raise ScenarioError(Problem.of_file(file, f"{count:,} cables", allowed=f"at most {_MOST_CABLES:,}"))


def from_networkx(
    graph: "networkx.Graph[Any]", hosts: Iterable[Hashable] | Callable[[Hashable], bool] | None = None
) -> Wiring:
    """The wiring of a networkx graph; of a ``MultiGraph`` with its parallel edges.

    ``hosts`` are the nodes that are hosts, or a test for them; without it, nodes whose attribute ``kind`` is "host",
    or if no node has one, those of degree 1. Edges may have ``bandwidth`` ("100 Gb/s", or bits per second) and
    ``latency`` ("100 ns", or picoseconds). Nodes are named by their text. Raises ``ScenarioError``.
    """
    if graph.is_directed():
        raise ScenarioError(Problem("graph", "is directed, and a cable goes both ways", allowed="an undirected graph"))
    nodes = dict(graph.nodes(data=True))
    names = {node: str(node) for node in nodes}
    if len(set(names.values())) < len(names):
        raise ScenarioError(Problem("graph", "two nodes have the same text, and that is their name"))
    cables = []
    for a, b, data in graph.edges(data=True):
        rate = _quantity(BANDWIDTH, data.get("bandwidth"), f"edge {a} - {b}.bandwidth")
        delay = _quantity(DURATION, data.get("latency"), f"edge {a} - {b}.latency")
        cables.append(Cable((names[a], names[b]), bandwidth=rate, latency=delay))
    chosen = _hosts(nodes, hosts, cables, names)
    return Wiring(tuple(names[node] for node in nodes if node in chosen), tuple(cables))


def in_order(places: Mapping[str, Sequence[int]], switches: Sequence[str]) -> list[int] | None:
    """An order of cables in which the simulator numbers switches and the links of each vertex as given.

    ``places`` has for each host and switch the numbers of its cables, in the order of its links; ``switches`` are the
    switches in order. None if there is no such order: a list of cables names switches in order of first appearance.
    """
    before: dict[int, set[int]] = {cable: set() for cables in places.values() for cable in cables}
    firsts = [places[switch][0] for switch in switches]
    for earlier, other in (pair for cables in (*places.values(), firsts) for pair in pairwise(cables)):
        if earlier != other:
            before[other].add(earlier)
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError:
        return None


def by_ports(cables: Sequence[Cable], hosts: Sequence[str], switches: Sequence[str]) -> tuple[Cable, ...]:
    """The cables, all with ports, in the order that gives switches their place in ``switches`` and links that of ports.

    Where no list of cables does, only those of each host are in order, as ``by_rails`` has them.
    """
    ports: dict[str, dict[int, int]] = {}
    for at, cable in enumerate(cables):
        for end, port in zip(cable.ends, cable.ports or (), strict=True):
            ports.setdefault(end, {})[port] = at
    places = {name: [cable_at[port] for port in sorted(cable_at)] for name, cable_at in ports.items()}
    order = in_order(places, [switch for switch in switches if switch in places])
    return by_rails(cables, hosts) if order is None else tuple(cables[at] for at in order)


def by_rails(cables: Iterable[Cable], hosts: Iterable[str]) -> tuple[Cable, ...]:
    """The cables with those of each host in the order of its port numbers, which is that of its rails.

    They share the places that they have among the others; a host whose port numbers are not all known keeps its order.
    """
    ordered = list(cables)
    known = set(hosts)
    places: dict[str, list[int]] = {}
    ports: dict[int, int | None] = {}
    for at, cable in enumerate(ordered):
        sides = [side for side, end in enumerate(cable.ends) if end in known]
        if len(sides) == 1:
            places.setdefault(cable.ends[sides[0]], []).append(at)
            ports[at] = cable.ports[sides[0]] if cable.ports else None
    moved = list(ordered)
    for cables_of in places.values():
        numbered = [(port, at) for at in cables_of if (port := ports[at]) is not None]
        if len(numbered) == len(cables_of):
            for at, (_, before) in zip(cables_of, sorted(numbered), strict=True):
                moved[at] = ordered[before]
    return tuple(moved)


def _hosts(
    nodes: Mapping[Hashable, Mapping[str, Any]],
    hosts: Iterable[Hashable] | Callable[[Hashable], bool] | None,
    cables: list[Cable],
    names: Mapping[Hashable, str],
) -> set[Hashable]:
    if callable(hosts):
        return {node for node in nodes if hosts(node)}
    if hosts is not None:
        chosen = set(hosts)
        if unknown := chosen - set(nodes):
            raise ScenarioError(Problem("hosts", "no node of the graph", str(next(iter(unknown)))))
        return chosen
    if any("kind" in data for data in nodes.values()):
        return {node for node, data in nodes.items() if data.get("kind") == "host"}
    single = with_one_cable(cables)
    return {node for node in nodes if names[node] in single}


def with_one_cable(cables: Iterable[Cable]) -> set[str]:
    """The names that have one cable only: the hosts, if the source does not mark them."""
    counts = Counter(end for cable in cables for end in cable.ends)
    return {name for name, count in counts.items() if count == 1}


def _quantity(kind: Kind, given: Any, key: str) -> int | None:
    if given is None or (isinstance(given, int) and not isinstance(given, bool)):
        return given
    try:
        return kind.parse(given)
    except ValueError as error:
        raise ScenarioError(Problem(key, str(error), given)) from None
