"""Traffic classes of a scenario: messages by job, communicator, operation and size, and the service level of each."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from fairlane.errors import Problem
from fairlane.inputs.parameters import collectives
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.scenario.levels import Level
from fairlane.units import SIZE, Size, Written

if TYPE_CHECKING:
    from fairlane.scenario.resolved import ResolvedJob
    from fairlane.scenario.scenario import Scenario

WORLD = "world"
"""Name of the communicator of all ranks of a job."""
MOST_CLASSES = 64
"""Maximum number of classes: the simulator's sets of classes have 64 bits."""
_OTHERS = ("point_to_point", "one_sided", "collective", "neighbor_allgather", "neighbor_alltoall")


def _listed(given: Any) -> Any:
    """A name by itself becomes a list of it."""
    return [given] if isinstance(given, str) else given


Names = Annotated[
    list[Annotated[str, Field(min_length=1)]],
    Field(min_length=1),
    BeforeValidator(_listed, json_schema_input_type=str | list[str]),
]


def operations() -> list[str]:
    """The names that ``operation`` may have."""
    return [*_OTHERS[:3], *collectives(), *_OTHERS[3:]]


class SizeRange(Table):
    """Payload of messages."""

    above: Size | None = None
    """Only larger messages."""
    up_to: Size | None = None
    """Only messages of at most this size."""

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.above is not None and self.up_to is not None and self.up_to <= self.above:
            words, allowed = "no size is in the range", f"more than {SIZE.format(self.above)}"
            raise Problems(Problem("up_to", words, SIZE.format(self.up_to), allowed))
        return self


class MessageClass(Table):
    """Messages that all selectors select. A message has the first class of the scenario that selects it."""

    job: Names | None = None
    """Jobs, by name or pattern (``"train-*"``); a table with ``count`` also selects all copies by its name. Default:
    all."""
    communicator: Names | None = None
    """Communicators, by name or pattern; ``world`` has all ranks of a job. Default: all, also those without a name."""
    operation: Names | None = None
    """``point_to_point``, ``one_sided``, ``collective`` (any), or a collective such as ``alltoall``. Default: all."""
    size: Written[SizeRange] = Field(default_factory=SizeRange)
    """Payload of the message; in a collective, of the algorithm's messages."""
    service_level: Level | None = None
    """Service level of its messages. Default: that of a QoS strategy, else that of kind or job."""
    allow_missing: bool = False
    """Whether it may name communicators that no job has, as in runs of some of the jobs only."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        known = operations()
        for at, name in enumerate(self.operation or ()):
            if name not in known:
                raise Problems(Problem.unknown(f"operation[{at}]", "operation", name, known, name))
        return self

    def covers(self, other: "MessageClass") -> bool:
        """Whether it selects everything that another one selects."""
        names = (
            (self.job, other.job),
            (self.communicator, other.communicator),
            (_operations(self.operation), _operations(other.operation)),
        )
        if not all(mine is None or (others is not None and _all_match(others, mine)) for mine, others in names):
            return False
        (above, up_to), (least, most) = (
            (message_class.size.above, message_class.size.up_to) for message_class in (self, other)
        )
        return (above is None or (least is not None and least >= above)) and (
            up_to is None or (most is not None and most <= up_to)
        )


def _operations(names: Sequence[str] | None) -> list[str] | None:
    """Operations by name, ``collective`` being all collectives."""
    if names is None or "collective" not in names:
        return None if names is None else list(names)
    return [*names, *(name for name in operations() if name not in ("point_to_point", "one_sided"))]


def _all_match(names: Sequence[str], patterns: Sequence[str]) -> bool:
    """Whether every name is one of the patterns or, unless it is a pattern itself, matches one."""
    return all(
        name in patterns or (not set(name) & set("*?[") and any(fnmatchcase(name, pattern) for pattern in patterns))
        for name in names
    )


def class_problems(scenario: "Scenario") -> Iterator[Problem]:
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


def class_specs(scenario: "Scenario", jobs: Sequence["ResolvedJob"]) -> list[dict[str, Any]]:
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
