"""Identifiers, GUIDs and LIDs for the nodes of a fabric: those of its source, else generated from their numbers.

A generated node GUID is 0x10000000 + 16 n for the adapter n (counted over all hosts) and 0x20000000 + n for the switch
n, from 0; an adapter's port has the GUID of its node + 1. Generated LIDs count from 1, hosts before switches.
"""

from collections import Counter

from fairlane.model.fabric.nodes import Node, Port
from fairlane.model.fabric.wiring import Wiring

ADAPTERS, SWITCHES, STEP = 0x1000_0000, 0x2000_0000, 16


def nodes_of(wiring: Wiring) -> tuple[Node, ...]:
    """The nodes of the source, or if it has none, an adapter for each cable of a host, then the switches."""
    if wiring.nodes:
        return wiring.nodes
    used = ports_of(wiring)
    nodes: list[Node] = []
    for host in wiring.hosts:
        numbers = sorted(used.get(host, ()))
        for at, _ in enumerate(numbers):
            guid = ADAPTERS + STEP * len(nodes)
            description = host if len(numbers) == 1 else f"{host} mlx5_{at}"
            port = Port(1, guid + 1, len(nodes) + 1)
            nodes.append(Node(f"H-{guid:016x}", host, False, description, (port,), 1, guid, f"{guid:x}"))
    for number, switch in enumerate(wiring.switches):
        guid = SWITCHES + number
        ports = sorted(used[switch])
        lid = len(nodes) + 1
        size = ports[-1]
        nodes.append(
            Node(f"S-{guid:016x}", switch, True, switch, tuple(map(Port, ports)), size, guid, f"{guid:x}", lid)
        )
    return tuple(nodes)


def numbered(wiring: Wiring) -> list[tuple[tuple[str, int], tuple[str, int]]]:
    """The two ends of each cable with their ports; cables without ports take the next ones of their ends."""
    taken: dict[str, set[int]] = {}
    for cable in wiring.cables:
        for end, port in zip(cable.ends, cable.ports or (), strict=False):
            taken.setdefault(end, set()).add(port)
    last: Counter[str] = Counter()
    pairs = []
    for cable in wiring.cables:
        ends = []
        for at, end in enumerate(cable.ends):
            if cable.ports is not None:
                ends.append((end, cable.ports[at]))
                continue
            last[end] += 1
            while last[end] in taken.get(end, ()):
                last[end] += 1
            ends.append((end, last[end]))
        pairs.append((ends[0], ends[1]))
    return pairs


def ports_of(wiring: Wiring) -> dict[str, list[int]]:
    """The ports of each host and switch that have a cable."""
    ports: dict[str, list[int]] = {}
    for ends in numbered(wiring):
        for name, port in ends:
            ports.setdefault(name, []).append(port)
    return ports


def endpoints_of(wiring: Wiring) -> tuple[tuple[str, int], ...]:
    """Host and port of each endpoint, in the simulator's order: host by host, and by the host's cables."""
    ports: dict[str, list[int]] = {host: [] for host in wiring.hosts}
    for ends in numbered(wiring):
        for name, port in ends:
            if name in ports:
                ports[name].append(port)
    return tuple((host, port) for host, numbers in ports.items() for port in numbers)


def endpoint_lids(wiring: Wiring) -> dict[int, int]:
    """The endpoint of each local identifier that the source's nodes have; those of a port in ascending order."""
    number = {place: at for at, place in enumerate(endpoints_of(wiring))}
    ends = places(wiring.nodes, wiring).items()
    return {lid: number[place] for place, (_, port) in ends if place in number for lid in port.lids}


def places(nodes: tuple[Node, ...], wiring: Wiring) -> dict[tuple[str, int], tuple[Node, Port]]:
    """The node and its port for each port of a host or switch, by name and number.

    A source's nodes number the ports of a host over its adapters; generated ones have an adapter for each port.
    """
    count: Counter[str] = Counter()
    by_port: dict[tuple[str, int], tuple[Node, Port]] = {}
    used = {name: sorted(ports) for name, ports in ports_of(wiring).items()}
    for node in nodes:
        for port in node.ports:
            count[node.owner] += 1
            at = count[node.owner]
            number = port.number if node.is_switch else at if wiring.nodes else used[node.owner][at - 1]
            by_port[node.owner, number] = (node, port)
    return by_port
