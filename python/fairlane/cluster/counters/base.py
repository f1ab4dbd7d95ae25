"""Counters of a port, as InfiniBand's performance management names and counts them (IBA specification 1.4, 16.1).

Data is counted in words of 4 bytes, packets by number. ``PortXmitWait`` counts ticks in which the port had data to
transmit and sent none, for lack of credits or of arbitration. How long a tick is, is the device's choice; simulated
ports have a tick of the time that their link takes for one word, so that wait and data have the same unit.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError

WORD = 4
"""Bytes of a word, in which data is counted."""
TICK_WORDS = 1
"""Words that a simulated port could send in a tick of ``PortXmitWait``."""

COUNTERS: tuple[str, ...] = (
    "PortXmitData",
    "PortRcvData",
    "PortXmitPkts",
    "PortRcvPkts",
    "PortUnicastXmitPkts",
    "PortUnicastRcvPkts",
    "PortMulticastXmitPkts",
    "PortMulticastRcvPkts",
    "SymbolErrorCounter",
    "LinkErrorRecoveryCounter",
    "LinkDownedCounter",
    "PortRcvErrors",
    "PortRcvRemotePhysicalErrors",
    "PortRcvSwitchRelayErrors",
    "PortXmitDiscards",
    "PortXmitConstraintErrors",
    "PortRcvConstraintErrors",
    "LocalLinkIntegrityErrors",
    "ExcessiveBufferOverrunErrors",
    "VL15Dropped",
    "PortXmitWait",
    "QP1Dropped",
)
"""The counters by name, in the order of ``perfquery -x``."""
DATA = ("PortXmitData", "PortRcvData")
"""Those that count words."""


@dataclass(frozen=True)
class PortCounters:
    """The counters of a port; what identifies it depends on the source."""

    number: int
    """The port's number on its node."""
    values: Mapping[str, int] = field(default_factory=dict)
    """Counters by name: words, packets, ticks."""
    name: str = ""
    """The host's or the switch's name, as far as it is known."""
    guid: int | None = None
    """The GUID of the node."""
    lid: int | None = None
    """The local identifier of the port, of a switch that of the switch."""
    adapter: int | None = None
    """The number of the adapter in its host, from 0."""
    is_switch: bool | None = None
    line: int | None = None
    """Its line in the source."""
    device: str = ""
    """The adapter's name in its host, as ``mlx5_0`` or ``ibp65s0``."""

    @property
    def key(self) -> tuple[object, ...]:
        """Key that distinguishes it from the other ports of its source."""
        address = self.guid if self.guid is not None else self.lid
        return (address, self.name, self.device or self.adapter, self.number)

    def __str__(self) -> str:
        guid = "" if self.guid is None else f"0x{self.guid:016x}"
        node = self.name or guid or ("" if self.lid is None else f"lid {self.lid}")
        return " ".join(filter(None, (node, self.device, f"port {self.number}")))


@dataclass(frozen=True)
class Reading:
    """The counters of a file."""

    ports: list[PortCounters]
    note: str | None = None
    """Note on the lines of the file that were skipped, if any."""


def since(now: Iterable[PortCounters], before: Iterable[PortCounters], file: Path) -> list[PortCounters]:
    """The counters' increments from ``before`` to ``now``, which was read from ``file``.

    Raises ``ScenarioError`` for a counter that has fallen, as it does when it is cleared, and ports without a value
    before.
    """
    first = {port.key: port for port in before}
    ports, problems = [], []
    for port in now:
        old = first.get(port.key)
        if old is None:
            message = f"{port} is not among the counters before"
            problems.append(Problem.of_file(file, message, port.line))
            continue
        fallen = [name for name, value in port.values.items() if value < old.values.get(name, 0)]
        if fallen:
            message = (
                f"{fallen[0]} of {port} was {old.values[fallen[0]]} and is {port.values[fallen[0]]}: it was cleared"
            )
            problems.append(Problem.of_file(file, message, port.line))
        increments = {name: value - old.values.get(name, 0) for name, value in port.values.items()}
        ports.append(replace(port, values=increments))
    if problems:
        raise ScenarioError(problems)
    return ports


_DEVICE = re.compile(r"(.*?)([0-9]{1,4})")


def adapter_numbers(devices: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The number of each adapter, by host and device.

    It is the number in the name if the names of a host differ in nothing else, as ``mlx5_0`` and ``mlx5_1``, otherwise
    the place among them in the order of names: ``ibp65s0`` and ``ibp97s0`` are 0 and 1.
    """
    by_host: dict[str, set[str]] = {}
    for where, device in devices:
        by_host.setdefault(where, set()).add(device)
    numbers_of = {}
    for where, names in by_host.items():
        parts = {device: _DEVICE.fullmatch(device) for device in names}
        numbered = all(parts.values()) and len({part[1] for part in parts.values() if part}) == 1
        for place, device in enumerate(sorted(names, key=_natural)):
            part = parts[device]
            numbers_of[where, device] = int(part[2]) if numbered and part else place
    return numbers_of


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers within names by their value."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"([0-9]+)", name)]
