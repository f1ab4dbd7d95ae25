"""Forwarding tables as ``dump_lfts`` and ``ibroute`` print them: a block for each switch, a line for each destination.

They belong to a dump of the same fabric, which has the local identifiers (LIDs) of hosts. Destinations that are
no host's first port, as switches and further adapters, are skipped.
"""

import re
from dataclasses import replace
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
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
        text = read_text(file, _LARGEST_ENTRY * (len(wiring.lids) + 16) * (len(wiring.switches) + 16))
    if not wiring.lids:
        words = "the fabric's links have no local identifiers: tables go with a dump of ibnetdiscover"
        raise ScenarioError(Problem.of_file(file, words))
    reader = _Reader(wiring, file)
    for number, line in enumerate(lines_of(text), 1):
        reader.read(number, line)
    return replace(wiring, tables=reader.finished(), tables_source=file)


class _Reader:
    """Reads a file of tables line by line."""

    def __init__(self, wiring: Wiring, file: Path) -> None:
        self._wiring, self._file = wiring, file
        self._column = {lid: wiring.hosts.index(host) for lid, host in wiring.lids.items()}
        self._tables: dict[str, list[int]] = {}
        self._row: list[int] | None = None
        self._entries = self._start = 0

    def read(self, number: int, line: str) -> None:
        if begins := _BLOCK.match(line):
            self._end()
            self._row, self._entries, self._start = [0] * len(self._wiring.hosts), 0, number
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
