"""Compares the settings of virtual lanes of every cabled port with those exported; differences, counts and notes."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fairlane.cluster.opensm.check.layout import End
from fairlane.cluster.opensm.check.query import (
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
from fairlane.cluster.opensm.check.simulated import Subnet
from fairlane.cluster.opensm.settings import DATA_LANES, Settings, Table, differ, shares_of, shown

EXPORTED, OPENSM, SIMULATED = "exported files", "OpenSM", "ibsim"
"""Causes of differences."""


@dataclass(frozen=True)
class Difference:
    """A value that was read back and is another than was exported."""

    node: str
    """The host or switch."""
    port: str
    """The port's number; of a path its other end, of a forwarding table the destination."""
    what: str
    """Setting that was read, as ``SL2VL, input port 3``."""
    expected: str
    found: str
    cause: str = OPENSM
    """Its cause: the exported files, OpenSM, one of its routing engines, or ibsim."""
    effect: str = ""
    """The shares of a link that lanes have because of it, where they are others."""


@dataclass(frozen=True)
class Compared:
    """The result of one comparison."""

    counts: Mapping[str, int]
    """Number of compared values, by kind."""
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    """Settings that the simulated subnet cannot hold, and those compared only in part; one sentence each."""


NO_ANSWER = "no answer"
_TABLES = (("low", LOW), ("high", HIGH))


def compare_ports(subnet: Subnet, ends: Sequence[End], settings: Settings, packet: int) -> Compared:
    """Reads PortInfo, both tables of VL arbitration, and SL2VL of every output port for every input port.

    Expected is what OpenSM sets for these settings in a port with its lanes. Tables of VL arbitration that are others
    and give all lanes the same shares are no difference; ``packet`` is the wire size of the packets, bytes.
    """
    answers = ask(subnet, [Smp(end.lid, PORT_INFO, end.port) for end in ends])
    infos = [None if raw is None else PortSettings.decode(raw) for raw in answers]
    settings_read = _Found(settings, packet)
    for end, info in zip(ends, infos, strict=True):
        settings_read.take_info(end, info)
    answering = [(end, info) for end, info in zip(ends, infos, strict=True) if info is not None]
    asked = [(end, info, *rest) for end, info in answering for rest in _blocks(info)]
    queries = [Smp(end.lid, VL_ARBITRATION, block << 16 | end.port) for end, _, _, block, _ in asked]
    for (end, _, name, _, entries), answer in zip(asked, ask(subnet, queries), strict=True):
        settings_read.take_block(end, name, entries, answer)
    settings_read.compare_tables()
    inputs: dict[str, list[int]] = defaultdict(lambda: [0])
    for end in ends:
        inputs[end.node] += [end.port] if end.is_switch else []
    pairs = [(end, number) for end in ends for number in inputs[end.node]]
    queries = [Smp(end.lid, SL_TO_VL, number << 8 | end.port if end.is_switch else 0) for end, number in pairs]
    for (end, number), answer in zip(pairs, ask(subnet, queries), strict=True):
        settings_read.take_mapping(end, number, None if answer is None else decode_sl2vl(answer))
    tables = {(end, name) for end, _, name, _, _ in asked}
    counts = {"ports": len(ends), "VL arbitration tables": len(tables), "SL2VL tables": len(pairs)}
    return Compared(counts, tuple(settings_read.differences), tuple(settings_read.notes()))


def _blocks(info: PortSettings) -> Iterator[tuple[str, int, int]]:
    """The blocks of VL arbitration that a port has: table, block and entries."""
    for (name, block), entries in zip(_TABLES, (info.low_entries, info.high_entries), strict=True):
        for at in range(0, entries, BLOCK):
            yield name, block + at // BLOCK, min(BLOCK, entries - at)


