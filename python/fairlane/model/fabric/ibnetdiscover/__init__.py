"""Fabrics of real clusters from what ``ibnetdiscover`` prints; ``reports`` has the other reports that are read.

Every port of every switch and adapter has a line; a cable has two, one from either end, and both are compared: a port
without its counterpart means that the dump is not whole. Loopback cables, cables between two adapters, aggregation
nodes inside switches (SHARP) and routers are left out with a remark. Which adapters make up a host, and in which order,
is inferred as ``machines`` describes; an adapter without a cable to a switch belongs to no host.

Speeds are data rates: lanes x the rate of a lane after line coding (8b/10b up to QDR, 64b/66b from FDR10 on).
"""

from collections import Counter, defaultdict
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import plural, some
from fairlane.inputs.files import lines_of
from fairlane.model.fabric.ibnetdiscover.cabling import checked_cabling
from fairlane.model.fabric.ibnetdiscover.machines import (
    as_numbers_count,
    in_rail_order,
    machine_of,
    mapped,
    name_vertices,
    read_name_map,
)
from fairlane.model.fabric.ibnetdiscover.reports import (
    is_link_report,
    is_ports_report,
    read_link_report,
    read_ports_report,
)
from fairlane.model.fabric.ibnetdiscover.sections import (
    LANE_RATES,
    SHOWN,
    Vertex,
    bandwidth,
    is_section,
    read_sections,
    refuse,
)
from fairlane.model.fabric.nodes import Node, Port
from fairlane.model.fabric.wiring import Cable, Wiring, by_ports

__all__ = ["LANE_RATES", "as_numbers_count", "is_ibnetdiscover", "machine_of", "read_ibnetdiscover", "refuse"]


def is_ibnetdiscover(text: str) -> bool:
    """Whether a file looks like a dump, or like a report of ``ibnetdiscover -p`` or ``iblinkinfo``."""
    return any(is_section(line) for line in lines_of(text)) or is_ports_report(text) or is_link_report(text)


def read_ibnetdiscover(text: str, file: Path, name_map: Path | None = None, *, switches_only: bool = False) -> Wiring:
    """The wiring of a cluster; ``ScenarioError`` names every line that is wrong or lacks its counterpart.

    ``name_map`` is a node name map as ``ibnetdiscover --node-name-map`` takes it: it overrides descriptions. With
    ``switches_only`` the dump has no sections of adapters: what their switches' lines say of them is all there is.
    """
    overrides = read_name_map(name_map) if name_map else {}
    read = read_ports_report if is_ports_report(text) else read_link_report if is_link_report(text) else read_sections
    sections = read(text, file)
    vertices, remarks = checked_cabling(sections, file, switches_only=switches_only)
    names, more = name_vertices(vertices, overrides)
    vertices, lacking = in_rail_order(vertices, names, overrides)
    cables, spare = _without_spares(vertices, _cables(vertices, names), names)
    cabled = {end for cable in cables for end in cable.ends}
    hosts = tuple(dict.fromkeys(names[adapter.name] for adapter in vertices.values() if not adapter.is_switch))
    hosts = tuple(host for host in hosts if host in cabled)
    if not hosts:
        message = "no adapter is cabled to a switch, so there is no host: is the dump cut off?"
        raise ScenarioError(Problem.of_file(file, message))
    switches = [vertex for vertex in vertices.values() if vertex.is_switch]
    return Wiring(
        hosts,
        by_ports(cables, hosts, [names[switch.name] for switch in switches]),
        labels={names[switch.name]: switch.description for switch in switches},
        guids={switch.guid: names[switch.name] for switch in switches if switch.guid is not None},
        nodes=_nodes(vertices, names, overrides, cabled),
        remarks=(*remarks, *more, *lacking, *spare),
        source=file,
    )


def _cables(vertices: dict[str, Vertex], names: dict[str, str]) -> list[Cable]:
    """Every cable once, from the end that the dump names first.

    A host numbers its ports over all its adapters.
    """
    ports: dict[tuple[str, int], int] = {}
    taken: Counter[str] = Counter()
    for vertex in vertices.values():
        for port in sorted(vertex.links):
            taken[names[vertex.name]] += 1
            ports[vertex.name, port] = port if vertex.is_switch else taken[names[vertex.name]]
    seen: set[tuple[str, int]] = set()
    cables = []
    for vertex in vertices.values():
        for port, link in vertex.links.items():
            if (vertex.name, port) in seen:
                continue
            seen.add((link.to, link.port))
            back = vertices[link.to].links[link.port].speed
            kind = link.speed if back == link.speed else f"{link.speed} and {back}"
            ends = (names[vertex.name], names[link.to])
            numbers = (ports[vertex.name, port], ports[link.to, link.port])
            cables.append(Cable(ends, numbers, bandwidth(link.speed), kind=kind, line=link.line))
    return cables


def _without_spares(
    vertices: dict[str, Vertex], cables: list[Cable], names: dict[str, str]
) -> tuple[list[Cable], list[str]]:
    """The cables without those of switches from which no host is reached, and a remark on these switches."""
    neighbours: dict[str, set[str]] = defaultdict(set)
    for cable in cables:
        for one, other in (cable.ends, cable.ends[::-1]):
            neighbours[one].add(other)
    reached = {
        names[switch.name] for switch in vertices.values() if not switch.is_switch and names[switch.name] in neighbours
    }
    fresh = list(reached)
    while fresh:
        more = neighbours[fresh.pop()] - reached
        reached |= more
        fresh += more
    spare = [switch for switch in vertices.values() if switch.is_switch and names[switch.name] not in reached]
    if not spare or not reached:
        return cables, []
    shown = some((f"{names[switch.name]} (line {switch.line})" for switch in spare), SHOWN)
    message = f"{plural(len(spare), 'switch', 'switches')} without a path to any host left out: {shown}"
    return [cable for cable in cables if cable.ends[0] in reached], [message]


def _nodes(
    vertices: dict[str, Vertex], names: dict[str, str], overrides: dict[str, str], cabled: set[str]
) -> tuple[Node, ...]:
    """The switches and adapters, in the order of the dump, without those that are left out.

    Descriptions are those of the node name map, as a dump has them that is made with it.
    """
    return tuple(
        Node(
            identifier=section.name,
            owner=names[section.name],
            is_switch=section.is_switch,
            description=mapped(section, overrides) or section.description,
            ports=tuple(
                Port(number)
                if section.is_switch
                else Port(number, section.links[number].guid, section.links[number].lid, section.links[number].lmc)
                for number in sorted(section.links)
            ),
            size=section.ports,
            guid=section.guid,
            card=section.card,
            lid=section.lid,
            lmc=section.lmc,
        )
        for section in vertices.values()
        if names[section.name] in cabled and section.links
    )
