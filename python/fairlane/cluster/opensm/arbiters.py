"""Arbiters of the simulator as InfiniBand's two tables of VL arbitration, with the shares of the link that both give.

What the tables cannot express is an error; on request it is approximated, and a note states the shares.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from math import gcd
from typing import Any

from fairlane.cluster.opensm.settings import (
    MOST_ENTRIES,
    MOST_WEIGHT,
    NO_LIMIT,
    UNIT,
    Shares,
    Table,
    largest_error,
    packets_of,
    shares_of_packets,
    shares_of_priority,
    shares_of_tables,
    shown,
)
from fairlane.core.errors import Problem, ScenarioError

_USUAL = 8  # entries that the tables of ports often have room for, as those of ibsim


@dataclass(frozen=True)
class Tables:
    """The two tables and their limit, with notes on what is not exactly the same."""

    high: Table
    low: Table
    high_limit: int
    simulated: Shares
    """Shares of the link with the arbiter of the simulator, if all lanes always have full packets to send."""
    notes: tuple[str, ...] = ()

    def exported(self, ports: "Ports") -> Shares:
        """Shares with these tables."""
        return shares_of_tables(self.high, self.low, self.high_limit, ports.sizes)


@dataclass(frozen=True)
class Ports:
    """Ports that tables are made for."""

    lanes: Sequence[int]
    """The virtual lanes in use, ascending."""
    mtu: int
    """Bytes of a full packet without its header."""
    header: int
    approximate: bool
    """Whether settings that the tables cannot express may be approximated."""
    room: int = MOST_ENTRIES
    """Entries that each table may have."""

    @property
    def packet(self) -> int:
        """Wire size of a full packet, bytes."""
        return self.mtu + self.header

    @property
    def sizes(self) -> dict[int, int]:
        """The wire size of a full packet by lane."""
        return dict.fromkeys(self.lanes, self.packet)

    @property
    def most(self) -> int:
        """Full packets that an entry can send at most."""
        return packets_of(MOST_WEIGHT, self.packet)

    def weight(self, packets: int) -> int:
        """The weight of an entry that sends so many full packets, as far as there is one.

        Every weight from ``(packets - 1) * packet / 64`` to ``packets * packet / 64`` does in the simulator. That of
        the payload is among them unless headers are long; it also suits ports that count packets without their header,
        or in whole units.
        """
        payload = packets * self.mtu // UNIT
        if packets_of(payload, self.packet) != packets:
            payload = packets * self.packet // UNIT
        return min(MOST_WEIGHT, max(1, payload))

    def entries(self, packets: Mapping[int, int]) -> Table:
        """Entries that let each lane send this many full packets in a round; large numbers take several in a row."""
        table: list[tuple[int, int]] = []
        for lane, count in packets.items():
            parts = [self.most] * (count // self.most) + [count % self.most] * (count % self.most > 0)
            table += [(lane, self.weight(part)) for part in parts]
        return tuple(table)

    def fit(self, packets: Mapping[int, int]) -> bool:
        """Whether the table has room for them."""
        return sum(-(-count // self.most) for count in packets.values()) <= self.room

    def nearest(self, shares: Mapping[int, Fraction]) -> Table:
        """The entries whose shares are nearest to these, with the shortest round that is as near."""
        wanted = {lane: float(share) for lane, share in shares.items()}
        best, least = dict.fromkeys(wanted, 1), 1.0
        for total in range(len(wanted), self.room * self.most + 1):
            packets = {lane: max(1, round(total * share)) for lane, share in wanted.items()}
            entire = sum(packets.values())
            error = max(abs(packets[lane] / entire - share) for lane, share in wanted.items())
            if error < least - 1e-12 and self.fit(packets):
                best, least = packets, error
            if least < 1e-12:
                break
        return self.entries(best)

    def descending(self, lanes: Sequence[int]) -> Table:
        """Entries with the largest ratio between each lane and the next that the table has room for."""
        below, above = 1.0, float(self.room * self.most)
        packets = dict.fromkeys(lanes, 1)
        while above - below > 1e-3:
            ratio = (below + above) / 2
            tried = {lane: round(ratio**at) for at, lane in enumerate(reversed(lanes))}
            if self.fit(tried):
                below, packets = ratio, tried
            else:
                above = ratio
        return self.entries({lane: packets[lane] for lane in lanes})


def _not_exact(ports: Ports, key: str, value: Any, missing: str, approximation: str) -> str:
    """The note on an approximation. Raises ``ScenarioError`` if none is wanted."""
    if not ports.approximate:
        message = f"InfiniBand's VL arbitration has no {missing}"
        raise ScenarioError(Problem(key, message, value, f"--approximate, which exports {approximation}"))
    return f"approximated: {missing}: exported is {approximation}"


def _vlarb(params: Mapping[str, Any], ports: Ports) -> Tables:
    high: Table = tuple((lane, weight) for lane, weight in params.get("vlarb_high", ()))
    given = params.get("vlarb_low")
    rest = [(lane, UNIT) for lane in ports.lanes if lane not in {prioritized for prioritized, weight in high if weight}]
    low: Table = tuple((lane, weight) for lane, weight in (rest if given is None else given))
    limit = params.get("high_limit", 0)
    return Tables(high, low, limit, shares_of_tables(high, low, limit, ports.sizes))


def _weighted_round_robin(params: Mapping[str, Any], ports: Ports) -> Tables:
    given = params.get("weights", 1)
    packets = {lane: given if isinstance(given, int) else given[lane] for lane in ports.lanes}
    simulated = shares_of_packets(packets, ports.sizes)
    notes = [
        f"weighted_round_robin counts packets, InfiniBand units of {UNIT} bytes: the weights are those of full packets "
        f"of {ports.packet} bytes; a lane of smaller packets may send more of them in a round"
    ]
    unit = reduce(gcd, packets.values())
    fewer = {lane: count // unit for lane, count in packets.items()}
    if ports.fit(packets):
        low = ports.entries(packets)
    elif ports.fit(fewer):
        low = ports.entries(fewer)
        notes.append(f"weights are exported divided by {unit}: the shares are the same, and a round is shorter")
    else:
        low = ports.nearest(simulated)
    exported = shares_of_tables((), low, 0, ports.sizes)
    if error := largest_error(simulated, exported):
        missing = f"tables of {ports.room} entries of weights up to {MOST_WEIGHT} for these weights"
        approximation = (
            f"{shown(exported)} instead of {shown(simulated)}, an error of {float(100 * error):.2g} percentage points"
        )
        notes.append(_not_exact(ports, "qos.arbiter.weights", list(packets.values()), missing, approximation))
    return Tables((), low, 0, simulated, tuple(notes))


def _strict_priority(params: Mapping[str, Any], ports: Ports) -> Tables:
    order = [lane for lane in params.get("order") or sorted(ports.lanes, reverse=True) if lane in ports.lanes]
    shares = params.get("shares") or ()
    simulated = shares_of_priority(order, {lane: percent for lane, percent in shares if lane in ports.lanes})
    first = {lane: share for lane, share in simulated.items() if share}
    rest = [lane for lane in order if lane not in first]
    table = ports.nearest(first) if len(first) > 1 else ((order[0], MOST_WEIGHT),)
    if not rest:
        tables = Tables((), table, 0, simulated)
    else:
        low = ports.descending(rest) if len(rest) > 1 else ((rest[0], MOST_WEIGHT),)
        tables = Tables(table, low, NO_LIMIT, simulated)
    notes = []
    if shares and len(order) > 1:
        exported = tables.exported(ports)
        error = float(100 * largest_error(simulated, exported))
        approximation = (
            f"the bandwidth that lanes have if all have packets to send, {shown(exported)} (an error of {error:.2g} "
            "percentage points), without priority up to it"
        )
        notes.append(_not_exact(ports, "qos.arbiter.shares", shares, "bandwidth shares", approximation))
    if len(rest) > 1:
        before = "lane" if len(first) == 1 else "lanes"
        names = ", ".join(map(str, first))
        left = shares_of_tables((), tables.low, 0, dict.fromkeys(rest, ports.packet))
        approximation = f"{before} {names} before all others, which share what is left: {shown(left)}"
        missing = f"{len(order)} levels of priority, only two"
        notes.append(_not_exact(ports, "qos.arbiter.order", order, missing, approximation))
    return Tables(tables.high, tables.low, tables.high_limit, simulated, tuple(notes))


def _oldest_first(_params: Mapping[str, Any], _ports: Ports) -> Tables:
    message = "InfiniBand's VL arbitration knows no ages of packets"
    raise ScenarioError(Problem("qos.arbiter.name", message, "oldest_first", ", ".join(ARBITERS)))


ARBITERS: Mapping[str, Callable[[Mapping[str, Any], Ports], Tables]] = {
    "vlarb": _vlarb,
    "weighted_round_robin": _weighted_round_robin,
    "strict_priority": _strict_priority,
}
"""Translations of arbiters to tables; there is none for others."""


def tables_of(name: str, params: Mapping[str, Any], ports: Ports) -> Tables:
    """The tables of an arbiter. Raises ``ScenarioError`` with its key if they cannot express it."""
    tables = ARBITERS.get(name, _oldest_first if name == "oldest_first" else _unknown(name))(params, ports)
    entries = max(len(tables.high), len(tables.low))
    if entries > ports.room:
        message = f"needs a table of VL arbitration with {entries} entries"
        raise ScenarioError(Problem("qos.arbiter", message, name, f"at most {ports.room}: --vlarb-entries"))
    if entries > _USUAL and ports.room == MOST_ENTRIES:
        message = (
            f"a table of VL arbitration has {entries} entries: ports need room for them (VLArbLowCap and VLArbHighCap "
            f"of smpquery portinfo), or they have the first ones only; --vlarb-entries {_USUAL} exports what fits "
            f"{_USUAL}"
        )
        tables = replace(tables, notes=(*tables.notes, message))
    return tables


def _unknown(name: str) -> Callable[[Mapping[str, Any], Ports], Tables]:
    def refuse(_params: Mapping[str, Any], _ports: Ports) -> Tables:
        message = "has no equivalent in InfiniBand's VL arbitration"
        raise ScenarioError(Problem("qos.arbiter.name", message, name, ", ".join(ARBITERS)))

    return refuse
