"""The control loop: simulate a period, pass its measurements to the controller, apply its settings, continue."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.seeds import LARGEST_SEED
from fairlane.core.units import DURATION
from fairlane.inputs.problems import Problems, refusing, validated
from fairlane.model.scenario.checks import late
from fairlane.sim.controller.base import Controller, JobWork, Settings, Steering, Work
from fairlane.sim.controller.episodes import VARIANTS, Episodes, endless, phases
from fairlane.sim.controller.fitting import Continuous, check_jobs, class_levels, fit, judged, unchanged

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario
    from fairlane.results.milestones import Milestones

Mode = Literal["episodes", "online"]
"""A new short simulation per period, or one continuous simulation."""
Phases = Mapping[int, "Scenario"]
"""Scenarios by the period from which on they hold: jobs that arrive and depart."""


@dataclass(frozen=True)
class Outcome:
    """One period."""

    mode: Mode
    """Whether the period is a simulation of its own, or a part of one."""
    period: int
    """Its number, from 0."""
    state: str
    """The controller's state in it."""
    accepted: bool
    """Whether its settings were adopted as the best so far."""
    settings: Settings
    """The settings that applied."""
    treated: Work
    """The measurements with the controller."""
    default: Work | None
    """The measurements of the default run; None without it."""
    isolated: Mapping[str, JobWork]
    """The measurements of the isolated runs; empty without them."""
    reached: Mapping[str, Mapping[str, "Milestones"]] = field(default_factory=dict)
    """Times of completed iterations, ``treated``, ``default`` and ``isolated``: online, in the last period."""

    def improvement(self, job: str) -> float | None:
        """I_Q / I_D - 1; None without an iteration in either run, and in the period in which the job ends online."""
        default = self.default.jobs.get(job) if self.default else None
        treated = self.treated.jobs.get(job)
        return treated.over(default, part=self.mode == "online") if treated else None

    @property
    def jobs(self) -> list[str]:
        """The jobs that ran in it, in any of the runs."""
        default = self.default.jobs if self.default else ()
        return list(dict.fromkeys([*self.treated.jobs, *default, *self.isolated]))

    @property
    def mean_improvement(self) -> float:
        """The mean improvement over jobs."""
        changes = [change for job in self.treated.jobs if (change := self.improvement(job)) is not None]
        return sum(changes) / len(changes) if changes else 0.0


def row_of(outcome: Outcome, job: str) -> dict[str, Any]:
    """One job's part of a period as a row of a table; None for what did not run."""
    isolated, treated = outcome.isolated.get(job), outcome.treated.jobs.get(job)
    default = outcome.default.jobs.get(job) if outcome.default else None

    def seconds(done: JobWork | None) -> float | None:
        return None if done is None else outcome.treated.seconds if done.seconds is None else done.seconds

    return {
        "period": outcome.period,
        "job": job,
        "state": outcome.state,
        "accepted": outcome.accepted,
        "seconds": seconds(treated),
        "iterations": treated.done if treated else None,
        "advance": treated.fractional if treated else None,
        "default_iterations": default.done if default else None,
        "default_advance": default.fractional if default else None,
        "default_seconds": seconds(default),
        "isolated_iterations": isolated.done if isolated else None,
        "isolated_advance": isolated.fractional if isolated else None,
        "isolated_seconds": seconds(isolated),
        "improvement": outcome.improvement(job),
    }


def _phases_of(scenario: "Scenario | Phases", mode: Mode, span: int, periods: int) -> Phases:
    """By the first period in which each holds. In episodes the jobs of one scenario come and go between them.

    Raises ``ScenarioError`` if no phase begins at period 0, or one has no jobs.
    """
    if isinstance(scenario, Mapping):
        by_start = dict(sorted(scenario.items()))
    else:
        by_start = {0: scenario} if mode == "online" else phases(scenario, span, periods)
    wrong = [start for start in by_start if start < 0]
    if wrong:
        raise ScenarioError(Problem("phases", "no number of a period", wrong[0], "0 and later"))
    if 0 not in by_start:
        raise ScenarioError(Problem("phases", "none begins with the first period", [*by_start], "period 0 and later"))
    empty = next((start for start, phase in by_start.items() if not phase.jobs), None)
    if empty is not None:
        raise ScenarioError(Problem("jobs", f"no job is there in period {empty}", allowed="a job in every period"))
    return by_start


