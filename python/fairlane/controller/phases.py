"""Jobs that come and go between episodes: which scenario holds from which period on.

An episode begins with the jobs that are there at its time: a job that starts later begins with the first episode after
its arrival, and one that stops has its last episode before its departure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlane.errors import Problem

if TYPE_CHECKING:
    from fairlane.scenario import Scenario
    from fairlane.scenario.models import Job

__all__ = ["endless", "missing", "phases"]


def phases(scenario: Scenario, period: int, periods: int) -> dict[int, Scenario]:
    """Scenarios by the first period in which they hold, without times of arrival and departure; ``period`` in ps."""
    spans = [_span(job, period, periods) for job in scenario.jobs]
    starts = sorted({0, *(edge for span in spans for edge in span if 0 < edge < periods)})
    found: dict[int, Scenario] = {}
    for start in starts:
        jobs = [_plain(job) for job, (first, end) in zip(scenario.jobs, spans, strict=True) if first <= start < end]
        found[start] = scenario.model_copy(update={"jobs": jobs})
    return found


def endless(scenario: Scenario) -> Problem | None:
    """What is wrong with jobs that no episode would see the end of, if there are some."""
    for at, job in enumerate(scenario.jobs):
        if isinstance(job.stop, int):
            words = "episodes begin anew, so iterations of one do not add up"
            return Problem(f"jobs[{at}].stop", words, job.stop, 'a time, as "600 ms"')
    return None


def missing(scenario: Scenario, period: int, periods: int) -> Iterator[int]:
    """The periods from which on no job would be there."""
    return (start for start, phase in phases(scenario, period, periods).items() if not phase.jobs)


def _span(job: Job, period: int, periods: int) -> tuple[int, int]:
    """Its first period, and the first one without it."""
    end = periods if job.departure is None else -(-job.departure // period)
    return -(-job.start // period), end


def _plain(job: Job) -> Job:
    return job.model_copy(update={"start": 0, "stop": None})
