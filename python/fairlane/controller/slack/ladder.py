"""The ladder that ``slack`` has ranks on, and what is known of how they stand there.

A rung is a few service levels, of 1.8 times the weight of those a rung below; its ranks are distributed over them. The
middle rung is everybody's; those below it are for ranks that make way, those above for ranks that hold their job up.

A configuration is as good as its mean improvement over jobs, less three times what jobs lose beyond a guard, and beyond
what an iteration more or less in a period makes of a job's work; what they lose beyond ``LIMIT`` counts most.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Any

from fairlane.controller.base import Settings, Work

__all__ = ["LIMIT", "Candidate", "kept", "ladder"]

RATIO = 1.8
"""A level has this many times the weight of one a rung below."""
UNIT = 20
"""Packets a turn of a level of the middle rung."""
SHARED = 2
"""While jobs share the middle rung's first level, those below have so many times less weight."""
FILLED = (-1, 1, -2, -1, 2, -2, -1, -3)
"""Half of the levels, at most eight, are the middle rung's. The others go to these rungs, one after the other."""
PENALTY = 3.0
"""What a job's loss beyond the guard counts, in units of the same gain."""
LIMIT = 0.04
"""No job should lose more than this share of its work: what it loses beyond counts ten times as much again."""
RECENT = 12
"""So many periods of a configuration count, at most."""

Positions = Mapping[str, tuple[float, ...]]
"""Where each rank is on the ladder, by job; it is on the nearest rung."""


def ladder(service_levels: int) -> dict[int, range]:
    """The service levels of each rung, the lowest first; level 0 is the first of the middle one, rung 0."""
    middle = service_levels // 2
    counts = Counter(FILLED[: service_levels - middle])
    found, at = {0: range(middle)}, middle
    for rung, count in counts.items():
        found[rung] = range(at, at + count)
        at += count
    return dict(sorted(found.items()))


def kept(positions: Iterable[float], service_levels: int) -> tuple[float, ...]:
    """Positions that are not beyond the ladder's ends."""
    lowest, *_, highest = ladder(service_levels)
    return tuple(min(highest, max(lowest, position)) for position in positions)


@dataclass
class Candidate:
    """A configuration and what was seen of it."""

    positions: Positions
    floors: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The lowest rung on which each rank has not held its job up, where that is known, by job."""
    spread: frozenset[str] = frozenset()
    """Jobs whose ranks on the middle rung are distributed over its levels; those of the others share its first."""
    assigned: Mapping[str, int] = field(default_factory=dict)
    """Which level of its rung a job's rank 0 would get, rank 1 the next one; by default the first. What a rank is
    assigned does not depend on where the others are."""
    change: str = ""
    """What was changed of another one to get it."""
    gains: list[Mapping[str, float]] = field(default_factory=list)
    """Improvement by job, for each of the recent periods."""
    work: Work | None = None
    """What was done in the last of them."""

    def changed(self, **what: Any) -> "Candidate":
        """Another one, of which nothing has been seen yet."""
        return replace(self, **what, gains=[], work=None)

    def see(self, gain: Mapping[str, float]) -> None:
        """One more period."""
        self.gains = [*self.gains, gain][-RECENT:]

    def mean_gains(self) -> dict[str, float]:
        """Each job's mean improvement."""
        return {job: fmean(gain[job] for gain in self.gains) for job in self.gains[0]}

    def mean_gain(self) -> float:
        """The mean of that over jobs."""
        return fmean(self.mean_gains().values())

    def score(self, guard: float, grain: Mapping[str, float], seen: int | None = None) -> float:
        """How good it is. What one iteration more or less in each of the periods ``seen`` makes, does not count.

        Args:
            guard: What a job may lose, as a share.
            grain: One iteration of a period, by job, as a share.
            seen: How many periods; None for its own. Those that are compared should be given the same.
        """
        periods, limit = (seen or len(self.gains)) ** 0.5, max(LIMIT, guard)
        gains = self.mean_gains()
        losses = {job: max(0.0, -gain - grain[job] / periods) for job, gain in gains.items()}
        excess = {job: max(0.0, loss - guard) + 10 * max(0.0, loss - limit) for job, loss in losses.items()}
        return fmean(gain - PENALTY * excess[job] for job, gain in gains.items())

    def varies(self) -> float:
        """How much the mean improvement varies from period to period."""
        means = [fmean(gain.values()) for gain in self.gains]
        return stdev(means) if len(means) > 1 else 0.0

    def settings(self, service_levels: int) -> Settings:
        """Every rank's service level, assigned from those of its rung. If all have the first, the scenario's own."""
        rungs = ladder(service_levels)
        less = 1 if len(self.spread) == len(self.positions) else SHARED
        weights = [0] * service_levels
        for rung, levels in rungs.items():
            for level in levels:
                weights[level] = round(UNIT * RATIO**rung / (less if rung < 0 else 1))
        shared = rungs | {0: range(1)}
        assigned = {
            job: _assigned(ranks, rungs if job in self.spread else shared, self.assigned.get(job, 0))
            for job, ranks in self.positions.items()
        }
        apart = any(level for ranks in assigned.values() for level in ranks.values())
        return Settings(assigned, tuple(weights)) if apart else Settings()


def _assigned(positions: Iterable[float], rungs: Mapping[int, range], first: int) -> dict[int, int]:
    """The service level of each rank of a job."""
    on = ((rank, rungs[round(position)]) for rank, position in enumerate(positions))
    return {rank: levels[(rank + first) % len(levels)] for rank, levels in on}
