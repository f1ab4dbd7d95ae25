"""What ``ibqueryerrors --counters`` and ``--data`` print: a line for each port with its counters in brackets."""

import re
from pathlib import Path

from fairlane.counters.base import COUNTERS, PortCounters, Reading
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import lines_of
from fairlane.inputs.pasted import Skipped, added_by_paste
from fairlane.units import whole_number

_NODE = re.compile(r'(?:Data Counters|Errors) for (?:0x([0-9a-fA-F]{1,16}) )?"(.*)"')
_PORT = re.compile(r"GUID 0x([0-9a-fA-F]{1,16}) port (\d{1,9}|ALL):((?:\s*\[[^\]]*\])+)\s*", re.ASCII)
_BEGINS = re.compile(rf"^[ \t]*{_PORT.pattern}$|^[ \t]*## Summary: \d+ nodes checked", re.ASCII | re.MULTILINE)
_VALUE = re.compile(r"\[(\w+) == (\d+)[^\]]*\]", re.ASCII)
_REST = re.compile(r"##.*|Link info:.*|\d+\s.*==\(.*\)==>.*", re.IGNORECASE)


def is_ibqueryerrors(text: str) -> bool:
    """Whether a text is of this kind."""
    return _BEGINS.search(text) is not None


def read_ibqueryerrors(text: str, file: Path) -> Reading:
    """The counters; lines with the sum over all ports of a node are skipped, and with a note what surrounds the output.

    Raises ``ScenarioError`` with the line of what does not belong to the output, and if no port has counters.
    """
    found: list[PortCounters] = []
    problems: list[Problem] = []
    skipped = Skipped()
    name = ""
    for number, line in enumerate(map(str.strip, lines_of(text)), 1):
        if node := _NODE.fullmatch(line):
            name = node[2]
        elif port := _PORT.fullmatch(line):
            values = {key: whole_number(value) for key, value in _VALUE.findall(port[3]) if key in COUNTERS}
            if port[2] != "ALL" and values:
                guid = int(port[1], 16)
                found.append(PortCounters(whole_number(port[2]), values, name, guid, line=number))
        elif line and not _REST.fullmatch(line):
            if added := added_by_paste(line, "ibqueryerrors"):
                skipped.add(added, number)
            else:
                words = f"not a line of ibqueryerrors --counters: {line[:60]!r}"
                problems.append(Problem.of_file(file, words, number))
    if not found and not problems:
        words = "no port has counters: without --counters, ibqueryerrors lists errors above their thresholds only"
        problems.append(Problem.of_file(file, words, allowed="ibqueryerrors --counters, which lists all ports"))
    if problems:
        raise ScenarioError(problems)
    return Reading(found, skipped.note)
