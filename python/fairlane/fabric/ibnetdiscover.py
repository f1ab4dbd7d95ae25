"""Fabrics of real clusters from what ``ibnetdiscover`` prints.

Every port of every switch and adapter has a line; a cable has two, one from either end, and both are compared: a port
without its counterpart means that the dump is not whole. Ports of one adapter, and adapters whose description says that
they are in one machine ("node17 HCA-1", "node17 mlx5_1"), belong to one host. Where two adapters that are not of one
card (``sysimgguid``) have one description, as on nodes that are all called "localhost", descriptions say nothing of
machines, and each card is a host. A switch is named by its description if no other has the same, else by its
identifier, as ``S-0008f10500200b50``; so is a host. Aggregation nodes inside switches (SHARP) are no hosts: they are
left out.

Speeds are data rates: lanes x the rate of a lane after line coding (8b/10b up to QDR, 64b/66b from FDR10 on).
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.wiring import Cable, Wiring

__all__ = ["is_ibnetdiscover", "read_ibnetdiscover"]

LANE_RATES = {
    "SDR": 2_000_000_000,
    "DDR": 4_000_000_000,
    "QDR": 8_000_000_000,
    "FDR10": 10_000_000_000,
    "FDR": 13_636_363_636,
    "EDR": 25_000_000_000,
    "HDR": 50_000_000_000,
    "NDR": 100_000_000_000,
    "XDR": 200_000_000_000,
}
"""Data rate of one lane, bits per second."""

_VERTEX = re.compile(r'(Switch|Ca|Rt)\s+(\d+)\s+"([^"]+)"\s*#\s*"([^"]*)"(.*)')
_PORT = re.compile(
    r'\[(\d+)\](?:\[ext \d+\])?(?:\([0-9a-f]+\))?\s+"([^"]+)"\[(\d+)\](?:\[ext \d+\])?(?:\([0-9a-f]+\))?\s*(#.*)'
)
_SPEED = re.compile(r"\b(\d+)x([A-Z]+\d*)\s*$")
_LID = re.compile(r"#\s*lid (\d+)")
_GUID = re.compile(r"(?:switchguid|caguid|rtguid)=0x([0-9a-f]+)")
_MACHINE = re.compile(r"(\S+)\s+(?:HCA-?\d*|(?:mlx|hfi|qib|ibp|mthca|bnxt|cxgb|i40iw|ocrdma)\w*)", re.IGNORECASE)
_CARD = re.compile(r"sysimgguid=0x([0-9a-f]+)")
_AGGREGATION = re.compile(r"\bAggregation Node\b", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid|Chassis|#)")


@dataclass
class _Vertex:
    """A switch or an adapter, as its section of the dump describes it."""

    name: str
    is_switch: bool
    ports: int
    description: str
    line: int
    guid: int | None
    card: str | None
    """What adapters of one card have in common."""
    links: dict[int, "_Link"] = field(default_factory=dict)


@dataclass(frozen=True)
class _Link:
    """A port's line."""

    to: str
    port: int
    speed: str
    lid: int | None
    line: int


def is_ibnetdiscover(text: str) -> bool:
    """Whether a file looks like a dump."""
    return any(_VERTEX.match(line) for line in text.splitlines())


def read_ibnetdiscover(text: str, file: Path) -> Wiring:
    """The wiring of a cluster; ``ScenarioError`` names every line that is wrong or lacks its counterpart."""
    vertices, problems = _sections(text, file)
    problems = problems or _counterparts(vertices, file)
    if problems:
        raise ScenarioError(problems)
    vertices, remarks = _without_aggregation(vertices)
    names, more = _names(vertices)
    hosts = tuple(dict.fromkeys(names[vertex.name] for vertex in vertices.values() if not vertex.is_switch))
    switches = [vertex for vertex in vertices.values() if vertex.is_switch]
    return Wiring(
        hosts,
        tuple(_cables(vertices, names)),
        labels={names[switch.name]: switch.description for switch in switches},
        guids={switch.guid: names[switch.name] for switch in switches if switch.guid is not None},
        lids=_lids(vertices, names),
        remarks=(*remarks, *more),
        source=file,
    )


def _sections(text: str, file: Path) -> tuple[dict[str, _Vertex], list[Problem]]:
    """What stands in the dump, and what is wrong with single lines."""
    found: dict[str, _Vertex] = {}
    problems: list[Problem] = []
    current: _Vertex | None = None
    guid: int | None = None
    card: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if begins := _VERTEX.match(line):
            kind, ports, name, description, _ = begins.groups()
            current = _Vertex(name, kind == "Switch", int(ports), description, number, guid, card)
            if name in found:
                words = f"{name} has a section already, on line {found[name].line}"
                problems.append(Problem("", words, file=str(file), line=number))
            found[name] = current
            guid = card = None
        elif line.startswith("["):
            problem = _add_port(current, line, number)
            if problem:
                problems.append(Problem("", problem, file=str(file), line=number))
        elif says := _GUID.match(line):
            guid = int(says[1], 16)
        elif says := _CARD.match(line):
            card = says[1]
        elif line.strip() and not _ATTRIBUTE.match(line):
            words = f"not a line of ibnetdiscover: {line.strip()[:60]!r}; is the dump cut off?"
            problems.append(Problem("", words, file=str(file), line=number))
    return found, problems


