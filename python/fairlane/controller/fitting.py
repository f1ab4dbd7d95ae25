"""Fitting a controller to a scenario: lanes for its service levels, and its settings in the simulator's terms."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy
from numpy.typing import NDArray

from fairlane.controller.base import MOST_WEIGHT, Controller, JobWork, Settings, Work
from fairlane.errors import Problem, ScenarioError
from fairlane.fabric import columns
from fairlane.inputs.problems import Problems
from fairlane.scenario import Resolved, ResolvedJob
from fairlane.simulation import Simulation

if TYPE_CHECKING:
    from fairlane.scenario import Scenario
    from fairlane.scenario.models import Arbiter

__all__ = ["Counts", "apply", "check_jobs", "fit", "judged", "with_settings"]


def check_jobs(scenarios: Iterable["Scenario"], controller: Controller) -> None:
    """Raises ``ScenarioError`` if the controller's parameters name what no job of these scenarios has."""
    jobs = {name: job.ranks for scenario in scenarios for job in scenario.jobs for name in job.names()}
    problems = [problem.under("controller") for problem in controller.problems(jobs)]
    if problems:
        raise ScenarioError(problems)


def fit(scenario: "Scenario", controller: Controller) -> "Scenario":
    """The scenario with a lane for each of the controller's service levels, where it says nothing about them itself.

    Lanes that its arbiter has no weight for get 1: nobody uses them but the controller, which sets the weights.

    Raises ``ScenarioError`` if it has fewer service levels, or lanes for fewer, or an arbiter without weights, or uses
    levels that the controller gives away.
    """
    qos = scenario.qos
    if controller.needs_weights and qos.strategy is not None:
        problem = Problem(
            "qos.strategy", f"does not suit the controller {controller.name}, which sets weights", qos.strategy
        )
        raise scenario.error(Problems(problem))
    if controller.needs_weights and qos.arbiter.name != "weighted_round_robin":
        allowed = "weighted_round_robin, whose weights it sets"
        problem = Problem("qos.arbiter", f"does not suit the controller {controller.name}", qos.arbiter.name, allowed)
        raise scenario.error(Problems(problem))
    if controller.gives_levels and (taken := list(_taken(scenario, controller.name))):
        raise scenario.error(Problems(*taken))
    if not controller.needs_weights:
        return scenario
    wanted = controller.service_levels
    if qos.sl2vl is not None:
        if (own := len(qos.sl2vl)) < wanted:
            words = f"the controller {controller.name} uses {wanted} service levels: give it `service_levels = {own}`"
            allowed = f"a lane for each of {wanted} levels at least"
            raise scenario.error(Problems(Problem("qos.sl2vl", words, qos.sl2vl, allowed)))
        return scenario
    own = wanted if qos.service_levels is None else qos.service_levels
    if own < wanted:
        words = f"the controller {controller.name} uses {wanted}: give it `service_levels = {own}`"
        raise scenario.error(Problems(Problem("qos.service_levels", words, own, f"at least {wanted}")))
    arbiter = _with_weights(qos.arbiter, own)
    return scenario.model_copy(update={"qos": qos.model_copy(update={"service_levels": own, "arbiter": arbiter})})


def _taken(scenario: "Scenario", controller: str) -> Iterator[Problem]:
    """What of the scenario uses a level besides the first."""
    words = f"the controller {controller} gives out all levels but 0"
    if scenario.qos.default:
        yield Problem("qos.default", words, scenario.qos.default, "0")
    for kind, level in scenario.qos.kinds:
        if level:
            yield Problem(f"qos.kinds.{kind}", words, level, "0")
    for at, job in enumerate(scenario.jobs):
        if job.service_level:
            yield Problem(f"jobs[{at}].service_level", words, job.service_level, "0")
        of_ranks = job.service_levels
        if of_ranks and any((of_ranks.default, *of_ranks.ranks.values())):
            yield Problem(f"jobs[{at}].service_levels", words, allowed="0 for every rank, or none")


def _with_weights(arbiter: "Arbiter", lanes: int) -> "Arbiter":
    """The arbiter with a weight for so many lanes at least, if it has weights at all."""
    weights = arbiter.parameters.get("weights")
    if not isinstance(weights, list) or len(weights) >= lanes:
        return arbiter
    values = {"name": arbiter.name, **arbiter.parameters, "weights": [*weights, *[1] * (lanes - len(weights))]}
    return type(arbiter).model_validate(values)


