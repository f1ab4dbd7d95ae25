"""Forwarding tables as ``dump_lfts`` prints them, which OpenSM reads as its ``lfts_file``, too.

A switch has an entry for every LID: those without one in the tables, as of other switches and of further adapters,
lead along a shortest path.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy
from numpy.typing import NDArray

from fairlane.fabric.export.identities import nodes_of, numbered, places
from fairlane.fabric.nodes import Node
from fairlane.fabric.wiring import Wiring

_MANAGEMENT = 0  # the port of a switch at which its own LID ends


def write_lfts(wiring: Wiring, tables: Mapping[str, Sequence[int]]) -> str:
    """The tables of all switches; ``tables`` has by switch the port for each host of the wiring, 0 for none."""
    nodes, cables = nodes_of(wiring), _Cables(wiring)
    own = [node for node in nodes if node.is_switch]
    ends = sorted(_destinations(nodes, wiring, cables))
    columns = {host: number for number, host in enumerate(wiring.hosts)}
    parts = []
    for node in own:
        rows = []
        for lid, guid, name, kind, is_first, leaf, last in ends:
            port = tables.get(node.owner, ())[columns[name]] if is_first and node.owner in tables else 0
            if not port:
                port = last if leaf == node.owner else cables.towards(node.owner, leaf)
            if port is not None:
                rows.append(f"0x{lid:04x} {port:03d} : ({kind} portguid 0x{guid:016x}: '{name}')")
        head = f"Unicast lids [0x1-0x{ends[-1][0]:x}] of switch Lid {node.lid} guid 0x{node.guid or 0:016x}"
        words = "  Lid  Out   Destination\n       Port     Info "
        parts.append("\n".join([f"{head} ({node.owner}):", words, *rows, f"{len(rows)} valid lids dumped", ""]))
    return "\n".join(parts)


def _destinations(
    nodes: Sequence[Node], wiring: Wiring, cables: "_Cables"
) -> Iterator[tuple[int, int, str, str, bool, str, int]]:
    """LID, GUID, name, kind, whether it is a host's first port, its switch, and the port there."""
    seen: set[str] = set()
    for (owner, number), (node, port) in sorted(places(nodes, wiring).items(), key=lambda one: one[0]):
        if node.is_switch or (owner, number) not in cables.far:
            continue
        end, there = cables.far[owner, number]
        if port.lid is not None and end in cables.number:
            yield port.lid, port.guid or 0, owner, "Channel Adapter", owner not in seen, end, there
            seen.add(owner)
    for node in nodes:
        if node.is_switch and node.lid is not None:
            yield node.lid, node.guid or 0, node.owner, "Switch", False, node.owner, _MANAGEMENT


class _Cables:
    """The other end of each port, and the next ports on shortest paths between switches."""

    def __init__(self, wiring: Wiring) -> None:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import shortest_path

        self.far: dict[tuple[str, int], tuple[str, int]] = {}
        for one, other in numbered(wiring):
            self.far[one], self.far[other] = other, one
        self.number = {name: number for number, name in enumerate(wiring.switches)}
        between = {
            (self.number[begin], self.number[end]): port
            for (begin, port), (end, _) in reversed(self.far.items())
            if begin in self.number and end in self.number
        }
        self._ports = between
        ends = tuple(zip(*between, strict=True)) or ((), ())
        size = len(self.number)
        graph = csr_array((numpy.ones(len(between)), ends), shape=(size, size))
        self._before: NDArray[numpy.int32]
        _, self._before = shortest_path(graph, unweighted=True, return_predecessors=True)

    def towards(self, switch: str, end: str) -> int | None:
        """The port of ``switch`` on a shortest path to the switch ``end``; None if there is none."""
        begin, last = self.number[switch], self.number[end]
        # Cables go both ways: the predecessor of a switch on the path from the end is the next one on the path to it.
        following = int(self._before[last, begin])
        return None if following < 0 else self._ports[begin, following]
