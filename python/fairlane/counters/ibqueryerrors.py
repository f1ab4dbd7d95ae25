"""What ``ibqueryerrors --counters`` and ``--data`` print: a line for each port with its counters in brackets."""

import re
from pathlib import Path

from fairlane.counters.base import COUNTERS, PortCounters
from fairlane.errors import Problem, ScenarioError
from fairlane.units import whole_number

_NODE = re.compile(r'(?:Data Counters|Errors) for (?:0x([0-9a-fA-F]{1,16}) )?"(.*)"')
_PORT = re.compile(r"GUID 0x([0-9a-fA-F]{1,16}) port (\d{1,9}|ALL):((?:\s*\[[^\]]*\])+)\s*", re.ASCII)
_VALUE = re.compile(r"\[(\w+) == (\d+)[^\]]*\]", re.ASCII)
_SKIPPED = re.compile(r"##.*|(?:ibwarn|ibqueryerrors|src/)\S*.*:.*|Link info:.*|\d+\s.*==\(.*\)==>.*", re.IGNORECASE)


def is_ibqueryerrors(text: str) -> bool:
    """Whether a text is of this kind."""
    return any(_PORT.fullmatch(line.strip()) for line in text.splitlines()[:400])


def read_ibqueryerrors(text: str, file: Path) -> list[PortCounters]:
    """The counters; lines with the sum over all ports of a node are skipped.

    Raises ``ScenarioError`` with the line of what does not belong to the output.
    """
    found: list[PortCounters] = []
    problems: list[Problem] = []
    name = ""
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if node := _NODE.fullmatch(line):
            name = node[2]
        elif port := _PORT.fullmatch(line):
            values = {key: whole_number(value) for key, value in _VALUE.findall(port[3]) if key in COUNTERS}
            if port[2] != "ALL" and values:
                guid = int(port[1], 16)
                found.append(PortCounters(whole_number(port[2]), values, name, guid, line=number))
        elif line and not _SKIPPED.fullmatch(line):
            words = f"not a line of ibqueryerrors --counters: {line[:60]!r}"
            problems.append(Problem.of_file(file, words, number))
    if problems:
        raise ScenarioError(problems)
    return found
