"""The search for a plan on the twin: feedback that moves all ranks at once, plans mixed from it, then single changes.

Feedback distributes all ranks over the levels of priority 0, and lowers the priority of ranks that are ahead of their
job, in proportion to how far ahead they are. Mixed plans have for each job the plan that was best for it, and the
default for jobs that lose by that. Single changes begin with the best of all these, or with the default if each costs
some job too much. They are accepted by late acceptance (E. K. Burke, Y. Bykov, European Journal of Operational
Research 258, 2017): if the objective is at least that of ``HISTORY`` changes ago. Half of the changes are guided by
contention: a rank of a job that loses much against its isolated run gets more priority, or one that shares links with
it gets less. While jobs lose against the default, half of the changes raise all ranks of one of them.

Who delays whom, by rank: which ranks of the jobs send over the same links between switches, and how much.

The traffic of each job is its communication matrix, and the links are those of the routing. With routing that chooses
among several paths the links are those of one of them, so the result is a guess there.

Plans of the controller ``digital_twin``: a priority for each rank, and the service levels that express it.

Priorities are whole numbers around 0; the weight of a service level doubles from one priority to the next. Most
priorities have several levels, over which their ranks are distributed, so that messages of ranks with the same priority
do not block each other in one queue. That helps most jobs and harms others, so a plan can leave the ranks of a job that
have priority 0 in the level that they have by default.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import log2
from statistics import fmean

import numpy
from numpy.typing import NDArray

from fairlane.core.errors import FairlaneError
from fairlane.model.fabric.view import Fabric
from fairlane.model.pattern.traffic import observe, program_of
from fairlane.model.scenario import Resolved, ResolvedJob
from fairlane.sim.controller.base import Settings
from fairlane.sim.controller.digital_twin.twin import Observation, Twin

Rank = tuple[str, int]
"""A job's name and a rank."""
Contention = Mapping[Rank, Mapping[Rank, float]]
"""By rank the ranks with which it shares links, and for how much traffic; the mean rank of a job sends 1."""


def contention(model: Resolved, seed: int) -> Contention:
    """The ranks that share links; jobs whose traffic or routes cannot be determined have none."""
    fabric = model.fabric
    loads: dict[int, dict[Rank, float]] = defaultdict(lambda: defaultdict(float))
    for job in model.jobs:
        try:
            _add(loads, fabric, job, _traffic(job, seed))
        except FairlaneError:
            continue
    shared: dict[Rank, dict[Rank, float]] = defaultdict(lambda: defaultdict(float))
    for ranks in loads.values():
        for (one, links_of_rank), (other, others) in combinations(ranks.items(), 2):
            shared[one][other] += min(links_of_rank, others)
            shared[other][one] += min(links_of_rank, others)
    return shared


def _traffic(job: ResolvedJob, seed: int) -> NDArray[numpy.float64]:
    total = observe(program_of(job.table.source, job.ranks, seed, job.number)).total.astype(float)
    return total * job.ranks / total.sum() if total.any() else total


def _add(
    loads: Mapping[int, dict[Rank, float]], fabric: Fabric, job: ResolvedJob, traffic: NDArray[numpy.float64]
) -> None:
    for source, rows in enumerate(fabric.message_rails(job.hosts, job.rails)):
        pairs = Counter(rows[:, 0].tolist())
        for target, rail, other in rows[traffic[source, rows[:, 0]] > 0].tolist():
            for link in fabric.route(job.hosts[source], job.hosts[target], rail, other)[1:-1]:
                loads[link][job.name, source] += traffic[source, target] / pairs[target]


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


