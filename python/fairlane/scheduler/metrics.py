"""A schedule in a few numbers."""

from dataclasses import dataclass

import numpy

from fairlane.scheduler.easy import Schedule

__all__ = ["BOUND_S", "ScheduleMetrics", "metrics_of"]

BOUND_S = 10
"""Run times below this count as this in the bounded slowdown (Feitelson et al. 1997)."""


@dataclass(frozen=True)
class ScheduleMetrics:
    """How a log went."""

    jobs: int
    """Jobs that ran."""
    refused: int
    """Jobs that the allocator would not even take on the empty machine."""
    makespan: float
    """Seconds from the first submission to the last end."""
    utilisation: float
    """Share of the hosts' time over the makespan in which a job had them."""
    mean_wait: float
    """Seconds that jobs waited, on average."""
    median_wait: float
    """Seconds that the median job waited."""
    mean_bounded_slowdown: float
    """Mean of (wait + time that it ran) / run time of the log, run times below 10 s counted as 10 s; 1 at least."""
    useful: float
    """Share of the hosts' time that the jobs would have needed at their best: run times of the log."""
    mean_slowdown: float
    """Mean of the time that a job ran over the log's run time."""
    weighted_slowdown: float
    """The same, jobs weighted with their hosts' time: all that they ran over all of the log's."""
    interference: float
    """Share of the jobs' hosts' time that they lost to neighbours."""
    fragmentation: float
    """Share of the hosts' time in which they were free, enough for the head of the queue, but not as it wants them."""


def metrics_of(schedule: Schedule, hosts: int) -> ScheduleMetrics:
    """The metrics on a machine of so many hosts."""
    placed = schedule.jobs
    if not placed:
        return ScheduleMetrics(0, len(schedule.refused), 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    makespan = max(one.end for one in placed) - min(one.job.submit for one in placed)
    waits = [one.wait for one in placed]
    slowdowns = [max(1.0, (one.wait + one.ran) / max(one.job.run, BOUND_S)) for one in placed]
    busy = sum(one.ran * len(one.hosts) for one in placed)
    work = sum(one.job.run * len(one.hosts) for one in placed)
    return ScheduleMetrics(
        jobs=len(placed),
        refused=len(schedule.refused),
        makespan=makespan,
        utilisation=busy / (makespan * hosts),
        mean_wait=float(numpy.mean(waits)),
        median_wait=float(numpy.median(waits)),
        mean_bounded_slowdown=float(numpy.mean(slowdowns)),
        useful=work / (makespan * hosts),
        mean_slowdown=float(numpy.mean([one.slowdown for one in placed])),
        weighted_slowdown=busy / work,
        interference=sum(one.lost * len(one.hosts) for one in placed) / busy,
        fragmentation=schedule.fragmented / (makespan * hosts),
    )
