"""Forwarding tables as ``dump_lfts`` prints them, which OpenSM reads as its ``lfts_file``, too.

A switch has an entry for every LID: those without one in the tables, as of other switches, lead along a shortest path.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from fairlane.fabric.identities import endpoints_of, nodes_of, numbered, places
from fairlane.fabric.nodes import Node
from fairlane.fabric.wiring import Wiring

_MANAGEMENT = 0  # the port of a switch at which its own LID ends
_HEADING = "  Lid  Out   Destination\n       Port     Info "


def write_lfts(wiring: Wiring, tables: Mapping[str, Sequence[int]]) -> str:
    """The tables of all switches; ``tables`` has by switch the port for each endpoint of the wiring, 0 for none."""
    nodes, cables = nodes_of(wiring), _Cables(wiring)
    ends = sorted(_destinations(nodes, wiring, cables), key=lambda end: end.lid)
    columns = {place: number for number, place in enumerate(endpoints_of(wiring))}
    parts = []
    for node in nodes:
        if not node.is_switch:
            continue
        table = tables.get(node.owner, (0,) * len(columns))
        rows = []
        for end in ends:
            port: int | None = table[columns[end.place]] if end.place in columns else None
            if port := port or cables.port_towards(node.owner, end):
                rows.append(end.row(port))
            elif end.switch == node.owner:
                rows.append(end.row(_MANAGEMENT))
        head = f"Unicast lids [0x1-0x{ends[-1].lid:x}] of switch Lid {node.lid} guid 0x{node.guid or 0:016x}"
        parts.append("\n".join([f"{head} ({node.owner}):", _HEADING, *rows, f"{len(rows)} valid lids dumped", ""]))
    return "\n".join(parts)


@dataclass(frozen=True)
class _Destination:
    """A LID: of a port of a host, or of a switch."""

    lid: int
    guid: int
    name: str
    kind: str
    place: tuple[str, int]
    """Host, or switch, and its port."""
    switch: str
    """The switch that it is at."""
    port: int
    """The switch's port to it."""

    def row(self, port: int) -> str:
        """Its entry in a table."""
        return f"0x{self.lid:04x} {port:03d} : ({self.kind} portguid 0x{self.guid:016x}: '{self.name}')"


def _destinations(nodes: tuple[Node, ...], wiring: Wiring, cables: "_Cables") -> Iterator[_Destination]:
    for (owner, number), (node, port) in sorted(places(nodes, wiring).items(), key=lambda one: one[0]):
        if node.is_switch or (owner, number) not in cables.far:
            continue
        end, there = cables.far[owner, number]
        for lid in port.lids if end in cables.number else ():
            yield _Destination(lid, port.guid or 0, owner, "Channel Adapter", (owner, number), end, there)
    for node in nodes:
        for lid in node.lids:
            place = (node.owner, _MANAGEMENT)
            yield _Destination(lid, node.guid or 0, node.owner, "Switch", place, node.owner, _MANAGEMENT)


class _Cables:
    """The other end of each port, and the next ports on shortest paths between switches."""

    def __init__(self, wiring: Wiring) -> None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import shortest_path

        self.far: dict[tuple[str, int], tuple[str, int]] = {}
        for one, other in numbered(wiring):
            self.far[one], self.far[other] = other, one
        self.number = {name: number for number, name in enumerate(wiring.switches)}
        self._ports = {
            (self.number[begin], self.number[end]): port
            for (begin, port), (end, _) in reversed(self.far.items())
            if begin in self.number and end in self.number
        }
        ends = numpy.array(list(self._ports), dtype=numpy.int64).reshape(-1, 2)
        size = len(self.number)
        graph = csr_array((numpy.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(size, size))
        self._before: NDArray[numpy.int32]
        _, self._before = shortest_path(graph, unweighted=True, return_predecessors=True)

    def port_towards(self, switch: str, end: _Destination) -> int | None:
        """The port of a switch on a shortest path to a destination; None if there is none."""
        if switch == end.switch:
            return end.port
        begin, last = self.number[switch], self.number[end.switch]
        # Cables go both ways: the predecessor of a switch on the path from the end is the next one on the path to it.
        following = int(self._before[last, begin])
        return None if following < 0 else self._ports[begin, following]