def judged(settings: Settings, controller: Controller, jobs: Mapping[str, int | None]) -> Settings:
    """The settings that a controller has answered with; ``jobs`` has all that there ever are, and their ranks if known.

    Raises ``ScenarioError`` if they are about jobs, ranks, levels or weights that there are not.
    """
    most = controller.service_levels
    problems: list[Problem] = []
    if len(settings.weights) > most:
        problems.append(Problem("weights", f"has {len(settings.weights)} of them", allowed=f"{most} at most"))
    for level, weight in enumerate(settings.weights):
        if not 1 <= weight <= MOST_WEIGHT:
            problems.append(Problem(f"weights[{level}]", "out of range", weight, f"1 to {MOST_WEIGHT}"))
    for job, levels in settings.levels.items():
        if job not in jobs:
            problems.append(Problem.unknown(f"levels.{job}", "job", job, list(jobs)))
            continue
        ranks = jobs[job]
        for rank, level in levels.items():
            if ranks is not None and not 0 <= rank < ranks:
                problems.append(Problem(f"levels.{job}", f"has no rank {rank}", allowed=f"0 to {ranks - 1}"))
            if not 0 <= level < most:
                problems.append(Problem(f"levels.{job}.{rank}", "out of range", level, f"0 to {most - 1}"))
    if problems:
        raise ScenarioError(problem.under("controller") for problem in problems)
    return settings


def _lane_weights(resolved: Resolved, weights: tuple[int, ...]) -> list[int]:
    """Weights of lanes from those of service levels; of levels that share a lane the greatest counts."""
    qos = resolved.tables["qos"]
    lanes = [1] * (qos["lanes"] or max(qos["sl2vl"]) + 1)
    for lane, weight in zip(qos["sl2vl"], weights, strict=False):
        lanes[lane] = max(lanes[lane], weight)
    return lanes


def with_settings(resolved: Resolved, settings: Settings) -> Resolved:
    """The scenario with these settings from its beginning on."""
    tables = dict(resolved.tables)
    if settings.weights:
        arbiter = tables["qos"]["arbiter"]
        weights = _lane_weights(resolved, settings.weights)
        params = {**arbiter["params"], "weights": weights}
        tables["qos"] = {**tables["qos"], "arbiter": {**arbiter, "params": params}}
    jobs = [
        replace(job, rank_levels={rank: level for rank, level in levels.items() if rank < job.ranks})
        if (levels := settings.levels.get(job.name)) is not None
        else job
        for job in resolved.jobs
    ]
    return replace(resolved, tables=tables, jobs=tuple(jobs))


def apply(simulation: Simulation, settings: Settings) -> None:
    """Gives the settings to a simulation under way; where they say nothing, the scenario's hold again."""
    scenario = simulation.scenario
    simulation.set_service_levels({job.name: settings.levels.get(job.name, job.rank_levels) for job in scenario.jobs})
    if settings.weights:
        simulation.set_weights(_lane_weights(scenario, settings.weights))
    elif "weights" in (params := scenario.tables["qos"]["arbiter"]["params"]):
        simulation.set_weights(params["weights"])


class Counts:
    """A simulation's counters at an instant; the work of a period is the difference of two."""

    def __init__(self, simulation: Simulation) -> None:
        self._jobs = simulation.scenario.jobs
        self._now = simulation.now
        self._ranks = columns(simulation.engine.table("ranks"))

    def present(self) -> dict[str, int]:
        """The jobs that are there, with their number of ranks."""
        at = {number: numpy.flatnonzero(self._ranks["job"] == number) for number in range(len(self._jobs))}
        there = [job.start <= self._now < self._end(job, at[number]) for number, job in enumerate(self._jobs)]
        return {job.name: job.ranks for job, is_there in zip(self._jobs, there, strict=True) if is_there}

    def since(self, before: "Counts | None") -> Work:
        """What was done between ``before`` (None: the start) and now, by the jobs that were there."""
        begin = before._now if before else 0
        column = {
            name: self._ranks[name] - (before._ranks[name] if before else 0)
            for name in ("iterations", "compute", "communication")
        }
        jobs = {}
        for number, job in enumerate(self._jobs):
            at = numpy.flatnonzero(self._ranks["job"] == number)
            there = min(self._now, self._end(job, at)) - max(begin, job.start)
            if there <= 0:
                continue
            least = int(before._ranks["iterations"][at].min()) if before else 0
            jobs[job.name] = JobWork(
                iterations=tuple(column["iterations"][at].tolist()),
                compute=tuple((column["compute"][at] * 1e-12).tolist()),
                waiting=tuple((column["communication"][at] * 1e-12).tolist()),
                progress=int(self._ranks["iterations"][at].min()) - least,
                seconds=there * 1e-12,
            )
        return Work((self._now - begin) * 1e-12, jobs)

    def _end(self, job: ResolvedJob, at: NDArray[numpy.intp]) -> float:
        """When a job's programs ended or it was stopped, ps; for its ranks' rows."""
        ended = int(self._ranks["finished_at"][at].max()) if self._ranks["finished"][at].all() else inf
        return ended if job.stop is None else min(ended, job.stop)
