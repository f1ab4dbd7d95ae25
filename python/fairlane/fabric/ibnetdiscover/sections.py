"""The sections of a dump, line by line: switches and adapters with their ports.

What a paste adds is skipped with a remark (``inputs.pasted``). GUIDs may be masked by anything.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import lines_of
from fairlane.inputs.pasted import added_by_paste
from fairlane.units import whole_number

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

_VERTEX = re.compile(r'(Switch|Ca|Rt)\s+(\d{1,9})\s+"([^"]+)"\s*#\s*"(.*)"([^"]*)')
_GUID_OF_PORT = r"(?:\[ext \d+\])?(?:\([^()]*\))?"
_OWN_GUID = r"(?:\[ext \d+\])?(?:\(([^()]*)\))?"
_PORT = re.compile(rf'\[(\d{{1,9}})\]{_OWN_GUID}\s+"([^"]+)"\[(\d{{1,9}})\]{_GUID_OF_PORT}\s*(#.*)')
_PORT_GUID = re.compile(r"[0-9a-fA-F]{1,16}")
_PORT_BEGINS = re.compile(r"\[\d*\]?(?=$|[\s(\[])|\[\d+$")
# With --full the codes of speed and width follow: " s=32 w=2".
_SPEED = re.compile(r"\b(\d{1,9}x([A-Z]+\d*))(?:\s+[a-z]=\S+)*\s*$")
_ENDS_WITH_LID = re.compile(r"\blid \d{1,9}\s*$")
_QUOTED = re.compile(r'"(.*)"')
_OWN_LID = re.compile(r"#\s*lid (\d{1,9})")
_LID = re.compile(r"\blid (\d{1,9})")
_GUID = re.compile(r"(?:switchguid|caguid|rtguid)=0x([0-9a-fA-F]{1,16})\b")
_CARD = re.compile(r"sysimgguid=0x([0-9a-fA-F]{1,16})\b")
_ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=|(Non-)?Chassis\b|#")
_KEYWORDS = ("Switch", "Ca", "Rt", "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=")


@dataclass
class Vertex:
    """A switch or an adapter, as its section of the dump describes it."""

    name: str  # its identifier; the same as another's only while masked GUIDs are not resolved
    is_switch: bool
    ports: int
    description: str
    line: int
    guid: int | None
    card: str | None  # the system image GUID: what adapters of one card have in common
    lid: int | None = None  # a switch's local identifier
    links: dict[int, "Link"] = field(default_factory=dict)

    def is_like(self, other: "Vertex") -> bool:
        """Whether another section states the same."""
        ports = ({port: replace(link, line=0) for port, link in it.links.items()} for it in (self, other))
        return replace(self, line=0, links={}) == replace(other, line=0, links={}) and next(ports) == next(ports)

    @property
    def lids(self) -> set[int]:
        """The local identifiers by which others know it."""
        own = {self.lid} if self.is_switch else {link.lid for link in self.links.values()}
        return {lid for lid in own if lid is not None}


@dataclass(frozen=True)
class Link:
    """A port's line."""

    to: str
    port: int
    speed: str  # lanes and rate, as ``4xNDR``; empty in dumps of tools that do not print it
    lid: int | None  # the port's own local identifier, if it is an adapter's
    far_lid: int | None  # the local identifier at the other end
    description: str  # what the line calls the other end
    line: int
    guid: int | None = None  # the port's own GUID, if it is an adapter's


@dataclass
class Sections:
    """The content of a dump."""

    vertices: list[Vertex] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def is_section(line: str) -> bool:
    """Whether a line begins a section."""
    return _VERTEX.match(line.strip()) is not None


def bandwidth(speed: str) -> int | None:
    """The data rate of a speed, bits per second; None if it is not known."""
    lanes, _, rate = speed.partition("x")
    return whole_number(lanes) * LANE_RATES[rate] if speed else None


