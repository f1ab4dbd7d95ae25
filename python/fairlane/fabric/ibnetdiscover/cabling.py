"""Who is joined to whom: masked identifiers are distinguished, both ends of each cable compared, loopbacks left out."""

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.ibnetdiscover.sections import Link, Sections, Vertex
from fairlane.wording import plural

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
    problems = _counterparts(vertices, file)
    if problems:
        raise ScenarioError(problems)
    remarks = [*sections.remarks, *remarks, *_drop_loopbacks(vertices)]
    vertices, more = _without_aggregation(vertices)
    return vertices, [*remarks, *more]


def _once(vertices: list[Vertex]) -> tuple[list[Vertex], list[str]]:
    """Without the sections that an earlier one repeats: a file with the same dump twice."""
    first: dict[str, Vertex] = {}
    for vertex in vertices:
        first.setdefault(vertex.name, vertex)
    found = [it for it in vertices if first[it.name] is it or not it.links or not it.is_like(first[it.name])]
    count = len(vertices) - len(found)
    words = f"{plural(count, 'section')} repeated word for word, left out: the file holds the dump more than once"
    return found, [words] if count else []


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
    if problems:
        raise ScenarioError(problems)
    for vertex in vertices:
        vertex.links = {port: _resolved(link, masked, by_lid) for port, link in vertex.links.items()}
    count = sum(map(len, masked.values()))
    words = f"{count} switches and adapters share {len(masked)} masked identifiers: they are distinguished by LID"
    return {vertex.name: vertex for vertex in vertices}, [words]


def _adapters_of(vertices: list[Vertex]) -> list[Vertex]:
    """The adapters that switches' lines lead to and that have no section, each with the port that is known of it."""
    known = {vertex.name for vertex in vertices}
    found: dict[tuple[str, int | None], Vertex] = {}
    for vertex in vertices:
        for port, link in vertex.links.items():
            if link.to in known or link.to.startswith("S-"):
                continue
            name, key = link.to, (link.to, link.far_lid)
            adapter = found.setdefault(key, Vertex(name, False, link.port, link.description, link.line, None, None))
            adapter.links[link.port] = replace(
                link,
                to=vertex.name,
                port=port,
                lid=link.far_lid,
                far_lid=vertex.lid,
                description=vertex.description,
                guid=None,
            )
    return list(found.values())


def _same_identifier(vertex: Vertex, before: Vertex) -> str:
    words = f"{vertex.name} has a section already, on line {before.line}"
    advice = "if GUIDs were masked, mask each by a value of its own, or leave the LIDs in"
    return f"{words}; {advice}; if the file holds two dumps, keep one"


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
                words = f"{here}, but the dump has no section for {link.to}: is it truncated?{hint}"
            elif back is None:
                words = f"{here}, and the section of {link.to} has no line for that port: is the dump cut off?"
            elif (back.to, back.port) != (vertex.name, port):
                words = f"{here}, which leads to {back.to}[{back.port}] (line {back.line}): a port used twice"
            else:
                continue
            problems.append(Problem.of_file(file, words, link.line))
    return problems


def _drop_loopbacks(vertices: dict[str, Vertex]) -> list[str]:
    """Takes cables that lead back to their own switch or adapter away, with a remark on each."""
    remarks = []
    for vertex in vertices.values():
        loops = {port: link for port, link in vertex.links.items() if link.to == vertex.name}
        for port, link in loops.items():
            del vertex.links[port]
            if port <= link.port:
                name = vertex.description or vertex.name
                remarks.append(f"line {link.line}: loopback cable left out: {name} port {port} to port {link.port}")
    return remarks


def _without_aggregation(vertices: dict[str, Vertex]) -> tuple[dict[str, Vertex], list[str]]:
    """The same without the adapters inside switches that reduce in the network, and a remark on them."""
    inside = {name for name, it in vertices.items() if not it.is_switch and _AGGREGATION.search(it.description)}
    if not inside:
        return vertices, []
    others = {name: it for name, it in vertices.items() if name not in inside}
    for vertex in others.values():
        vertex.links = {port: link for port, link in vertex.links.items() if link.to not in inside}
    return others, [f"{len(inside)} aggregation node{'s' * (len(inside) != 1)} inside switches left out: no hosts"]
