"""Arbiters of the simulator as InfiniBand's two tables of VL arbitration; what they cannot express is an error.

Some settings have an approximation, which is used on request and described in a note.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.opensm.settings import MOST_ENTRIES, MOST_WEIGHT, UNIT, Table


@dataclass(frozen=True)
class Tables:
    """The two tables and their limit, with notes on what is not exactly the same."""

    high: Table
    low: Table
    high_limit: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ports:
    """What the tables are for."""

    lanes: Sequence[int]
    """The virtual lanes in use, ascending."""
    packet: int
    """Wire size of a full packet, bytes."""
    approximate: bool
    """Whether settings that the tables cannot express may be approximated."""


def _not_exact(ports: Ports, key: str, value: Any, words: str, approximation: str) -> str:
    """The note on an approximation. Raises ``ScenarioError`` if none is wanted."""
    if not ports.approximate:
        message = f"InfiniBand's VL arbitration has no {words}"
        raise ScenarioError(Problem(key, message, value, f"--approximate, which exports {approximation}"))
    return f"approximated: {words}: exported is {approximation}"


def _vlarb(params: Mapping[str, Any], ports: Ports) -> Tables:
    high: Table = tuple((lane, weight) for lane, weight in params.get("vlarb_high", ()))
    given = params.get("vlarb_low")
    rest = [(lane, UNIT) for lane in ports.lanes if lane not in {one for one, _ in high}]
    low: Table = tuple((lane, weight) for lane, weight in (rest if given is None else given))
    return Tables(high, low, params.get("high_limit", 0))


def _weighted_round_robin(params: Mapping[str, Any], ports: Ports) -> Tables:
    given = params.get("weights", 1)
    packets = {lane: given if isinstance(given, int) else given[lane] for lane in ports.lanes}
    note = (
        f"weighted_round_robin counts packets, InfiniBand units of {UNIT} bytes: the weights are those of full packets "
        f"of {ports.packet} bytes; a lane of smaller packets may send more of them in a round"
    )
    low, notes = _entries(packets, ports.packet), [note]
    if len(low) > MOST_ENTRIES:
        approximation = "the nearest smaller weights that fit"
        words = f"table with {len(low)} entries, which these weights need; the limit is {MOST_ENTRIES}"
        notes.append(_not_exact(ports, "qos.arbiter.weights", list(packets.values()), words, approximation))
        most = max(packets.values())
        for largest in range(most - 1, 0, -1):
            fewer = {lane: max(1, round(count * largest / most)) for lane, count in packets.items()}
            low = _entries(fewer, ports.packet)
            if len(low) <= MOST_ENTRIES:
                break
    return Tables((), low, 0, tuple(notes))


def _entries(packets: Mapping[int, int], packet: int) -> Table:
    """Entries that let each lane send this many full packets in a round.

    An entry is served until its weight is used up, and the last packet may exceed it. One of ``k`` packets' weight,
    rounded up to units, therefore sends exactly ``k`` full packets; larger numbers take several entries in a row.
    """
    unit = -(-packet // UNIT)
    most = max(1, MOST_WEIGHT // unit)
    found: list[tuple[int, int]] = []
    for lane, count in packets.items():
        parts = [most] * (count // most) + [count % most] * (count % most > 0)
        found += [(lane, min(MOST_WEIGHT, part * unit)) for part in parts]
    return tuple(found)


def _strict_priority(params: Mapping[str, Any], ports: Ports) -> Tables:
    order = [lane for lane in params.get("order") or sorted(ports.lanes, reverse=True) if lane in ports.lanes]
    notes = []
    if shares := params.get("shares"):
        approximation = "priority without shares"
        notes.append(_not_exact(ports, "qos.arbiter.shares", shares, "bandwidth shares", approximation))
    if len(order) == 1:
        return Tables((), ((order[0], MOST_WEIGHT),), 0, tuple(notes))
    rest = [(lane, max(1, (MOST_WEIGHT + 1) // 2**at - (at == 0))) for at, lane in enumerate(order[1:])]
    if len(order) > 2:
        approximation = f"lane {order[0]} before all others, which share by weights of {rest}"
        words = f"{len(order)} levels of priority, only two"
        notes.append(_not_exact(ports, "qos.arbiter.order", order, words, approximation))
    return Tables(((order[0], MOST_WEIGHT),), tuple(rest), 255, tuple(notes))


def _oldest_first(_params: Mapping[str, Any], _ports: Ports) -> Tables:
    words = "InfiniBand's VL arbitration knows no ages of packets"
    raise ScenarioError(Problem("qos.arbiter.name", words, "oldest_first", ", ".join(ARBITERS)))


ARBITERS: Mapping[str, Callable[[Mapping[str, Any], Ports], Tables]] = {
    "vlarb": _vlarb,
    "weighted_round_robin": _weighted_round_robin,
    "strict_priority": _strict_priority,
}
"""How each arbiter becomes tables; others cannot."""


def tables_of(name: str, params: Mapping[str, Any], ports: Ports) -> Tables:
    """The tables of an arbiter. Raises ``ScenarioError`` with its key if they cannot express it."""
    return ARBITERS.get(name, _oldest_first if name == "oldest_first" else _unknown(name))(params, ports)


def _unknown(name: str) -> Callable[[Mapping[str, Any], Ports], Tables]:
    def refuse(_params: Mapping[str, Any], _ports: Ports) -> Tables:
        words = "has no equivalent in InfiniBand's VL arbitration"
        raise ScenarioError(Problem("qos.arbiter.name", words, name, ", ".join(ARBITERS)))

    return refuse
