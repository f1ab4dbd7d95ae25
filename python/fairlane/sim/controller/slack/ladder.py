"""The ladder of ``slack``, configurations of ranks on it, the feedback that moves ranks, and trials of changes.

A rung is a few service levels, of 1.8 times the weight of those a rung below; its ranks are distributed over them. All
ranks begin on the middle rung; those below it are for ranks ahead of their job, those above for the slowest.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log2
from statistics import fmean, stdev
from typing import Any

from fairlane.sim.controller.base import JobWork, Settings, Work

RATIO = 1.8
"""A level has this many times the weight of one a rung below."""
UNIT = 20
"""Packets per round of a level of the middle rung."""
SHARED = 2
"""While jobs share the middle rung's first level, those below have so many times less weight."""
FILLED = (-1, 1, -2, -1, 2, -2, -1, -3)
"""Half of the levels, at most eight, are the middle rung's. The others go to these rungs, one after the other."""
PENALTY = 3.0
"""Weight of a job's loss beyond the guard, in units of the same gain."""
LIMIT = 0.04
"""No job should lose more than this share of its work: what it loses beyond counts ten times as much again."""
RECENT = 12
"""So many periods of a configuration count, at most."""
MARGIN = 0.2
"""A rank goes down if it is ahead by this many octaves: 15% more iterations."""
DOWN = 0.5
"""Rungs that a rank goes down for each octave that it is ahead."""
UP = 2.5
"""Rungs that a rank goes up for each octave that it has fallen behind."""
FURTHEST = 1.5
"""It goes as if it were so many octaves ahead or behind, at most."""
KINDS = ("step", "spread", "assign", "lift", "lower")
"""What can be changed: one more step of the feedback; which jobs are spread; the levels of some jobs; ranks go up, or
down."""
AHEAD = 1.15
"""A rank with this many times the iterations of its job's slowest does not hold it up."""
MOST = 10.0
"""A job that waits for so many times as long as it computes, or longer, deserves no more."""
TRIES = 10
"""So many changes are drawn, at most, for one that makes a difference."""

Positions = Mapping[str, tuple[float, ...]]
"""Position of each rank on the ladder, by job; it is on the nearest rung."""


def ladder(service_levels: int) -> dict[int, range]:
    """The service levels of each rung, the lowest first; level 0 is the first of the middle one, rung 0."""
    middle = service_levels // 2
    counts = Counter(FILLED[: service_levels - middle])
    rungs, at = {0: range(middle)}, middle
    for rung, count in counts.items():
        rungs[rung] = range(at, at + count)
        at += count
    return dict(sorted(rungs.items()))


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
    """Change of another one that led to it."""
    gains: list[Mapping[str, float]] = field(default_factory=list)
    """Improvement by job, for each of the recent periods."""
    work: Work | None = None
    """Work in the last of them."""

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
        """The objective: the mean improvement over jobs, with penalties for losses beyond the guard and ``LIMIT``.

        Args:
            guard: Loss of a job without penalty, as a share.
            grain: One iteration of a period, by job, as a share; this difference in each period is not a loss.
            seen: Number of periods; None for its own. Those that are compared should be given the same.
        """
        periods, limit = (seen or len(self.gains)) ** 0.5, max(LIMIT, guard)
        gains = self.mean_gains()
        losses = {job: max(0.0, -gain - grain[job] / periods) for job, gain in gains.items()}
        excess = {job: max(0.0, loss - guard) + 10 * max(0.0, loss - limit) for job, loss in losses.items()}
        return fmean(gain - PENALTY * excess[job] for job, gain in gains.items())

    def varies(self) -> float:
        """Standard deviation of the mean improvement over periods."""
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
    on = ((rank, rungs[round(position)]) for rank, position in enumerate(positions))
    return {rank: levels[(rank + first) % len(levels)] for rank, levels in on}


@dataclass(frozen=True)
class Feedback:
    """Moves every rank by how far it was ahead of what its job needs, or behind."""

    default: Mapping[str, float]
    """Iterations of each job by default in a period."""
    service_levels: int
    """Number of levels of the ladder."""

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
        """Return the new positions of a job's ranks after such a period.

        Above the middle they go only if they are spread: a level of their own gains too much against a shared one.
        """
        highest = max(ladder(self.service_levels)) if job in last.spread else 0
        moved = []
        for position, floor, iterations in zip(last.positions[job], floors, seen.iterations, strict=True):
            octaves = log2(max(1, iterations) / self._needed(job, seen))
            by = DOWN if octaves >= MARGIN else UP if octaves < 0 else 0.0
            to = position - by * max(-FURTHEST, min(FURTHEST, octaves))
            moved.append(max(floor, min(to, max(position, highest))))
        return kept(moved, self.service_levels)


