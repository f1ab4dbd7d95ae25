"""Bandwidth-Weight: two priorities, as InfiniBand's arbitration has (Wilke 2020, section III.B)."""

from collections.abc import Sequence

from fairlane.qos.base import KINDS, Expansion, JobShare, TrafficClass

__all__ = ["COLLECTIVE", "POINT_TO_POINT", "bandwidth_weight"]

COLLECTIVE = 64
"""A collective class's weight in its table, 64 bytes each: one packet of 4 KiB."""
POINT_TO_POINT = 192
"""A point-to-point class's weight: three packets, so that collectives have 25%."""


def bandwidth_weight(_jobs: Sequence[JobShare], /) -> Expansion:
    """Control before data; within both, collectives get at least 25% of the link, point-to-point the rest."""
    return Expansion(
        sl2vl=[int(one) for one in sorted(TrafficClass)],
        kinds={kind: int(one) for kind, one in KINDS.items()},
        arbiter={
            "name": "vlarb",
            "vlarb_high": [
                [int(TrafficClass.COLLECTIVE_CONTROL), COLLECTIVE],
                [int(TrafficClass.POINT_TO_POINT_CONTROL), POINT_TO_POINT],
            ],
            "vlarb_low": [
                [int(TrafficClass.COLLECTIVE_DATA), COLLECTIVE],
                [int(TrafficClass.POINT_TO_POINT_DATA), POINT_TO_POINT],
            ],
            "high_limit": 255,
        },
    )
