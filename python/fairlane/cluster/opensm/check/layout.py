"""A fabric as ibsim simulates it: which port of it is which of the fabric, by GUID and LID.

A host is one adapter there, and ibsim gives port n of an adapter the GUID of the adapter + n. The ports of a host with
several therefore have other GUIDs than in the fabric. LIDs are those of the fabric: OpenSM takes them from its file
``guid2lid``.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy

from fairlane.cluster.opensm.check.simulated import Sizes
from fairlane.core.errors import Problem, ScenarioError
from fairlane.model.fabric.export.infiniband import write_ibsim
from fairlane.model.fabric.identities import nodes_of, numbered, places
from fairlane.model.fabric.nodes import LARGEST_LID
from fairlane.model.fabric.wiring import Wiring

_GENERATED, _STEP = 0x7000_0000_0000_0000, 0x1000  # node GUIDs of hosts with several ports
GENERATED = "GUIDs and LIDs of the fabric are missing, not unique, or of several LMCs: generated ones are used"


@dataclass(frozen=True)
class End:
    """A port of the simulated subnet that has a cable."""

    node: str
    port: int
    lid: int
    is_switch: bool
    guid: int
    """The port's GUID; a switch's own for all of its ports."""
    fabric_guid: int
    """The GUID that it has in the fabric."""
    lmc: int = 0
    """It has 2^lmc LIDs, from ``lid`` on."""

    @property
    def name(self) -> str:
        """The port's name in a policy."""
        return f"{self.node}/P{self.port}"


@dataclass(frozen=True)
class Layout:
    """The simulated subnet of a fabric."""

    wiring: Wiring
    """The fabric, with switches by GUID and hosts by LID as they are in the subnet."""
    ends: tuple[End, ...]
    network: str
    """Text of ibsim's network file."""
    guid2lid: str
    """Text of OpenSM's file of LIDs by GUID."""
    notes: tuple[str, ...] = ()
    lmc: int = 0
    """LID mask control of all ports of hosts."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts by the names that ibsim has for them, in the order of its file."""
        return tuple(line.split('"')[1] for line in self.network.splitlines() if line.startswith("Hca"))

    @property
    def sizes(self) -> Sizes:
        """Return the sizes of ibsim's tables: a node has ports up to its last one, and a switch port 0."""
        last: dict[str, int] = {}
        for end in self.ends:
            last[end.node] = max(last.get(end.node, 0), end.port)
        switches = {end.node for end in self.ends if end.is_switch}
        return Sizes(len(last), len(switches), sum(last.values()) + len(last))

    @property
    def manager(self) -> int:
        """The LID at which OpenSM runs: that of the first host's first port."""
        return next(end.lid for end in self.ends if not end.is_switch)


def layout_of(wiring: Wiring) -> Layout:
    """The simulated subnet of a fabric.

    Raises ``ScenarioError`` for names that ibsim cannot hold, and for a fabric that is more than one subnet.
    """
    if (parts := _subnets(wiring)) > 1:
        message = f"consists of {parts} subnets that no cable between switches joins, as the planes of rails"
        allowed = "one subnet, which an OpenSM can manage: as without rails"
        raise ScenarioError(Problem("fabric", message, allowed=allowed))
    layout = _with_identities(wiring)
    if layout is not None:
        return layout
    generated = _with_identities(replace(wiring, nodes=(), guids={}))
    if generated is None:  # they are unique, but there are only so many
        message = "has more ports of hosts and switches than there are LIDs in a subnet"
        raise ScenarioError(Problem("fabric", message, allowed=f"at most {LARGEST_LID:,}"))
    return replace(generated, notes=(GENERATED,))


def _subnets(wiring: Wiring) -> int:
    """Number of parts that are joined by cables between switches."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    number = {name: number for number, name in enumerate(wiring.switches)}
    between = [[number[end] for end in cable.ends] for cable in wiring.cables if not set(cable.ends) - set(number)]
    cables = numpy.array(between, dtype=numpy.int64).reshape(-1, 2)
    graph = csr_array((numpy.ones(len(cables)), (cables[:, 0], cables[:, 1])), shape=(len(number), len(number)))
    parts, _ = connected_components(graph, directed=False)
    return int(parts)


def _with_identities(wiring: Wiring) -> Layout | None:
    """The subnet with the identities that the wiring has; None if they are not complete and unique."""
    nodes = nodes_of(wiring)
    at = places(nodes, wiring)
    cabled = [end for ends in numbered(wiring) for end in ends]
    hosts = {name: number for number, name in enumerate(wiring.hosts)}
    base: dict[str, int] = {}
    ends: list[End] = []
    for owner, number in sorted(cabled, key=lambda end: (hosts.get(end[0], len(hosts)), end)):
        node, port = at[owner, number]
        lid, guid = (node.lid, node.guid) if node.is_switch else (port.lid, port.guid)
        if lid is None or guid is None or not 0 < lid <= LARGEST_LID + 1 - 2**port.lmc:
            return None
        node_guid = base.setdefault(owner, guid if node.is_switch else guid - number)
        node_guid += 0 if node.is_switch else number
        ends.append(End(owner, number, lid, node.is_switch, node_guid, guid, 0 if node.is_switch else port.lmc))
    ends = _apart(ends, base)
    lids = {(end.node, 0 if end.is_switch else end.port): end for end in ends}
    ranges = {key: range(end.lid, end.lid + 2**end.lmc) for key, end in lids.items()}
    if max(Counter(lid for node_guid in ranges.values() for lid in node_guid).values()) > 1:
        return None
    masks = {end.lmc for end in ends if not end.is_switch}
    if len(masks) > 1:
        return None
    if max(Counter([*base.values(), *(end.guid for end in ends if not end.is_switch)]).values()) > 1:
        return None
    lines = (f"0x{end.guid:016x} 0x{ranges[key][0]:04x} 0x{ranges[key][-1]:04x}\n\n" for key, end in lids.items())
    known = replace(
        wiring,
        guids={end.guid: end.node for end in ends if end.is_switch},
        nodes=nodes,
    )
    return Layout(known, tuple(ends), write_ibsim(wiring, base).text, "".join(lines), lmc=masks.pop())


def _apart(ends: Sequence[End], base: dict[str, int]) -> list[End]:
    """The ends, with generated GUIDs for hosts with several ports: consecutive ones may be those of another host."""
    count = Counter(end.node for end in ends if not end.is_switch)
    several = [host for host, ports in count.items() if ports > 1]
    base |= {host: _GENERATED + _STEP * number for number, host in enumerate(several)}
    return [replace(end, guid=base[end.node] + end.port) if count[end.node] > 1 else end for end in ends]
