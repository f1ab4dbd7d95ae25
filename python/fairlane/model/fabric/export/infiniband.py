"""Fabrics as InfiniBand's tools have them: dumps of ``ibnetdiscover``, networks of ibsim, forwarding tables, speeds.

*The output of ``ibnetdiscover``: a section for each switch and adapter, a line for each of their ports.* What is
written is read again and compared: names, ports and bandwidths come back as they were, or it is an error.

*A network file of ibsim, the simulator of InfiniBand's management: a record for each switch and adapter.* A host is one
adapter with as many ports as it has cables. The first port of the file is the one that OpenSM uses, so hosts come
first. ibsim assigns GUIDs of its own unless some are given, and reserves # and @: nodes whose names have one get
another name, and keep theirs as NodeDescription.

*Forwarding tables as ``dump_lfts`` prints them, which OpenSM reads as its ``lfts_file``, too.* A switch has an entry
for every LID: those without one in the tables, as of other switches, lead along a shortest path.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy
from numpy.typing import NDArray

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import BANDWIDTH
from fairlane.core.wording import renamed
from fairlane.inputs.hosts import unused
from fairlane.model.fabric.cable_files import read_ibsim
from fairlane.model.fabric.export.cables import Written, left_out, renumbered
from fairlane.model.fabric.ibnetdiscover import LANE_RATES, read_ibnetdiscover
from fairlane.model.fabric.identities import endpoints_of, nodes_of, numbered, places
from fairlane.model.fabric.nodes import LARGEST_LID, Node, Port
from fairlane.model.fabric.wiring import Cable, Wiring

_LANES = (4, 1, 8, 12, 2)  # from the most to the least common


def _speeds() -> Mapping[int, str]:
    names: dict[int, str] = {}
    for lanes in _LANES:
        for name, rate in LANE_RATES.items():
            names.setdefault(lanes * rate, f"{lanes}x{name}")
    return names


SPEEDS: Mapping[int, str] = _speeds()
"""The speed of each bandwidth in bits per second, as ``4xEDR``; of several the one with the most common width."""


def speeds_of(cable: Cable) -> tuple[str, str]:
    """The speeds that the two ports of a cable report; empty if its bandwidth is the fabric's default.

    Raises ``ScenarioError`` for a bandwidth that is no speed of InfiniBand.
    """
    if cable.kind:
        first, _, second = cable.kind.partition(" and ")
        return first, second or first
    if cable.bandwidth is None:
        return "", ""
    if cable.bandwidth not in SPEEDS:
        near = min(SPEEDS, key=lambda rate: (abs(rate - (cable.bandwidth or 0)), rate))
        message = f"of {cable} is no speed of InfiniBand"
        allowed = f"lanes (4, 1, 8, 12, 2) x a rate of {', '.join(LANE_RATES)}; nearest {BANDWIDTH.format(near)}"
        raise ScenarioError(
            Problem("bandwidth", message, BANDWIDTH.format(cable.bandwidth), f"{allowed} ({SPEEDS[near]})")
        )
    return SPEEDS[cable.bandwidth], SPEEDS[cable.bandwidth]


_Far = dict[tuple[str, int], tuple[tuple[str, int], str]]  # the other end of each port, and the port's speed


def write_ibnetdiscover(wiring: Wiring) -> Written:
    """The dump. Raises ``ScenarioError`` for names and bandwidths that a dump cannot hold."""
    _check(wiring)
    nodes = nodes_of(wiring)
    at = places(nodes, wiring)
    far: _Far = {}
    for (end, other), cable in zip(numbered(wiring), wiring.cables, strict=True):
        speeds = speeds_of(cable)
        far[end], far[other] = (other, speeds[0]), (end, speeds[1])
    ports = {(node.identifier, port.number): key for key, (node, port) in at.items()}
    # Adapters first: hosts are numbered in the order of sections, switches in the order in which lines name them.
    order = nodes if wiring.nodes else sorted(nodes, key=lambda node: node.is_switch)
    sections = ("\n".join(_section(node, ports, at, far)) for node in order)
    text = "#\n# Topology file: written by fairlane fabric export\n#\n\n" + "\n\n".join(sections) + "\n"
    notes = [*left_out(wiring, bandwidths=False), *renumbered(wiring, _read_again(wiring, text))]
    ranges = (lids for node in nodes for lids in (node.lids, *(port.lids for port in node.ports)))
    last = max((lids[-1] for lids in ranges if lids), default=0)
    if last > LARGEST_LID:
        notes.append(f"LIDs go up to {last:,}, and a subnet of InfiniBand has {LARGEST_LID:,}: more than one is needed")
    return Written(text, tuple(notes))


def _check(wiring: Wiring) -> None:
    for name in (*wiring.hosts, *wiring.switches):
        if '"' in name or len(name.splitlines()) != 1:
            message = "cannot be in a dump of ibnetdiscover"
            raise ScenarioError(Problem("name", message, name, "one line without quotation marks"))
    known = [bool(cable.bandwidth is not None or cable.kind) for cable in wiring.cables]
    if any(known) and not all(known):
        message = f"of {wiring.cables[known.index(False)]} is not known, and that of others is"
        raise ScenarioError(Problem("bandwidth", message, allowed="a bandwidth for every cable, or for none"))


def _section(
    node: Node, ports: dict[tuple[str, int], tuple[str, int]], at: dict[tuple[str, int], tuple[Node, Port]], far: _Far
) -> Iterator[str]:
    guid = "" if node.guid is None else f"{node.guid:x}"
    if node.card:
        yield f"sysimgguid=0x{node.card}"
    if guid:
        yield f"switchguid=0x{guid}({guid})" if node.is_switch else f"caguid=0x{guid}"
    kind = f'Switch\t{node.size} "{node.identifier}"' if node.is_switch else f'Ca\t{node.size} "{node.identifier}"'
    management = "enhanced" if node.lmc else "base"
    rest = f" {management} port 0 lid {node.lid} lmc {node.lmc}" if node.is_switch and node.lid is not None else ""
    yield f'{kind}\t\t# "{node.description}"{rest}'
    for port in node.ports:
        if (key := ports[node.identifier, port.number]) in far:
            (end, speed) = far[key]
            yield _line(port, *at[end], speed, node)


def _line(port: Port, far: Node, there: Port, speed: str, node: Node) -> str:
    here = f"[{port.number}]" + ("" if port.guid is None or node.is_switch else f"({port.guid:x}) ")
    end = f'"{far.identifier}"[{there.number}]' + ("" if there.guid is None or far.is_switch else f"({there.guid:x}) ")
    lid = far.lid if far.is_switch else there.lid
    mine = f"lid {port.lid} lmc {port.lmc} " if port.lid is not None and not node.is_switch else ""
    theirs = f" lid {lid}" if lid is not None else " lid 0"
    return f'{here}\t{end}\t\t# {mine}"{far.description}"{theirs}' + (f" {speed}" if speed else "")


def _read_again(wiring: Wiring, text: str) -> Wiring:
    """Read the dump back. Raises ``ScenarioError`` if a name or a cable is another."""
    again = read_ibnetdiscover(text, Path("what is written"))
    for what, before, after in (
        ("hosts", set(wiring.hosts), set(again.hosts)),
        ("switches", set(wiring.switches), set(again.switches)),
        ("cables", set(_cables(wiring)), set(_cables(again))),
    ):
        if before != after:
            lost = min(map(str, before - after), default="nothing")
            message = f"{what} are others when the dump is read again: {lost} becomes {min(map(str, after - before))}"
            raise ScenarioError(Problem("fabric", message))
    return again


def _cables(wiring: Wiring) -> Iterator[tuple[tuple[str, int], ...]]:
    return (tuple(sorted(ends)) for ends in numbered(wiring))


LONGEST_NAME = 63
"""Bytes of a name: a NodeDescription has 64, with the one that ends it."""


def write_ibsim(wiring: Wiring, guids: Mapping[str, int] | None = None) -> Written:
    """The file. Raises ``ScenarioError`` for a name that it cannot hold.

    ``guids`` are the GUIDs of nodes by name; port n of an adapter has the GUID of its node + n.
    """
    for name in (*wiring.hosts, *wiring.switches):
        if '"' in name or not 0 < len(name.encode()) <= LONGEST_NAME or len(name.splitlines()) != 1:
            message = "cannot be in a network file of ibsim"
            raise ScenarioError(Problem("name", message, name, f'1 to {LONGEST_NAME} bytes without "'))
    names = _renamed((*wiring.hosts, *wiring.switches))
    far: dict[str, dict[int, tuple[str, int]]] = {name: {} for name in names}
    for end, other in numbered(wiring):
        far[end[0]][end[1]] = (names[other[0]], other[1])
        far[other[0]][other[1]] = (names[end[0]], end[1])
    hosts = set(wiring.hosts)
    kinds = {name: "Hca" if name in hosts else "Switch" for name in far}
    records = (
        "\n".join(_record(kinds[name], name, names[name], ports, (guids or {}).get(name)))
        for name, ports in far.items()
        if ports
    )
    text = "# network file of ibsim, written by fairlane fabric export\n\n" + "\n\n".join(records) + "\n"
    changed = renamed("node", names, names.values(), ", as ibsim reserves # and @")
    return Written(text, (*left_out(wiring), *renumbered(wiring, _ibsim_read_again(text, names)), *changed))


def _ibsim_read_again(text: str, names: Mapping[str, str]) -> Wiring:
    """Read the file back, with the names that nodes have in the fabric."""
    wiring, known = read_ibsim(text, Path("what is written")), {written: name for name, written in names.items()}
    cables = (replace(cable, ends=(known[cable.ends[0]], known[cable.ends[1]])) for cable in wiring.cables)
    return replace(wiring, hosts=tuple(known[host] for host in wiring.hosts), cables=tuple(cables))


def _renamed(names: Sequence[str]) -> dict[str, str]:
    """The name that each has in the file."""
    used = set(names)
    return {name: unused(re.sub("[#@]", "_", name), used) if re.search("[#@]", name) else name for name in names}


def _record(kind: str, name: str, written: str, ports: dict[int, tuple[str, int]], guid: int | None) -> Iterator[str]:
    if guid is not None:
        yield f"{'caguid' if kind == 'Hca' else 'switchguid'}=0x{guid:016x}"
    yield f'{kind}\t{max(ports)} "{written}"' + (f'\t# "{name}"' if name != written else "")
    for port, (end, there) in sorted(ports.items()):
        yield f'[{port}]\t"{end}"[{there}]'


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
    for (owner, number), (node, port) in sorted(places(nodes, wiring).items(), key=lambda item: item[0]):
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
