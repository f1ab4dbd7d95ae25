"""Forwarding tables as ``dump_lfts`` and ``ibroute`` print them: a block for each switch, a line for each destination.

They belong to a dump of the same fabric, which has the local identifiers (LIDs) of adapters. Other destinations, as
switches, are skipped.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.identities import endpoint_lids, endpoints_of
from fairlane.fabric.wiring import Wiring
from fairlane.inputs.files import lines_of, read_text, reading

_BLOCK = re.compile(r"Unicast lids .*guid (0x[0-9a-fA-F]{1,16})")
_ENTRY = re.compile(r"(0x[0-9a-fA-F]{1,16})\s+(\d{1,9})\s*(:.*)?$")
_END = re.compile(r"(\d{1,9}) (?:valid )?lids dumped")
_LARGEST_ENTRY = 256  # bytes that a destination of a switch may take
_HEADING = re.compile(r"\s*(Lid\s+Out|Port\s+Info|#)")


def with_tables(wiring: Wiring, file: Path) -> Wiring:
    """The wiring with the forwarding tables of ``file``; ``ScenarioError`` names the line that is wrong."""
    with reading(file):
        lids = endpoint_lids(wiring)
        text = read_text(file, _most_bytes(wiring))
    if not lids:
        words = "the fabric's links have no local identifiers: tables go with a dump of ibnetdiscover"
        raise ScenarioError(Problem.of_file(file, words))
    reader = _Reader(wiring, lids, file)
    for number, line in enumerate(lines_of(text), 1):
        reader.read(number, line)
    return replace(wiring, tables=reader.finished(), tables_source=file)


def _most_bytes(wiring: Wiring) -> int:
    """The size up to which a file is read: every switch has an entry for every switch and every port of a host."""
    hosts = set(wiring.hosts)
    ports = sum(end in hosts for cable in wiring.cables for end in cable.ends)
    return _LARGEST_ENTRY * (ports + len(wiring.switches) + 16) * (len(wiring.switches) + 16)


class _Reader:
    """Reads a file of tables line by line."""

    def __init__(self, wiring: Wiring, lids: Mapping[int, int], file: Path) -> None:
        self._wiring, self._file = wiring, file
        self._column, self._endpoints = lids, len(endpoints_of(wiring))
        self._tables: dict[str, list[int]] = {}
        self._row: list[int] | None = None
        self._entries = self._start = 0

    def read(self, number: int, line: str) -> None:
        if begins := _BLOCK.match(line):
            self._end()
            self._row, self._entries, self._start = [0] * self._endpoints, 0, number
            guid = int(begins[1], 16)
            if guid not in self._wiring.guids:
                raise self._error(number, f"the fabric has no switch with the GUID 0x{guid:016x}")
            self._tables[self._wiring.guids[guid]] = self._row
        elif (entry := _ENTRY.match(line)) and self._row is not None:
            self._entries += 1
            lid = int(entry[1], 16)
            if lid in self._column:
                self._row[self._column[lid]] = int(entry[2])
        elif (ends := _END.match(line)) and self._row is not None:
            if int(ends[1]) != self._entries:
                raise self._error(
                    number, f"the table has {self._entries} lines, but its last line counts {ends[1]}: truncated?"
                )
            self._row = None
        elif line.strip() and not _HEADING.match(line):
            raise self._error(number, f"not a line of a forwarding table: {line.strip()[:60]!r}")

    def finished(self) -> dict[str, tuple[int, ...]]:
        self._end()
        if not self._tables:
            raise self._error(None, "no forwarding table")
        return {switch: tuple(ports) for switch, ports in self._tables.items()}

    def _end(self) -> None:
        if self._row is not None:
            raise self._error(self._start, "the table that begins here has no end: is the file cut off?")

    def _error(self, line: int | None, words: str) -> ScenarioError:
        return ScenarioError(Problem.of_file(self._file, words, line))
