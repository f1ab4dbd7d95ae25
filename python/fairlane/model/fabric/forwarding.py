"""Forwarding tables of ``dump_lfts``, ``ibroute`` and OpenSM, those of the simulator's routes, and the paths of LIDs.

There is a block for each switch, and in it a line for each destination.

They belong to a dump of the same fabric, which has the local identifiers (LIDs) of adapters: 2^LMC of each port. Every
one is followed to its end; routes go to the first. Other destinations, as switches, are skipped.

*Forwarding tables of the routes that the simulator uses: at each switch the port for each endpoint.* They exist for
routings that choose the next link by switch and destination alone. Adaptive routings, and those by source or virtual
channel, have none. Endpoints are the adapters of all hosts, host by host.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import plural, some
from fairlane.inputs.files import lines_of, read_text, reading
from fairlane.model.fabric.identities import endpoint_lids, endpoints_of, numbered, places
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Wiring

_BLOCK = re.compile(r"Unicast lids \[(?:0-(\d{1,5})\])?.* of switch (?:Lid (\d{1,5}))?.*guid (0x[0-9a-fA-F]{1,16})")
_ENTRY = re.compile(r"(0x[0-9a-fA-F]{1,16})\s+(\d{1,9})\s*([:#].*)?$")
_END = re.compile(r"(\d{1,9}) (?:valid )?lids dumped")
_LARGEST_ENTRY = 256  # bytes that a destination of a switch may take
_NO_PATH = 255  # the entry of a LID whose packets are discarded
_HEADING = re.compile(r"\s*(Lid\s+Out|Port\s+Info|#)")


def with_tables(wiring: Wiring, file: Path) -> Wiring:
    """The wiring with the forwarding tables of ``file``, and remarks on LIDs that are led to other ports.

    ``ScenarioError`` names the line that is wrong, and first LIDs of ports that end elsewhere: routes go to these LIDs.
    """
    entries = read_entries(wiring, file)
    elsewhere, total = misled(wiring, entries), len(endpoint_lids(wiring))
    if firsts := [entry for entry in elsewhere if entry.is_first]:
        raise ScenarioError(Problem.of_file(file, summary(firsts, total)))
    remark = f"{file}: {summary(elsewhere, total)}; routes go to the first LID of a port"
    remarks = (*wiring.remarks, remark) if elsewhere else wiring.remarks
    return replace(wiring, tables=by_endpoint(wiring, entries), tables_source=file, remarks=remarks)


def read_entries(wiring: Wiring, file: Path) -> dict[str, dict[int, int]]:
    """By switch the port for each LID of an adapter; ``ScenarioError`` names the line that is wrong."""
    with reading(file):
        lids = endpoint_lids(wiring)
        text = read_text(file, _most_bytes(wiring, len(lids)))
    if not lids:
        message = "the fabric's links have no local identifiers: tables go with a dump of ibnetdiscover"
        raise ScenarioError(Problem.of_file(file, message))
    reader = _Reader(wiring, lids, file)
    for number, line in enumerate(lines_of(text), 1):
        reader.read(number, line)
    return reader.finished()


def by_endpoint(wiring: Wiring, entries: Mapping[str, Mapping[int, int]]) -> dict[str, tuple[int, ...]]:
    """By switch the port for the first LID of each endpoint."""
    first: dict[int, int] = {}
    for lid, endpoint in sorted(endpoint_lids(wiring).items()):
        first.setdefault(endpoint, lid)
    order = [first.get(endpoint, 0) for endpoint in range(len(endpoints_of(wiring)))]
    return {switch: tuple(ports.get(lid, 0) for lid in order) for switch, ports in entries.items()}


def _most_bytes(wiring: Wiring, lids: int) -> int:
    """The size up to which a file is read: every switch has an entry for every switch and every LID of a host."""
    return _LARGEST_ENTRY * (lids + len(wiring.switches) + 16) * (len(wiring.switches) + 16)


class _Reader:
    """Reads a file of tables line by line."""

    def __init__(self, wiring: Wiring, lids: Mapping[int, int], file: Path) -> None:
        self._switches = [node for node in wiring.nodes if node.is_switch]
        self._lids, self._file = lids, file
        self._tables: dict[str, dict[int, int]] = {}
        self._row: dict[int, int] | None = None
        self._entries = self._start = 0
        self._last: int | None = None

    def read(self, number: int, line: str) -> None:
        if begins := _BLOCK.match(line):
            self._end()
            self._row, self._entries, self._start = {}, 0, number
            self._last = int(begins[1]) if begins[1] else None
            switch = self._switch(number, int(begins[3], 16), int(begins[2]) if begins[2] else None)
            if switch in self._tables:
                raise self._error(number, f"{switch} has a table already: keep one")
            self._tables[switch] = self._row
        elif (entry := _ENTRY.match(line)) and self._row is not None:
            self._entries += 1
            lid = int(entry[1], 16)
            if lid in self._lids and int(entry[2]) < _NO_PATH:
                self._row[lid] = int(entry[2])
        elif (ends := _END.match(line)) and self._row is not None:
            # OpenSM's own file counts up to the last LID, which its first line has, too.
            if int(ends[1]) != (self._entries if self._last is None else self._last):
                what = f"{self._entries} lines" if self._last is None else f"LIDs up to {self._last}"
                raise self._error(number, f"the table has {what}, but its last line counts {ends[1]}: truncated?")
            self._row = None
        elif line.strip() and not _HEADING.match(line):
            raise self._error(number, f"not a line of a forwarding table: {line.strip()[:60]!r}")

    def _switch(self, line: int, guid: int, lid: int | None) -> str:
        """The switch of a GUID; of several that state the same, as line cards that of their director, by LID."""
        matching = [switch for switch in self._switches if switch.guid == guid] or [
            switch for switch in self._switches if switch.card and int(switch.card, 16) == guid
        ]
        named = [switch for switch in matching if switch.lid == lid] if len(matching) > 1 else matching
        if len(named) == 1:
            return named[0].owner
        message = f"the fabric has no switch with the GUID 0x{guid:016x}"
        if matching:
            message = f"{len(matching)} switches of the fabric state the GUID 0x{guid:016x}"
            message += f", none the LID {lid}" if lid is not None else ", and the line has no LID"
        raise self._error(line, message)

    def finished(self) -> dict[str, dict[int, int]]:
        self._end()
        if not self._tables:
            raise self._error(None, "no forwarding table")
        return self._tables

    def _end(self) -> None:
        if self._row is not None:
            raise self._error(self._start, "the table that begins here has no end: is the file cut off?")

    def _error(self, line: int | None, message: str) -> ScenarioError:
        return ScenarioError(Problem.of_file(self._file, message, line))


BY_DESTINATION = ("d_mod_k", "dimension_order", "minimal", "up_down")
"""Routings that do not look at loads, sources or flows."""
TABLES = "tables"
"""The routing by an imported fabric's own forwarding tables."""


