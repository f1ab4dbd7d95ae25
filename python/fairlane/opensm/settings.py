"""Virtual lanes, their arbitration and the mapping of service levels, as a subnet manager programs them into ports."""

from dataclasses import dataclass, replace

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
    """How many of so many data lanes a port can have in operation."""
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
        """What OpenSM sets in ports with so many operational data lanes: it keeps the low bits of a lane's number.

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
