"""Plans of the controller ``digital_twin``: a priority for each rank, and the service levels that express it.

Priorities are whole numbers around 0; the weight of a service level doubles from one priority to the next. Most
priorities have several levels, over which their ranks are distributed, so that messages of ranks with the same priority
do not block each other in one queue. That helps most jobs and harms others, so a plan can leave the ranks of a job that
have priority 0 in the level that they have by default.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from fairlane.controller.base import Settings

GROWTH = (0, -1, 1, 0, -2, 0, -1, 2, 0, -3, -1, 0, -2, 1, -4, 3)
"""The priority of each service level, from level 0: with fewer than 16 levels the last ones are missing."""
TOLERATED = 0.01
"""A job's loss up to this share of its throughput has no penalty."""
PENALTY = 3.0
"""Weight of a loss beyond ``TOLERATED`` in the objective."""
PENALTY_BEYOND = 10.0
"""Additional weight of a loss beyond the limit."""


def levels_of(service_levels: int) -> dict[int, list[int]]:
    """The service levels of each priority, the lowest priority first."""
    by_priority: dict[int, list[int]] = {}
    for level, priority in enumerate(GROWTH[:service_levels]):
        by_priority.setdefault(priority, []).append(level)
    return dict(sorted(by_priority.items()))


def clipped(priority: int, service_levels: int) -> int:
    """The nearest priority that this number of service levels has."""
    known = GROWTH[:service_levels]
    return min(max(known), max(min(known), priority))


def objective(gains: Mapping[str, float], limit: float, offsets: Mapping[str, float] | None = None) -> float:
    """The mean improvement over jobs, less penalties for the jobs that lose.

    Args:
        gains: Improvement by job.
        limit: Loss beyond which a job's penalty is larger.
        offsets: Difference between the improvement observed on the real system and the twin's, by job.
    """
    expected = [gain + (offsets or {}).get(job, 0.0) for job, gain in gains.items()]
    losses = [(max(0.0, -gain - TOLERATED), max(0.0, -gain - limit)) for gain in expected]
    return fmean(expected) - fmean(PENALTY * small + PENALTY_BEYOND * large for small, large in losses)


@dataclass(frozen=True)
class Plan:
    """A priority for each rank of each job."""

    priorities: Mapping[str, Sequence[int]]
    joined: frozenset[str] = frozenset()
    """Jobs whose ranks of priority 0 share level 0, as all ranks do by default."""

    @classmethod
    def default(cls, jobs: Mapping[str, int]) -> "Plan":
        """Return the plan that changes nothing: every rank in level 0."""
        return cls(cls.even(jobs).priorities, frozenset(jobs))

    @classmethod
    def even(cls, jobs: Mapping[str, int]) -> "Plan":
        """Priority 0 for every rank; ``jobs`` has the number of ranks of each."""
        return cls({job: (0,) * ranks for job, ranks in jobs.items()})

    def settings(self, service_levels: int) -> Settings:
        """Its service levels: the ranks of one priority are distributed round-robin over its levels."""
        levels = levels_of(service_levels)
        together = {**levels, 0: levels[0][:1]}
        assigned = {}
        for at, (job, priorities) in enumerate(self.priorities.items()):
            levels_of_priority = together if job in self.joined else levels
            assigned[job] = {
                rank: levels_of_priority[priority_of_rank][(rank + at) % len(levels_of_priority[priority_of_rank])]
                for rank, priority_of_rank in enumerate(priorities)
            }
        known = GROWTH[:service_levels]
        return Settings(assigned, tuple(2 ** (priority - min(known)) for priority in known))