def tables_of(fabric: Fabric, spec: Mapping[str, Any]) -> dict[str, tuple[int, ...]] | None:
    """The port for each endpoint by switch, 0 where no route passes; None if the routing has no such tables.

    ``spec`` is the specification that the fabric was built from.
    """
    if spec["routing"] == TABLES:
        return {switch: tuple(ports) for switch, ports in spec["params"]["tables"].items()}
    ports = fabric.forwarding() if spec["routing"] in BY_DESTINATION else None
    if ports is None:
        return None
    return {name: tuple(row) for name, row in zip(fabric.switch_names, ports.tolist(), strict=True)}


Entries = Mapping[str, Mapping[int, int]]
"""By switch the port for each LID; 0 and absent LIDs lead nowhere."""
_SHOWN = 3  # LIDs that a message names
_End = tuple[str, int] | str  # a port of a host, or what happens in its place


@dataclass(frozen=True)
class Misled:
    """A LID that some switch with hosts leads to another place than the port that owns it."""

    lid: int
    is_first: bool
    """Whether it is the first LID of its port, which routes of the simulator go to."""
    owner: str
    """The adapter and port that own it."""
    end: str
    """Its end."""

    def __str__(self) -> str:
        return f"LID {self.lid} of {self.owner} {self.end}"


def misled(wiring: Wiring, entries: Entries) -> list[Misled]:
    """The LIDs of adapters that do not end at their port from every switch with hosts that has an entry for them."""
    owners, endpoints = endpoint_lids(wiring), endpoints_of(wiring)
    nodes = places(wiring.nodes, wiring)
    firsts = {port.lid for _, port in nodes.values()}
    paths = _Paths(wiring, entries)

    def named(place: tuple[str, int]) -> str:
        node, port = nodes[place]
        return f"{node.description or node.owner} port {port.number}"

    elsewhere = []
    for lid, endpoint in sorted(owners.items()):
        place = endpoints[endpoint]
        wrong = next((end for end in paths.ends(lid) if end != place), None)
        if wrong is not None:
            end = wrong if isinstance(wrong, str) else f"ends at {named(wrong)}"
            elsewhere.append(Misled(lid, lid in firsts, named(place), end))
    return elsewhere


def summary(elsewhere: Sequence[Misled], total: int) -> str:
    """One sentence on LIDs that are led elsewhere, of ``total``."""
    count = (
        f"{len(elsewhere)} of {plural(total, 'LID')} of adapters {'is' if len(elsewhere) == 1 else 'are'} led elsewhere"
    )
    return f"{count}: {some(map(str, elsewhere), _SHOWN)}"


class _Paths:
    """The paths of LIDs from all switches with hosts."""

    def __init__(self, wiring: Wiring, entries: Entries) -> None:
        self._entries, self._hosts = entries, set(wiring.hosts)
        self._far: dict[tuple[str, int], tuple[str, int]] = {}
        for one, other in numbered(wiring):
            self._far[one], self._far[other] = other, one
        self._leaves = dict.fromkeys(end[0] for end, far in self._far.items() if far[0] in self._hosts)

    def ends(self, lid: int) -> list[_End]:
        """Return the ends of the LID from each switch with hosts that has an entry for it."""
        known: dict[str, _End] = {}
        return [self._follow(leaf, lid, known) for leaf in self._leaves if self._entries.get(leaf, {}).get(lid)]

    def _follow(self, at: str, lid: int, known: dict[str, _End]) -> _End:
        passed: dict[str, None] = {}
        while at not in known:
            if at in passed:
                known[at] = f"goes in a circle over {at}"
                break
            passed[at] = None
            port = self._entries.get(at, {}).get(lid, 0)
            far = self._far.get((at, port))
            if far is not None and far[0] not in self._hosts:
                at = far[0]
            elif far is not None:
                known[at] = far
            else:
                known[at] = f"leads to port {port} of {at}, which has no cable" if port else f"has no entry at {at}"
        known.update(dict.fromkeys(passed, known[at]))
        return known[at]