@dataclass
class _Found:
    settings: Settings
    packet: int
    differences: list[Difference] = field(default_factory=list)
    no_limit: int = 0  # ports that read back 0 as the limit of high priority
    lanes: dict[End, int] = field(default_factory=dict)  # operational lanes
    tables: dict[tuple[End, str], list[tuple[int, int]] | None] = field(default_factory=dict)
    equivalent: int = 0  # ports with other tables and the same shares
    # Ports that have no room for all entries, by room in the low and high table and by operational lanes.
    cut: dict[tuple[int, int, int], int] = field(default_factory=lambda: defaultdict(int))
    in_force: dict[int, Settings] = field(default_factory=dict)  # by operational lanes

    def take_info(self, end: End, info: PortSettings | None) -> None:
        """Lanes in use, and the limit of high priority."""
        if info is None:
            self._differ(end, "PortInfo", "an answer", NO_ANSWER, SIMULATED)
            return
        lanes = self.lanes[end] = info.operational_vls or DATA_LANES  # 0 is no number of lanes
        used = max(lane for lane in (0, *self.settings.sl2vl) if lane < DATA_LANES) + 1
        if info.operational_vls < used:
            cause = OPENSM if info.vl_cap >= used else SIMULATED
            cause = EXPORTED if self.settings.operational_vls < used else cause
            self._differ(end, "operational VLs", f"at least {used}", str(info.operational_vls), cause)
        if info.high_limit != self.settings.high_limit:
            if info.high_limit == 0:
                self.no_limit += 1
            else:
                self._differ(end, "VLHighLimit", str(self.settings.high_limit), str(info.high_limit))
        expected = self._expected(end)
        if len(_needed(expected.vlarb_low)) > info.low_entries or len(_needed(expected.vlarb_high)) > info.high_entries:
            self.cut[info.low_entries, info.high_entries, lanes] += 1

    def take_block(self, end: End, name: str, entries: int, answer: bytes | None) -> None:
        """A block of a table; blocks come in their order."""
        table = self.tables.setdefault((end, name), [])
        if answer is None or table is None:
            self.tables[end, name] = None
        else:
            table += decode_vlarb(answer)[:entries]

    def compare_tables(self) -> None:
        """Both tables of every port, as far as it has entries."""
        for end in dict.fromkeys(end for end, _ in self.tables):
            room, wrong = {}, []
            for name, _ in _TABLES:
                expected, table = self._table(end, name), self.tables.get((end, name), [])
                if table is None:
                    self._differ(end, f"VL arbitration, {name} priority", _shown(expected), NO_ANSWER, SIMULATED)
                    continue
                room[name] = table
                if _needed(table) != _needed(expected[: len(table)]):
                    wrong.append((f"VL arbitration, {name} priority", _shown(expected[: len(table)]), _shown(table)))
            if not wrong:
                continue
            effect = self._effect(end, room)
            if effect is None:
                self.equivalent += 1
            for what, shown_expected, shown_found in wrong if effect is not None else ():
                self._differ(end, what, shown_expected, shown_found, effect=effect or "")

    def _effect(self, end: End, tables: Mapping[str, Sequence[tuple[int, int]]]) -> str | None:
        """Return the effect of other tables on lanes' shares; None if there is none, empty if a table is not known."""
        if len(tables) < len(_TABLES):
            return ""
        expected = self._expected(end)
        low, high = tuple(tables["low"]), tuple(tables["high"])
        wanted = replace(
            expected, vlarb_low=expected.vlarb_low[: len(low)], vlarb_high=expected.vlarb_high[: len(high)]
        )
        before = shares_of(wanted, self.packet)
        after = shares_of(replace(expected, vlarb_low=low, vlarb_high=high), self.packet)
        return f"{shown(after)} instead of {shown(before)}" if differ(before, after) else None

    def take_mapping(self, end: End, number: int, mapping: tuple[int, ...] | None) -> None:
        """The SL2VL table of an output port for one input port."""
        expected = self._expected(end).sl2vl
        if mapping != expected:
            what = f"SL2VL, input port {number}" if end.is_switch else "SL2VL"
            cause = SIMULATED if mapping is None else OPENSM
            self._differ(end, what, _lanes(expected), NO_ANSWER if mapping is None else _lanes(mapping), cause)

    def notes(self) -> Iterator[str]:
        """Yield notes on settings that ports cannot hold."""
        if self.no_limit:
            remark = f"VLHighLimit is not compared: {self.no_limit} ports read back 0, as all of ibsim do"
            yield f"{remark}; exported is {self.settings.high_limit}"
        for (low, high, lanes), ports in self.cut.items():
            whole = self.settings.in_force(lanes)
            short = replace(whole, vlarb_low=whole.vlarb_low[:low], vlarb_high=whole.vlarb_high[:high])
            counts = f"{len(_needed(whole.vlarb_low))} low-priority and {len(_needed(whole.vlarb_high))} high-priority"
            before, after = (shown(shares_of(table, self.packet)) for table in (whole, short))
            yield (
                f"VL arbitration has {counts} entries, and {ports} ports of ibsim have room for {low} and {high}, "
                f"which are compared. Real ports need room for all: {before} of a link, with those of ibsim {after}"
            )
        if self.equivalent:
            yield f"{self.equivalent} ports have other tables of VL arbitration that give all lanes the same shares"

    def _expected(self, end: End) -> Settings:
        lanes = self.lanes.get(end, DATA_LANES)
        if lanes not in self.in_force:
            self.in_force[lanes] = self.settings.in_force(lanes)
        return self.in_force[lanes]

    def _table(self, end: End, name: str) -> Table:
        expected = self._expected(end)
        return expected.vlarb_low if name == "low" else expected.vlarb_high

    def _differ(
        self, end: End, what: str, expected: str, read_back: str, cause: str = OPENSM, effect: str = ""
    ) -> None:
        self.differences.append(Difference(end.node, str(end.port), what, expected, read_back, cause, effect))


def _needed(table: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """A table without the empty entries at its end; the lane of an empty one does not matter."""
    last = max((at for at, (_, weight) in enumerate(table, 1) if weight), default=0)
    return tuple((lane if weight else 0, weight) for lane, weight in table[:last])


def _shown(table: Sequence[tuple[int, int]]) -> str:
    """A table as OpenSM's option has it, without empty entries at its end."""
    return ",".join(f"{lane}:{weight}" for lane, weight in _needed(table)) or "empty"


def _lanes(lanes: Sequence[int]) -> str:
    return ",".join(map(str, lanes))
