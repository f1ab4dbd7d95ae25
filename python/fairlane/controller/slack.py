"""Slack: ranks that hold their job up go first. Our own controller; it needs few periods, however many ranks there are.

What it sees of a rank is how long it computes an iteration, and how many iterations it makes. A rank whose compute
time fills most of its job's pace has little slack: messages that it waits for, or sends, hold up the job. A rank that
computes little, or that is iterations ahead of the slowest, can wait. So ranks are put into a few *classes* by slack,
and each class gets ``base`` times the weight of the one below it. A class is as many service levels as there is room
for, and its ranks are dealt over them: messages in different lanes do not stand behind each other, which helps
everybody even where all have the same weight.

1. DEFAULT: a few periods without priorities, for the pace of every job and the slack of every rank.
2. DEAL: one class for all. Which levels a job's ranks are dealt matters to that job more than what the others are
   dealt: so all jobs are dealt anew in every period, and each keeps the deal it did best with.
3. RACE: ``DESIGNS``, different ways to cut slack into classes, are tried, gentle ones first; the worse half goes after
   each round, and those that stay are tried longer (successive halving). If all of them do harm, all ranks share the
   default level until a change of the winner does none.
4. CLIMB: the winner is changed in several jobs at once: jobs that lose are dealt other levels of their class, or get a
   class more, or those of their ranks that are slowest now do; jobs that gain much get one less; ranks with the least
   waiting time one more, and a few are moved at random. A change is confirmed before it is kept. The more changes in a
   row have not helped, the longer the best stands before the next: trying costs work, too.
5. IDLE: after ``patience`` changes that did not help. It starts over when jobs come or go, or when the work falls
   below the default.

A configuration is as good as its mean improvement over jobs, less three times what jobs lose beyond ``guard``, and
beyond what an iteration more or less in a period makes of a job's work; what they lose beyond ``LIMIT`` counts most.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean, stdev
from typing import ClassVar

from pydantic import Field, PrivateAttr
from typing_extensions import override

from fairlane.controller.base import Controller, JobWork, Settings, Work

__all__ = ["DESIGNS", "Design", "Slack"]

AHEAD = 1.15
"""A rank with this many times the iterations of its job's slowest does not hold it up."""
PENALTY = 3.0
"""What a job's loss beyond the guard counts, in units of the same gain."""
LIMIT = 0.04
"""No job may lose more than this share of its work: what it loses beyond counts ten times as much."""
TOP_CLASS = 7
"""The highest class there is."""
GREATEST_WEIGHT = 255
"""Beyond this a weight is as good as a strict priority."""
TOO_MUCH = 0.1
"""A design that costs a job this share of its work is followed by gentler ones only."""
UNIT = 8
"""Packets a turn of class 0: a message's worth, so that turns seldom cut one."""
RECENT = 12
"""So many periods of a configuration count, at most."""
LEAST_BASE = 1.5
"""Where there are several classes, each has at least so many times the weight of the one below."""
LONGEST_STAND = 6
"""The best configuration stands for so many periods between two changes, at most."""

_MENDING = ("deal", "deal", "lift", "lower", "balance")
"""The kinds of change that are for jobs that lose, the gentlest twice as often: see `Slack._changed`."""
_KINDS = (*_MENDING, "pressed", "random")
"""All of them."""

Classes = Mapping[str, tuple[int, ...]]
"""The class of each rank, by job."""
Deal = tuple[str, tuple[int, ...], int, int]
"""A job, the classes of its ranks, the levels of a class, and which of them rank 0 is dealt."""


class State(StrEnum):
    """What the controller is doing."""

    DEFAULT = "DEFAULT"
    DEAL = "DEAL"
    RACE = "RACE"
    CLIMB = "CLIMB"
    IDLE = "IDLE"


@dataclass(frozen=True)
class Need:
    """How much a rank matters to its job's pace."""

    urgency: float
    """Its compute time an iteration, over the largest of the job."""
    ahead: bool
    """Whether it is well ahead of the slowest."""


@dataclass(frozen=True)
class Design:
    """A way to cut slack into classes."""

    cut: Callable[[Need], int]
    """The class of a rank."""
    base: float
    """The weight of a class over that of the class below it."""


def _steps(*limits: float) -> Callable[[Need], int]:
    """A class for each limit that the urgency reaches; ranks that are ahead are in the lowest."""
    return lambda need: 0 if need.ahead else sum(need.urgency >= limit for limit in limits)


