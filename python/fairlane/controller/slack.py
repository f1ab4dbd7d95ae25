"""Slack: ranks that are ahead of their job make way. Our own controller; it needs few periods, however many ranks.

A job is as fast as its slowest rank. Where ranks run at different paces, those that are ahead, pairs that compute
little for instance, take bandwidth that gains their job nothing. So ranks are on the rungs of a *ladder*. Everybody
begins on the middle rung. Those below it are for ranks that make way, those above for ranks that hold their job up;
each has a few service levels, of 1.8 times the weight of the levels a rung below, and its ranks are dealt over them.

1. DEFAULT: a few periods without priorities, for the pace of every job.
2. YIELD: a feedback for each rank. The further it was ahead of its job's slowest in a period, the further it goes
   down; one that has become slower than its job was by default goes up again, five times as fast. All ranks of all jobs
   move at once, so a few periods are enough. Those on the middle rung still share one level, as they did by default:
   they have less beside them and nothing else changes, so hardly anybody loses.
3. SPREAD: those on the middle rung are dealt over levels, too, while the feedback goes on: messages in different lanes
   do not stand behind each other. That helps most jobs, and costs those that had more than their share of a port, until
   the feedback has brought them up. Where it costs a job too much twice in a row, it ends at once.
4. CLIMB: the better of both is changed: the slowest ranks of a job that loses, or waits most, go up a rung, those of
   one that gains much go down, some jobs are dealt other levels, or are spread or no longer, or the feedback makes one
   more step. A change is confirmed before it is kept. The more changes in a row have not helped, the longer the best
   stands before the next, and while a job has lost over all periods so far, the best stands: trying costs work, too.
5. IDLE: after ``patience`` changes that did not help. It starts over when jobs come or go, or when the work falls
   below the default.

A configuration is as good as its mean improvement over jobs, less three times what jobs lose beyond ``guard``, and
beyond what an iteration more or less in a period makes of a job's work; what they lose beyond ``LIMIT`` counts most.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import cycle, islice
from math import log2
from statistics import fmean, stdev
from typing import ClassVar

from pydantic import Field, PrivateAttr
from typing_extensions import override

from fairlane.controller.base import Controller, JobWork, Settings, Work

__all__ = ["Candidate", "Slack", "ladder"]

RATIO = 1.8
"""A level has this many times the weight of one a rung below."""
UNIT = 20
"""Packets a turn of a level of the middle rung."""
SHARED = 2
"""The middle rung's first level has this many times the weight of its others while jobs share it."""
FILLED = (-1, 1, -2, -1, 2, -2, -1, -3)
"""Half of the levels are the middle rung's. The others go to these rungs, over and over again."""
MARGIN = 0.2
"""A rank makes way if it is ahead by this many octaves: 15% more iterations."""
DOWN = 0.5
"""How many rungs it goes down for each octave that it is ahead."""
UP = 2.5
"""How many rungs it goes up for each octave that it has fallen behind."""
FURTHEST = 1.5
"""It goes as if it were so many octaves ahead or behind, at most."""
AHEAD = 1.15
"""A rank with this many times the iterations of its job's slowest does not hold it up."""
PENALTY = 3.0
"""What a job's loss beyond the guard counts, in units of the same gain."""
LIMIT = 0.04
"""No job may lose more than this share of its work: what it loses beyond counts ten times as much."""
TOO_MUCH = 0.1
"""Where a job loses this share of its work in two periods running, its ranks share a level again."""
RECENT = 12
"""So many periods of a configuration count, at most."""
LONGEST_STAND = 6
"""The best configuration stands for so many periods between two changes, at most."""

Positions = Mapping[str, tuple[float, ...]]
"""Where each rank is on the ladder, by job; it is on the nearest rung."""


class State(StrEnum):
    """What the controller is doing."""

    DEFAULT = "DEFAULT"
    YIELD = "YIELD"
    SPREAD = "SPREAD"
    CLIMB = "CLIMB"
    IDLE = "IDLE"