def control(
    scenario: "Scenario | Phases",
    controller: Controller | str | Mapping[str, Any],
    *,
    mode: Mode = "episodes",
    period: str | int = "60 ms",
    periods: int = 500,
    seed: int = 1,
    variants: int = VARIANTS,
    draws: int | None = None,
    default: bool = True,
    isolated: bool = False,
    threads: int | None = None,
) -> Iterator[Outcome]:
    """Runs ``controller`` on ``scenario``, period by period.

    Arguments are checked at once; periods are simulated as their outcomes are read.

    Args:
        scenario: The scenario, or scenarios by the first period in which each applies.
        controller: Decides the settings: an object, a name, or a table with the ``name`` and parameters.
        mode: ``episodes`` or ``online``.
        period: Length of a period: "60 ms", or picoseconds.
        periods: Number of periods.
        seed: Seed of the trace variants of periods.
        variants: Number of trace variants of each job; for episodes.
        draws: Number of different combinations of variants; None for a new one each period. For episodes.
        default: Whether to simulate the default run; without it there is no improvement.
        isolated: Whether to simulate isolated runs, too.
        threads: Episodes: number of concurrent simulations; None for the number of cores. Online: number of threads of
            each simulation, 1 to 32; None for the free cores where the fabric is large enough to gain. Results do not
            depend on it.

    Raises:
        ScenarioError: The scenario is wrong, or does not suit the controller.
        RunError: A simulation cannot go on.
    """
    made = controller_of(controller)
    options = {"period": period, "periods": periods, "seed": seed, "variants": variants}
    with refusing():
        span = validated(_Options, {**options, "draws": draws, "threads": threads}).period
    _check(mode_of(mode), span, periods, scenario, draws)
    if made.cost >= span:
        allowed = f"less than the period, {DURATION.format(span)}"
        raise ScenarioError(
            Problem("controller.cost", "no settings would ever be in effect", DURATION.format(made.cost), allowed)
        )
    there = _phases_of(scenario, mode, span, periods)
    check_jobs(there.values(), made)
    fitted = {start: fit(phase, made) for start, phase in there.items()}
    if mode == "online":
        return _online(fitted[0], made, span, periods, default=default, isolated=isolated, threads=threads)
    cores = len(os.sched_getaffinity(0)) if threads is None else threads
    episodes_of = partial(
        Episodes, period=span, seed=seed, variants=variants, draws=draws, threads=cores, cost=made.cost
    )
    return _phase_by_phase(fitted, made, periods, episodes_of, default=default, isolated=isolated)


def controller_of(given: Controller | str | Mapping[str, Any]) -> Controller:
    """A controller by its name or a table with ``name`` and parameters; raises ``ScenarioError``."""
    from fairlane.sim.controller import CONTROLLERS

    with refusing("controller"):
        controller: Controller = CONTROLLERS.read(given)
    return controller


def _phase_by_phase(
    fitted: "Mapping[int, Scenario]",
    controller: Controller,
    periods: int,
    episodes_of: "Callable[[Scenario], Episodes]",
    *,
    default: bool,
    isolated: bool,
) -> Iterator[Outcome]:
    ever: dict[str, int | None] = {}
    for phase in fitted.values():
        ever |= {name: _more(ever.get(name, 0), job.ranks) for job in phase.jobs for name in job.names()}
    for start, end in pairwise([*fitted, periods]):
        episodes = episodes_of(fitted[start])
        controller.prepare(fitted[start])
        try:
            steps = range(start, min(end, periods))
            ranks = {name: known or episodes.jobs.get(name) for name, known in ever.items()}
            yield from _episodes(episodes, controller, steps, ranks, default=default, isolated=isolated)
        finally:
            episodes.close()


