"""The sections of a dump, line by line: switches and adapters with their ports.

What a paste adds is skipped with a remark (``inputs.csv_rows``). A terminal may have dropped the tabs. GUIDs may be
masked by anything.
"""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import whole_number
from fairlane.core.wording import plural, some
from fairlane.inputs.csv_rows import added_by_paste
from fairlane.inputs.files import lines_of

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

MOST_PROBLEMS = 10
"""Number of wrong lines that are named, with the number of the others in the last place."""
SHOWN = 3
"""Number of lines or cables that a remark names."""

_VERTEX = re.compile(r'(Switch|Ca|Rt)(\s*)(\d{1,9})\s*"([^"]+)"\s*#\s*"(.*)"([^"]*)')
_GUID_OF_PORT = r"(?:\[ext \d+\])?\s*(?:\([^()]*\))?"
_OWN_GUID = r"(?:\[ext \d+\])?(?:\(([^()]*)\))?"
_PORT = re.compile(rf'\[(\d{{1,9}})\]{_OWN_GUID}(\s*)"([^"]+)"\[(\d{{1,9}})\]{_GUID_OF_PORT}\s*(#.*)')
_PORT_GUID = re.compile(r"[0-9a-fA-F]{1,16}")
_PORT_BEGINS = re.compile(r'\[\d*\]?(?=$|[\s(\["])|\[\d+$')
# With --full the codes of speed and width follow: " s=32 w=2", at adapters of Xsigo what they are.
_SPEED = re.compile(r"\b(\d{1,9}x([A-Z]+\d*))(?:\s+[a-z]=\S+)*(?:\s+(?:slot \d+|\(scp\)))?\s*$")
_ENDS_WITH_LID = re.compile(r"\blid \d{1,9}\s*$")
_QUOTED = re.compile(r'"(.*)"')
_OWN_LID = re.compile(r"#\s*lid (\d{1,9})(?: lmc ([0-7])\b)?")
_LID = re.compile(r"\blid (\d{1,9})(?: lmc ([0-7])\b)?")
_GUID = re.compile(r"(?:switchguid|caguid|rtguid)=0x([0-9a-fA-F]{1,16})\b(?:\(([0-9a-fA-F]{1,16})\))?")
_CARD = re.compile(r"sysimgguid=0x([0-9a-fA-F]{1,16})\b")
_ATTRIBUTE = re.compile(r"(vendid|devid|sysimgguid|switchguid|caguid|rtguid)=|(Non-)?Chassis\b|#")
_KEYWORDS = ("Switch", "Ca", "Rt", "vendid=", "devid=", "sysimgguid=", "switchguid=", "caguid=", "rtguid=")
_TOOLS = "(?:ibnetdiscover|iblinkinfo)"


@dataclass
class Vertex:
    """A switch, an adapter or a router, as its section of the dump describes it."""

    name: str  # its identifier; the same as another's only while masked GUIDs are not resolved
    is_switch: bool
    ports: int
    description: str
    line: int
    guid: int | None
    card: str | None  # the system image GUID: what adapters of one card have in common
    lid: int | None = None  # a switch's local identifier
    lmc: int = 0  # a switch has 2^lmc local identifiers, from ``lid`` on
    is_router: bool = False  # joins this subnet with others
    second_guid: int | None = None  # the one in parentheses behind a switch's GUID
    links: dict[int, "Link"] = field(default_factory=dict)

    def is_like(self, other: "Vertex") -> bool:
        """Whether another section states the same."""
        ports = ({port: replace(link, line=0) for port, link in vertex.links.items()} for vertex in (self, other))
        return replace(self, line=0, links={}) == replace(other, line=0, links={}) and next(ports) == next(ports)

    @property
    def lids(self) -> set[int]:
        """The local identifiers by which others know it."""
        if self.is_switch:
            return set() if self.lid is None else set(range(self.lid, self.lid + 2**self.lmc))
        return {link.lid for link in self.links.values() if link.lid is not None}


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
    lmc: int = 0  # the port has 2^lmc local identifiers, from ``lid`` on

    @property
    def lids(self) -> range:
        """The port's own local identifiers."""
        return range(0) if self.lid is None else range(self.lid, self.lid + 2**self.lmc)


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
    reader = _Reader([line.strip() for line in lines_of(text)])
    problems = [
        Problem.of_file(file, problem, number)
        for number, line in enumerate(reader.lines, 1)
        if line and (problem := reader.read(number, line))
    ]
    sections = reader.finished()
    refuse(problems + _without_speed(sections, file), file)
    return sections


def refuse(problems: list[Problem], file: Path) -> None:
    """Raises ``ScenarioError`` with the first problems and the number of the others, if there are any."""
    if len(problems) > MOST_PROBLEMS:
        more = Problem.of_file(file, f"{len(problems) - MOST_PROBLEMS + 1:,} more lines are wrong")
        problems = [*problems[: MOST_PROBLEMS - 1], more]
    if problems:
        raise ScenarioError(problems)


