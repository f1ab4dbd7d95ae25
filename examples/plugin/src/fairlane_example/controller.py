"""A controller: the job that waited longest gets a service level with more weight for the next period."""

from pydantic import Field
from typing_extensions import override

from fairlane.sim.controller import Controller, JobWork, Settings, Work


class LongestWait(Controller):
    """The job whose ranks spent the largest share of their time in MPI calls has priority in the next period."""

    weight: int = Field(4, ge=1, le=64, description="packets per round of that job's level; all others have 1")

    @override
    def observe(self, work: Work) -> Settings:
        """Level 1 for all ranks of that job."""
        first = max(work.jobs, key=lambda name: _share(work.jobs[name]))
        return Settings({first: dict.fromkeys(range(work.jobs[first].ranks), 1)}, weights=(1, self.weight))


def _share(job: JobWork) -> float:
    """The part of their time that a job's ranks spent in MPI calls."""
    waiting, compute = sum(job.waiting), sum(job.compute)
    return waiting / (waiting + compute) if waiting else 0.0