FEEDBACK = 8
"""Trials of feedback, at most."""
MIXED = 3
"""Trials that mix plans, at most."""
AHEAD = 0.15
"""A rank is ahead of its job if it completes more iterations than the slowest by this number of octaves."""
UP = 3.0
"""Priorities that a rank goes up for each octave that it has fallen behind."""
FURTHEST = 1.5
"""Octaves that count at most."""
HISTORY = 8
"""A change is compared with the objective so many changes ago."""
WHOLE_JOB = 0.1
"""Share of changes that move all ranks of a job."""
JOINED = 0.1
"""Share of changes that join or distribute the ranks of a job that have priority 0."""
GUIDED = 0.5
"""Share of other changes that follow contention."""
REPAIR = 0.5
"""While jobs lose, share of changes that raise the priority of all ranks of one of them."""
SMALLEST_LOSS = 0.003
"""Jobs that lose less than this against their isolated run are chosen as if they lost as much."""


@dataclass
class Trial:
    """A plan and what the twin showed of it."""

    plan: Plan
    gains: Mapping[str, float]
    """Improvement over the twin's default run, by job."""
    score: float
    """The objective."""


def _best_for(job: str, seen: Sequence[Trial]) -> Plan:
    return max(seen, key=lambda trial: trial.gains[job]).plan