def _add_port(vertex: _Vertex | None, line: str, number: int) -> str | None:
    """Adds a port's line to its section; what is wrong with it, if something is."""
    parts = _PORT.match(line)
    speed = _SPEED.search(line)
    if parts is None or speed is None or vertex is None:
        return f"not a whole line of a port: {line.strip()[:60]!r}; is the dump cut off?"
    if speed[2] not in LANE_RATES:
        return f"unknown speed {speed[0].strip()}; allowed: a number of lanes and one of {', '.join(LANE_RATES)}"
    port = int(parts[1])
    if not 1 <= port <= vertex.ports:
        return f"{vertex.name} has no port {port}: it has {vertex.ports}"
    if port in vertex.links:
        return f"port {port} of {vertex.name} is used twice: also on line {vertex.links[port].line}"
    lid = _LID.match(parts[4])
    vertex.links[port] = _Link(parts[2], int(parts[3]), speed[0].strip(), int(lid[1]) if lid else None, number)
    return None


def _counterparts(vertices: dict[str, _Vertex], file: Path) -> list[Problem]:
    """Lines whose other end says something else, or nothing."""
    problems = []
    for vertex in vertices.values():
        for port, link in vertex.links.items():
            other = vertices.get(link.to)
            back = other.links.get(link.port) if other else None
            here = f"{vertex.name}[{port}] leads to {link.to}[{link.port}]"
            if other is None:
                words = f"{here}, and the dump has no section for {link.to}: is it cut off?"
            elif back is None:
                words = f"{here}, and the section of {link.to} has no line for that port: is the dump cut off?"
            elif (back.to, back.port) != (vertex.name, port):
                words = f"{here}, which leads to {back.to}[{back.port}] (line {back.line}): a port used twice"
            else:
                continue
            problems.append(Problem("", words, file=str(file), line=link.line))
    return problems


def _without_aggregation(vertices: dict[str, _Vertex]) -> tuple[dict[str, _Vertex], list[str]]:
    """The same without the adapters inside switches that reduce on the way, and a remark on them."""
    inside = {name for name, it in vertices.items() if not it.is_switch and _AGGREGATION.search(it.description)}
    if not inside:
        return vertices, []
    others = {name: it for name, it in vertices.items() if name not in inside}
    for vertex in others.values():
        vertex.links = {port: link for port, link in vertex.links.items() if link.to not in inside}
    return others, [f"{len(inside)} aggregation node{'s' * (len(inside) != 1)} inside switches left out: no hosts"]


def _names(vertices: dict[str, _Vertex]) -> tuple[dict[str, str], list[str]]:
    """The name of the switch or host that each identifier stands for, and remarks on names that say nothing."""
    counts = Counter((vertex.is_switch, vertex.description) for vertex in vertices.values())
    machines = {it.name: _machine(it) for it in vertices.values()}
    cards: dict[tuple[str, str], set[str]] = defaultdict(set)
    for vertex in vertices.values():
        if machine := machines[vertex.name]:
            cards[machine, vertex.description].add(vertex.card or vertex.name)
    shared = {machine for (machine, _), found in cards.items() if len(found) > 1}
    names: dict[str, str] = {}
    first: dict[tuple[str, str], str] = {}
    for vertex in vertices.values():
        machine = machines[vertex.name]
        if machine in shared:
            names[vertex.name] = first.setdefault((machine, vertex.card or vertex.name), vertex.name)
        elif machine:
            names[vertex.name] = machine
        elif vertex.description and counts[vertex.is_switch, vertex.description] == 1:
            names[vertex.name] = vertex.description
        else:
            names[vertex.name] = vertex.name
    several = {machine: sum(one == machine for one, _ in first) for machine in sorted(shared)}
    return names, [f"{count} machines are called {machine}: each card is a host" for machine, count in several.items()]


def _machine(vertex: _Vertex) -> str | None:
    """The machine that an adapter's description names, if it does."""
    found = None if vertex.is_switch else _MACHINE.fullmatch(vertex.description)
    return found[1] if found else None


def _cables(vertices: dict[str, _Vertex], names: dict[str, str]) -> list[Cable]:
    """Every cable once, from the end that the dump names first. A host numbers its ports over all its adapters."""
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
            lanes, rate = _SPEED.search(link.speed).groups()  # type: ignore[union-attr]
            back = vertices[link.to].links[link.port].speed
            kind = link.speed if back == link.speed else f"{link.speed} and {back}"
            ends = (names[vertex.name], names[link.to])
            numbers = (ports[vertex.name, port], ports[link.to, link.port])
            cables.append(Cable(ends, numbers, int(lanes) * LANE_RATES[rate], kind=kind, line=link.line))
    return cables


def _lids(vertices: dict[str, _Vertex], names: dict[str, str]) -> dict[int, str]:
    """The local identifier of each host's first port."""
    lids: dict[int, str] = {}
    known: set[str] = set()
    for vertex in vertices.values():
        if vertex.is_switch or names[vertex.name] in known or not vertex.links:
            continue
        first = vertex.links[min(vertex.links)]
        if first.lid is not None:
            lids[first.lid] = names[vertex.name]
            known.add(names[vertex.name])
    return lids
