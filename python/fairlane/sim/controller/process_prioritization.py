"""Process prioritization: Algorithm 1 of Savoie et al. 2020, section 3.3. Numbers in comments are its lines.

docs/controllers.md has the decisions about what the printed listing leaves open; each has a test.
"""

import random
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr
from typing_extensions import override

from fairlane.sim.controller.base import MOST_WEIGHT, Controller, JobWork, Settings, Work

Process = tuple[str, int]
"""A job's name and a rank."""
Assignments = dict[Process | int, int]
"""The weight of the service level that a process has for itself; with static levels that of a level."""


class State(StrEnum):
    """States of Algorithm 1."""

    DEFAULT = "DEFAULT"
    RUNNING = "RUNNING"
    IDLE = "IDLE"


class ProcessPrioritization(Controller):
    """Algorithm 1 of Savoie 2020: one slow process at a time gets a service level or more weight; keeps what helps."""

    gives_levels: ClassVar[bool] = True
    real_defaults: ClassVar[Mapping[str, Any]] = {"progress": "fractional"}

    threshold: float = Field(
        default=0.9, gt=0, le=1, strict=True, description="T: a candidate has at most 1/T times the slowest's work"
    )
    default_periods: int = Field(default=1, ge=1, description="periods over which the default run is observed")
    trial_periods: int = Field(
        default=1, ge=1, description="periods over which a trial is observed; the algorithm as printed has one"
    )
    default_weight: int = Field(default=1, ge=1, le=MOST_WEIGHT, description="packets per round of the default level")
    first_weight: int = Field(default=1, ge=1, le=MOST_WEIGHT, description="packets per round of a new level")
    step: int = Field(default=1, ge=1, le=MOST_WEIGHT, description="packets per round that a higher priority adds")
    progress: Literal["whole", "fractional"] = Field(
        default="whole",
        description="work in whole iterations, as printed, or with the estimated part of the current one: the "
        "default for real jobs",
    )
    min_gain: float = Field(
        default=0.0, ge=0, le=1, description="benefit by which a trial has to be better than the best to be adopted"
    )
    levels: Literal["own", "static"] = Field(
        default="own",
        description="a candidate gets a level of its own; or all processes keep the level that they begin with, and "
        "the weight of a candidate's level is raised",
    )
    seed: int = Field(default=1, ge=0, description="seed of the order of candidates")

    _state: State = PrivateAttr(State.DEFAULT)
    _jobs: frozenset[tuple[str, int]] = PrivateAttr(frozenset())
    _observed: list[Work] = PrivateAttr(default_factory=list)
    _default: dict[str, float] = PrivateAttr(default_factory=dict)
    _best_benefit: float = PrivateAttr(0.0)
    _best: Assignments = PrivateAttr(default_factory=dict)
    _assignments: Assignments = PrivateAttr(default_factory=dict)
    _candidates: list[Process] = PrivateAttr(default_factory=list)
    _static: dict[Process, int] = PrivateAttr(default_factory=dict)
    _rng: random.Random = PrivateAttr(default_factory=random.Random)

    @override
    def model_post_init(self, context: object, /) -> None:
        self._rng = random.Random(self.seed)

    @property
    @override
    def moves_levels(self) -> bool:
        return self.levels == "own"

    @override
    def start(self, jobs: Mapping[str, int]) -> Settings:
        self._jobs = frozenset(jobs.items())
        self._state, self._assignments, self._observed = State.DEFAULT, {}, []  # 2, 3
        self._default, self._best, self._best_benefit, self._candidates = {}, {}, 0.0, []
        if self.levels == "static":
            levels = self.service_levels - 1
            self._static = {(job, rank): 1 + rank % levels for job, ranks in jobs.items() for rank in range(ranks)}
        return self._settings()

    @override
    def rearrange(self, jobs: Mapping[str, int]) -> Settings:
        return self.start(jobs) if self.levels == "static" else Settings()

    @override
    def observe(self, work: Work) -> Settings:
        jobs = {name: job.ranks for name, job in work.jobs.items()}
        self._accepted = False
        if frozenset(jobs.items()) != self._jobs:  # 35
            return self.start(jobs)
        if self._state is State.RUNNING and len(self._observed) + 1 < self.trial_periods:
            self._observed.append(work)
            return self._settings()
        self._judge(work)
        self._assign()
        return self._settings()  # 5

    def _judge(self, work: Work) -> None:
        if self._state is State.DEFAULT:  # 8
            self._observed.append(work)
            if len(self._observed) < self.default_periods:
                return
            self._default = self._mean_work(self._observed)  # 9
            self._best_benefit, self._best = 0.0, {}  # 10, 11
            self._candidates = self._select(work)  # 12
            self._state, self._observed = State.RUNNING, []  # 13
        elif self._state is State.RUNNING:  # 14
            seen, self._observed = [*self._observed, work], []
            benefit = sum(map(self.benefit, seen)) / len(seen)
            if benefit > self._best_benefit + self.min_gain:  # 15
                self._best_benefit, self._best = benefit, self._assignments  # 16, 17
                self._candidates = self._select(work)  # 18
                self._accepted = True
            if len(self._best) == self.service_levels - 1 or not self._candidates:  # 19, 20
                self._state = State.IDLE  # 21
        elif self.benefit(work) < 0:  # 22, 23
            self._state = State.DEFAULT  # 24

    def _assign(self) -> None:
        if self._state is State.DEFAULT:  # 25
            self._assignments = {}  # 26
        elif self._state is State.RUNNING:  # 27
            process = self._candidates.pop()  # 28
            unit = self._static.get(process, process)
            trial = dict(self._best)
            if unit in trial or self._static:  # 29
                trial[unit] = min(MOST_WEIGHT, trial.get(unit, self.default_weight) + self.step)  # 30
            else:
                trial[unit] = self.first_weight  # 32
            self._assignments = trial
        else:  # 33
            self._assignments = self._best  # 34

    def _select(self, work: Work) -> list[Process]:
        candidates = [(name, rank) for name, job in work.jobs.items() for rank in self._near_slowest(job)]  # 37 to 42
        self._rng.shuffle(candidates)
        return candidates

    def _near_slowest(self, job: JobWork) -> list[int]:
        limit = self._work(job) / self.threshold  # 39
        done = job.iterations if self.progress == "whole" or job.advance is None else job.advance
        return [rank for rank, iterations in enumerate(done) if iterations <= limit]  # 40, 41

    def benefit(self, work: Work) -> float:
        """The average over jobs of the improvement over the default run."""
        changes = [self._work(job) / self._default[name] - 1 for name, job in work.jobs.items() if self._default[name]]
        return sum(changes) / len(changes) if changes else 0.0

    def _work(self, job: JobWork) -> float:
        return job.work if self.progress == "whole" else job.fractional

    def _mean_work(self, periods: list[Work]) -> dict[str, float]:
        return {job: sum(self._work(work.jobs[job]) for work in periods) / len(periods) for job in periods[0].jobs}

    def _settings(self) -> Settings:
        """Every process with a weight of its own gets the next free level; static levels only change their weights."""
        levels: dict[str, dict[int, int]] = {}
        weights = [self.default_weight] * self.service_levels
        for (job, rank), level in self._static.items():
            levels.setdefault(job, {})[rank] = level
        for number, (unit, weight) in enumerate(self._assignments.items(), 1):
            if isinstance(unit, int):
                weights[unit] = weight
            else:
                levels.setdefault(unit[0], {})[unit[1]] = number
                weights[number] = weight
        return Settings(levels, tuple(weights))
