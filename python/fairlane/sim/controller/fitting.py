"""Fitting a controller to a scenario: lanes for its service levels, its settings and measurements in a simulation."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy
from numpy.typing import NDArray

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.tables import Work as Measured
from fairlane.inputs.problems import Problems
from fairlane.model.fabric.graph import columns
from fairlane.model.scenario import Resolved, ResolvedJob
from fairlane.model.scenario.resolve import without_strategy
from fairlane.results.milestones import milestones
from fairlane.sim.controller.base import Controller, JobWork, Positions, Settings, Work, problems_of
from fairlane.sim.simulation import Simulation

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario
    from fairlane.model.scenario.models import Arbiter
    from fairlane.results.milestones import Milestones


def check_jobs(scenarios: Iterable["Scenario"], controller: Controller) -> None:
    """Raises ``ScenarioError`` if the controller's parameters name what no job of these scenarios has."""
    jobs = {name: job.ranks for scenario in scenarios for job in scenario.jobs for name in job.names()}
    problems = [problem.under("controller") for problem in controller.problems(jobs)]
    if problems:
        raise ScenarioError(problems)


def fit(scenario: "Scenario", controller: Controller) -> "Scenario":
    """The scenario with a lane for each of the controller's service levels, where it does not specify them itself.

    Lanes without a weight get weight 1: only the controller uses them, and it sets the weights.

    Raises ``ScenarioError`` if it has fewer service levels, or lanes for fewer, or an arbiter without weights, or uses
    levels that the controller assigns.
    """
    if problems := list(_unsuitable(scenario, controller)):
        raise scenario.error(Problems(*problems))
    qos = scenario.qos
    if not controller.needs_weights or qos.sl2vl is not None:
        return scenario
    count = controller.service_levels if qos.service_levels is None else qos.service_levels
    arbiter = _with_weights(qos.arbiter, count)
    return scenario.model_copy(update={"qos": qos.model_copy(update={"service_levels": count, "arbiter": arbiter})})


def _unsuitable(scenario: "Scenario", controller: Controller) -> Iterator[Problem]:
    """Yield the keys of the scenario that do not suit the controller."""
    qos, wanted = scenario.qos, controller.service_levels
    unsuited = f"does not suit the controller {controller.name}, which sets weights"
    if controller.gives_levels:
        yield from _taken(scenario, controller.name)
    if not controller.needs_weights:
        return
    if qos.strategy is not None:
        yield Problem("qos.strategy", unsuited, qos.strategy)
    elif qos.arbiter.name != "weighted_round_robin":
        yield Problem("qos.arbiter", unsuited, qos.arbiter.name, "weighted_round_robin")
    message = f"the controller {controller.name} uses {wanted} service levels: give it `service_levels = {{}}`"
    if qos.sl2vl is not None and (count := len(qos.sl2vl)) < wanted:
        yield Problem("qos.sl2vl", message.format(count), qos.sl2vl, f"a lane for each of {wanted} levels at least")
    elif qos.sl2vl is None and qos.service_levels is not None and qos.service_levels < wanted:
        yield Problem(
            "qos.service_levels", message.format(qos.service_levels), qos.service_levels, f"at least {wanted}"
        )


def _taken(scenario: "Scenario", controller: str) -> Iterator[Problem]:
    """Yield the keys of the scenario that use a level other than 0."""
    message = f"the controller {controller} gives out all levels but 0"
    if scenario.qos.default:
        yield Problem("qos.default", message, scenario.qos.default, "0")
    for kind, level in scenario.qos.kinds:
        if level:
            yield Problem(f"qos.kinds.{kind}", message, level, "0")
    strategy = scenario.qos.strategy
    if strategy is not None and len(without_strategy(scenario).qos.sl2vl or ()) > 1:
        yield Problem("qos.strategy", message, strategy, "none, or no strategy")
    for at, job in enumerate(scenario.jobs):
        if job.service_level:
            yield Problem(f"jobs[{at}].service_level", message, job.service_level, "0")
        of_ranks = job.service_levels
        if of_ranks and any((of_ranks.default, *of_ranks.ranks.values())):
            yield Problem(f"jobs[{at}].service_levels", message, allowed="0 for every rank, or none")


