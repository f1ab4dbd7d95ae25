"""Read the output of infiniband-diags: ``perfquery -x``, ``ibqueryerrors --counters`` and ``--data``.

``perfquery`` prints a heading for each port, then a line for each counter, padded by dots. Without ``-x`` it prints the
counters of 32 bits, which stop at their largest value. With ``-a`` it prints their sums over all ports of a node as
those of port 255, unless ``-l`` has it iterate over the ports. ``ibqueryerrors`` prints a line for each port with its
counters in brackets.
"""

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from fairlane.cluster.counters.base import COUNTERS, PortCounters, Reading
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import whole_number
from fairlane.inputs.csv_rows import Skipped, added_by_paste
from fairlane.inputs.files import lines_of

_HEADING = re.compile(
    r"# Port (?:extended )?counters: (?:Lid (\d{1,9})|DR path \S+|.*?) port (\d{1,9})\b.*", re.IGNORECASE | re.ASCII
)
_PERFQUERY = re.compile(r"^[ \t]*# Port (?:extended )?counters: ", re.IGNORECASE | re.MULTILINE)
_COUNTER = re.compile(r"([A-Za-z]\w*):\.*\s*(0x[0-9a-fA-F]{1,16}|\d{1,20})(?:\s.*)?", re.ASCII)
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
    return _PERFQUERY.search(text) is not None


def read_perfquery(text: str, file: Path) -> Reading:
    """The counters; other lines with a name and a number are skipped, and with a note what surrounds the output.

    Raises ``ScenarioError`` with the line of what is none of these, and for sums over the ports of a node.
    """
    ports: list[PortCounters] = []
    problems: list[Problem] = []
    skipped = Skipped()
    name, values = "", dict[str, int]()
    for number, line in enumerate(map(str.strip, lines_of(text)), 1):
        if begins := _HEADING.fullmatch(line):
            values = {}
            lid = whole_number(begins[1]) if begins[1] else None
            ports.append(PortCounters(whole_number(begins[2]), values, name, lid=lid, line=number))
            name = ""
        elif named := _NAME.fullmatch(line):
            name = named[1]
        elif line and not line.startswith("#"):
            value = _COUNTER.fullmatch(line)
            if value is None or not ports:
                what = added_by_paste(line, "perfquery") or (None if ports else "in front of the counters")
                if what:
                    skipped.add(what, number)
                else:
                    problems.append(Problem.of_file(file, f"not a line of perfquery: {line[:60]!r}", number))
                continue
            key = _ALIASES.get(value[1], value[1])
            if key in COUNTERS:
                values[key] = _integer(value[2])
            elif key == "PortSelect":
                ports[-1] = replace(ports[-1], number=_integer(value[2]), values=values)
    problems += [Problem.of_file(file, f"no counters of {port}", port.line) for port in ports if not port.values]
    problems += [
        Problem.of_file(
            file, f"{port} is the sum over all ports of the node, as perfquery -a prints it", port.line, _EACH
        )
        for port in ports
        if port.number == _ALL_PORTS
    ]
    if problems:
        raise ScenarioError(problems)
    return Reading(ports, skipped.note)


def _integer(text: str) -> int:
    return int(text, 16) if text.startswith("0x") else int(text)


_NODE = re.compile(r'(?:Data Counters|Errors) for (?:0x([0-9a-fA-F]{1,16}) )?"(.*)"')
_PORT = re.compile(r"GUID 0x([0-9a-fA-F]{1,16}) port (\d{1,9}|ALL):((?:\s*\[[^\]]*\])+)\s*", re.ASCII)
_IBQUERYERRORS = re.compile(rf"^[ \t]*{_PORT.pattern}$|^[ \t]*## Summary: \d+ nodes checked", re.ASCII | re.MULTILINE)
_BRACKETED = re.compile(r"\[(\w+) == (\d+)[^\]]*\]", re.ASCII)
_REST = re.compile(r"##.*|Link info:.*|\d+\s.*==\(.*\)==>.*", re.IGNORECASE)


def is_ibqueryerrors(text: str) -> bool:
    """Whether a text is of this kind."""
    return _IBQUERYERRORS.search(text) is not None


def read_ibqueryerrors(text: str, file: Path) -> Reading:
    """The counters; lines with the sum over all ports of a node are skipped, and with a note what surrounds the output.

    Raises ``ScenarioError`` with the line of what does not belong to the output, and if no port has counters.
    """
    ports: list[PortCounters] = []
    problems: list[Problem] = []
    skipped = Skipped()
    name = ""
    for number, line in enumerate(map(str.strip, lines_of(text)), 1):
        if node := _NODE.fullmatch(line):
            name = node[2]
        elif port := _PORT.fullmatch(line):
            values = {key: whole_number(value) for key, value in _BRACKETED.findall(port[3]) if key in COUNTERS}
            if port[2] != "ALL" and values:
                guid = int(port[1], 16)
                ports.append(PortCounters(whole_number(port[2]), values, name, guid, line=number))
        elif line and not _REST.fullmatch(line):
            if added := added_by_paste(line, "ibqueryerrors"):
                skipped.add(added, number)
            else:
                message = f"not a line of ibqueryerrors --counters: {line[:60]!r}"
                problems.append(Problem.of_file(file, message, number))
    if not ports and not problems:
        message = "no port has counters: without --counters, ibqueryerrors lists errors above their thresholds only"
        problems.append(Problem.of_file(file, message, allowed="ibqueryerrors --counters, which lists all ports"))
    if problems:
        raise ScenarioError(problems)
    return Reading(ports, skipped.note)
