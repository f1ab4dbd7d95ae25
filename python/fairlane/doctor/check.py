"""What a check has found."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a check ended."""

    OK = "ok"
    """Everything that is needed is there."""
    MISSING = "missing"
    """Something optional is not installed: the commands that ``Check.needed_by`` names do not work."""
    WARNING = "warning"
    """It works, with a limitation."""
    BROKEN = "broken"
    """Something that is required is missing, too old or does not work."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    """What was looked at, as ``Python`` or ``opensm``."""
    status: Status
    """How it ended."""
    found: str
    """What is there: a version, a path, an amount."""
    needed_by: str = ""
    """The commands that need it; empty for what all of them need."""
    todo: str = ""
    """What to do if it is not ``ok``."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs, where a sentence is not enough."""


@dataclass(frozen=True)
class Section:
    """Checks of one kind."""

    title: str
    checks: tuple[Check, ...]
