"""Other reports of the same fabric: ``ibnetdiscover -p`` and ``iblinkinfo``, by node or with ``-l`` a line each.

Both are read as the sections of a dump. They have no system image GUIDs, so adapters whose descriptions do not name
their machine are hosts of their own. ``iblinkinfo`` names the far end of a cable by LID and port, with ``-l`` also by
GUID; with ``-l`` it does not say what is a switch: a GUID with several ports is one's, for ports of adapters have GUIDs
of their own.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane.core.errors import Problem
from fairlane.core.units import whole_number
from fairlane.core.wording import plural, some
from fairlane.model.fabric.ibnetdiscover.sections import LANE_RATES, SHOWN, Link, Sections, Vertex, outside, refuse

_NODE = r"(SW|CA|RT)\s+(\d{1,9})\s+(\d{1,9})\s+0x([0-9a-fA-F]{1,16})"
_CABLED = re.compile(rf"{_NODE}\s+(\d{{1,9}})x\s+(\S+)\s+-\s+{_NODE}\s+\(\s*'(.*)'\s+-\s+'(.*)'\s*\)")
_FREE = re.compile(rf"{_NODE}\s+(?:\d+|\?+)x\s+\S+\s+'(.*)'")
_KINDS = {"SW": "S", "Switch": "S", "CA": "H", "RT": "R", "Router": "R"}

_HEADING = re.compile(r"(CA|Switch|Router):\s+(?:0x([0-9a-fA-F]{1,16})\s+)?(.*):")
_HERE = r'(?:0x([0-9a-fA-F]{1,16})\s+(?:"\s*(.*?)\s*"\s+)?)?(\d{1,9})\s+(\d{1,9})\[\s*\d*\s*\]'
_THERE = r'(?:0x([0-9a-fA-F]{1,16})\s+)?(\d{1,9})\s+(\d{1,9})\[\s*\d*\s*\]\s+"(.*)"'
_LINK = re.compile(rf"{_HERE}\s+==\((.*)\)==>\s+(?:{_THERE}|.*)\s*(?:\([^\"]*\))?")
_UP = re.compile(r"\s*(\d{1,9})X\s+(\d{1,6}(?:\.\d{1,9})?)\s+Gbps(\s+\(FDR10\))?\s+\S+/\s*LinkUp\b.*", re.IGNORECASE)
_DOWN = re.compile(r"\s*(?:\S.*\s)?\S+/\s*\S+.*")
_SIGNALLING = {
    "SDR": 2.5,
    "DDR": 5,
    "QDR": 10,
    "FDR": 14.0625,
    "EDR": 25.78125,
    "HDR": 53.125,
    "NDR": 106.25,
    "XDR": 212.5,
}
_CLOSE = 0.02  # part by which a printed rate may differ from that of a lane


def is_ports_report(text: str) -> bool:
    """Whether a text is what ``ibnetdiscover -p`` prints."""
    return any(_CABLED.fullmatch(line.strip()) for line in text.splitlines())


def is_link_report(text: str) -> bool:
    """Whether a text is what ``iblinkinfo`` prints."""
    return any(_LINK.fullmatch(line.strip()) for line in text.splitlines())


def read_ports_report(text: str, file: Path) -> Sections:
    """The nodes; ``ScenarioError`` names every line that is none of the report's."""
    rows, remarks = _of_tool(text, file, lambda line: bool(_CABLED.fullmatch(line) or _FREE.fullmatch(line)))
    vertices: dict[str, Vertex] = {}
    problems = []
    for number, line in rows:
        cabled = _CABLED.fullmatch(line)
        parts = cabled or _FREE.fullmatch(line)
        assert parts is not None, "every row is one of the two"
        kind, lid, port, guid = parts[1], whole_number(parts[2]), whole_number(parts[3]), int(parts[4], 16)
        name = parts[11] if cabled else parts[5]
        vertex = _vertex(vertices, kind, guid, name.strip(), lid, number)
        vertex.ports = max(vertex.ports, port)
        if cabled is None:
            continue
        speed = f"{cabled[5]}x{cabled[6]}"
        if problem := _problem(vertex, port, speed):
            problems.append(Problem.of_file(file, problem, number))
            continue
        to = f"{_KINDS[cabled[7]]}-{int(cabled[10], 16):016x}"
        far = whole_number(cabled[8])
        own_lid = None if vertex.is_switch else lid
        vertex.links[port] = Link(to, whole_number(cabled[9]), speed, own_lid, far, cabled[12].strip(), number)
    refuse(problems, file)
    return Sections(list(vertices.values()), remarks)


def read_link_report(text: str, file: Path) -> Sections:
    """The nodes; ``ScenarioError`` names every line that is none of the report's."""
    rows, remarks = _of_tool(text, file, lambda line: bool(_HEADING.fullmatch(line) or _LINK.fullmatch(line)))
    report = _LinkReport(rows)
    by_guid = {(end.guid, end.port): end.vertex.name for end in report.ends if end.guid is not None}
    by_lid = {(end.lid, end.port): end.vertex.name for end in report.ends if end.lid}
    problems = []
    for end in report.ends:
        vertex, is_switch = end.vertex, end.vertex.is_switch
        speed, problem = _speed(end.state)
        if not problem and speed and end.far:
            guid, lid, port, description = end.far
            to = by_guid.get((guid, port)) if guid is not None else None
            to = to or by_lid.get((lid, port), f"H-lid{lid}")
            problem = _problem(vertex, end.port, speed)
            near = (None, None) if is_switch else (end.lid, end.guid)
            vertex.links.setdefault(end.port, Link(to, port, speed, near[0], lid, description, end.line, near[1]))
        if problem:
            problems.append(Problem.of_file(file, problem, end.line))
    refuse(problems, file)
    return Sections(list(report.vertices.values()), remarks)