def _more(before: int | None, ranks: int | None) -> int | None:
    """The maximum number of ranks of a job over phases; None if it is not known, as of a trace."""
    return None if before is None or ranks is None else max(before, ranks)


def mode_of(name: str) -> Mode:
    """The mode of this name; raises ``ScenarioError`` if there is none."""
    if name not in get_args(Mode):
        raise ScenarioError(Problem.unknown("mode", "mode", name, get_args(Mode), name))
    return cast("Mode", name)


class _Options(BaseModel):
    """The arguments of ``control`` besides scenario, controller and mode."""

    model_config = ConfigDict(strict=True)

    period: Annotated[int, BeforeValidator(lambda it: DURATION.parse(it) if isinstance(it, str) else it), Field(gt=0)]
    periods: int = Field(ge=1)
    seed: int = Field(ge=0, le=LARGEST_SEED)
    variants: int = Field(ge=1)
    draws: int | None = Field(ge=1)
    threads: int | None = Field(ge=1)


def _check(mode: Mode, span: int, periods: int, scenario: "Scenario | Phases", draws: int | None) -> None:
    if draws is not None and mode == "online":
        raise ScenarioError(Problem("draws", "has an effect in episodes only", draws, 'nothing, or mode = "episodes"'))
    if isinstance(scenario, Mapping):
        if mode == "online" and len(scenario) > 1:
            message = "one simulation has one scenario, whose jobs come and go by start and stop"
            raise ScenarioError(Problem("mode", message, mode, "episodes"))
        return
    problems = list(late(scenario, span * periods, 1 if mode == "online" else span))
    if mode == "episodes" and (problem := endless(scenario)):
        problems.append(problem)
    if problems:
        raise scenario.error(Problems(*problems))


def _episodes(
    episodes: Episodes,
    controller: Controller,
    steps: range,
    ever: Mapping[str, int | None],
    *,
    default: bool,
    isolated: bool,
) -> Iterator[Outcome]:
    settings = controller.start(episodes.jobs) if steps.start == 0 else controller.rearrange(episodes.jobs)
    unset = before = Settings()
    for period in steps:
        judged(settings, controller, ever, class_levels(episodes.resolved))
        combination = episodes.combination(period)
        untouched = episodes.together(unset, combination) if default else None
        alone = [episodes.alone(at, variant) for at, variant in enumerate(combination)] if isolated else []
        treated = episodes.together(settings, combination, before if controller.cost else settings).result()
        before = settings
        state, used = controller.state, settings
        settings = controller.observe(treated)
        apart = {name: job for future in alone for name, job in future.result().jobs.items()}
        reference = untouched.result() if untouched else None
        yield Outcome("episodes", period, state, controller.accepted, used, treated, reference, apart)


def _online(
    scenario: "Scenario",
    controller: Controller,
    span: int,
    periods: int,
    *,
    default: bool,
    isolated: bool,
    threads: int | None,
) -> Iterator[Outcome]:
    resolved = scenario.resolve()
    ever = {job.name: job.ranks for job in resolved.jobs}
    treated = Continuous(resolved, span, threads)
    untouched = treated if default else None  # one simulation until the controller sets something
    controller.prepare(scenario)
    alone = [Continuous(resolved.alone(job), span, threads) for job in range(len(resolved.jobs))] if isolated else []
    steering = Steering(controller, treated.jobs)
    for period in range(periods):
        used = judged(steering.begin(treated.jobs), controller, ever, class_levels(resolved))
        if untouched is treated and not unchanged(resolved, used):
            untouched = treated.fork()
        work = treated.run(None if untouched is treated else used, controller.cost)
        reference = work if untouched is treated else untouched.run() if untouched else None
        apart = {name: job for job_alone in alone for name, job in job_alone.run().jobs.items()}
        state = controller.state
        accepted = steering.end(work)
        reached = {}
        if period == periods - 1:
            reached["treated"] = treated.milestones()
            reached["default"] = untouched.milestones() if untouched else {}
            reached["isolated"] = {name: of for job_alone in alone for name, of in job_alone.milestones().items()}
        yield Outcome("online", period, state, accepted, used, work, reference, apart, reached)
