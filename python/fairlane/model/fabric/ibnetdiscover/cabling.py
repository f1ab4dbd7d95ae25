"""Who is joined to whom: masked identifiers are distinguished, both ends of each cable compared, loopbacks left out.

So are cables between two adapters, routers and the aggregation nodes inside switches: neither runs a job.
"""

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from fairlane.core.errors import Problem
from fairlane.core.wording import plural, some
from fairlane.model.fabric.ibnetdiscover.sections import SHOWN, Link, Sections, Vertex, refuse
from fairlane.model.fabric.nodes import LARGEST_LID

_AGGREGATION = re.compile(r"\bAggregation Node\b", re.IGNORECASE)


def checked_cabling(
    sections: Sections, file: Path, *, switches_only: bool = False
) -> tuple[dict[str, Vertex], list[str]]:
    """The switches and adapters by identifier, and remarks on what was left out.

    Raises ``ScenarioError`` with the line of every port that contradicts the other end of its cable.
    """
    if switches_only:
        sections.vertices += _adapters_of(sections.vertices)
    once, repeated = _once(sections.vertices)
    vertices, remarks = _by_identifier(once, file)
    remarks = [*repeated, *remarks]
    refuse(_counterparts(vertices, file), file)
    remarks = [*sections.remarks, *remarks, *_drop_loopbacks(vertices), *_unusable_lids(vertices)]
    inside = {
        vertex.name for vertex in vertices.values() if not vertex.is_switch and _AGGREGATION.search(vertex.description)
    }
    routers = {vertex.name for vertex in vertices.values() if vertex.is_router}
    if inside:
        remarks.append(f"{plural(len(inside), 'aggregation node')} inside switches left out: no hosts")
    if routers:
        names = some((f"{vertices[name].description} (line {vertices[name].line})" for name in sorted(routers)), SHOWN)
        remarks.append(f"{plural(len(routers), 'router')} to other subnets left out: {names}")
    vertices = _without(vertices, inside | routers)
    return vertices, [*remarks, *_drop_between_adapters(vertices)]


def _once(vertices: list[Vertex]) -> tuple[list[Vertex], list[str]]:
    """Without the sections that an earlier one repeats: a file with the same dump twice."""
    first: dict[str, Vertex] = {}
    for vertex in vertices:
        first.setdefault(vertex.name, vertex)
    kept = [
        section
        for section in vertices
        if first[section.name] is section or not section.links or not section.is_like(first[section.name])
    ]
    count = len(vertices) - len(kept)
    remark = f"{plural(count, 'section')} repeated word for word, left out: the file holds the dump more than once"
    return kept, [remark] if count else []


def _by_identifier(vertices: list[Vertex], file: Path) -> tuple[dict[str, Vertex], list[str]]:
    """By identifier; where masking has made several alike, by identifier and LID."""
    alike: dict[str, list[Vertex]] = defaultdict(list)
    for vertex in vertices:
        alike[vertex.name].append(vertex)
    masked = {name: group for name, group in alike.items() if len(group) > 1}
    if not masked:
        return {vertex.name: vertex for vertex in vertices}, []
    by_lid: dict[tuple[str, int], str] = {}
    problems: list[Problem] = []
    for name, group in masked.items():
        first: dict[int, Vertex] = {}
        for vertex in group:
            lids = sorted(vertex.lids)
            twice = next((first[lid] for lid in lids if lid in first), None)
            if twice is not None or not lids:
                before = twice or next(other for other in group if other is not vertex)
                problem = Problem.of_file(file, _same_identifier(vertex, before), vertex.line)
                problems.append(problem)
                continue
            first.update(dict.fromkeys(lids, vertex))
            vertex.name = f"{name}@lid{lids[0]}"
            by_lid.update({(name, lid): vertex.name for lid in lids})
    refuse(problems, file)
    for vertex in vertices:
        vertex.links = {port: _resolved(link, masked, by_lid) for port, link in vertex.links.items()}
    count = sum(map(len, masked.values()))
    remark = f"{count} switches and adapters share {len(masked)} masked identifiers: they are distinguished by LID"
    return {vertex.name: vertex for vertex in vertices}, [remark]


def _adapters_of(vertices: list[Vertex]) -> list[Vertex]:
    """The adapters that switches' lines lead to and that have no section, each with the port that is known of it."""
    known = {vertex.name for vertex in vertices}
    adapters: dict[tuple[str, int | None], Vertex] = {}
    for vertex in vertices:
        for port, link in vertex.links.items():
            if link.to in known or link.to.startswith("S-"):
                continue
            name, key = link.to, (link.to, link.far_lid)
            adapter = adapters.setdefault(key, Vertex(name, False, link.port, link.description, link.line, None, None))
            adapter.is_router = name.startswith("R-")
            adapter.links[link.port] = replace(
                link,
                to=vertex.name,
                port=port,
                lid=link.far_lid,
                far_lid=vertex.lid,
                description=vertex.description,
                guid=None,
            )
    return list(adapters.values())


