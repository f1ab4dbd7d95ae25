"""Digital twin: tries service levels ahead on a model of the system, applies the best plan, and undoes it if jobs lose.

The controller does not search on the real system. It observes the default for a few periods, and meanwhile searches for
a plan on its twin (``twin``, ``search``): a priority for each rank (``plan``). VERIFY applies the plan and compares the
work with the default observed. If jobs gain, HOLD keeps the plan and goes on to compare. If a job loses, half of the
difference between the real improvement and the twin's is added to the twin's (as model predictive control corrects an
offset), and the search continues from the plan. When that does not help either, the best plan so far is kept if no job
loses much with it; otherwise it is undone: IDLE, the default.
"""

import random
from collections.abc import Mapping
from enum import StrEnum
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, PrivateAttr
from typing_extensions import override

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.seeds import LARGEST_SEED
from fairlane.core.units import Duration
from fairlane.sim.controller.base import Controller, Settings, Work
from fairlane.sim.controller.digital_twin.search import Search, Trial, contention, objective
from fairlane.sim.controller.digital_twin.twin import Twin

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario

__all__ = ["DigitalTwin"]

TRUST = 0.5
"""Share of the observed difference between reality and twin by which the twin is corrected: the rest may be noise."""


class State(StrEnum):
    """States of the controller."""

    DEFAULT = "DEFAULT"
    VERIFY = "VERIFY"
    HOLD = "HOLD"
    IDLE = "IDLE"


class DigitalTwin(Controller):
    """Tries service levels ahead on a model of fabric and jobs; verifies the best plan and undoes what loses."""

    gives_levels: ClassVar[bool] = True
    needs_model: ClassVar[bool] = True

    default_periods: int = Field(default=3, ge=1, description="periods over which the default run is observed")
    horizon: Duration = Field(default=20 * 10**9, gt=0, description="simulated time of each trial on the twin")
    trials: int = Field(default=80, ge=1, description="trials on the twin in a search")
    confirm: int = Field(default=4, ge=1, description="periods after which a plan is judged, and judged again")
    limit: float = Field(default=0.03, ge=0, le=1, description="loss of a job beyond which a plan is changed")
    most: float = Field(default=0.04, ge=0, le=1, description="loss of a job beyond which a plan is never kept")
    replans: int = Field(default=2, ge=0, description="searches after the first before the plan is undone")
    profile_seed: int | None = Field(
        default=None,
        ge=0,
        le=LARGEST_SEED,
        description="seed of the twin's programs, where it knows those of another input only; default: the scenario's",
    )
    seed: int = Field(default=1, ge=0, le=2**31, description="seed of the search and of the twin's variants")

    _scenario: Any = PrivateAttr(None)
    _state: State = PrivateAttr(State.DEFAULT)
    _jobs: dict[str, int] = PrivateAttr(default_factory=dict)
    _totals: dict[str, int] = PrivateAttr(default_factory=dict)
    _periods: int = PrivateAttr(0)
    _default: dict[str, float] = PrivateAttr(default_factory=dict)
    _search: Search | None = PrivateAttr(None)
    _plan: Trial | None = PrivateAttr(None)
    _kept: tuple[float, Trial] | None = PrivateAttr(None)
    _replans: int = PrivateAttr(0)

    @override
    def prepare(self, scenario: "Scenario") -> None:
        self._scenario = scenario

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        if self._scenario is None:
            raise ScenarioError(Problem("controller", f"{self.name} needs a scenario for its twin: call prepare first"))
        self._jobs, self._state = dict(jobs), State.DEFAULT
        self._forget()
        self._search, self._plan, self._kept, self._replans = None, None, None, 0
        return Settings()

    @override
    def rearrange(self, jobs: Mapping[str, int]) -> Settings:
        return self.start(jobs)

    @override
    def observe(self, work: Work) -> Settings:
        self._accepted = False
        jobs = {name: job.ranks for name, job in work.jobs.items()}
        if jobs != self._jobs:
            return self.start(jobs)
        self._totals = {name: total + work.jobs[name].work for name, total in self._totals.items()}
        self._periods += 1
        if self._state is State.DEFAULT:
            self._observe_default()
        elif self._state is not State.IDLE and self._periods % self.confirm == 0:
            self._judge()
        return Settings() if self._plan is None else self._plan.plan.settings(self.service_levels)

    def _forget(self) -> None:
        """Work is counted from now on: other settings apply."""
        self._totals, self._periods = dict.fromkeys(self._jobs, 0), 0

    def _observe_default(self) -> None:
        if self._periods < self.default_periods:
            return
        self._default = {job: total / self._periods for job, total in self._totals.items()}
        self._try(self._searching().best(self.trials))

    def _searching(self) -> Search:
        """A search on a new twin of the jobs that are present."""
        twin = Twin(self._scenario, self._jobs, horizon=self.horizon, seed=self.seed, profile_seed=self.profile_seed)
        shared = contention(twin.model, twin.program_seed)
        self._search = Search(twin, shared, self.service_levels, self.limit, random.Random(self.seed))
        return self._search

    def _try(self, trial: Trial) -> None:
        """Applies a plan, unless the twin says that it is worse than none."""
        if trial.score <= 0:
            self._settle()
        else:
            self._plan, self._state = trial, State.VERIFY
            self._forget()

    def _settle(self) -> None:
        """No further plan: the best of those verified is kept, if there is one; otherwise the default."""
        self._forget()
        self._plan, self._state = (self._kept[1], State.HOLD) if self._kept else (None, State.IDLE)
        self._replans = self.replans

    def _gains(self) -> dict[str, float]:
        """The mean improvement of each job under the plan over the default observed."""
        means = {job: total / self._periods for job, total in self._totals.items()}
        return {job: mean / self._default[job] - 1 if self._default[job] else 0.0 for job, mean in means.items()}

    def _judge(self) -> None:
        """Keeps the plan, changes it, or undoes it."""
        gains = self._gains()
        if self._remembered(gains) and (self._state is State.HOLD or not self._losing(gains, self.limit)):
            self._accepted = self._state is State.VERIFY
            self._state = State.HOLD
        elif self._replans < self.replans:
            self._replan(gains)
        else:
            self._settle()

    def _remembered(self, gains: Mapping[str, float]) -> bool:
        """Whether the plan is the best so far of those that help and cost no job much."""
        assert self._plan is not None, "a plan is applied"
        before = self._kept
        again = before is not None and before[1] is self._plan
        real = objective(gains, self.limit)
        if fmean(gains.values()) <= 0 or self._losing(gains, self.most):
            self._kept = None if again else before
            return False
        if before is None or again or real > before[0]:
            self._kept = real, self._plan
            return True
        return False

    def _losing(self, gains: Mapping[str, float], limit: float) -> list[str]:
        """Jobs that lose more than the limit, and one iteration of a period in the mean of those seen."""
        grain = {job: 1 / max(1.0, work) / self._periods**0.5 for job, work in self._default.items()}
        return [job for job, gain in gains.items() if gain + grain[job] < -limit]

    def _replan(self, gains: Mapping[str, float]) -> None:
        """Continues the search from the plan, with the twin corrected by what was observed of the jobs that lose."""
        assert self._plan is not None, "a plan is applied"
        assert self._search is not None, "it was found by a search"
        self._replans += 1
        twin = self._plan.gains
        self._search.offsets = {job: TRUST * min(0.0, gain - twin[job]) for job, gain in gains.items()}
        self._try(self._search.best(max(1, self.trials // 2), self._plan.plan))
