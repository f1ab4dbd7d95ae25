"""The feedback of ``slack``: what a period says about where each rank should stand on the ladder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any

from fairlane.controller.base import JobWork
from fairlane.controller.slack.ladder import Candidate, kept, ladder

__all__ = ["Feedback"]

MARGIN = 0.2
"""A rank makes way if it is ahead by this many octaves: 15% more iterations."""
DOWN = 0.5
"""How many rungs it goes down for each octave that it is ahead."""
UP = 2.5
"""How many rungs a rank goes up for each octave that it has fallen behind."""
FURTHEST = 1.5
"""It goes as if it were so many octaves ahead or behind, at most."""


@dataclass(frozen=True)
class Feedback:
    """Moves every rank by how far it was ahead of what its job needs, or behind."""

    default: Mapping[str, float]
    """What each job does by default in a period, iterations."""
    service_levels: int
    """How many the ladder has."""

    def step(self, last: Candidate, **what: Any) -> Candidate:
        """The configuration that follows from the last period of another; ``what`` else is changed of it."""
        assert last.work is not None, "a candidate that was tried"
        seen = last.work.jobs
        floors = {job: self._floors(last, job, seen[job]) for job in last.positions}
        moved = {job: self._after(last, job, seen[job], floors[job]) for job in last.positions}
        return last.changed(positions=moved, floors=floors, **what)

    def _needed(self, job: str, seen: JobWork) -> float:
        """The iterations that each rank of a job should make: as many as its slowest, and not less than by default."""
        return max(1.0, seen.work, self.default[job])

    def _floors(self, last: Candidate, job: str, seen: JobWork) -> tuple[int, ...]:
        """A rank that has fallen behind below the middle does not go down as far again."""
        rungs = [round(position) for position in last.positions[job]]
        floors = last.floors.get(job) or (min(ladder(self.service_levels)),) * len(rungs)
        enough = self._needed(job, seen) - 1  # one iteration more or less says little
        return tuple(
            max(floor, rung + 1) if rung < 0 and iterations < enough else floor
            for floor, rung, iterations in zip(floors, rungs, seen.iterations, strict=True)
        )

    def _after(self, last: Candidate, job: str, seen: JobWork, floors: Sequence[int]) -> tuple[float, ...]:
        """Where a job's ranks go after such a period.

        Above the middle they go only if they are spread: a level of one's own is worth too much beside a shared one.
        """
        highest = max(ladder(self.service_levels)) if job in last.spread else 0
        moved = []
        for position, floor, iterations in zip(last.positions[job], floors, seen.iterations, strict=True):
            octaves = log2(max(1, iterations) / self._needed(job, seen))
            by = DOWN if octaves >= MARGIN else UP if octaves < 0 else 0.0
            to = position - by * max(-FURTHEST, min(FURTHEST, octaves))
            moved.append(max(floor, min(to, max(position, highest))))
        return kept(moved, self.service_levels)
