"""The trials of ``slack``: changes of its best configuration, mostly of the kinds that have helped before."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from math import inf

from fairlane.controller.base import JobWork
from fairlane.controller.slack.ladder import Candidate, Feedback, kept

KINDS = ("step", "spread", "deal", "lift", "lower")
"""What can be changed: one more step of the feedback; which jobs are spread; the levels of some jobs; ranks go up, or
down."""
AHEAD = 1.15
"""A rank with this many times the iterations of its job's slowest does not hold it up."""
MOST = 10.0
"""A job that waits for so many times as long as it computes, or longer, deserves no more."""
TRIES = 10
"""So many changes are drawn, at most, for one that makes a difference."""


class Changes:
    """Draws changes, and learns which kinds help.

    Args:
        feedback: For one more step of it.
        guard: What a job may lose, as a share; those that lose more go first.
        rng: Where changes are drawn from.
    """

    def __init__(self, feedback: Feedback, guard: float, rng: random.Random) -> None:
        self._feedback, self._guard, self._rng = feedback, guard, rng
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
        """The best with a change of this kind."""
        some = self._rng.sample(list(best.positions), (len(best.positions) + 2) // 3)
        match change:
            case "step":
                return self._feedback.step(best, change=change)
            case "spread":
                return best.changed(change=change, spread=best.spread.symmetric_difference(some))
            case "deal":
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
        waiting = [_waiting(best.work.jobs[job]) for job in gains]
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
        slow = sorted(_slow(seen), key=lambda rank: _waits(seen, rank) * self._rng.random())
        return set(slow[: 2 ** self._rng.randrange(len(slow).bit_length())])


def _slow(seen: JobWork) -> list[int]:
    """The ranks that hold a job up."""
    return [rank for rank, iterations in enumerate(seen.iterations) if iterations <= AHEAD * seen.work]


def _waits(seen: JobWork, rank: int) -> float:
    """How long a rank waits, s. What it waits for counts when it has come: nothing at all means the whole time."""
    return seen.waiting[rank] or inf


def _waiting(seen: JobWork) -> float:
    """The time that those ranks wait, over the time that they compute."""
    slow = _slow(seen)
    waiting, compute = (sum(each[rank] for rank in slow) for each in (seen.waiting, seen.compute))
    return min(MOST, waiting / compute) if compute else MOST
