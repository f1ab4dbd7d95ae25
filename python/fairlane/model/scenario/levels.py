"""Service levels: of a job's ranks, from a text file or a table, and of classes of messages.

A file of ranks has one ``rank level`` a line and at most one ``default level``; empty lines and what follows ``#`` are
skipped.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, model_validator

from fairlane.core.errors import Problem
from fairlane.core.units import SIZE, Size, Written, whole_number
from fairlane.inputs.document import current_document
from fairlane.inputs.files import lines_of, read_text
from fairlane.inputs.parameters import collectives
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table

MAX_LEVELS = 16  # how many service levels InfiniBand's four-bit field has
MAX_LANES = 64  # how many lanes a simulated switch has: pairs of virtual lane and virtual channel

Level = Annotated[int, Field(ge=0, le=MAX_LEVELS - 1)]  # a service level, 0 to 15


class RankLevels(Table):
    """Ranks with a service level of their own, and the level of the others."""

    default: Level | None = Field(default=None, description="service level of the ranks that are not listed")
    ranks: dict[int, Level] = Field(default_factory=dict, description="service level by rank")

    @classmethod
    def load(cls, file: Path) -> "RankLevels":
        """Reads a text file; ``Problems`` lists every line that is wrong."""
        try:
            text = read_text(file)
        except OSError as error:
            raise Problems(Problem("", f"cannot be read: {error.strerror}", str(file))) from None
        levels: dict[str, int] = {}
        problems: list[Problem] = []
        for number, line in enumerate(lines_of(text), 1):
            fields = line.partition("#")[0].split()
            wrong = _wrong(fields, levels)
            if wrong:
                problems.append(Problem("", wrong, line.strip(), file=str(file), line=number))
            elif fields:
                levels[fields[0]] = whole_number(fields[1])
        if problems:
            raise Problems(*problems)
        default = levels.pop("default", None)
        return cls(default=default, ranks={whole_number(rank): level for rank, level in levels.items()})


def _wrong(fields: list[str], levels: dict[str, int]) -> str | None:
    """Return the fault of a line's words; None for a good or an empty line."""
    if not fields:
        return None
    if len(fields) != 2 or not (fields[0] == "default" or fields[0].isdecimal()) or not fields[1].isdecimal():
        return 'not a line of the form "rank level" or "default level"'
    if whole_number(fields[1]) >= MAX_LEVELS:
        return f"service level {fields[1]} is not in 0 to {MAX_LEVELS - 1}"
    return f"{fields[0]} has a level already" if fields[0] in levels else None


def _read(given: Any) -> Any:
    """A path becomes the table that the file holds."""
    if isinstance(given, str | Path):
        return RankLevels.load(current_document.get().folder / given)
    return given


RankLevelsField = Annotated[Written[RankLevels], BeforeValidator(_read, json_schema_input_type=RankLevels | str)]
"""A model's field that takes a file's path or a table."""


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
