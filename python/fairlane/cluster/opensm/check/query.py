"""Ask ports and the subnet manager: settings of virtual lanes, and service levels of paths.

Layouts are those of the InfiniBand Architecture Specification 1.4, sections 14.2.5 (subnet management) and 15.2.5.16
(PathRecord); numbers are big-endian.
"""

import struct
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address
from pathlib import Path

from fairlane.cluster.opensm.check import mads
from fairlane.cluster.opensm.check.simulated import Subnet
from fairlane.cluster.opensm.settings import LEVELS, Table
from fairlane.core.errors import RunError

PORT_INFO, SL_TO_VL, VL_ARBITRATION = 0x15, 0x17, 0x18
"""Attributes of subnet management."""
LOW, HIGH = 1, 3
"""The first blocks of the two tables of VL arbitration; each table has two blocks."""
BLOCK = 32
"""Entries of a block."""
_LINK_LOCAL = 0xFE80 << 112


@dataclass(frozen=True)
class PortSettings:
    """Settings of virtual lanes in a port's PortInfo."""

    vl_cap: int
    """Data lanes that the port has: 1, 2, 4, 8 or 15."""
    operational_vls: int
    """Data lanes that are in use."""
    high_limit: int
    low_entries: int
    """Entries that its low-priority table can hold."""
    high_entries: int

    @classmethod
    def decode(cls, answer: bytes) -> "PortSettings":
        """Decode the data of a PortInfo."""
        return cls(_lanes(answer[37] >> 4), _lanes(answer[43] >> 4), answer[38], answer[40], answer[39])


def _lanes(code: int) -> int:
    return {1: 1, 2: 2, 3: 4, 4: 8, 5: 15}.get(code, 0)


def decode_sl2vl(answer: bytes) -> tuple[int, ...]:
    """The virtual lane of each service level."""
    return tuple(lane for byte in answer[: LEVELS // 2] for lane in (byte >> 4, byte & 15))


def decode_vlarb(answer: bytes) -> Table:
    """The entries of a block: pairs of virtual lane and weight."""
    return tuple((answer[at] & 15, answer[at + 1]) for at in range(0, 2 * BLOCK, 2))


def decode_level(answer: bytes) -> int:
    """The service level of a path record."""
    return answer[53] & 15


@dataclass(frozen=True)
class Smp:
    """A query of one attribute."""

    lid: int
    attribute: int
    modifier: int


def ask(subnet: Subnet, queries: Iterable[Smp]) -> list[bytes | None]:
    """The answers of ports, each None if there was none."""
    asked = b"".join(struct.pack("<HHI", query.lid, query.attribute, query.modifier) for query in queries)
    return _sent(subnet, asked, 8, "smp")


def ask_paths(subnet: Subnet, pairs: Sequence[tuple[int, int]], manager: int) -> list[bytes | None]:
    """The path records between port GUIDs, each None if there is none; ``manager`` is the subnet manager's LID."""
    asked = b"".join(_gid(begin) + _gid(end) for begin, end in pairs)
    return _sent(subnet, asked, 32, "path", str(manager))


def _gid(guid: int) -> bytes:
    """The GID of a port on the local subnet."""
    return IPv6Address(_LINK_LOCAL + guid).packed


def _sent(subnet: Subnet, asked: bytes, size: int, *arguments: str) -> list[bytes | None]:
    command = [sys.executable, "-I", str(Path(mads.__file__)), *arguments]
    answers = subnet.run(command, asked)
    step = 1 + mads.SIZE
    if len(answers) * size != len(asked) * step:
        raise RunError(f"{len(answers) // step} answers to {len(asked) // size} queries")
    return [answers[at + 1 : at + step] if answers[at] else None for at in range(0, len(answers), step)]