def ladder(service_levels: int) -> dict[int, range]:
    """The service levels of each rung, the lowest first; level 0 is the first of the middle one, rung 0."""
    middle = max(1, service_levels // 2)
    counts = Counter(islice(cycle(FILLED), service_levels - middle))
    found, at = {0: range(middle)}, middle
    for rung, count in counts.items():
        found[rung] = range(at, at + count)
        at += count
    return dict(sorted(found.items()))


@dataclass
class Candidate:
    """A configuration and what was seen of it."""

    positions: Positions
    spread: frozenset[str] = frozenset()
    """Jobs whose ranks on the middle rung are dealt over its levels; those of the others share its first."""
    dealt: Mapping[str, int] = field(default_factory=dict)
    """Which level of its rung a job's rank 0 is dealt, the next rank the next one; by default the first."""
    gains: list[Mapping[str, float]] = field(default_factory=list)
    """Improvement by job, for each period."""
    work: Work | None = None
    """What was done in the last of them."""

    def mean_gains(self) -> dict[str, float]:
        """Each job's mean improvement over the recent periods."""
        recent = self.gains[-RECENT:]
        return {job: fmean(gain[job] for gain in recent) for job in recent[0]}

    def score(self, guard: float, grain: Mapping[str, float]) -> float:
        """How good it is. A loss that may be one iteration more or less in a period, ``grain``, does not count."""
        seen = len(self.gains[-RECENT:]) ** 0.5
        gains = self.mean_gains()
        losses = {job: max(0.0, -gain - grain[job] / seen) for job, gain in gains.items()}
        excess = {job: max(0.0, loss - guard) + 10 * max(0.0, loss - LIMIT) for job, loss in losses.items()}
        return fmean(gain - PENALTY * excess[job] for job, gain in gains.items())

    def varies(self) -> float:
        """How much the mean improvement varies from period to period."""
        means = [fmean(gain.values()) for gain in self.gains]
        return stdev(means) if len(means) > 1 else 0.0

    def settings(self, service_levels: int) -> Settings:
        """Every rank's service level: the levels of its rung are dealt."""
        if not self.spread and not any(round(position) for ranks in self.positions.values() for position in ranks):
            return Settings({}, (1,) * service_levels)
        rungs = ladder(service_levels)
        weights = {level: round(UNIT * RATIO**rung) for rung, levels in rungs.items() for level in levels}
        if len(self.spread) < len(self.positions):
            weights[0] *= SHARED
        alone = rungs | {0: range(1)}
        levels = {
            job: _dealt(ranks, rungs if job in self.spread else alone, self.dealt.get(job, 0))
            for job, ranks in self.positions.items()
        }
        return Settings(levels, tuple(weights[level] for level in range(service_levels)))


def _dealt(ranks: Iterable[float], rungs: Mapping[int, range], first: int) -> dict[int, int]:
    """The levels of a job's ranks: each rung's in turn."""
    on = ((rank, rungs[round(position)]) for rank, position in enumerate(ranks))
    return {rank: levels[(rank + first) % len(levels)] for rank, levels in on}


class Slack(Controller):
    """Ranks that are ahead of their job make way, those that hold it up go first. Our own."""

    name: ClassVar[str] = "slack"

    default_periods: int = Field(2, ge=1, description="periods over which the default run is observed")
    steps: int = Field(6, ge=1, description="periods of feedback without and with ranks spread over levels, each")
    guard: float = Field(0.01, ge=0, le=1, description="what a job may lose before it counts three times")
    confirm: int = Field(2, ge=1, description="further periods that a change must prove itself in")
    patience: int = Field(40, ge=1, description="changes in a row that do not help, before it idles")
    seed: int = Field(1, ge=0, description="seed of random changes")

    _state: State = PrivateAttr(State.DEFAULT)
    _accepted: bool = PrivateAttr(False)
    _jobs: dict[str, int] = PrivateAttr(default_factory=dict)
    _observed: list[Work] = PrivateAttr(default_factory=list)
    _default: dict[str, float] = PrivateAttr(default_factory=dict)
    _grain: dict[str, float] = PrivateAttr(default_factory=dict)
    _totals: dict[str, float] = PrivateAttr(default_factory=dict)
    _periods: int = PrivateAttr(0)
    _stepped: int = PrivateAttr(0)
    _best: Candidate = PrivateAttr(default_factory=lambda: Candidate({}))
    _current: Candidate = PrivateAttr(default_factory=lambda: Candidate({}))
    _hurt: int = PrivateAttr(0)
    _stood: int = PrivateAttr(0)
    _failures: int = PrivateAttr(0)
    _rng: random.Random = PrivateAttr(default_factory=random.Random)

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        """Nobody has priority."""
        self._rng = random.Random(self.seed)
        self._jobs, self._state, self._observed = dict(jobs), State.DEFAULT, []
        self._totals, self._periods = dict.fromkeys(jobs, 0.0), 0
        self._stepped = self._hurt = self._stood = self._failures = 0
        self._best = self._current = Candidate({job: (0.0,) * ranks for job, ranks in jobs.items()})
        return self._current.settings(self.service_levels)

    @override
    def observe(self, work: Work) -> Settings:
        """Judges the last period and says what comes next."""
        jobs = {name: job.ranks for name, job in work.jobs.items()}
        self._accepted = False
        if jobs != self._jobs:
            return self.start(jobs)
        self._current.work = work
        self._periods += 1
        if self._state is State.DEFAULT:
            self._learn(work)
        else:
            gains = self._gains(work)
            self._current.gains.append(gains)
            self._totals = {job: total + gains[job] for job, total in self._totals.items()}
            turns = {
                State.YIELD: self._yield,
                State.SPREAD: self._spread,
                State.CLIMB: self._climb,
                State.IDLE: self._watch,
            }
            turns[self._state]()
        return self._current.settings(self.service_levels)

    def _gains(self, work: Work) -> dict[str, float]:
        return {
            name: job.work / self._default[name] - 1 if self._default[name] else 0.0 for name, job in work.jobs.items()
        }

    def _learn(self, work: Work) -> None:
        """The default run is over: ranks begin to make way."""
        self._observed.append(work)
        if len(self._observed) < self.default_periods:
            return
        self._default = {name: fmean(seen.jobs[name].work for seen in self._observed) for name in self._jobs}
        self._grain = {name: 1 / max(1.0, work) for name, work in self._default.items()}
        self._best.gains = [self._gains(seen) for seen in self._observed]
        self._state, self._current = State.YIELD, self._step(self._best)

    def _yield(self) -> None:
        """One more step of the feedback; what it has led to stands for a while."""
        self._stepped += 1
        if self._stepped < self.steps:
            self._current = self._step(self._current)
        elif len(self._current.gains) > self.confirm:
            if self._score(self._current) > self._score(self._best):
                self._best, self._accepted = self._current, True
            self._state, self._stepped = State.SPREAD, 0
            self._current = replace(self._step(self._current), spread=frozenset(self._jobs))

    def _spread(self) -> None:
        """The same, with ranks spread; what it has led to is a change like others."""
        worst = min(gain + self._grain[job] for job, gain in self._current.gains[-1].items())
        self._hurt = self._hurt + 1 if worst < -TOO_MUCH else 0
        self._stepped += 1
        if self._hurt > 1:
            self._state, self._current = State.CLIMB, self._best
        elif self._stepped < self.steps:
            self._current = self._step(self._current)
        else:
            self._state = State.CLIMB
            self._climb()

    def _score(self, candidate: Candidate) -> float:
        return candidate.score(self.guard, self._grain)

    def _climb(self) -> None:
        """Is the change better? Unsure: once more. Yes: keep it. No: another one."""
        trial, best = self._current, self._best
        if trial is not best:
            ahead, seen = self._score(trial) - self._score(best), len(trial.gains)
            if seen <= self.confirm and ahead > -best.varies() / seen**0.5:
                return
            if ahead > 0:
                self._best, self._accepted, self._failures = trial, True, 0
            else:
                self._failures += 1
        if self._failures >= self.patience:
            self._state, self._current = State.IDLE, self._best
            return
        # The best is looked at again and again: a lucky period must not stand for ever.
        stands = self._stood < min(LONGEST_STAND, self._failures // 2) or len(self._best.gains) < self.confirm + 1
        self._stood = self._stood + 1 if stands else 0
        self._current = self._best if stands or self._owes() else self._changed(self._best)

    def _owes(self) -> bool:
        """Whether a job has lost over all periods so far, and the best makes up for it."""
        gains = self._best.mean_gains()
        means = {job: total / self._periods for job, total in self._totals.items()}
        return any(mean < min(gains[job], -self.guard - self._grain[job]) for job, mean in means.items())

    def _watch(self) -> None:
        """Starts over if the work falls below the default, by more than the guard, for a few periods."""
        if fmean(fmean(gain.values()) for gain in self._best.gains[-3:]) < -self.guard:
            self.start(self._jobs)

    def _step(self, last: Candidate) -> Candidate:
        """One step of the feedback, for every rank."""
        assert last.work is not None, "a candidate that was tried"
        jobs = last.work.jobs
        moved = {job: self._stepped_to(ranks, jobs[job], self._default[job]) for job, ranks in last.positions.items()}
        return replace(last, positions=moved, gains=[], work=None)

    def _stepped_to(self, ranks: tuple[float, ...], seen: JobWork, default: float) -> tuple[float, ...]:
        """Where a job's ranks go, when it has done ``default`` by default."""
        wanted = max(1.0, seen.work, default)
        ahead = [log2(max(1, iterations) / wanted) for iterations in seen.iterations]
        return self._moved(
            [
                position - DOWN * min(FURTHEST, by) * (by >= MARGIN) - UP * max(-FURTHEST, min(0.0, by))
                for position, by in zip(ranks, ahead, strict=True)
            ]
        )

    def _moved(self, positions: Sequence[float]) -> tuple[float, ...]:
        """Positions, kept on the ladder."""
        lowest, *_, highest = ladder(self.service_levels)
        return tuple(min(highest, max(lowest, position)) for position in positions)

    def _changed(self, best: Candidate) -> Candidate:
        """The best with a change."""
        assert best.work is not None, "the best was tried"
        jobs, gains = list(best.positions), best.mean_gains()
        some = self._rng.sample(jobs, (len(jobs) + 2) // 3)
        match self._rng.choice(("step", "spread", "deal", "lift", "lower")):
            case "step":
                return self._step(best)
            case "spread":
                return replace(best, spread=best.spread.symmetric_difference(some), gains=[], work=None)
            case "deal":
                dealt = {job: self._rng.randrange(self.service_levels) for job in some}
                return replace(best, dealt={**best.dealt, **dealt}, gains=[], work=None)
            case "lift":
                losses = [max(0.0, -gains[job] - self.guard) for job in jobs]
                weights, by = losses if any(losses) else [_waiting(best.work.jobs[job]) for job in jobs], 1
            case _:
                weights, by = [max(0.0, gains[job]) for job in jobs], -1
        (job,) = self._rng.choices(jobs, weights if any(weights) else None)
        moved = self._slow_moved(best.positions[job], best.work.jobs[job], by)
        return replace(best, positions={**best.positions, job: moved}, gains=[], work=None)

    def _slow_moved(self, ranks: tuple[float, ...], seen: JobWork, by: int) -> tuple[float, ...]:
        """A job's ranks, those that hold it up so many rungs higher."""
        limit = AHEAD * seen.work
        return self._moved(
            [position + by * (iterations <= limit) for position, iterations in zip(ranks, seen.iterations, strict=True)]
        )

    @property
    @override
    def state(self) -> str:
        """DEFAULT, YIELD, SPREAD, CLIMB or IDLE: what the coming period is for."""
        return self._state.value

    @property
    @override
    def accepted(self) -> bool:
        """Whether what it saw last made it adopt a configuration."""
        return self._accepted


def _waiting(seen: JobWork) -> float:
    """The time that ranks wait, over the time that they compute, in the ranks that hold the job up."""
    slow = [rank for rank, iterations in enumerate(seen.iterations) if iterations <= AHEAD * seen.work]
    return sum(seen.waiting[rank] for rank in slow) / max(1e-12, sum(seen.compute[rank] for rank in slow))
