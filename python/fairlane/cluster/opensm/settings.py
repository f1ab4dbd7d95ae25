"""Virtual lanes, their arbitration and the mapping of service levels, as a subnet manager programs them into ports.

*The share of a link that each virtual lane has while all of them always have packets to send.* An entry of a table of
VL arbitration is a budget of bytes: packets of its lane are sent while some of it is left, and the last one may exceed
it (InfiniBand Architecture Specification 1.4, section 7.6.9). An entry of weight ``w`` sends ``ceil(64 w / p)`` packets
of ``p`` bytes. High-priority packets are sent until they are at least ``high_limit`` in a row, and then one packet of
low priority.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.files import read_text, reading

DATA_LANES = 15
"""Data lanes of InfiniBand: VL0 to VL14. VL15 is for management."""
LEVELS = 16
"""Service levels."""
MOST_ENTRIES = 64
"""Entries of a table of VL arbitration (IBA specification 1.4, section 7.6.9)."""
MOST_WEIGHT = 255
"""Weight of an entry, units of 64 bytes."""
UNIT = 64
"""Bytes that one unit of weight stands for."""
LIMIT_UNIT = 4096
"""Bytes that one unit of the limit of high priority stands for."""
NO_LIMIT = 255
"""The limit of high priority that means none."""

OPERATIONAL_VLS = {1: 1, 2: 2, 3: 4, 4: 8, 5: 15}
"""Data lanes by the code of InfiniBand's OperationalVLs, which ``max_op_vls`` limits."""

Table = tuple[tuple[int, int], ...]
"""A table of VL arbitration: pairs of virtual lane and weight."""


def operational(lanes: int) -> int:
    """Return how many of so many data lanes a port can have in operation."""
    return max(number for number in OPERATIONAL_VLS.values() if number <= lanes)


@dataclass(frozen=True)
class Settings:
    """The QoS options of OpenSM, for all ports alike."""

    max_vls: int
    """The value of ``qos_max_vls``, which OpenSM reads and does not use."""
    high_limit: int
    """Bytes of the high table that are sent while the low one waits: units of 4096; 0 is one packet, 255 no limit."""
    vlarb_high: Table
    """The high-priority table."""
    vlarb_low: Table
    """The low-priority table."""
    sl2vl: tuple[int, ...]
    """Virtual lane of each of the 16 service levels."""
    operational_vls: int = DATA_LANES
    """Data lanes that ports have in operation, 1, 2, 4, 8 or 15, if they have as many."""

    def in_force(self, lanes: int = DATA_LANES) -> "Settings":
        """Return the settings that OpenSM makes with so many operational data lanes: it keeps the low bits of a lane.

        Lanes are those of OpenSM 3.3.23 on a subnet simulated by ibsim, in SL2VL and in both tables of VL arbitration.
        VL15 stays, which drops packets.
        """
        lanes = operational(min(lanes, self.operational_vls))
        mask = DATA_LANES if lanes == DATA_LANES else lanes - 1

        def kept(table: Table) -> Table:
            return tuple((lane & mask, weight) for lane, weight in table)

        sl2vl = tuple(lane if lane == DATA_LANES else lane & mask for lane in self.sl2vl)
        high, low = kept(self.vlarb_high), kept(self.vlarb_low)
        return replace(self, vlarb_high=high, vlarb_low=low, sl2vl=sl2vl, operational_vls=lanes)


SHARES_FILE = "shares.tsv"
"""The file of shares beside exported settings."""
_COMMENT = "# percent of a link if all lanes always have packets of {} bytes to send"
_HEADINGS = ("lane", "service levels", "simulated", "exported")
_ROUNDED = 1e-5  # of a share in the file

Shares = dict[int, Fraction]
"""Share by virtual lane."""


@dataclass(frozen=True)
class LaneShare:
    """Share of a link that a lane has if all lanes always have full packets to send."""

    lane: int
    levels: tuple[int, ...]
    """The service levels that are mapped to it."""
    simulated: float
    """With the arbiter of the simulator."""
    exported: float
    """With the exported tables."""


