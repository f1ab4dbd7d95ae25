"""Split-Priority: four priorities, by control and data, collective and point to point (Wilke 2020, section III.B)."""

from collections.abc import Sequence

from fairlane.qos.base import KINDS, Expansion, JobShare, TrafficClass

__all__ = ["SHARE", "split_priority"]

SHARE = 25
"""Percent of a link up to which a class keeps its priority."""


def split_priority(_jobs: Sequence[JobShare], /) -> Expansion:
    """Control before data, within both collectives before point-to-point; a class has priority up to 25% of a link."""
    classes = sorted(TrafficClass)
    return Expansion(
        sl2vl=[int(one) for one in classes],
        kinds={kind: int(one) for kind, one in KINDS.items()},
        arbiter={
            "name": "strict_priority",
            "order": [int(one) for one in reversed(classes)],
            "shares": [[int(one), SHARE] for one in classes],
        },
    )
