"""Network files of ibsim: a record for each switch and adapter, a line for each of its ports.

An adapter (``Hca``) is a host, and its rails are numbered by port. The format has no bandwidths and no latencies.
"""

import re
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.wiring import Cable, Wiring, by_ports
from fairlane.inputs.files import content_lines
from fairlane.units import whole_number

_RECORD = re.compile(r'(Switch|Hca|Ca)\s+(\d{1,9})\s+"([^"]+)"\s*(?:#.*)?')
_PORT = re.compile(r'\[(\d{1,9})\]\s*"([^"]+)"\s*\[(\d{1,9})\]\s*(?:[sw]=\d+\s*)*(?:#.*)?')
_GUID = re.compile(r"(?:switchguid|caguid|hcaguids?)\s*[=+].*")  # of the next record
_End = tuple[str, int]


def is_ibsim(text: str) -> bool:
    """Whether a file begins like one of these, and not like a dump of ibnetdiscover."""
    first = next((line for _, line in content_lines(text) if not _GUID.fullmatch(line)), "")
    return _RECORD.fullmatch(first) is not None and re.search(r"^\s*Hca\s+\d", text, re.MULTILINE) is not None


def read_ibsim(text: str, file: Path) -> Wiring:
    """The wiring; ``ScenarioError`` names every line that is wrong or lacks its counterpart."""
    hosts: list[str] = []
    switches: list[str] = []
    far: dict[_End, tuple[_End, int]] = {}
    problems: list[Problem] = []
    name, size = "", 0
    names: set[str] = set()
    for number, line in content_lines(text):
        if _GUID.fullmatch(line):
            continue
        if begins := _RECORD.fullmatch(line):
            name, size = begins[3], whole_number(begins[2])
            if name in names:
                problems.append(Problem.of_file(file, f"{name} has a record already", number))
            names.add(name)
            (switches if begins[1] == "Switch" else hosts).append(name)
        elif (port := _PORT.fullmatch(line)) and name:
            own = (name, whole_number(port[1]))
            if own in far or not 1 <= own[1] <= size:
                words = "is used twice" if own in far else f"is not one of its {size}"
                problems.append(Problem.of_file(file, f"port {own[1]} of {name} {words}", number))
            far[own] = ((port[2], whole_number(port[3])), number)
        else:
            problems.append(Problem.of_file(file, f"not a line of a network file of ibsim: {line[:60]!r}", number))
    problems += _counterparts(far, file)
    if problems:
        raise ScenarioError(problems)
    cables, seen = [], set[_End]()
    for own, (end, number) in far.items():
        if own not in seen:
            seen.add(end)
            cables.append(Cable((own[0], end[0]), (own[1], end[1]), line=number))
    cabled = {end for cable in cables for end in cable.ends}
    return Wiring(tuple(host for host in hosts if host in cabled), by_ports(cables, hosts, switches), source=file)


def _counterparts(far: dict[_End, tuple[_End, int]], file: Path) -> list[Problem]:
    """Lines whose other end leads elsewhere, or nowhere."""
    return [
        Problem.of_file(file, f"{own[0]}[{own[1]}] leads to {end[0]}[{end[1]}], which does not lead back", number)
        for own, (end, number) in far.items()
        if end not in far or far[end][0] != own
    ]