class Changes:
    """Draws changes, and learns which kinds help.

    Args:
        feedback: For one more step of it.
        guard: What a job may lose, as a share; those that lose more go first.
        rng: Where changes are drawn from.
        mpi_times: Whether times in MPI calls are known; without them jobs and ranks that wait are chosen like others.
    """

    def __init__(self, feedback: Feedback, guard: float, rng: random.Random, *, mpi_times: bool = True) -> None:
        self._feedback, self._guard, self._rng, self._mpi_times = feedback, guard, rng, mpi_times
        self._tried: Counter[str] = Counter()
        self._helped: Counter[str] = Counter()

    def learn(self, change: str, *, helped: bool) -> None:
        """A change of this kind has been tried."""
        self._tried[change] += 1
        self._helped[change] += helped

    def draw(self, best: Candidate) -> Candidate:
        """The best with a change that makes a difference; the best itself, if there seems to be none."""
        levels = self._feedback.service_levels
        before = best.settings(levels)
        for _ in range(TRIES):
            # How likely a kind is to help, by the rule of succession.
            (change,) = self._rng.choices(KINDS, [(self._helped[kind] + 1) / (self._tried[kind] + 2) for kind in KINDS])
            drawn = self._changed(best, change)
            if drawn.settings(levels) != before:
                return drawn
        return best

    def _changed(self, best: Candidate, change: str) -> Candidate:
        some = self._rng.sample(list(best.positions), (len(best.positions) + 2) // 3)
        match change:
            case "step":
                return self._feedback.step(best, change=change)
            case "spread":
                return best.changed(change=change, spread=best.spread.symmetric_difference(some))
            case "assign":
                assigned = {job: self._rng.randrange(self._feedback.service_levels) for job in some}
                return best.changed(change=change, assigned={**best.assigned, **assigned})
            case "lift":
                return self._moved(best, self._deserving(best), by=1, change=change)
            case _:
                return self._moved(best, self._gaining(best), by=-1, change=change)

    def _moved(self, best: Candidate, job: str, *, by: int, change: str) -> Candidate:
        """Some ranks of a job that hold it up go so many rungs up."""
        ranks = self._some_slow(best, job)
        moved = (position + by * (rank in ranks) for rank, position in enumerate(best.positions[job]))
        positions = {**best.positions, job: kept(moved, self._feedback.service_levels)}
        return best.changed(change=change, positions=positions)

    def _deserving(self, best: Candidate) -> str:
        """One of the jobs that lose; if there is none, one that waits much."""
        assert best.work is not None, "the best was tried"
        gains = best.mean_gains()
        losses = [max(0.0, -gain - self._guard) for gain in gains.values()]
        waiting = [_waiting(best.work.jobs[job]) if self._mpi_times else 1.0 for job in gains]
        return self._one(gains, losses if any(losses) else waiting)

    def _gaining(self, best: Candidate) -> str:
        """One of the jobs that gain; if there is none, any."""
        gains = best.mean_gains()
        return self._one(gains, [max(0.0, gain) for gain in gains.values()])

    def _one(self, jobs: Iterable[str], weights: Sequence[float]) -> str:
        (job,) = self._rng.choices(list(jobs), weights if any(weights) else None)
        return job

    def _some_slow(self, best: Candidate, job: str) -> set[int]:
        """One, two, four, ... of the ranks that hold a job up, rather those that wait little: others wait for them."""
        assert best.work is not None, "the best was tried"
        seen = best.work.jobs[job]
        slow = sorted(_slow(seen), key=lambda rank: self._waits(seen, rank) * self._rng.random())
        return set(slow[: 2 ** self._rng.randrange(len(slow).bit_length())])

    def _waits(self, seen: JobWork, rank: int) -> float:
        return _waits(seen, rank) if self._mpi_times else 1.0


def _slow(seen: JobWork) -> list[int]:
    return [rank for rank, iterations in enumerate(seen.iterations) if iterations <= AHEAD * seen.work]


def _waits(seen: JobWork, rank: int) -> float:
    """Return the time that a rank waits, s. A wait counts when it has ended: nothing at all means the whole time."""
    return seen.waiting[rank] or inf


def _waiting(seen: JobWork) -> float:
    """The time that those ranks wait, over the time that they compute."""
    slow = _slow(seen)
    waiting, compute = (sum(each[rank] for rank in slow) for each in (seen.waiting, seen.compute))
    return min(MOST, waiting / compute) if compute else MOST
