"""The search for a plan on the twin: feedback that moves all ranks at once, plans mixed from it, then single changes.

Feedback distributes all ranks over the levels of priority 0, and lowers the priority of ranks that are ahead of their
job, in proportion to how far ahead they are. Mixed plans have for each job the plan that was best for it, and the
default for jobs that lose by that. Single changes begin with the best of all these, or with the default if each costs
some job too much. They are accepted by late acceptance (E. K. Burke, Y. Bykov, European Journal of Operational
Research 258, 2017): if the objective is at least that of ``HISTORY`` changes ago. Half of the changes are guided by
contention: a rank of a job that loses much against its isolated run gets more priority, or one that shares links with
it gets less. While jobs lose against the default, half of the changes raise all ranks of one of them.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log2

from fairlane.controller.digital_twin.contention import Contention, Rank
from fairlane.controller.digital_twin.plan import TOLERATED, Plan, clipped, objective
from fairlane.controller.digital_twin.twin import Observation, Twin

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
