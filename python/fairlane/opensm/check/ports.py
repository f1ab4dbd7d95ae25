"""Compares the settings of virtual lanes of every port that has a cable with those that were exported."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from fairlane.opensm.check.difference import Compared, Difference
from fairlane.opensm.check.layout import End
from fairlane.opensm.check.query import (
    BLOCK,
    HIGH,
    LOW,
    PORT_INFO,
    SL_TO_VL,
    VL_ARBITRATION,
    PortSettings,
    Smp,
    ask,
    decode_sl2vl,
    decode_vlarb,
)
from fairlane.opensm.check.simulated import Subnet
from fairlane.opensm.settings import Settings, Table

NO_ANSWER = "no answer"
_TABLES = (("low", LOW), ("high", HIGH))


def compare_ports(subnet: Subnet, ends: Sequence[End], settings: Settings) -> Compared:
    """Reads PortInfo, both tables of VL arbitration, and SL2VL of every output port for every input port."""
    answers = ask(subnet, [Smp(end.lid, PORT_INFO, end.port) for end in ends])
    infos = [None if one is None else PortSettings.decode(one) for one in answers]
    found = _Found(settings)
    for end, info in zip(ends, infos, strict=True):
        found.take_info(end, info)
    answering = [(end, info) for end, info in zip(ends, infos, strict=True) if info is not None]
    asked = [(end, info, *rest) for end, info in answering for rest in _blocks(info)]
    queries = [Smp(end.lid, VL_ARBITRATION, block << 16 | end.port) for end, _, _, block, _ in asked]
    for (end, _, name, block, entries), answer in zip(asked, ask(subnet, queries), strict=True):
        found.take_table(end, name, BLOCK * (block in (LOW + 1, HIGH + 1)), entries, answer)
    inputs: dict[str, list[int]] = defaultdict(lambda: [0])
    for end in ends:
        inputs[end.node] += [end.port] if end.is_switch else []
    pairs = [(end, number) for end in ends for number in inputs[end.node]]
    queries = [Smp(end.lid, SL_TO_VL, number << 8 | end.port if end.is_switch else 0) for end, number in pairs]
    for (end, number), answer in zip(pairs, ask(subnet, queries), strict=True):
        found.take_mapping(end, number, None if answer is None else decode_sl2vl(answer))
    tables = {(end, name) for end, _, name, _, _ in asked}
    counts = {"ports": len(ends), "VL arbitration tables": len(tables), "SL2VL tables": len(pairs)}
    return Compared(counts, tuple(found.differences), tuple(found.notes()))


def _blocks(info: PortSettings) -> Iterator[tuple[str, int, int]]:
    """The blocks of VL arbitration that a port has: table, block and entries."""
    for (name, block), entries in zip(_TABLES, (info.low_entries, info.high_entries), strict=True):
        for at in range(0, entries, BLOCK):
            yield name, block + at // BLOCK, min(BLOCK, entries - at)


@dataclass
class _Found:
    settings: Settings
    differences: list[Difference] = field(default_factory=list)
    no_limit: int = 0  # ports that read back 0 as the limit of high priority
    short: dict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))  # ports by table and entries

    def take_info(self, end: End, info: PortSettings | None) -> None:
        """Lanes in use, and the limit of high priority."""
        if info is None:
            self._differ(end, "PortInfo", "an answer", NO_ANSWER)
            return
        used = max(self.settings.sl2vl) + 1
        if info.operational_vls < used:
            self._differ(end, "operational VLs", f"at least {used}", str(info.operational_vls))
        if info.high_limit != self.settings.high_limit:
            if info.high_limit == 0:
                self.no_limit += 1
            else:
                self._differ(end, "VLHighLimit", str(self.settings.high_limit), str(info.high_limit))
        for (name, _), entries in zip(_TABLES, (info.low_entries, info.high_entries), strict=True):
            table = self._table(name)
            if any(weight for _, weight in table[entries:]):
                self.short[name, entries] += 1

    def take_table(self, end: End, name: str, begin: int, entries: int, answer: bytes | None) -> None:
        """A block of a table, as far as the port has entries."""
        table = self._table(name)[begin : begin + entries]
        expected = (*table, *[(0, 0)] * (entries - len(table)))
        found = None if answer is None else decode_vlarb(answer)[:entries]
        if found != expected:
            words = f"VL arbitration, {name} priority"
            self._differ(end, words, _shown(expected), NO_ANSWER if found is None else _shown(found))

    def take_mapping(self, end: End, number: int, found: tuple[int, ...] | None) -> None:
        """The SL2VL table of an output port for one input port."""
        if found != self.settings.sl2vl:
            words = f"SL2VL, input port {number}" if end.is_switch else "SL2VL"
            shown = NO_ANSWER if found is None else _lanes(found)
            self._differ(end, words, _lanes(self.settings.sl2vl), shown)

    def notes(self) -> Iterator[str]:
        """What ports cannot hold."""
        if self.no_limit:
            words = f"VLHighLimit is not compared: {self.no_limit} ports read back 0, as all of ibsim do"
            yield f"{words}; exported is {self.settings.high_limit}"
        for (name, entries), ports in self.short.items():
            words = f"the {name}-priority table of VL arbitration has {len(self._table(name))} entries"
            yield f"{words}, and {ports} ports have room for {entries}: the first {entries} are compared"

    def _table(self, name: str) -> Table:
        return self.settings.vlarb_low if name == "low" else self.settings.vlarb_high

    def _differ(self, end: End, what: str, expected: str, found: str) -> None:
        self.differences.append(Difference(end.node, str(end.port), what, expected, found))


def _shown(table: Table) -> str:
    """A table as OpenSM's option has it, without empty entries at its end."""
    last = max((at for at, (_, weight) in enumerate(table, 1) if weight), default=0)
    return ",".join(f"{lane}:{weight}" for lane, weight in table[:last]) or "empty"


def _lanes(lanes: Sequence[int]) -> str:
    return ",".join(map(str, lanes))
