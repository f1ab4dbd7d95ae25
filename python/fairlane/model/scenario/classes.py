"""Traffic classes of a scenario: messages by job, communicator, operation and size, and the service level of each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from fairlane.core.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.model.scenario.levels import MessageClass
from fairlane.model.workload.builder import WORLD

if TYPE_CHECKING:
    from fairlane.model.scenario.resolved import ResolvedJob
    from fairlane.model.scenario.tables import ScenarioTables

MOST_CLASSES = 64
"""Maximum number of classes: the simulator's sets of classes have 64 bits."""


def class_problems(scenario: "ScenarioTables") -> Iterator[Problem]:
    """Too many classes, and classes that select nothing because an earlier one selects it all."""
    if len(scenario.classes) > MOST_CLASSES:
        yield Problem("classes", "too many", len(scenario.classes), f"at most {MOST_CLASSES}")
    earlier: dict[str, MessageClass] = {}
    for name, message_class in scenario.classes.items():
        first = next((other for other, table in earlier.items() if table.covers(message_class)), None)
        if first is not None:
            message = f"selects no message: classes.{first} comes first and selects all of them"
            yield Problem(f"classes.{name}", message, allowed="the more specific class first")
        earlier[name] = message_class


def jobs_of(message_class: MessageClass, jobs: Sequence["ResolvedJob"]) -> list[str]:
    """The names of the jobs that a class selects."""
    return [
        job.name
        for job in jobs
        if message_class.job is None
        or any(fnmatchcase(name, given) for given in message_class.job for name in _names_of(job))
    ]


def _names_of(job: "ResolvedJob") -> tuple[str, ...]:
    """The names of a job: its own, and that of the table of which it is a copy."""
    return (job.name,) if job.table.name in (None, job.name) else (job.table.name or "", job.name)


def class_specs(scenario: "ScenarioTables", jobs: Sequence["ResolvedJob"]) -> list[dict[str, Any]]:
    """The classes as the simulator takes them, but with patterns of communicators.

    ``Problems`` lists names of jobs that no job has.
    """
    problems: list[Problem] = []
    names = [name for job in jobs for name in _names_of(job)]
    for name, message_class in scenario.classes.items():
        _matches(f"classes.{name}.job", "job", message_class.job, names, problems)
    if problems:
        raise Problems(*problems)
    return [
        {
            "name": name,
            "jobs": None if message_class.job is None else jobs_of(message_class, jobs),
            "communicators": message_class.communicator,
            "operations": message_class.operation,
            "above": message_class.size.above,
            "up_to": message_class.size.up_to,
            "service_level": message_class.service_level,
        }
        for name, message_class in scenario.classes.items()
    ]


def with_communicators(
    classes: Sequence[Mapping[str, Any]], known: Mapping[str, Collection[str]], optional: Collection[str] = ()
) -> tuple[list[dict[str, Any]], list[Problem]]:
    """The same with the names that patterns match of the communicators ``known`` of each job.

    Also an error for each pattern that matches none, but for those of classes that are ``optional``.
    """
    problems: list[Problem] = []
    specs = []
    for spec in classes:
        names = [WORLD, *(name for job in (spec["jobs"] or known) for name in known.get(job, ()))]
        key = f"classes.{spec['name']}.communicator"
        missing: list[Problem] = [] if spec["name"] in optional else problems
        matched = _matches(key, "communicator", spec["communicators"], list(dict.fromkeys(names)), missing)
        specs.append({**spec, "communicators": spec["communicators"] and matched})
    return specs, problems


def _matches(
    key: str, what: str, given: Sequence[str] | None, known: Collection[str], problems: list[Problem]
) -> list[str]:
    """The known names that match; notes each given one that matches none."""
    matching: dict[str, None] = {}
    for at, pattern in enumerate(given or ()):
        matched = [name for name in known if fnmatchcase(name, pattern)]
        if not matched:
            problems.append(Problem.unknown(f"{key}[{at}]", what, pattern, list(known), pattern))
        matching.update(dict.fromkeys(matched))
    return list(matching)