def _with_weights(arbiter: "Arbiter", lanes: int) -> "Arbiter":
    """The arbiter with a weight for so many lanes at least, if it has weights at all."""
    weights = arbiter.parameters.get("weights")
    if not isinstance(weights, list) or len(weights) >= lanes:
        return arbiter
    values = {"name": arbiter.name, **arbiter.parameters, "weights": [*weights, *[1] * (lanes - len(weights))]}
    return type(arbiter).model_validate(values)


def judged(
    settings: Settings, controller: Controller, jobs: Mapping[str, int | None], classes: Collection[str]
) -> Settings:
    """The settings that a controller returned.

    ``jobs`` has all jobs of the run, and their ranks if known, ``classes`` the traffic classes of the scenario. Raises
    ``ScenarioError`` if the settings name unknown jobs, ranks, classes, levels or weights.
    """
    wrong = problems_of(settings, controller.service_levels, jobs, classes=classes)
    problems = [problem.under("controller") for problem in wrong]
    if problems:
        raise ScenarioError(problems)
    return settings


def class_levels(resolved: Resolved) -> dict[str, int | None]:
    """The service level of each traffic class of a scenario."""
    return {
        traffic_class["name"]: traffic_class["service_level"]
        for traffic_class in resolved.tables["qos"].get("classes", ())
    }


def _lane_weights(resolved: Resolved, weights: tuple[int, ...]) -> list[int]:
    """Weights of lanes from those of service levels; of levels that share a lane the maximum."""
    qos = resolved.tables["qos"]
    lanes = [1] * (qos["lanes"] or max(qos["sl2vl"]) + 1)
    for lane, weight in zip(qos["sl2vl"], weights, strict=False):
        lanes[lane] = max(lanes[lane], weight)
    return lanes


def unchanged(resolved: Resolved, settings: Settings) -> bool:
    """Whether these settings are the scenario's own: no rank or class has another level, lanes have its weights."""
    own_levels = class_levels(resolved)
    if any(own_levels[name] != level for name, level in settings.classes.items()):
        return False
    if any(settings.levels.values()) or not settings.weights:
        return not any(settings.levels.values())
    asked = _lane_weights(resolved, settings.weights)
    weights = resolved.tables["qos"]["arbiter"]["params"].get("weights", 1)
    return asked == ([weights] * len(asked) if isinstance(weights, int) else weights)


def with_settings(resolved: Resolved, settings: Settings) -> Resolved:
    """The scenario with these settings from its beginning on."""
    tables = dict(resolved.tables)
    if settings.weights:
        arbiter = tables["qos"]["arbiter"]
        weights = _lane_weights(resolved, settings.weights)
        params = {**arbiter["params"], "weights": weights}
        tables["qos"] = {**tables["qos"], "arbiter": {**arbiter, "params": params}}
    if settings.classes:
        classes = tables["qos"]["classes"]
        changed = [
            {
                **traffic_class,
                "service_level": settings.classes.get(traffic_class["name"], traffic_class["service_level"]),
            }
            for traffic_class in classes
        ]
        tables["qos"] = {**tables["qos"], "classes": changed}
    jobs = [
        replace(job, rank_levels={rank: level for rank, level in levels.items() if rank < job.ranks})
        if (levels := settings.levels.get(job.name)) is not None
        else job
        for job in resolved.jobs
    ]
    return replace(resolved, tables=tables, jobs=tuple(jobs))


