"""Virtual lanes, their arbitration and the mapping of service levels, as a subnet manager programs them into ports."""

from dataclasses import dataclass

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

Table = tuple[tuple[int, int], ...]
"""A table of VL arbitration: pairs of virtual lane and weight."""


@dataclass(frozen=True)
class Settings:
    """The QoS options of OpenSM, for all ports alike."""

    max_vls: int
    """Data lanes in use, from VL0 on."""
    high_limit: int
    """Bytes of the high table that are sent while the low one waits: units of 4096; 0 is one packet, 255 no limit."""
    vlarb_high: Table
    """The high-priority table."""
    vlarb_low: Table
    """The low-priority table."""
    sl2vl: tuple[int, ...]
    """Virtual lane of each of the 16 service levels."""