def _same_identifier(vertex: Vertex, before: Vertex) -> str:
    message = f"{vertex.name} has a section already, on line {before.line}"
    advice = "if GUIDs were masked, mask each by a value of its own, or leave the LIDs in"
    return f"{message}; {advice}; if the file holds two dumps, keep one"


def _resolved(link: Link, masked: dict[str, list[Vertex]], by_lid: dict[tuple[str, int], str]) -> Link:
    if link.to not in masked or link.far_lid is None:
        return link
    return replace(link, to=by_lid.get((link.to, link.far_lid), link.to))


def _counterparts(vertices: dict[str, Vertex], file: Path) -> list[Problem]:
    """Lines whose other end states something else, or nothing."""
    problems = []
    adapters = any(not vertex.is_switch for vertex in vertices.values())
    hint = "" if adapters else " --switches-only reads a dump of which only the switches' sections were kept"
    for vertex in vertices.values():
        for port, link in vertex.links.items():
            other = vertices.get(link.to)
            back = other.links.get(link.port) if other else None
            here = f"{vertex.name}[{port}] leads to {link.to}[{link.port}]"
            if other is None:
                message = f"{here}, but the dump has no section for {link.to}: is it truncated?{hint}"
            elif back is None:
                message = f"{here}, and the section of {link.to} has no line for that port: is the dump cut off?"
            elif (back.to, back.port) != (vertex.name, port):
                message = f"{here}, which leads to {back.to}[{back.port}] (line {back.line}): a port used twice"
            else:
                continue
            problems.append(Problem.of_file(file, message, link.line))
    return problems


def _drop_loopbacks(vertices: dict[str, Vertex]) -> list[str]:
    """Takes cables that lead back to their own switch or adapter away, with a remark on them."""
    loops = []
    for vertex in vertices.values():
        for port, link in [(port, link) for port, link in vertex.links.items() if link.to == vertex.name]:
            del vertex.links[port]
            if port <= link.port:
                loops.append(f"{vertex.description or vertex.name} port {port} to port {link.port} (line {link.line})")
    return [f"{plural(len(loops), 'loopback cable')} left out: {some(loops, SHOWN)}"] if loops else []


def _drop_between_adapters(vertices: dict[str, Vertex]) -> list[str]:
    """Takes cables away that join two adapters, with a remark on them: no switch forwards over them."""
    cables = []
    for vertex in vertices.values():
        for port, link in () if vertex.is_switch else list(vertex.links.items()):
            other = vertices[link.to]
            if not other.is_switch:
                del vertex.links[port], other.links[link.port]
                ends = (
                    f"{adapter.description or adapter.name} port {at}"
                    for adapter, at in ((vertex, port), (other, link.port))
                )
                cables.append(f"{' to '.join(ends)} (line {link.line})")
    return [f"{plural(len(cables), 'cable')} between two adapters left out: {some(cables, SHOWN)}"] if cables else []


def _unusable_lids(vertices: dict[str, Vertex]) -> list[str]:
    """Removes LIDs that no port can have, with a remark on them and on those that several ports have."""
    holders: dict[int, list[str]] = defaultdict(list)
    for vertex in vertices.values():
        name = vertex.description or vertex.name
        if vertex.is_switch:
            lids = vertex.lids
            for lid in lids:
                holders[lid].append(f"{name} (line {vertex.line})")
            vertex.lid = vertex.lid if all(0 < lid <= LARGEST_LID for lid in lids) else None
            continue
        for port, link in vertex.links.items():
            for lid in link.lids:
                holders[lid].append(f"{name} port {port} (line {link.line})")
            if not all(0 < lid <= LARGEST_LID for lid in link.lids):
                vertex.links[port] = replace(link, lid=None)
    wrong: list[str] = []
    for lid, ports in sorted(holders.items()):
        if not 0 < lid <= LARGEST_LID:
            wrong.append(
                f"{plural(len(ports), 'port')} with LID {lid}, which is no valid LID of a port: {some(ports, SHOWN)}"
            )
    twice = [(lid, ports) for lid, ports in sorted(holders.items()) if len(ports) > 1 and 0 < lid <= LARGEST_LID]
    if twice:
        shown = some((f"{lid} ({some(ports, SHOWN)})" for lid, ports in twice), SHOWN)
        wrong.append(f"{plural(len(twice), 'LID is', 'LIDs are')} used by several ports: {shown}")
    return wrong


def _without(vertices: dict[str, Vertex], dropped: set[str]) -> dict[str, Vertex]:
    """The switches and adapters without some of them and without the cables to these."""
    if not dropped:
        return vertices
    others = {name: other for name, other in vertices.items() if name not in dropped}
    for vertex in others.values():
        vertex.links = {port: link for port, link in vertex.links.items() if link.to not in dropped}
    return others