def read_sections(text: str, file: Path) -> Sections:
    """The sections of a dump; ``ScenarioError`` names every line that is none of a dump's."""
    found, problems = Sections(), list[Problem]()
    guid: int | None = None
    card: str | None = None
    lines = [line.strip() for line in lines_of(text)]
    first, last = _extent(lines)
    for number, line in enumerate(lines, 1):
        problem = None
        if begins := _VERTEX.match(line):
            kind, ports, name, description, rest = begins.groups()
            lid = _LID.search(rest)
            vertex = Vertex(name, kind == "Switch", whole_number(ports), description, number, guid, card)
            vertex.lid = whole_number(lid[1]) if lid else None
            found.vertices.append(vertex)
            guid = card = None
        elif _PORT_BEGINS.match(line):
            problem = _add_port(found.vertices[-1] if found.vertices else None, line, number)
        elif states := _GUID.match(line):
            guid = int(states[1], 16) or None
        elif states := _CARD.match(line):
            card = states[1] if int(states[1], 16) else None
        elif line and not _ATTRIBUTE.match(line):
            added = added_by_paste(line, "ibnetdiscover")
            what = f"a {added}" if added else _around(line, number, first, last)
            if what:
                found.remarks.append(f"line {number} skipped, {what}: {line[:60]}")
            else:
                problem = f"not a line of ibnetdiscover: {line[:60]!r}; is the dump cut off?"
        if problem:
            problems.append(Problem.of_file(file, problem, number))
    problems += _without_speed(found, file)
    if problems:
        raise ScenarioError(problems)
    return found


def _extent(lines: list[str]) -> tuple[int, int]:
    """The numbers of the first and of the last line of the dump's sections."""
    inside = [
        number
        for number, line in enumerate(lines, 1)
        if line.startswith(_KEYWORDS[3:]) or _VERTEX.match(line) or _PORT_BEGINS.match(line)
    ]
    return (inside[0], inside[-1]) if inside else (1, len(lines))


def _around(line: str, number: int, first: int, last: int) -> str | None:
    """Where a line is that is not between the sections, unless it is the beginning of one of theirs."""
    if first <= number <= last:
        return None
    if line.split(maxsplit=1)[0] in _KEYWORDS[:3] or any(keyword.startswith(line) for keyword in _KEYWORDS):
        return None
    return "text in front of the dump" if number < first else "text behind the dump"


def _without_speed(found: Sections, file: Path) -> list[Problem]:
    """Lines without a speed, where others have one; a remark where none has."""
    links = [link for vertex in found.vertices for link in vertex.links.values()]
    unknown = [link for link in links if not link.speed]
    if links and len(unknown) == len(links):
        found.remarks.append("no line names a speed: all cables have the fabric's default bandwidth")
        return []
    words = "not a whole line of a port: it names no speed; is the dump cut off?"
    return [Problem.of_file(file, words, link.line) for link in unknown]


def _add_port(vertex: Vertex | None, line: str, number: int) -> str | None:
    """Adds a port's line to its section; what is wrong with it, if something is."""
    parts = _PORT.match(line)
    speed = _SPEED.search(line)
    if parts is None or vertex is None or not (speed or _ENDS_WITH_LID.search(line)):
        return f"not a whole line of a port: {line[:60]!r}; is the dump cut off?"
    if speed and speed[2] not in LANE_RATES:
        return f"unknown speed {speed[1]}; allowed: a number of lanes and one of {', '.join(LANE_RATES)}"
    lanes = whole_number(speed[1].partition("x")[0]) if speed else 1
    if not 1 <= lanes <= 12:
        return f"a link of {lanes} lanes; allowed: 1 to 12"
    port = whole_number(parts[1])
    if not 1 <= port <= vertex.ports:
        return f"{vertex.name} has no port {port}: it has {vertex.ports}"
    if port in vertex.links:
        return f"port {port} of {vertex.name} is used twice: also on line {vertex.links[port].line}"
    own, lids = _OWN_LID.match(parts[5]), _LID.findall(parts[5])
    lid, far = (whole_number(own[1]) if own else None), (whole_number(lids[-1]) if lids else None)
    called = _QUOTED.search(parts[5])
    kind = speed[1] if speed else ""
    guid = int(parts[2], 16) if parts[2] and _PORT_GUID.fullmatch(parts[2]) else None
    vertex.links[port] = Link(
        parts[3], whole_number(parts[4]), kind, lid, far, called[1] if called else "", number, guid
    )
    return None
