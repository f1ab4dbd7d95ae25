"""The base of QoS strategies: from the jobs of a scenario to service levels, lanes and an arbiter."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

__all__ = ["KINDS", "Expansion", "JobShare", "Strategy", "TrafficClass"]


class TrafficClass(IntEnum):
    """The traffic classes of Wilke 2020 (figure 3), from the lowest priority to the highest.

    The value is its service level and its lane, so that a routing for each lane can tell low from high by number.
    """

    POINT_TO_POINT_DATA = 0
    COLLECTIVE_DATA = 1
    POINT_TO_POINT_CONTROL = 2
    COLLECTIVE_CONTROL = 3


KINDS: Mapping[str, TrafficClass] = {
    "control": TrafficClass.POINT_TO_POINT_CONTROL,
    "eager": TrafficClass.POINT_TO_POINT_CONTROL,
    "bulk": TrafficClass.POINT_TO_POINT_DATA,
    "collective": TrafficClass.COLLECTIVE_DATA,
    "collective_control": TrafficClass.COLLECTIVE_CONTROL,
    "collective_eager": TrafficClass.COLLECTIVE_CONTROL,
}
"""The class of each traffic kind.

Small messages (``eager``, ``collective_eager``) go with control messages, as both are mice.
"""


@dataclass(frozen=True)
class JobShare:
    """What a QoS strategy may know of a job."""

    name: str
    hosts: int
    """How many hosts it has."""


@dataclass(frozen=True)
class Expansion:
    """What a QoS strategy expands to, as keys of a scenario."""

    sl2vl: Sequence[int]
    """Virtual lane of each service level that it uses."""
    arbiter: Mapping[str, Any]
    """The arbiter: its name and its parameters."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    """Service level by kind of traffic."""
    jobs: Mapping[str, int] = field(default_factory=dict)
    """Service level by job."""


class Strategy(Protocol):
    """Chooses service levels, lanes and their shares; raises ``ValueError`` if it cannot do so for these jobs."""

    def __call__(self, jobs: Sequence[JobShare], /) -> Expansion:
        """The expansion for these jobs."""
