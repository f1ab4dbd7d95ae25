"""Slack: lowers the priority of ranks that are ahead of their job. Fairlane's own; it needs few periods.

A job is as fast as its slowest rank. Where ranks compute for different times, those that are ahead use bandwidth that
does not speed up their job. So ranks are on the rungs of a *ladder* of service levels (``ladder``), at first all on the
middle one. DEFAULT measures the default work of every job; YIELD and SPREAD move all ranks by a feedback, without and
with the ranks of the middle rung distributed over its levels; CLIMB tries changes of the best configuration; IDLE keeps
it. docs/controllers.md describes the states.
"""

import random
from collections.abc import Mapping
from enum import StrEnum
from statistics import fmean
from typing import Any, ClassVar

from pydantic import Field, PrivateAttr
from typing_extensions import override

from fairlane.sim.controller.base import Controller, Settings, Work
from fairlane.sim.controller.slack.ladder import LIMIT, Candidate, Changes, Feedback, ladder

TOO_MUCH = 0.1
"""Share of its work: where a job loses it in two periods running, ranks are no longer spread."""
AFFORDABLE = 0.005
"""The best configuration is kept for a period for each such share of a period's work that the trial before has cost."""
LONGEST_STAND = 6
"""Maximum number of periods between two trials."""


class State(StrEnum):
    """States of the controller."""

    DEFAULT = "DEFAULT"
    YIELD = "YIELD"
    SPREAD = "SPREAD"
    CLIMB = "CLIMB"
    IDLE = "IDLE"


