"""Service levels of a job's ranks, from a text file or a table.

A file has one ``rank level`` a line and at most one ``default level``; empty lines and what follows ``#`` are skipped.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from fairlane.errors import Problem
from fairlane.inputs.document import current_document
from fairlane.inputs.files import lines_of, read_text
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.units import Written, whole_number

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