@dataclass
class Search:
    """Searches for plans on a twin.

    Args:
        twin: The twin.
        contention: Which ranks share links.
        service_levels: Number of service levels that a plan may use.
        limit: Loss of a job beyond which its penalty is larger, as a share.
        rng: Source of random changes.
    """

    twin: Twin
    contention: Contention
    service_levels: int
    limit: float
    rng: random.Random
    offsets: Mapping[str, float] = field(default_factory=dict)
    """Difference between the real improvement and the twin's, by job."""

    def best(self, trials: int, begin: Plan | None = None) -> Trial:
        """The best plan of so many trials, from ``begin`` on or from the best of default, feedback and mixed plans."""
        if begin:
            return self._climbed(self._tried(begin)[0], trials - 1)
        jobs = {job: len(ranks) for job, ranks in self.twin.default.iterations.items()}
        nothing = dict.fromkeys(jobs, 0.0)
        default = Trial(Plan.default(jobs), nothing, objective(nothing, self.limit, self.offsets))
        seen = [default, *self._fed_back(Plan.even(jobs), min(1 + FEEDBACK, trials))]
        seen += self._mixed(seen, min(MIXED, trials + 1 - len(seen)))
        return self._climbed(max(seen, key=lambda trial: trial.score), trials + 1 - len(seen))

    def _tried(self, plan: Plan) -> tuple[Trial, Observation]:
        seen = self.twin.simulate(plan.settings(self.service_levels))
        gains = seen.gains(self.twin.default)
        return Trial(plan, gains, objective(gains, self.limit, self.offsets)), seen

    def _fed_back(self, begin: Plan, trials: int) -> list[Trial]:
        """Trials of a plan, and of more that move all ranks by how far they were ahead or behind in the one before."""
        positions: Mapping[str, Sequence[float]] = begin.priorities
        trial, seen = self._tried(begin)
        trials_done = [trial]
        while len(trials_done) < trials:
            positions = {job: self._moved(job, positions_of_job, seen) for job, positions_of_job in positions.items()}
            trial, seen = self._tried(
                Plan({job: tuple(map(round, positions_of_job)) for job, positions_of_job in positions.items()})
            )
            trials_done.append(trial)
        return trials_done

    def _mixed(self, seen: Sequence[Trial], trials: int) -> list[Trial]:
        """Trials of the plans that were best for each job; then with the default for jobs that lose, while some do."""
        default, tried = seen[0].plan, list[Trial]()
        of_job = {job: _best_for(job, seen) for job in default.priorities}
        while len(tried) < trials:
            joined = frozenset(job for job, plan in of_job.items() if job in plan.joined)
            trial, _ = self._tried(Plan({job: plan.priorities[job] for job, plan in of_job.items()}, joined))
            tried.append(trial)
            losing = [job for job, gain in self._expected(trial).items() if gain < -TOLERATED]
            if all(of_job[job] is default for job in losing):
                break
            of_job |= dict.fromkeys(losing, default)
        return tried

    def _moved(self, job: str, positions: Sequence[float], seen: Observation) -> list[float]:
        """Return new positions of the ranks of a job: not above priority 0, which is for changes of single ranks."""
        needed = max(1, min(self.twin.default.iterations[job]), min(seen.iterations[job]))
        lowest = clipped(-99, self.service_levels)
        moved = []
        for position, iterations in zip(positions, seen.iterations[job], strict=True):
            octaves = max(-FURTHEST, min(FURTHEST, log2(max(1, iterations) / needed)))
            by = octaves if octaves > AHEAD else UP * octaves if octaves < 0 else 0.0
            moved.append(max(lowest, min(0.0, position - by)))
        return moved

    def _climbed(self, begin: Trial, trials: int) -> Trial:
        """Late acceptance from a trial on."""
        best = current = begin
        history = [begin.score] * HISTORY
        for number in range(trials):
            plan = self._changed(current)
            if plan != current.plan:
                trial, _ = self._tried(plan)
                if trial.score >= min(current.score, history[number % HISTORY]):
                    current = trial
                if trial.score > best.score:
                    best = trial
            history[number % HISTORY] = current.score
        return best

    def _changed(self, current: Trial) -> Plan:
        priorities = {job: list(ranks) for job, ranks in current.plan.priorities.items()}
        if self.rng.random() < JOINED:
            return replace(current.plan, joined=current.plan.joined ^ {self.rng.choice(list(priorities))})
        losing = [job for job, gain in self._expected(current).items() if gain < -TOLERATED]
        repair = bool(losing) and self.rng.random() < REPAIR
        if repair or self.rng.random() < WHOLE_JOB:
            job = self.rng.choice(losing if repair else list(priorities))
            by = 1 if repair else self.rng.choice((-1, 1))
            priorities[job] = [clipped(priority + by, self.service_levels) for priority in priorities[job]]
        else:
            for _ in range(self.rng.choice((1, 1, 2, 3))):
                (job, rank), by = self._change(current)
                priorities[job][rank] = clipped(priorities[job][rank] + by, self.service_levels)
        return replace(current.plan, priorities={job: tuple(ranks) for job, ranks in priorities.items()})

    def _expected(self, current: Trial) -> dict[str, float]:
        """The improvement of each job as it is expected in reality."""
        return {job: gain + self.offsets.get(job, 0.0) for job, gain in current.gains.items()}

    def _change(self, current: Trial) -> tuple[Rank, int]:
        """A rank and by how much its priority changes."""
        if self.rng.random() < GUIDED and (victim := self._victim(current)):
            if self.rng.random() < 0.5:
                return victim, self.rng.choice((1, 2, 3))
            return self._aggressor(victim), -self.rng.choice((1, 2, 3))
        ranks = list(self.contention) or [
            (job, rank) for job, of_job in current.plan.priorities.items() for rank in range(len(of_job))
        ]
        return self.rng.choice(ranks), self.rng.choice((-3, -2, -1, 1, 2, 3))

    def _victim(self, current: Trial) -> Rank | None:
        """A rank that holds up a job which loses against its isolated run; None if none shares a link."""
        isolated = self.twin.isolated_gains
        losses = [max(SMALLEST_LOSS, isolated[job] - gain) for job, gain in self._expected(current).items()]
        (job,) = self.rng.choices(list(current.gains), losses)
        ranks = [rank for rank in self.contention if rank[0] == job]
        if not ranks:
            return None
        default = self.twin.default
        slowest = max(1, min(default.iterations[job]))

        def held_up(rank: Rank) -> float:
            """Ranks with much to compute and few iterations hold their job up."""
            ahead = max(1, default.iterations[job][rank[1]]) / slowest
            return sum(self.contention[rank].values()) * (0.1 + default.compute[job][rank[1]]) / ahead**8

        return self.rng.choices(ranks, [held_up(rank) for rank in ranks])[0]

    def _aggressor(self, victim: Rank) -> Rank:
        """A rank that sends over the same links, rather one that computes little: it has time to wait."""
        shared = self.contention[victim]
        compute = self.twin.default.compute
        weights = [much * max(0.05, 1.05 - compute[job][rank]) for (job, rank), much in shared.items()]
        return self.rng.choices(list(shared), weights)[0]
