"""The service level of each set of messages that a library can give one: a process, or a communicator."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.model.scenario import Resolved
from fairlane.model.scenario.resolved import ResolvedJob
from fairlane.model.stacks.libraries import Library
from fairlane.model.workload.builder import WORLD


@dataclass(frozen=True)
class Unit:
    """Messages of a job that have one service level."""

    job: str
    communicators: tuple[str, ...]
    """Their names; ``*`` stands for all, also those without a name."""
    level: int


def units_of(resolved: Resolved, library: Library, *, approximate: bool) -> tuple[list[Unit], list[str]]:
    """The units of all jobs, and notes on what is left out.

    Programs must have been made, for the names of their communicators. Raises ``ScenarioError`` with the key of what
    the library cannot do: levels by operation, size, kind of traffic or rank, and by communicator where it has one for
    a process. ``approximate`` leaves these out.
    """
    problems: list[Problem] = []
    classes: list[Mapping[str, Any]] = []
    for traffic_class in resolved.tables["qos"].get("classes", ()):
        problem = _unsayable(traffic_class, library)
        if problem is None:
            classes.append(traffic_class)
        else:
            problems.append(problem)
    kinds = {kind: level for kind, level in resolved.tables["qos"]["kinds"].items() if level is not None}
    if kinds:
        message = f"service levels by kind of traffic: {library.title} has one for all messages of a {library.unit}"
        problems.append(Problem("qos.kinds", message, kinds))
    units: list[Unit] = []
    for job in resolved.jobs:
        if len({job.rank_levels.get(rank) for rank in range(job.ranks)}) > 1:
            message = f"service levels by rank of job {job.name!r}: all ranks of a {library.unit} need the same"
            problems.append(Problem(f"{job.key}.service_levels", message, sorted(set(job.rank_levels.values()))))
        units += _of_job(job, classes, resolved.tables["qos"]["default"], library)
    if not approximate and problems:
        raise ScenarioError([_with_remedy(problem) for problem in problems])
    if not units:
        names = sorted({name for job in resolved.jobs for name in job.program.communicators})
        message = f"no communicator is one of {library.title}: {library.communicators}"
        raise ScenarioError(
            Problem("--library", message, library.name, f"communicators are {', '.join(names) or WORLD}")
        )
    return units, [f"left out: {problem.key}: {problem.message}" for problem in problems]


def _with_remedy(problem: Problem) -> Problem:
    allowed = "what the library can say, or --approximate, which leaves it out"
    return Problem(problem.key, problem.message, problem.value, allowed)


def _unsayable(traffic_class: Mapping[str, Any], library: Library) -> Problem | None:
    """Why the library cannot say a class."""
    key = f"classes.{traffic_class['name']}"
    if traffic_class["operations"] is not None:
        message = f"{library.title} has one level for all operations of a {library.unit}"
        return Problem(f"{key}.operation", message, traffic_class["operations"])
    if traffic_class["above"] is not None or traffic_class["up_to"] is not None:
        message = f"{library.title} has one level for messages of all sizes of a {library.unit}"
        return Problem(f"{key}.size", message)
    if traffic_class["communicators"] is not None and not library.by_communicator and library.communicators == "*":
        message = f"{library.title} has one level for all communicators of a {library.unit}"
        return Problem(f"{key}.communicator", message, traffic_class["communicators"])
    return None


def _of_job(job: ResolvedJob, classes: Sequence[Mapping[str, Any]], default: int, library: Library) -> Iterator[Unit]:
    """The units of a job: one for each communicator, or one for all that are the library's."""
    of_ranks = next(iter(job.rank_levels.values()), None)
    of_job = default if job.service_level is None else job.service_level

    def level(communicator: str) -> int:
        chosen = (
            traffic_class
            for traffic_class in classes
            if (traffic_class["jobs"] is None or job.name in traffic_class["jobs"])
            and (traffic_class["communicators"] is None or communicator in traffic_class["communicators"])
        )
        of_class = next((traffic_class["service_level"] for traffic_class in chosen), None)
        return next(level for level in (of_ranks, of_class, of_job) if level is not None)

    carried = [name for name in (WORLD, *job.program.communicators) if library.carries(name)]
    if library.by_communicator:
        yield from (Unit(job.name, (name,), level(name)) for name in carried)
    elif carried:
        levels = {name: level(name) for name in carried}
        first = levels[carried[0]]
        if other := next((name for name, its in levels.items() if its != first), None):
            message = f"{carried[0]} has level {first} and {other} {levels[other]}: {library.title} has one for both"
            raise ScenarioError(Problem("classes", message, allowed="one level for both"))
        yield Unit(job.name, ("*",) if library.communicators == "*" else tuple(carried), first)