def apply(simulation: Simulation, settings: Settings) -> None:
    """Applies the settings to a running simulation; for what they do not set, the scenario's hold again."""
    scenario = simulation.scenario
    simulation.set_service_levels({job.name: settings.levels.get(job.name, job.rank_levels) for job in scenario.jobs})
    for name, level in class_levels(scenario).items():
        simulation.set_class_service_level(name, settings.classes.get(name, level))
    if settings.weights:
        simulation.set_weights(_lane_weights(scenario, settings.weights))
    elif "weights" in (params := scenario.tables["qos"]["arbiter"]["params"]):
        simulation.set_weights(params["weights"])


class Counts:
    """A simulation's counters at an instant; the work of a period is the difference of two."""

    def __init__(self, simulation: Simulation, before: "Counts | None" = None) -> None:
        self._jobs = simulation.scenario.jobs
        self._now = simulation.now
        self._ranks = columns(simulation.engine.table("ranks"))
        marks, marked = (self._ranks[name].astype(float) for name in ("iterations", "last_mark"))
        if before is None:
            since = numpy.array([self._jobs[job].start for job in self._ranks["job"]], float)
            self._positions = Positions.begin(marks, numpy.where(marks > 0, marked, since))
        else:
            self._positions = before._positions.then(marks, marked, numpy.full(len(marks), float(self._now)))

    def present(self) -> dict[str, int]:
        """The jobs that are present, with their number of ranks."""
        at = {number: numpy.flatnonzero(self._ranks["job"] == number) for number in range(len(self._jobs))}
        there = [job.start <= self._now < self._end(job, at[number]) for number, job in enumerate(self._jobs)]
        return {job.name: job.ranks for job, is_there in zip(self._jobs, there, strict=True) if is_there}

    def since(self, before: "Counts | None") -> Work:
        """The work between ``before`` (None: the start) and now, of the jobs that were present."""
        begin = before._now if before else 0
        advance = self._positions.advance(before._positions) if before else self._positions.at
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
                advance=tuple(advance[at].tolist()),
            )
        return Work((self._now - begin) * 1e-12, jobs)

    def _end(self, job: ResolvedJob, at: NDArray[numpy.intp]) -> float:
        """Return the time at which a job's programs ended or it was stopped, ps; for its ranks' rows."""
        ended = int(self._ranks["finished_at"][at].max()) if self._ranks["finished"][at].all() else inf
        return ended if job.stop is None else min(ended, job.stop)


class Continuous:
    """A simulation that is run period by period, in which service levels and weights change while the jobs run."""

    def __init__(self, resolved: "Resolved", period: int, threads: int | None = None) -> None:
        self._simulation = Simulation(resolved, threads=threads)
        self._period, self._periods = period, 0
        self._set: object = None
        self._before = Counts(self._simulation)

    @property
    def jobs(self) -> dict[str, int]:
        """The jobs that are present now, with their number of ranks."""
        return self._before.present()

    def milestones(self) -> dict[str, "Milestones"]:
        """Times of completed iterations of each job since the beginning of the first period."""
        jobs = self._simulation.scenario.jobs
        reached = milestones(Measured.of(self._simulation.engine), [job.start for job in jobs])
        return {job.name: reached[number] for number, job in enumerate(jobs)}

    def fork(self) -> "Continuous":
        """A second simulation that continues from here independently."""
        other = copy(self)
        other._simulation = self._simulation.fork()
        return other

    def run(self, settings: Settings | None = None, cost: int = 0) -> Work:
        """The next period, with these settings from ``cost`` ps after its beginning on; None changes nothing.

        Settings that hold already are not set again: arbiters would restart their rounds.
        """
        if settings is not None and settings.key != self._set:
            if cost:
                self._simulation.run_until(self._periods * self._period + cost)
            apply(self._simulation, settings)
            self._set = settings.key
        self._periods += 1
        self._simulation.run_until(self._periods * self._period)
        now = Counts(self._simulation, self._before)
        work, self._before = now.since(self._before), now
        return work
