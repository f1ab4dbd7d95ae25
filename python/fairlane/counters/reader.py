"""Reads counters from a file, whatever of the known kinds it is."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from fairlane.counters.base import PortCounters, Reading
from fairlane.counters.ibqueryerrors import is_ibqueryerrors, read_ibqueryerrors
from fairlane.counters.perfquery import is_perfquery, read_perfquery
from fairlane.counters.prometheus import is_prometheus, read_prometheus
from fairlane.counters.sysfs import is_sysfs, read_sysfs
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import MOST_STORED, read_bytes, reading

FORMATS: Mapping[str, tuple[Callable[[str], bool], Callable[[str, Path], Reading]]] = {
    "ibqueryerrors": (is_ibqueryerrors, read_ibqueryerrors),
    "perfquery": (is_perfquery, read_perfquery),
    "prometheus": (is_prometheus, read_prometheus),
    "sysfs": (is_sysfs, read_sysfs),
}
"""For each format whether a text is of it, and its reader."""
_LARGEST = 2**64 - 1
_KINDS = (
    "the output of perfquery, of ibqueryerrors --counters or of grep . /sys/class/infiniband/*/ports/*/counters/*, "
    "or Prometheus text of an InfiniBand exporter"
)
_OTHERS = {
    r"^# (Port\w+) counters: .* port \d+": ("{0}, which are parts of a port's counters", "perfquery -x"),
    r"^# (Port\w+): .* port \d+": ("{0}, which is no counter of data", "perfquery -x"),
    r"^# TYPE \w+ ": (
        "Prometheus text without a metric of an InfiniBand exporter",
        "the exporter's InfiniBand metrics",
    ),
}
"""Files of these tools that are no counters of ports: what they have, and what is meant."""


def read_counters(file: Path) -> Reading:
    """The counters of all ports of a file.

    Raises ``ScenarioError`` with the line of what is wrong, for a port that is there twice, and if there is no port.
    """
    with reading(file):
        # Names that devices report need not be UTF-8, and only what is read has to be.
        text = read_bytes(file, MOST_STORED).decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    read = next((reader for is_it, reader in FORMATS.values() if is_it(text)), None)
    if read is None:
        raise ScenarioError(_unknown(text, file))
    found = read(text, file)
    first: dict[tuple[object, ...], PortCounters] = {}
    problems = []
    for port in found.ports:
        if large := [name for name, value in port.values.items() if value > _LARGEST]:
            words = f"{large[0]} of {port} is no counter of 64 bits"
            problems.append(Problem.of_file(file, words, port.line))
        if first.setdefault(port.key, port) is not port:
            words = f"{port} has counters already, on line {first[port.key].line}; give one reading in a file"
            problems.append(Problem.of_file(file, words, port.line))
    if not found.ports:
        problems.append(Problem.of_file(file, "has no counter of data, packets, waiting or errors of any port"))
    if problems:
        raise ScenarioError(problems)
    return found


def _unknown(text: str, file: Path) -> Problem:
    for shape, (words, meant) in _OTHERS.items():
        if begins := re.search(shape, text, re.MULTILINE):
            return Problem.of_file(file, words.format(*begins.groups()), allowed=meant)
    return Problem.of_file(file, "no known format of counters", allowed=_KINDS)
