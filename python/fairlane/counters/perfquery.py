"""What ``perfquery -x`` prints: a heading for each port, then a line for each counter, padded by dots.

``perfquery`` without ``-x`` prints the counters of 32 bits, which stop at their largest value. With ``-a`` it prints
their sums over all ports of a node as those of port 255, unless ``-l`` has it iterate over the ports.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fairlane.counters.base import COUNTERS, PortCounters, Reading
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import lines_of
from fairlane.inputs.pasted import Skipped, added_by_paste
from fairlane.units import whole_number

_HEADING = re.compile(
    r"# Port (?:extended )?counters: (?:Lid (\d{1,9})|DR path \S+|.*?) port (\d{1,9})\b.*", re.IGNORECASE | re.ASCII
)
_BEGINS = re.compile(r"^[ \t]*# Port (?:extended )?counters: ", re.IGNORECASE | re.MULTILINE)
_VALUE = re.compile(r"([A-Za-z]\w*):\.*\s*(0x[0-9a-fA-F]{1,16}|\d{1,20})(?:\s.*)?", re.ASCII)
_NAME = re.compile(r"# node (.+)")
_WIDTH = 33
_ALIASES = {"XmtData": "PortXmitData", "RcvData": "PortRcvData", "XmtPkts": "PortXmitPkts", "RcvPkts": "PortRcvPkts"}
_ALIASES |= {"XmtDiscards": "PortXmitDiscards", "RcvErrors": "PortRcvErrors", "XmtWait": "PortXmitWait"}
_ALL_PORTS = 255
_EACH = "counters of each port: perfquery -x -l -a LID, or perfquery -x LID PORT"


def write_perfquery(ports: Iterable[PortCounters]) -> str:
    """The text for all ports; a comment before each names its host or switch."""
    return "".join(map(_block, ports))


def _block(port: PortCounters) -> str:
    head = f"# node {port.name}\n# Port extended counters: Lid {port.lid or 0} port {port.number} (CapMask: 0x1200)\n"
    rows = {"PortSelect": port.number, "CounterSelect": "0x0000", **port.values}
    return head + "".join(f"{f'{name}:':.<{_WIDTH}}{value}\n" for name, value in rows.items())


def is_perfquery(text: str) -> bool:
    """Whether a text is of this kind."""
    return _BEGINS.search(text) is not None


def read_perfquery(text: str, file: Path) -> Reading:
    """The counters; other lines with a name and a number are skipped, and with a note what surrounds the output.

    Raises ``ScenarioError`` with the line of what is none of these, and for sums over the ports of a node.
    """
    found: list[PortCounters] = []
    problems: list[Problem] = []
    skipped = Skipped()
    name, values = "", dict[str, int]()
    for number, line in enumerate(map(str.strip, lines_of(text)), 1):
        if begins := _HEADING.fullmatch(line):
            values = {}
            lid = whole_number(begins[1]) if begins[1] else None
            found.append(PortCounters(whole_number(begins[2]), values, name, lid=lid, line=number))
            name = ""
        elif named := _NAME.fullmatch(line):
            name = named[1]
        elif line and not line.startswith("#"):
            value = _VALUE.fullmatch(line)
            if value is None or not found:
                what = added_by_paste(line, "perfquery") or (None if found else "in front of the counters")
                if what:
                    skipped.add(what, number)
                else:
                    problems.append(Problem.of_file(file, f"not a line of perfquery: {line[:60]!r}", number))
                continue
            key = _ALIASES.get(value[1], value[1])
            if key in COUNTERS:
                values[key] = _integer(value[2])
            elif key == "PortSelect":
                found[-1] = replace(found[-1], number=_integer(value[2]), values=values)
    problems += [Problem.of_file(file, f"no counters of {one}", one.line) for one in found if not one.values]
    problems += [
        Problem.of_file(
            file, f"{one} is the sum over all ports of the node, as perfquery -a prints it", one.line, _EACH
        )
        for one in found
        if one.number == _ALL_PORTS
    ]
    if problems:
        raise ScenarioError(problems)
    return Reading(found, skipped.note)


def _integer(text: str) -> int:
    return int(text, 16) if text.startswith("0x") else int(text)
