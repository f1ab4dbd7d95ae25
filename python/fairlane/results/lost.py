"""The time that each job loses because of each other job, by leave-one-out runs.

A leave-one-out run has all jobs but one, the aggressor, on the same hosts with the same programs and random numbers.
What an iteration of a victim takes longer in the co-run than there is the time that the aggressor costs it. Queueing
delay is not lost time: a job that is idle when its packets wait loses nothing, and a wait of a few packets can hold up
all ranks. Lost times of several aggressors need not add up to the loss against the isolated run: where two of them
congest the same link, either may be harmless without the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fairlane.engine.tables import Work
from fairlane.results.derive import JobLabel, interval
from fairlane.results.milestones import common, milestones
from fairlane.results.milestones import lost_time as lost
from fairlane.results.schemas import RUN, types


@dataclass(frozen=True)
class LeftOut:
    """A leave-one-out run."""

    aggressor: str
    """What it leaves out."""
    jobs: Sequence[int]
    """The numbers of its jobs among those of the co-run."""
    work: Work
    """What they did."""


def lost_time(
    labels: Sequence[JobLabel], together: Work, alone: Sequence[Work | None], without: Sequence[LeftOut]
) -> pl.DataFrame:
    """The table of lost time: a row for each aggressor and each job that completed iterations with and without it."""
    return pl.DataFrame(list(_rows(labels, together, alone, without)), schema=types(RUN["lost_time"]))


def _rows(
    labels: Sequence[JobLabel], together: Work, alone: Sequence[Work | None], without: Sequence[LeftOut]
) -> Iterator[dict[str, Any]]:
    here = milestones(together, [label.start for label in labels])
    isolated = {job: milestones(run, [labels[job].start])[0] for job, run in enumerate(alone) if run is not None}
    for left in without:
        there = milestones(left.work, [labels[job].start for job in left.jobs])
        for number, job in enumerate(left.jobs):
            label = labels[job]
            found = lost(here[job], there[number]) if label.iterates and not label.background else None
            if found is None:
                continue
            compared, estimate = found
            rest = common(there[number], isolated[job]) if job in isolated else None
            yield {
                "victim": label.name,
                "aggressor": left.aggressor,
                "compared_iterations": compared.iterations,
                "compared_ps": compared.at,
                "without_compared_ps": compared.reference_at,
                "warm_up": compared.warm_up,
                "lost_s": estimate.value,
                "lost_low_s": estimate.low,
                "lost_high_s": estimate.high,
                "lost_share": 1 - compared.reference_at / compared.at,
                **interval("w_without", rest.estimate if rest else None),
            }
