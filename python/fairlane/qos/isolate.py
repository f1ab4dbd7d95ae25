"""Isolate: a lane for each job, with a share of links like its share of the machine (Wilke 2020, section III.B)."""

from collections.abc import Sequence
from math import gcd

from fairlane.qos.base import Expansion, JobShare

__all__ = ["MOST_JOBS", "MOST_PACKETS", "isolate"]

MOST_JOBS = 16
"""As many service levels as there are."""
MOST_PACKETS = 16
"""Packets of the largest job in a turn: the others wait for that long, and so weights are not more exact."""


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


def packets(hosts: Sequence[int]) -> list[int]:
    """Packets a turn: exactly in proportion if the largest needs no more than allowed, else as near as can be."""
    unit = gcd(*hosts)
    if max(hosts) <= MOST_PACKETS * unit:
        return [count // unit for count in hosts]
    return [max(1, round(MOST_PACKETS * count / max(hosts))) for count in hosts]
