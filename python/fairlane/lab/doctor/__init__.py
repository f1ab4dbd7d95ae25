"""Checks of an installation: what is there, what is missing, which commands need it, and what to do.

The checks of the installation need no working core: it is loaded, and a small simulation run, in processes of their
own. The other checks are left out if the core or a required library does not work.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from fairlane.lab.doctor import installation
from fairlane.lab.doctor.installation import Check, Section, Status

__all__ = ["Check", "Section", "Status", "examine", "is_good"]


def examine(folder: Path | None = None) -> Iterator[Section]:
    """All checks of this installation and machine, and of a ``folder`` of results if one is given.

    Raises:
        ResultsError: There are no results of fairlane in ``folder``.
    """
    complete = is_good([Section("Libraries", tuple(installation.libraries()))])
    results = None
    if complete and folder is not None:
        from fairlane.lab.doctor.machine import folder_checks

        results = Section(f"Results in {folder}", tuple(folder_checks(folder)))
    installed = tuple(installation.checks())
    yield Section("Installation", installed)
    if complete and not any(check.name == "core" and check.status is Status.BROKEN for check in installed):
        from fairlane.lab.doctor import machine  # needs the libraries and the core

        yield Section("Machine", tuple(machine.machine_checks()))
        yield Section("Programs that some commands start", tuple(machine.program_checks()))
    if results is not None:
        yield results


def is_good(sections: Iterable[Section]) -> bool:
    """Whether nothing that is required is broken."""
    return all(check.status is not Status.BROKEN for section in sections for check in section.checks)