@dataclass
class _End:
    """A line of ``iblinkinfo``: a port, and what is at the far end of its cable if there is one."""

    vertex: Vertex
    guid: int | None
    lid: int
    port: int
    state: str
    far: tuple[int | None, int, int, str] | None  # GUID, LID, port and description
    line: int


class _LinkReport:
    """The ports of ``iblinkinfo``, each with its node."""

    def __init__(self, rows: Sequence[tuple[int, str]]) -> None:
        self.vertices: dict[str, Vertex] = {}
        self.ends: list[_End] = []
        self._ports: dict[int, set[str]] = defaultdict(set)  # with -l: by GUID
        self._heading: tuple[str, str | None, str] | None = None
        self._current: Vertex | None = None
        links = [(number, _LINK.fullmatch(line), line) for number, line in rows]
        for _, parts, _ in links:
            if parts and parts[2] is not None:
                self._ports[int(parts[1], 16)].add(parts[4])
        for number, parts, line in links:
            if parts:
                self._port(number, parts)
            elif begins := _HEADING.fullmatch(line):
                self._heading, self._current = (begins[1], begins[2], begins[3].strip()), None

    def _port(self, number: int, parts: re.Match[str]) -> None:
        guid = int(parts[1], 16) if parts[1] else None
        lid, port = whole_number(parts[3]), whole_number(parts[4])
        if parts[2] is not None and guid is not None:
            self._current = self._named(guid, parts[2], lid, port, number)
        elif self._current is None and self._heading is not None:
            kind, node, description = self._heading
            identity = int(node, 16) if node else guid if guid is not None else number
            self._current = _vertex(self.vertices, kind, identity, description, lid, number)
        if self._current is None:
            return
        self._current.ports = max(self._current.ports, port)
        far_guid = int(parts[6], 16) if parts[6] else None
        far = (far_guid, whole_number(parts[7]), whole_number(parts[8]), parts[9]) if parts[8] else None
        self.ends.append(_End(self._current, guid, lid, port, parts[5], far, number))

    def _named(self, guid: int, description: str, lid: int, port: int, line: int) -> Vertex:
        """The node of a line with its description: that of the line in front if it may be the same adapter's."""
        kind, before = "SW" if len(self._ports[guid]) > 1 else "CA", self.ends[-1] if self.ends else None
        same = before is not None and not before.vertex.is_switch and before.vertex.description == description
        if before is not None and same and kind == "CA" and port > before.port:
            return before.vertex
        return _vertex(self.vertices, kind, guid, description, lid, line)


def _vertex(vertices: dict[str, Vertex], kind: str, guid: int, description: str, lid: int, line: int) -> Vertex:
    """The node, which its first line makes."""
    name = f"{_KINDS[kind]}-{guid:016x}"
    is_switch = name.startswith("S-")
    if name not in vertices:
        vertices[name] = Vertex(name, is_switch, 0, description, line, guid, None, lid if is_switch else None)
        vertices[name].is_router = name.startswith("R-")
    return vertices[name]


def _problem(vertex: Vertex, port: int, speed: str) -> str | None:
    """Return the fault of a port's line."""
    lanes, _, rate = speed.partition("x")
    if rate not in LANE_RATES or not 1 <= whole_number(lanes) <= 12:
        return f"unknown speed {speed}; allowed: a number of lanes and one of {', '.join(LANE_RATES)}"
    if port in vertex.links:
        return f"port {port} of {vertex.description} is used twice: also on line {vertex.links[port].line}"
    return None


def _speed(state: str) -> tuple[str, str | None]:
    """Lanes and rate of a link that is up, empty for one that is not; and what is wrong."""
    up = _UP.fullmatch(state)
    if up is None:
        return "", None if _DOWN.fullmatch(state) else f"no state of a link: {state[:60]!r}"
    if up[3]:
        return f"{up[1]}xFDR10", None
    signalling = float(up[2])
    for rate, known_rate in _SIGNALLING.items():
        if abs(signalling - known_rate) <= _CLOSE * known_rate:
            return f"{up[1]}x{rate}", None
    known = ", ".join(f"{rate:g}" for rate in _SIGNALLING.values())
    return "", f"unknown speed {up[2]} Gbps of a lane; allowed: {known}"


def _of_tool(text: str, file: Path, belongs: Callable[[str], bool]) -> tuple[list[tuple[int, str]], list[str]]:
    """The lines of a tool's output with their numbers, and remarks on those that a paste has added."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    of_tool = [(number, line) for number, line in lines if belongs(line)]
    first, last = (of_tool[0][0], of_tool[-1][0]) if of_tool else (0, 0)
    skipped: dict[str, list[str]] = defaultdict(list)
    problems = []
    known = {number for number, _ in of_tool}
    for number, line in lines:
        if not line or number in known or line.startswith("#"):
            continue
        around = "text in front of the report" if number < first else "text behind the report"
        what = outside(line) or (None if first <= number <= last else around)
        if what:
            skipped[what].append(f"line {number} ({line[:60]})")
        else:
            problems.append(Problem.of_file(file, f"not a line of the report: {line[:60]!r}; is it cut off?", number))
    refuse(problems, file)
    return of_tool, list(_remarks(skipped))


def _remarks(skipped: dict[str, list[str]]) -> Iterator[str]:
    for what, lines in skipped.items():
        yield f"{plural(len(lines), 'line')} skipped, {what}: {some(lines, SHOWN)}"