class _Reader:
    """Reads a dump line by line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._sections = Sections()
        self._first, self._last = _extent(lines)
        self._guids: tuple[int | None, int | None] = (None, None)  # of the next section
        self._card: str | None = None
        self._skipped: dict[str, list[str]] = defaultdict(list)
        self._without_tabs: list[int] = []

    def read(self, number: int, line: str) -> str | None:
        """Reads a line; returns what is wrong with it, if something is."""
        if begins := _VERTEX.match(line):
            self._begin(begins, number)
        elif _PORT_BEGINS.match(line):
            vertices = self._sections.vertices
            problem, spaced = _add_port(vertices[-1] if vertices else None, line, number)
            self._without_tabs += [] if spaced else [number]
            return problem
        elif states := _GUID.match(line):
            self._guids = int(states[1], 16) or None, int(states[2], 16) or None if states[2] else None
        elif states := _CARD.match(line):
            self._card = states[1] if int(states[1], 16) else None
        elif not _ATTRIBUTE.match(line):
            what = outside(line) or _around(line, number, self._first, self._last)
            if what is None:
                return f"not a line of ibnetdiscover: {line[:60]!r}; is the dump cut off?"
            self._skipped[what].append(f"line {number} ({line[:60]})")
        return None

    def _begin(self, begins: re.Match[str], number: int) -> None:
        kind, space, ports, name, description, rest = begins.groups()
        self._without_tabs += [] if space else [number]
        lid = _LID.search(rest)
        guid, second = self._guids
        vertex = Vertex(name, kind == "Switch", whole_number(ports), description, number, guid, self._card)
        vertex.lid, vertex.second_guid = whole_number(lid[1]) if lid else None, second
        vertex.lmc = int(lid[2] or 0) if lid else 0
        vertex.is_router = kind == "Rt"
        self._sections.vertices.append(vertex)
        self._guids, self._card = (None, None), None

    def finished(self) -> Sections:
        """The sections, with a remark on each kind of line that was skipped."""
        _settle_guids(self._sections.vertices)
        for what, lines in self._skipped.items():
            self._sections.remarks.append(f"{plural(len(lines), 'line')} skipped, {what}: {some(lines, SHOWN)}")
        if self._without_tabs:
            count = plural(len(self._without_tabs), "line has", "lines have")
            remark = f"{count} lost the tabs, as in a paste from a terminal, from line {self._without_tabs[0]} on"
            self._sections.remarks.append(f"{remark}: read without them")
        return self._sections


def _settle_guids(vertices: list[Vertex]) -> None:
    """The GUID of a switch with two: the one in parentheses, unless the identifier of this switch alone is the other.

    The line cards of a director switch may state the system's GUID first, and their own in parentheses.
    """
    counts = Counter(vertex.guid for vertex in vertices)
    for vertex in vertices:
        named = vertex.guid is not None and vertex.name == f"S-{vertex.guid:016x}"
        if vertex.second_guid is not None and not (named and counts[vertex.guid] == 1):
            vertex.guid = vertex.second_guid
        vertex.second_guid = None


def _extent(lines: list[str]) -> tuple[int, int]:
    """The numbers of the first and of the last line of the dump's sections."""
    inside = [
        number
        for number, line in enumerate(lines, 1)
        if line.startswith(_KEYWORDS[3:]) or _VERTEX.match(line) or _PORT_BEGINS.match(line)
    ]
    return (inside[0], inside[-1]) if inside else (1, len(lines))


def outside(line: str) -> str | None:
    """Name a line that a paste has added: a prompt, a command, a warning; None for any other."""
    what = added_by_paste(line, _TOOLS)
    return what and f"a {what}"


def _around(line: str, number: int, first: int, last: int) -> str | None:
    """Name the place of a line that is not between the sections, unless it is the beginning of one of theirs."""
    if first <= number <= last:
        return None
    if line.split(maxsplit=1)[0] in _KEYWORDS[:3] or any(keyword.startswith(line) for keyword in _KEYWORDS):
        return None
    return "text in front of the dump" if number < first else "text behind the dump"


def _without_speed(sections: Sections, file: Path) -> list[Problem]:
    """Lines without a speed, where others have one; a remark where none has."""
    links = [link for vertex in sections.vertices for link in vertex.links.values()]
    unknown = [link for link in links if not link.speed]
    if links and len(unknown) == len(links):
        sections.remarks.append("no line names a speed: all cables have the fabric's default bandwidth")
        return []
    message = "not a whole line of a port: it names no speed; is the dump cut off?"
    return [Problem.of_file(file, message, link.line) for link in unknown]


def _add_port(vertex: Vertex | None, line: str, number: int) -> tuple[str | None, bool]:
    """Adds a port's line to its section; what is wrong with it, if something is, and whether it has its tabs."""
    parts = _PORT.match(line)
    speed = _SPEED.search(line)
    if parts is None or vertex is None or not (speed or _ENDS_WITH_LID.search(line)):
        return f"not a whole line of a port: {line[:60]!r}; is the dump cut off?", True
    here, guid, space, to, there, rest = parts.groups()
    port, lanes = whole_number(here), whole_number(speed[1].partition("x")[0]) if speed else 1
    problem = None
    if speed and speed[2] not in LANE_RATES:
        cut = "; is the dump cut off?" if any(rate.startswith(speed[2]) for rate in LANE_RATES) else ""
        problem = f"unknown speed {speed[1]}{cut}; allowed: a number of lanes and one of {', '.join(LANE_RATES)}"
    elif not 1 <= lanes <= 12:
        problem = f"a link of {lanes} lanes; allowed: 1 to 12"
    elif not 1 <= port <= vertex.ports:
        problem = f"{vertex.name} has no port {port}: it has {vertex.ports}"
    elif port in vertex.links:
        problem = f"port {port} of {vertex.name} is used twice: also on line {vertex.links[port].line}"
    if problem:
        return problem, True
    own_port, lids, called = _OWN_LID.match(rest), [lid for lid, _ in _LID.findall(rest)], _QUOTED.search(rest)
    vertex.links[port] = Link(
        to,
        whole_number(there),
        speed[1] if speed else "",
        whole_number(own_port[1]) if own_port else None,
        whole_number(lids[-1]) if lids else None,
        called[1] if called else "",
        number,
        int(guid, 16) if guid and _PORT_GUID.fullmatch(guid) else None,
        int(own_port[2] or 0) if own_port else 0,
    )
    return None, bool(space)
