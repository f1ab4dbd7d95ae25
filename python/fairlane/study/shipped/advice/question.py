"""An application among the jobs of a scenario, and its alternatives."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, product
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario import Resolved, Scenario
from fairlane.study.pinned import pin
from fairlane.study.plan import decided_of
from fairlane.study.tasks.task import Task

PLACEMENTS = ("packed", "spread", "random")
"""Placements that are tried."""
ALL = "all"
"""All adapters of a host: assigned to its processes in a random order, as InfiniPath does; or used message by message
by each process, where there are fewer processes than adapters."""


@dataclass(frozen=True)
class Choice:
    """One alternative."""

    rails: str
    """``all``, or the one adapter, as ``only 0``."""
    service_level: int
    placement: str


@dataclass(frozen=True)
class Point:
    """An alternative with a seed, resolved: the hosts of all jobs, and the adapters through which they send."""

    choice: Choice
    seed: int
    decided: Resolved
    pinned: Task


@dataclass(frozen=True)
class Question:
    """An application, its neighbours, and its alternatives."""

    file: Path
    assignments: tuple[str, ...]
    """Changes of the scenario for all alternatives."""
    at: int
    """The application's number among the jobs of the file."""
    choices: Sequence[Choice]

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario before any choice."""
        return Scenario.load(self.file, set=self.assignments)

    @cached_property
    def name(self) -> str:
        """The application's name."""
        return self.scenario.jobs[self.at].names()[0]

    @cached_property
    def rails(self) -> int:
        """The most adapters of a host."""
        return max(_adapters_of(self.scenario))

    @property
    def number(self) -> int:
        """The application's number where copies of jobs count."""
        return sum(job.count for job in self.scenario.jobs[: self.at])

    @property
    def reference(self) -> Choice:
        """The alternative that a model's simulations have: all adapters, random hosts."""
        return next(choice for choice in self.choices if choice.placement == "random")

    def point(self, choice: Choice, seed: int, duration: str | None = None) -> Point:
        """The scenario with an alternative and a seed."""
        own = self.scenario.jobs[self.at]
        per_host = own.ranks_per_host or (own.placement or self.scenario.placement).ranks_per_host
        changes = [
            f"jobs[{self.at}].rails={self._policy(choice, per_host)}",
            f"jobs[{self.at}].service_level={choice.service_level}",
            f'jobs[{self.at}].placement={{ name = "{choice.placement}", ranks_per_host = {per_host} }}',
        ]
        made = Scenario.load(
            self.file, set=[*self.assignments, *changes], seed=seed, duration=duration
        ).with_background()
        decided = decided_of(made)
        where = f"{choice.rails}, level {choice.service_level}, {choice.placement}, seed {seed}"
        return Point(choice, seed, decided, pin(made, decided, str(self.file.resolve().parent), where))

    def _policy(self, choice: Choice, per_host: int) -> str:
        """The job's ``rails``, as in a file."""
        if choice.rails != ALL:
            return f"{{ {choice.rails.replace(' ', ' = ')} }}"
        return '{ policy = "by_source", order = "random" }' if per_host >= self.rails else '"round_robin"'


def ask(
    file: Path, job: str | None, cap: str | None, levels: Sequence[int] | None, assignments: Sequence[str]
) -> Question:
    """Reads a scenario. Raises ``ScenarioError`` if it or an option is wrong."""
    scenario = Scenario.load(file, set=assignments)
    at = _number(scenario, job, file)
    changes = [*assignments, *([f'jobs[{at}].power_cap="{cap}"'] if cap else [])]
    try:
        capped = Scenario.load(file, set=changes) if cap else scenario
    except ScenarioError as error:
        raise ScenarioError(_of_cap(problem) for problem in error.problems) from None
    choices = _choices(capped, levels, file)
    return Question(file, (*changes, *_computing(capped)), at, choices)


def _of_cap(problem: Problem) -> Problem:
    """A problem with the cap, by the name of the option that it was given with."""
    return replace(problem, key="--cap", file=None) if problem.key.endswith("power_cap") else problem


def _number(scenario: Scenario, job: str | None, file: Path) -> int:
    """The number of the application among the scenario's jobs."""
    names = [table.name or table.kind for table in scenario.jobs]
    if job is not None and job not in names:
        raise ScenarioError(Problem.unknown("--job", "job of the scenario", job, names, job))
    at = 0 if job is None else names.index(job)
    if scenario.jobs[at].count > 1:
        raise ScenarioError(
            Problem(f"jobs[{at}].count", "advice is for one job", scenario.jobs[at].count, "1", file=str(file))
        )
    return at


def _adapters_of(scenario: Scenario) -> list[int]:
    adapters: list[int] = Fabric.build(scenario.fabric.spec).adapters_of_hosts.tolist()
    return adapters


def _choices(scenario: Scenario, levels: Sequence[int] | None, file: Path) -> list[Choice]:
    """Every alternative."""
    have = len(set(decided_of(scenario).tables["qos"]["sl2vl"]))
    wrong = [level for level in levels or () if not 0 <= level < have]
    if wrong:
        words = "the scenario has no such service level"
        raise ScenarioError(Problem("--level", words, wrong[0], f"0 to {have - 1}", file=str(file)))
    adapters = _adapters_of(scenario)
    rails = [ALL] if max(adapters) > 1 else []
    rails += [f"only {rail}" for rail in range(min(adapters))]
    wanted = list(dict.fromkeys(levels or range(have)))
    return [Choice(*keys) for keys in product(rails, wanted, PLACEMENTS)]


def _computing(scenario: Scenario) -> list[str]:
    """Compute times to be calibrated, calibrated once: all alternatives have the same."""
    unknown = [at for at, job in enumerate(scenario.jobs) if job.workload and job.workload.compute is None]
    if not unknown:
        return []
    first = list(accumulate((job.count for job in scenario.jobs), initial=0))
    resolved, written = scenario.resolve(), tomllib.loads(scenario.text)["jobs"]
    changes = []
    for at in unknown:
        time, workload = f'"{resolved.jobs[first[at]].compute} ps"', written[at]["workload"]
        plain = isinstance(workload, str)
        change = f'={{ name = "{workload}", compute = {time} }}' if plain else f".compute={time}"
        changes.append(f"jobs[{at}].workload{change}")
    return changes
