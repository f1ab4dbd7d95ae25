"""No quality of service: the baseline of the other strategies."""

from collections.abc import Sequence

from fairlane.qos.base import Expansion, JobShare

__all__ = ["none"]


def none(_jobs: Sequence[JobShare], /) -> Expansion:
    """One service level and one lane for everything."""
    return Expansion(sl2vl=[0], arbiter={"name": "weighted_round_robin"})
