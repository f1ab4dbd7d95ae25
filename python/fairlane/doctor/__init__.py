"""Checks of an installation: what is there, what is missing, which commands need it, and what to do.

The checks of the installation need no working core: it is loaded, and a small simulation run, in processes of their
own. The other checks are left out if the core or a required library does not work.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

__all__ = ["Check", "Section", "Status", "examine", "is_good"]


class Status(StrEnum):
    """Outcomes of a check."""

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
    """Subject of the check, as ``Python`` or ``opensm``."""
    status: Status
    """Its outcome."""
    found: str
    """A version, a path, an amount."""
    needed_by: str = ""
    """The commands that need it; empty for what all of them need."""
    todo: str = ""
    """Advice if it is not ``ok``."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs, where a sentence is not enough."""


@dataclass(frozen=True)
class Section:
    """Checks of one kind."""

    title: str
    checks: tuple[Check, ...]


def examine(folder: Path | None = None) -> Iterator[Section]:
    """All checks of this installation and machine, and of a ``folder`` of results if one is given.

    Raises:
        ResultsError: There are no results of fairlane in ``folder``.
    """
    from fairlane.doctor import installation

    complete = is_good([Section("Libraries", tuple(installation.libraries()))])
    results = None
    if complete and folder is not None:
        from fairlane.doctor.machine import folder_checks

        results = Section(f"Results in {folder}", tuple(folder_checks(folder)))
    installed = tuple(installation.checks())
    yield Section("Installation", installed)
    if complete and not any(check.name == "core" and check.status is Status.BROKEN for check in installed):
        from fairlane.doctor import machine  # needs the libraries and the core

        yield Section("Machine", tuple(machine.machine_checks()))
        yield Section("Programs that some commands start", tuple(machine.program_checks()))
    if results is not None:
        yield results


def is_good(sections: Iterable[Section]) -> bool:
    """Whether nothing that is required is broken."""
    return all(check.status is not Status.BROKEN for section in sections for check in section.checks)
