"""What is simulated: a scenario with open-loop load, at every load and seed; and how options say so."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from pydantic import BaseModel

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.view import Fabric
from fairlane.inputs.problems import Problems, validated
from fairlane.scenario import Scenario
from fairlane.scenario.models import Job
from fairlane.scenario.resolve import building
from fairlane.tasks.pools import affordable
from fairlane.units import DURATION
from fairlane.workload.open_loop import OpenLoop

WARM_UP = 0.375
"""The part of the simulated time that is warm-up unless another is given."""
DURATION_OF_ADDED_LOAD = "400 us"
"""Simulated time where the scenario has no open-loop job and another is not given."""
_OPTION = "--load"
_Model = TypeVar("_Model", bound=BaseModel)
_ALLOWED = "a range as 0.05..1, or loads as 0.1,0.2,0.5; each above 0 and at most 1"


def loads_of(given: str, count: int) -> list[float]:
    """The loads of a range "0.05..1", ``count`` of them equally spaced with both ends, or those of a list "0.1,0.2".

    Raises ``ScenarioError`` if they are none.
    """
    first, dots, last = given.partition("..")
    if not dots:
        loads = [_load(part, given) for part in given.split(",")]
        if len(set(loads)) < len(loads):
            raise ScenarioError(Problem(_OPTION, "a load given twice", given, _ALLOWED))
        return sorted(loads)
    low, high = _load(first, given), _load(last, given)
    if low > high:
        raise ScenarioError(Problem(_OPTION, "the range ends before it begins", given, _ALLOWED))
    if low == high:
        return [low]
    if count < 2:
        raise ScenarioError(Problem("--loads", "a range has two loads at least", count, "2 or more"))
    # Rounded, so that names and tables show what is meant; a millionth of the load is far below what can be measured.
    return [round(low + (high - low) * step / (count - 1), 6) for step in range(count)]


def _load(part: str, given: str) -> float:
    try:
        load = float(part)
    except ValueError:
        raise ScenarioError(Problem(_OPTION, f"{part.strip()!r} is no number", given, _ALLOWED)) from None
    if not 0 < load <= 1:
        raise ScenarioError(Problem(_OPTION, f"{part.strip()} is out of range", given, _ALLOWED))
    return load


@dataclass(frozen=True)
class OpenLoopOptions:
    """Parameters of open-loop jobs that replace those of the scenario; None leaves them as they are."""

    pattern: str | None = None
    """A destination pattern's name, or a TOML table with its name and parameters."""
    message_size: str | None = None
    """As "4 KiB"."""
    arrivals: str | None = None
    """``poisson`` or ``fixed``."""

    def parameters(self) -> dict[str, Any]:
        """Those that are given. Raises ``ScenarioError`` for a table that cannot be read."""
        pattern = None if self.pattern is None else _table("--pattern", self.pattern)
        given = {"pattern": pattern, "message_size": self.message_size, "arrivals": self.arrivals}
        return {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class Plan:
    """A scenario with open-loop jobs, and what is simulated of it."""

    scenario: Scenario
    loads: Sequence[float]
    """Offered loads, fractions of the injection bandwidth."""
    seeds: Sequence[int]
    """Seeds of the replicates."""
    warm_up: int
    """Simulated time before anything is counted, ps."""
    duration: int
    """Simulated time in all, ps."""
    remarks: Sequence[str] = ()
    """What differs from the scenario, or is probably unintended: a sentence each."""

    def at(self, load: float, seed: int) -> Scenario:
        """The scenario at one load and seed."""
        jobs = [
            job.model_copy(update={"workload": job.workload.model_copy(update={"load": load})})
            if isinstance(job.workload, OpenLoop)
            else job
            for job in self.scenario.jobs
        ]
        return self.scenario.model_copy(update={"jobs": jobs, "seed": seed})

    def check(self) -> None:
        """Raises ``ScenarioError`` for what only building the first simulation finds out."""
        self.workers  # noqa: B018 - it is kept

    @cached_property
    def workers(self) -> int:
        """How many simulations there are cores and memory for, by the estimate of the first one.

        Raises ``ScenarioError`` if it cannot be built.
        """
        estimate = self.at(self.loads[0], self.seeds[0]).resolve().estimate
        return affordable(estimate.memory if estimate else 0.0, self.scenario.memory)

    def described(self) -> Mapping[str, Any]:
        """What the results depend on besides load and seed."""
        return {
            "scenario": self.scenario.model_dump(mode="json", exclude_defaults=True, exclude={"seed"}),
            "warm_up_ps": self.warm_up,
            "duration_ps": self.duration,
        }


def prepared(
    scenario: Scenario,
    loads: Sequence[float],
    *,
    replicates: int,
    options: OpenLoopOptions,
    duration: str | None = None,
    warm_up: str | None = None,
) -> Plan:
    """A plan for a scenario; one without an open-loop job gets one on all of its hosts in place of its own jobs.

    Raises ``ScenarioError``.
    """
    given = options.parameters()
    added = not any(isinstance(job.workload, OpenLoop) for job in scenario.jobs)
    whole = _duration("--duration", duration or DURATION_OF_ADDED_LOAD) if duration or added else scenario.duration
    before = round(whole * WARM_UP) if warm_up is None else _duration("--warm-up", warm_up)
    if not before < whole:
        given_time, allowed = DURATION.format(before), f"below {DURATION.format(whole)}"
        raise ScenarioError(Problem("--warm-up", "nothing is left to measure", given_time, allowed))
    changed = _with_load(scenario, given) if added else _replaced(scenario, given)
    observe = changed.observe.model_copy(update={"counters": True})  # latencies are among them
    changed = changed.model_copy(update={"duration": whole, "observe": observe})
    seeds = [scenario.seed + number for number in range(replicates)]
    remarks = [_ADDED] if added else [*_scattered(changed)]
    return Plan(changed, list(loads), seeds, before, whole, remarks)


_ADDED = "The scenario has no open-loop job: one on all hosts replaces its jobs."


def _scattered(scenario: Scenario) -> Iterator[str]:
    """Jobs whose pattern counts ranks, and whose ranks a random placement puts anywhere."""
    for job in scenario.jobs:
        load = job.workload
        policy = (job.placement or scenario.placement).name
        if isinstance(load, OpenLoop) and load.pattern.by_rank and policy == "random":
            yield (
                f"{', '.join(job.names())}: {load.pattern.name} goes by numbers of ranks, and placement 'random' puts "
                "these anywhere; for the groups of the fabric, set placement = 'linear'."
            )


def _with_load(scenario: Scenario, given: Mapping[str, Any]) -> Scenario:
    """The fabric with one open-loop job on all of its hosts, in order."""
    try:
        hosts = building(lambda: Fabric.build(scenario.fabric.spec)).hosts
    except Problems as problems:
        raise scenario.error(problems) from None
    job = {"name": "load", "ranks": hosts, "workload": _validated(OpenLoop, given)}
    kept = {name: getattr(scenario, name) for name in ("name", "seed", "fabric", "network", "qos", "mpi")}
    return Scenario(**kept, placement="linear", jobs=[_validated(Job, job)])


def _replaced(scenario: Scenario, given: Mapping[str, Any]) -> Scenario:
    """The scenario with these parameters of its open-loop jobs."""
    if not given:
        return scenario
    jobs = []
    for job in scenario.jobs:
        changed = job
        if isinstance(job.workload, OpenLoop):
            parameters = {**job.workload.model_dump(exclude_unset=True), **given}
            if "message_size" in given:
                parameters.pop("sizes", None)
            workload = _validated(OpenLoop, parameters)
            changed = _validated(Job, job.model_dump(exclude_unset=True) | {"workload": workload})
        jobs.append(changed)
    return scenario.model_copy(update={"jobs": jobs})


def _validated(model: type[_Model], values: Mapping[str, Any]) -> _Model:
    """A model of these values; its problems are named after the options."""
    try:
        return validated(model, dict(values))
    except Problems as problems:
        raise ScenarioError([_optional(problem) for problem in problems.problems]) from None


def _optional(problem: Problem) -> Problem:
    """The problem of a parameter, named after its option."""
    head, _, rest = problem.key.partition(".")
    option = "--" + (head or "pattern").replace("_", "-")
    return replace(problem, key=f"{option}.{rest}" if rest else option)


def _table(option: str, given: str) -> Any:
    """A name, or a TOML table."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    if not given.lstrip().startswith("{"):
        return given
    try:
        return tomlkit.parse(f"value = {given}").unwrap()["value"]
    except TOMLKitError as error:
        example = '{ name = "next_group", group = 8 }'
        raise ScenarioError(Problem(option, f"no table: {error}", given, f"a name, or a table as {example}")) from None


def _duration(option: str, given: str) -> int:
    try:
        return DURATION.parse(given)
    except ValueError as error:
        raise ScenarioError(Problem(option, str(error), given)) from None
