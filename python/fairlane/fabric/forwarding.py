"""Forwarding tables as ``dump_lfts`` and ``ibroute`` print them: a block for each switch, a line for each destination.

They belong to a dump of the same fabric, which says which host has which local identifier (LID). Destinations that are
no host's first port, as switches and further adapters, are skipped.
"""

import re
from dataclasses import replace
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.wiring import Wiring

__all__ = ["with_tables"]

_BLOCK = re.compile(r"Unicast lids .*guid (0x[0-9a-fA-F]+)")
_ENTRY = re.compile(r"(0x[0-9a-fA-F]+)\s+(\d+)\s*(:.*)?$")
_END = re.compile(r"(\d+) (?:valid )?lids dumped")
_HEADING = re.compile(r"\s*(Lid\s+Out|Port\s+Info|#)")


def with_tables(wiring: Wiring, file: Path) -> Wiring:
    """The wiring with the forwarding tables of ``file``; ``ScenarioError`` names the line that is wrong."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ScenarioError(Problem("", f"cannot be read: {error}", file=str(file))) from None
    if not wiring.lids:
        words = "the fabric's links have no local identifiers: tables go with a dump of ibnetdiscover"
        raise ScenarioError(Problem("", words, file=str(file)))
    column = {lid: wiring.hosts.index(host) for lid, host in wiring.lids.items()}
    tables: dict[str, list[int]] = {}
    row: list[int] | None = None
    entries = start = 0
    for number, line in enumerate(text.splitlines(), 1):
        here = Problem("", "", file=str(file), line=number)
        if begins := _BLOCK.match(line):
            if row is not None:
                raise ScenarioError(replace(here, message=f"the table that begins on line {start} has no end"))
            row, entries, start = [0] * len(wiring.hosts), 0, number
            tables[_switch(wiring, int(begins[1], 16), here)] = row
        elif (entry := _ENTRY.match(line)) and row is not None:
            entries += 1
            lid = int(entry[1], 16)
            if lid in column:
                row[column[lid]] = int(entry[2])
        elif (ends := _END.match(line)) and row is not None:
            if int(ends[1]) != entries:
                words = f"the table has {entries} lines, and says {ends[1]}: is it cut?"
                raise ScenarioError(replace(here, message=words))
            row = None
        elif line.strip() and not _HEADING.match(line):
            raise ScenarioError(replace(here, message=f"not a line of a forwarding table: {line.strip()[:60]!r}"))
    if row is not None or not tables:
        words = f"the table that begins on line {start} has no end: is the file cut off?" if tables else "no table"
        raise ScenarioError(Problem("", words, file=str(file), line=start or None))
    return replace(wiring, tables={switch: tuple(ports) for switch, ports in tables.items()})


def _switch(wiring: Wiring, guid: int, here: Problem) -> str:
    if guid not in wiring.guids:
        raise ScenarioError(replace(here, message=f"the fabric has no switch with the GUID 0x{guid:016x}"))
    return wiring.guids[guid]