def _above_ahead(*limits: float) -> Callable[[Need], int]:
    """The same, with ranks that are ahead by themselves in class 1: their messages keep out of the others' way."""
    return lambda need: 1 if need.ahead else (found + 1 if (found := _steps(*limits)(need)) else 0)


DESIGNS: Mapping[str, Design] = {
    "one": Design(lambda _: 0, 1.0),
    "three, softly": Design(_steps(0.45, 0.9), 1.5),
    "quarters apart, softly": Design(_above_ahead(0.25, 0.5, 0.75), 1.5),
    "most urgent, gently": Design(_steps(0.8), 2.0),
    "three, gently": Design(_steps(0.45, 0.9), 2.0),
    "quarters apart": Design(_above_ahead(0.25, 0.5, 0.75), 2.0),
    "quarters": Design(_steps(0.0, 0.25, 0.5, 0.75), 2.0),
    "three": Design(_steps(0.45, 0.9), 3.0),
    "urgent half": Design(_steps(0.6), 4.0),
}
"""What the race begins with, the gentle ones first: where one costs a job too much, only gentler ones are still tried.
The first has no priorities, only lanes of one's own."""


@dataclass
class Candidate:
    """A configuration and what was seen of it."""

    classes: Classes
    base: float
    gains: list[Mapping[str, float]] = field(default_factory=list)
    """Improvement by job, for each period."""
    first: Mapping[str, int] = field(default_factory=dict)
    """Which level of its class a job's rank 0 is dealt, the next rank the next one; by default the first."""

    @property
    def used(self) -> int:
        """How many classes there are, with those in between that are empty."""
        return max((max(ranks) for ranks in self.classes.values()), default=0) + 1

    def each(self, service_levels: int) -> int:
        """The levels of a class: as many as there is room for."""
        return max(1, service_levels // self.used)

    def deal(self, job: str, service_levels: int) -> Deal:
        """What a job is dealt."""
        each = self.each(service_levels)
        return job, self.classes.get(job, ()), each, self.first.get(job, 0) % each

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

    def spread(self) -> float:
        """How much the mean improvement varies from period to period."""
        means = [fmean(gain.values()) for gain in self.gains]
        return stdev(means) if len(means) > 1 else 0.0

    def settings(self, service_levels: int) -> Settings:
        """As many levels for each class as there is room for, over which its ranks are dealt."""
        if not self.classes:
            return Settings({}, (1,) * service_levels)
        each = self.each(service_levels)
        levels = {
            job: {
                rank: min(service_levels - 1, found * each + (rank + self.first.get(job, 0)) % each)
                for rank, found in enumerate(ranks)
            }
            for job, ranks in self.classes.items()
        }
        found = (min(level // each, self.used - 1) for level in range(service_levels))
        return Settings(levels, tuple(round(UNIT * min(GREATEST_WEIGHT, self.base**one)) for one in found))


class Slack(Controller):
    """Ranks by slack into classes: races whole configurations, then improves the winner. Our own."""

    name: ClassVar[str] = "slack"

    default_periods: int = Field(2, ge=1, description="periods over which the default run is observed")
    deals: int = Field(5, ge=1, description="periods in which every job is dealt other levels")
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
    _deals: dict[Deal, list[float]] = PrivateAttr(default_factory=dict)
    _dealt: int = PrivateAttr(0)
    _pool: list[Candidate] = PrivateAttr(default_factory=list)
    _rounds: int = PrivateAttr(1)
    _best: Candidate = PrivateAttr(default_factory=lambda: Candidate({}, 1.0))
    _lead: Candidate = PrivateAttr(default_factory=lambda: Candidate({}, 1.0))
    _current: Candidate = PrivateAttr(default_factory=lambda: Candidate({}, 1.0))
    _work: Work | None = PrivateAttr(None)
    _stood: int = PrivateAttr(0)
    _failures: int = PrivateAttr(0)
    _rng: random.Random = PrivateAttr(default_factory=random.Random)

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        """Nobody has priority."""
        self._rng = random.Random(self.seed)
        self._jobs, self._state, self._observed = dict(jobs), State.DEFAULT, []
        self._stood = self._failures = 0
        self._deals, self._dealt = {}, 0
        return self._unset()

    def _unset(self) -> Settings:
        return Settings({}, (1,) * self.service_levels)

    @override
    def observe(self, work: Work) -> Settings:
        """Judges the last period and says what comes next."""
        jobs = {name: job.ranks for name, job in work.jobs.items()}
        self._accepted = False
        if jobs != self._jobs:
            return self.start(jobs)
        if self._state is State.DEFAULT:
            self._learn(work)
        else:
            self._current.gains.append(self._gains(work))
            for job, gain in self._current.gains[-1].items():
                self._deals.setdefault(self._current.deal(job, self.service_levels), []).append(gain)
            if self._current is self._best:
                self._work = work
            {State.DEAL: self._deal, State.RACE: self._race, State.CLIMB: self._climb, State.IDLE: self._watch}[
                self._state
            ]()
        return self._unset() if self._state is State.DEFAULT else self._current.settings(self.service_levels)

    def _gains(self, work: Work) -> dict[str, float]:
        return {
            name: job.work / self._default[name] - 1 if self._default[name] else 0.0 for name, job in work.jobs.items()
        }

    def _learn(self, work: Work) -> None:
        """The default run is over: its ranks' slack gives the configurations that race."""
        self._observed.append(work)
        if len(self._observed) < self.default_periods:
            return
        self._default = {name: fmean(seen.jobs[name].work for seen in self._observed) for name in self._jobs}
        self._grain = {name: 1 / max(1.0, work) for name, work in self._default.items()}
        needs = {name: _needs([seen.jobs[name] for seen in self._observed]) for name in self._jobs}
        self._pool = [
            Candidate({job: tuple(map(design.cut, ranks)) for job, ranks in needs.items()}, design.base)
            for design in DESIGNS.values()
        ]
        self._work, self._rounds, self._state = work, 1, State.DEAL
        self._current = self._pool[0]

    def _deal(self) -> None:
        """Every job is dealt levels that it has not had yet; in the end each keeps those it did best with.

        Jobs that have lost with all of them are dealt levels for up to as many periods again.
        """
        current = self._current
        self._dealt += 1
        first = {job: self._kept(current, job) for job in current.classes}
        lost = [job for job, dealt in first.items() if self._tried(current, job)[dealt] < -self._grain[job]]
        again = lost if self._dealt >= self.deals else list(first)
        if self._dealt < 2 * self.deals and again:
            first |= {job: self._fresh(current, job) for job in again}
        else:
            self._state = State.RACE
        self._current = Candidate(current.classes, current.base, first=first)
        if self._state is State.RACE:
            self._pool[0] = self._current

    def _tried(self, candidate: Candidate, job: str) -> dict[int, float]:
        """What a job has been dealt with a candidate's classes, and its mean improvement then."""
        *classes, _ = candidate.deal(job, self.service_levels)
        return {dealt: fmean(gains) for (*same, dealt), gains in self._deals.items() if same == classes}

    def _fresh(self, candidate: Candidate, job: str) -> int:
        """A deal that a job has not had with a candidate's classes, if there is one left."""
        tried, every = self._tried(candidate, job), range(candidate.each(self.service_levels))
        return self._rng.choice([first for first in every if first not in tried] or every)

    def _kept(self, candidate: Candidate, job: str) -> int:
        """The deal that a job did best with."""
        tried = self._tried(candidate, job)
        return max(tried, key=lambda first: tried[first])

    def _race(self) -> None:
        """The next of the pool that has not had its turns; else the better half goes on."""
        gains = self._current.mean_gains()
        if min(gain + self._grain[job] for job, gain in gains.items()) < -TOO_MUCH:
            self._pool = [one for one in self._pool if one.gains or one.base < self._current.base]
        waiting = [one for one in self._pool if len(one.gains) < self._rounds]
        if not waiting:
            self._pool.sort(key=lambda one: one.score(self.guard, self._grain), reverse=True)
            self._pool = self._pool[: (len(self._pool) + 1) // 2]
            self._rounds *= 2
            waiting = [one for one in self._pool if len(one.gains) < self._rounds]
        if len(self._pool) > 1:
            self._current = waiting[0]
            return
        self._lead = self._best = self._pool[0]
        if not self._helps(self._lead):  # the default stands until a change of it does
            self._best = Candidate({}, self._lead.base, [dict.fromkeys(self._jobs, 0.0)])
        self._state, self._accepted, self._current = State.CLIMB, True, self._best

    def _helps(self, candidate: Candidate) -> bool:
        return candidate.score(self.guard, self._grain) >= 0

    def _climb(self) -> None:
        """Is the change better? Unsure: once more. Yes: keep it. No: another one."""
        trial, lead = self._current, self._lead
        if trial is not self._best:
            ahead, seen = trial.score(self.guard, self._grain) - lead.score(self.guard, self._grain), len(trial.gains)
            if seen <= self.confirm and ahead > -lead.spread() / seen**0.5:
                return
            if ahead > 0:
                self._lead, self._failures = trial, 0
                if self._helps(trial):
                    self._best, self._accepted = trial, True
            else:
                self._failures += 1
        if self._failures >= self.patience:
            self._state, self._current = State.IDLE, self._best
            return
        # The best is looked at again and again: a lucky period must not stand for ever.
        stands = self._stood < min(LONGEST_STAND, self._failures // 2) or len(self._best.gains) < self.confirm + 1
        self._stood = self._stood + 1 if stands else 0
        self._current = self._best if stands else self._changed(self._lead)

    def _watch(self) -> None:
        """Starts over if the work falls below the default for a few periods."""
        if fmean(fmean(gain.values()) for gain in self._best.gains[-3:]) < 0:
            self.start(self._jobs)

    def _changed(self, best: Candidate) -> Candidate:
        """The best with changes in several jobs. While a job loses too much, half of the changes are about that."""
        gains = best.mean_gains()
        loses = min(gains.values()) < -self.guard
        kinds = _MENDING if not self._helps(best) or (loses and self._rng.random() < 0.5) else _KINDS
        kind = self._rng.choice(kinds)
        if kind == "deal":
            which = [job for job in best.classes if gains[job] < 0]
            which = which or self._rng.sample(list(best.classes), (len(best.classes) + 2) // 3)
            return Candidate(
                best.classes, best.base, first={**best.first, **{job: self._fresh(best, job) for job in which}}
            )
        base = min(4.0, max(LEAST_BASE, best.base * self._rng.choice((0.85, 1.0, 1.0, 1.2))))
        moved = {job: self._moved(job, ranks, kind, gains) for job, ranks in best.classes.items()}
        return Candidate(moved, base, first=best.first)

    def _moved(self, job: str, ranks: tuple[int, ...], kind: str, gains: Mapping[str, float]) -> tuple[int, ...]:
        """One job's part of a change."""
        worst = gains[job] <= min(gains.values())
        if self._rng.random() < 0.5 and not (kind == "lift" and worst):
            return ranks
        loses, gains_much = gains[job] < 0, gains[job] > fmean(gains.values())
        which: Sequence[int] = range(len(ranks))
        match kind:
            case "lift" if loses:
                by = self._rng.choice((1, 1, 2))
            case "lower" if gains_much:
                by = -1
            case "balance" if loses or gains_much:
                which, by = self._slow(job), 1 if loses else -1
            case "pressed":
                which, by = self._pressed(job), self._rng.choice((1, 1, -1))
            case "random":
                which, by = self._rng.sample(which, max(1, len(ranks) // 8)), self._rng.choice((1, -1))
            case _:
                return ranks
        return _move(ranks, which, by)

    def _pressed(self, job: str) -> Sequence[int]:
        """The ranks among the slowest that wait least: nobody else can be what holds them up."""
        slow = self._slow(job)
        if self._work is not None:
            waiting = self._work.jobs[job].waiting
            slow.sort(key=lambda rank: waiting[rank])
        return slow[: max(1, len(slow) // 4)]

    def _slow(self, job: str) -> list[int]:
        """The ranks that are not ahead of their job's slowest, as it was last seen with the best configuration."""
        if self._work is None:
            return []
        work = self._work.jobs[job]
        return [rank for rank, iterations in enumerate(work.iterations) if iterations <= AHEAD * work.work]

    @property
    @override
    def state(self) -> str:
        """DEFAULT, DEAL, RACE, CLIMB or IDLE: what the coming period is for."""
        return self._state.value

    @property
    @override
    def accepted(self) -> bool:
        """Whether what it saw last made it adopt a configuration."""
        return self._accepted


def _needs(periods: Sequence[JobWork]) -> list[Need]:
    """How much each rank of a job matters, from a few periods without priorities."""
    iterations = [max(1, sum(each)) for each in zip(*(job.iterations for job in periods), strict=True)]
    compute = [sum(each) for each in zip(*(job.compute for job in periods), strict=True)]
    slowest = min(iterations)
    paces = [time / count for time, count in zip(compute, iterations, strict=True)]
    longest = max(paces)
    return [
        Need(pace / longest if longest else 1.0, count > AHEAD * slowest)
        for pace, count in zip(paces, iterations, strict=True)
    ]


def _move(ranks: tuple[int, ...], which: Sequence[int], by: int) -> tuple[int, ...]:
    """These ranks some classes higher or lower."""
    chosen = set(which)
    return tuple(min(TOP_CLASS, max(0, found + by * (rank in chosen))) for rank, found in enumerate(ranks))
