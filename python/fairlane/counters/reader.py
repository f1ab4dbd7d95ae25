"""Reads counters from a file, whatever of the known kinds it is."""

from collections.abc import Callable, Mapping
from pathlib import Path

from fairlane.counters.base import PortCounters
from fairlane.counters.ibqueryerrors import is_ibqueryerrors, read_ibqueryerrors
from fairlane.counters.perfquery import is_perfquery, read_perfquery
from fairlane.counters.prometheus import is_prometheus, read_prometheus
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import MOST_STORED, read_text, reading

FORMATS: Mapping[str, tuple[Callable[[str], bool], Callable[[str, Path], list[PortCounters]]]] = {
    "ibqueryerrors": (is_ibqueryerrors, read_ibqueryerrors),
    "perfquery": (is_perfquery, read_perfquery),
    "prometheus": (is_prometheus, read_prometheus),
}
"""For each format whether a text is of it, and its reader."""
_LARGEST = 2**64 - 1


def read_counters(file: Path) -> list[PortCounters]:
    """The counters of all ports of a file.

    Raises ``ScenarioError`` with the line of what is wrong, and for a port that is there twice.
    """
    with reading(file):
        text = read_text(file, MOST_STORED)
    read = next((reader for is_it, reader in FORMATS.values() if is_it(text)), None)
    if read is None:
        kinds = "the output of perfquery or of ibqueryerrors --counters, or Prometheus text of an InfiniBand exporter"
        raise ScenarioError(Problem.of_file(file, "no counters that are known", allowed=kinds))
    found = read(text, file)
    first: dict[tuple[object, ...], PortCounters] = {}
    problems = []
    for port in found:
        if large := [name for name, value in port.values.items() if value > _LARGEST]:
            words = f"{large[0]} of {port} is no counter of 64 bits"
            problems.append(Problem.of_file(file, words, port.line))
        if first.setdefault(port.key, port) is not port:
            words = f"{port} has counters already, on line {first[port.key].line}; give one reading in a file"
            problems.append(Problem.of_file(file, words, port.line))
    if problems:
        raise ScenarioError(problems)
    return found
