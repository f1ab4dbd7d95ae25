"""Quality of service by name: strategies that choose service levels, lanes and shares for all jobs of a scenario.

A strategy is a function; a line in ``STRATEGIES`` gives it a name. ``qos = { strategy = "isolate" }`` in a scenario
uses what the function returns for its jobs. Users bring their own as ``file.py:function``, or by the name of an
entry point ``fairlane.strategies`` of an installed package.

``split_priority`` and ``bandwidth_weight`` are those of Wilke 2020, section III.B.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from math import gcd
from typing import Any

from fairlane.core.wording import plural
from fairlane.inputs.registry import Registry

__all__ = ["KINDS", "STRATEGIES", "Expansion", "JobShare", "Strategy", "TrafficClass"]

SHARE = 25
"""Percent of a link up to which a class keeps its priority in ``split_priority``."""
COLLECTIVE = 64
"""A collective class's weight in its table in ``bandwidth_weight``, 64 bytes each: one packet of 4 KiB."""
POINT_TO_POINT = 192
"""A point-to-point class's weight: three packets, so that collectives have 25%."""
MOST_JOBS = 16
"""Maximum number of jobs of ``isolate``: the number of service levels."""
MOST_PACKETS = 16
"""Packets of the largest job in a round of ``isolate``: the others wait for that long, so weights are not exact."""


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

Small messages (``eager``, ``collective_eager``) go with control messages, as both are latency-sensitive.
"""


@dataclass(frozen=True)
class JobShare:
    """Job as a QoS strategy sees it."""

    name: str
    hosts: int
    """Number of its hosts."""
    classes: tuple[str, ...] = ()
    """Names of the traffic classes that select messages of it, in the order of the scenario."""


@dataclass(frozen=True)
class Expansion:
    """Keys of a scenario that a QoS strategy expands to."""

    sl2vl: Sequence[int]
    """Virtual lane of each service level that it uses."""
    arbiter: Mapping[str, Any]
    """The arbiter: its name and its parameters."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    """Service level by kind of traffic."""
    jobs: Mapping[str, int] = field(default_factory=dict)
    """Service level by job."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """Service level by traffic class of the scenario."""


Strategy = Callable[[Sequence[JobShare]], Expansion]
"""Chooses service levels, lanes and their shares for these jobs; raises ``ValueError`` if it cannot."""


def none(_jobs: Sequence[JobShare], /) -> Expansion:
    """One service level and one lane for everything."""
    return Expansion(sl2vl=[0], arbiter={"name": "weighted_round_robin"})


def split_priority(_jobs: Sequence[JobShare], /) -> Expansion:
    """Control before data, within both collectives before point-to-point; a class has priority up to 25% of a link."""
    classes = [int(traffic_class) for traffic_class in sorted(TrafficClass)]
    shares = [[traffic_class, SHARE] for traffic_class in classes]
    return Expansion(
        sl2vl=classes,
        kinds={kind: int(traffic_class) for kind, traffic_class in KINDS.items()},
        arbiter={"name": "strict_priority", "order": classes[::-1], "shares": shares},
    )


def bandwidth_weight(_jobs: Sequence[JobShare], /) -> Expansion:
    """Control before data; within both, collectives get at least 25% of the link, point-to-point the rest."""
    return Expansion(
        sl2vl=[int(traffic_class) for traffic_class in sorted(TrafficClass)],
        kinds={kind: int(traffic_class) for kind, traffic_class in KINDS.items()},
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


def isolate(jobs: Sequence[JobShare], /) -> Expansion:
    """A service level and a lane for each job, with bandwidth in proportion to the job's hosts."""
    if not 0 < len(jobs) <= MOST_JOBS:
        raise ValueError(
            f"gives each job a service level: 1 to {MOST_JOBS} jobs, "
            f"and there {'is' if len(jobs) == 1 else 'are'} {len(jobs)}"
        )
    return Expansion(
        sl2vl=list(range(len(jobs))),
        jobs={job.name: level for level, job in enumerate(jobs)},
        arbiter={"name": "weighted_round_robin", "weights": packets([job.hosts for job in jobs])},
    )


def classes(jobs: Sequence[JobShare], /) -> Expansion:
    """A service level and a lane for each traffic class, and one for all other messages, with equal shares."""
    names = list(dict.fromkeys(name for job in jobs for name in job.classes))
    if not 0 < len(names) < MOST_JOBS:
        raise ValueError(
            f"gives each traffic class a service level: 1 to {MOST_JOBS - 1} tables classes.NAME, "
            f"and {plural(len(names), 'class selects', 'classes select')} messages"
        )
    return Expansion(
        sl2vl=list(range(len(names) + 1)),
        classes={name: level for level, name in enumerate(names, 1)},
        arbiter={"name": "weighted_round_robin"},
    )


def packets(hosts: Sequence[int]) -> list[int]:
    """Packets a round: exactly in proportion if the largest needs no more than allowed, else rounded, at least 1."""
    unit = gcd(*hosts)
    if max(hosts) <= MOST_PACKETS * unit:
        return [count // unit for count in hosts]
    return [max(1, round(MOST_PACKETS * count / max(hosts))) for count in hosts]


STRATEGIES: Registry[Strategy] = Registry(
    "strategy",
    "fairlane.strategies",
    {
        "none": none,
        "split_priority": split_priority,
        "bandwidth_weight": bandwidth_weight,
        "isolate": isolate,
        "classes": classes,
    },
    unread=none,
)
"""All strategies by name."""