def packets_of(weight: int, packet: int) -> int:
    """Packets of this many bytes that an entry sends at a time."""
    return -(-weight * UNIT // packet)


def shares_of_tables(high: Table, low: Table, high_limit: int, sizes: Mapping[int, int]) -> Shares:
    """Shares under VL arbitration; ``sizes`` has the wire size of the packets of each lane that has some, bytes.

    Lanes without a weight have none.
    """
    first, second = list(_round(high, sizes)), list(_round(low, sizes))
    none = dict.fromkeys(sizes, Fraction(0))
    if not first or not second or high_limit == NO_LIMIT:
        return none | _parts(first or second)
    run, runs = _runs(first, max(1, high_limit * LIMIT_UNIT))
    packets = sum(count for _, count, _ in second)
    per_packet = {lane: Fraction(0) for lane, _, _ in second}  # bytes of a low-priority packet, on average
    for lane, count, size in second:
        per_packet[lane] += Fraction(count * size, packets)
    sent = {lane: run.get(lane, 0) + runs * per_packet.get(lane, Fraction(0)) for lane in sizes}
    total = sum(sent.values())
    return {lane: bytes_ / total for lane, bytes_ in sent.items()}


def shares_of(settings: Settings, packet: int) -> Shares:
    """Shares of the lanes of all service levels with packets of this many bytes."""
    sizes = dict.fromkeys(sorted({lane for lane in settings.sl2vl if lane < DATA_LANES}), packet)
    return shares_of_tables(settings.vlarb_high, settings.vlarb_low, settings.high_limit, sizes)


def shares_of_packets(packets: Mapping[int, int], sizes: Mapping[int, int]) -> Shares:
    """Shares under round-robin of so many packets of each lane."""
    return _parts([(lane, packets[lane], size) for lane, size in sizes.items()])


def shares_of_priority(order: Sequence[int], percents: Mapping[int, int]) -> Shares:
    """Shares under strict priority, where a lane with a percentage has priority up to that.

    What is left when all lanes have had their percentage is the first lane's.
    """
    left, shares = Fraction(1), {}
    for lane in order:
        shares[lane] = min(left, Fraction(percents.get(lane, 100), 100))
        left -= shares[lane]
    shares[order[0]] += left
    return shares


def largest_error(wanted: Mapping[int, Fraction], shares: Mapping[int, Fraction]) -> Fraction:
    """The largest difference of a lane's shares."""
    return max((abs(shares.get(lane, 0) - share) for lane, share in wanted.items()), default=Fraction(0))


def shown(shares: Mapping[int, Fraction | float]) -> str:
    """Shares for people."""
    return ", ".join(f"VL{lane} {float(share):.1%}" for lane, share in sorted(shares.items()))


def write_shares(shares: Sequence[LaneShare], packet: int) -> str:
    """A table of the shares; ``packet`` is the wire size of a full packet, bytes."""
    rows = [
        f"{share.lane}\t{','.join(map(str, share.levels))}\t{100 * share.simulated:.6g}\t{100 * share.exported:.6g}\n"
        for share in shares
    ]
    headings = "\t".join(_HEADINGS)
    return "".join([f"{_COMMENT.format(packet)}\n", f"{headings}\n", *rows])


def read_shares(file: Path) -> tuple[int, list[LaneShare]]:
    """The packet size and the shares of a file that ``write_shares`` has made; others are a ``ScenarioError``."""
    with reading(file):
        lines = read_text(file).splitlines()
    packet = re.fullmatch(re.escape(_COMMENT).replace(r"\{\}", r"([1-9]\d{0,8})"), lines[0] if lines else "")
    if packet is None or lines[1:2] != ["\t".join(_HEADINGS)]:
        raise ScenarioError(Problem.of_file(file, "not a file of shares that qos export has written", 1))
    shares = []
    for number, line in enumerate(lines[2:], 3):
        try:
            lane, levels, simulated, exported = line.split("\t")
            levels_of_lane = tuple(int(level) for level in levels.split(",") if level)
            shares.append(LaneShare(int(lane), levels_of_lane, float(simulated) / 100, float(exported) / 100))
        except ValueError:
            message = f"not a row of {', '.join(_HEADINGS)}: {line[:60]!r}"
            raise ScenarioError(Problem.of_file(file, message, number)) from None
    return int(packet[1]), shares


def differ(first: Mapping[int, Fraction | float], second: Mapping[int, Fraction | float]) -> bool:
    """Whether a lane has another share, beyond the digits of a file."""
    return any(abs(float(first.get(lane, 0)) - float(second.get(lane, 0))) > _ROUNDED for lane in {*first, *second})


def _round(table: Table, sizes: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """Lane, number of packets and their size of each entry that sends."""
    for lane, weight in table:
        if weight and lane in sizes:
            yield lane, packets_of(weight, sizes[lane]), sizes[lane]


def _parts(entries: Sequence[tuple[int, int, int]]) -> Shares:
    total = sum(count * size for _, count, size in entries)
    shares: dict[int, Any] = {}
    for lane, count, size in entries:
        shares[lane] = shares.get(lane, 0) + Fraction(count * size, total)
    return shares


def _runs(entries: Sequence[tuple[int, int, int]], limit: int) -> tuple[dict[int, int], int]:
    """Bytes by lane of the runs that reach the limit one after the other, and how many until they repeat."""
    lanes = [lane for lane, count, _ in entries for _ in range(count)]
    sizes = [size for _, count, size in entries for _ in range(count)]
    ends = [0, *accumulate(sizes)]
    seen: dict[int, int] = {}  # number of the run by the packet that it begins with
    began: list[int] = []
    lengths: list[tuple[int, int]] = []  # of each run: whole rounds, and the packet after its last one
    at = 0
    while at not in seen:
        seen[at] = len(began)
        began.append(at)
        rounds, rest = divmod(ends[at] + limit, ends[-1])
        after = bisect_left(ends, rest)
        lengths.append((rounds, after))
        at = after % len(lanes)
    sent: dict[int, int] = dict.fromkeys(lanes, 0)
    cycle = range(seen[at], len(began))
    total = sum(lengths[number][0] * len(lanes) + lengths[number][1] - began[number] for number in cycle)
    # The runs of a cycle follow each other and end where they began: whole rounds of the table.
    for lane, size in zip(lanes, sizes, strict=True):
        sent[lane] += size * (total // len(lanes))
    return sent, len(cycle)