class Slack(Controller):
    """Lowers the priority of ranks that are ahead of their job and raises that of the slowest. Fairlane's own."""

    gives_levels: ClassVar[bool] = True

    default_periods: int = Field(default=2, ge=1, description="periods over which the default run is observed")
    steps: int = Field(default=6, ge=1, description="periods of feedback in each of YIELD and SPREAD")
    guard: float = Field(default=0.01, ge=0, le=1, description="loss of a job above which its weight is tripled")
    confirm: int = Field(default=2, ge=1, description="further periods in which a change is evaluated")
    patience: int = Field(default=40, ge=1, description="consecutive trials without success before IDLE")
    mpi_times: bool = Field(
        default=True, description="whether it uses times in MPI calls, or iterations only, as Algorithm 1 does"
    )
    seed: int = Field(default=1, ge=0, description="seed of random changes")

    _state: State = PrivateAttr(State.DEFAULT)
    _jobs: dict[str, int] = PrivateAttr(default_factory=dict)
    _observed: list[Work] = PrivateAttr(default_factory=list)
    _default: dict[str, float] = PrivateAttr(default_factory=dict)
    _grain: dict[str, float] = PrivateAttr(default_factory=dict)
    _totals: dict[str, float] = PrivateAttr(default_factory=dict)
    _periods: int = PrivateAttr(0)
    _steps_done: int = PrivateAttr(0)
    _best: Candidate = PrivateAttr(default_factory=lambda: Candidate({}))
    _current: Candidate = PrivateAttr(default_factory=lambda: Candidate({}))
    _hurt: set[str] = PrivateAttr(default_factory=set)
    _stands: int = PrivateAttr(0)
    _failures: int = PrivateAttr(0)
    _feedback: Feedback = PrivateAttr()
    _changes: Changes = PrivateAttr()
    _rng: random.Random = PrivateAttr(default_factory=random.Random)

    @override
    def model_post_init(self, _context: Any) -> None:
        self._rng = random.Random(self.seed)

    @property
    @override
    def needs_mpi_times(self) -> bool:
        return self.mpi_times

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        self._jobs, self._state, self._observed = dict(jobs), State.DEFAULT, []
        self._totals, self._periods = dict.fromkeys(jobs, 0.0), 0
        self._steps_done = self._stands = self._failures = 0
        self._hurt = set()
        self._best = self._current = Candidate({job: (0.0,) * ranks for job, ranks in jobs.items()})
        return self._current.settings(self.service_levels)

    @override
    def observe(self, work: Work) -> Settings:
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
            self._current.see(gains)
            self._totals = {job: total + gains[job] for job, total in self._totals.items()}
            steps = {State.YIELD: self._yield, State.SPREAD: self._spread, State.CLIMB: self._climb}
            steps.get(self._state, self._watch)()
        return self._current.settings(self.service_levels)

    def _gains(self, work: Work) -> dict[str, float]:
        return {
            name: job.work / self._default[name] - 1 if self._default[name] else 0.0 for name, job in work.jobs.items()
        }

    def _learn(self, work: Work) -> None:
        self._observed.append(work)
        if len(self._observed) < self.default_periods:
            return
        self._default = {name: fmean(seen.jobs[name].work for seen in self._observed) for name in self._jobs}
        self._grain = {name: 1 / max(1.0, work) for name, work in self._default.items()}
        self._best.gains = [self._gains(seen) for seen in self._observed]
        self._feedback = Feedback(self._default, self.service_levels)
        self._changes = Changes(self._feedback, self.guard, self._rng, mpi_times=self.mpi_times)
        self._state, self._current = State.YIELD, self._feedback.step(self._best)

    def _yield(self) -> None:
        """One more step of the feedback, or up to twice as many while a job is hurt; the last is seen for a while."""
        self._steps_done += 1
        yielded = self._current
        hurt = any(gain + self._grain[job] < -LIMIT for job, gain in yielded.gains[-1].items())
        if self._steps_done < self.steps or (hurt and self._steps_done < 2 * self.steps):
            self._current = self._feedback.step(yielded)
        elif len(yielded.gains) > self.confirm:
            if self._better(yielded) > 0:
                self._best, self._accepted = yielded, True
            self._steps_done = 0
            if len(ladder(self.service_levels)[0]) > 1:
                spread = self._feedback.step(yielded, spread=frozenset(self._jobs), change="spread")
                self._state, self._current = State.SPREAD, spread
            else:
                self._state, self._current = State.CLIMB, self._best

    def _spread(self) -> None:
        """The same, with ranks spread; what it has led to is a change like others."""
        self._steps_done += 1
        hurt = {job for job, gain in self._current.gains[-1].items() if gain + self._grain[job] < -TOO_MUCH}
        if hurt & self._hurt:
            self._state, self._current = State.CLIMB, self._best
        elif self._steps_done < self.steps:
            self._hurt, self._current = hurt, self._feedback.step(self._current)
        else:
            self._state = State.CLIMB
            self._climb()

    def _better(self, trial: Candidate) -> float:
        seen = len(trial.gains)
        return trial.score(self.guard, self._grain) - self._best.score(self.guard, self._grain, seen)

    def _climb(self) -> None:
        """Is the change better? Unsure: once more. Yes: keep it. No: another one."""
        trial, best = self._current, self._best
        if trial is not best:
            better, seen = self._better(trial), len(trial.gains)
            if seen <= self.confirm and better > -best.varies() / seen**0.5:
                return
            self._learn_from(trial, helped=better > 0)
        if self._failures >= self.patience:
            self._state, self._current = State.IDLE, self._best
            return
        # The best must have been seen as often as what is compared with it.
        stands = self._stands > 0 or len(self._best.gains) < self.confirm + 1
        self._stands = max(0, self._stands - 1)
        self._current = self._best if stands or self._owes() else self._changes.draw(self._best)

    def _learn_from(self, trial: Candidate, *, helped: bool) -> None:
        """Learn from the trial about changes of its kind, and from its cost."""
        self._changes.learn(trial.change, helped=helped)
        cost = self._best.mean_gain() - trial.mean_gain()
        self._stands = min(LONGEST_STAND, max(0, round(cost / AFFORDABLE)))
        if helped:
            self._best, self._accepted, self._failures = trial, True, 0
        else:
            self._failures += 1

    def _owes(self) -> bool:
        """Whether a job has lost over all periods so far, and the best makes up for it."""
        gains = self._best.mean_gains()
        losses = {job: -self.guard - grain for job, grain in self._grain.items()}
        return any(total / self._periods < losses[job] < gains[job] for job, total in self._totals.items())

    def _watch(self) -> None:
        """Starts over if the work falls below the default, by more than one iteration and the guard, for some time."""
        if self._best.mean_gain() < -self.guard - fmean(self._grain.values()):
            self.start(self._jobs)
