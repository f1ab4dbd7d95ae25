"""Checks of an installation: what is there, what is missing, which commands need it, and what to do.

The checks of the installation need no working core: it is loaded, and a small simulation run, in processes of their
own. The other checks are left out if the core or a required library does not work.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from fairlane.doctor.check import Check, Section, Status

__all__ = ["Check", "Section", "Status", "examine", "is_good"]


def examine(folder: Path | None = None) -> Iterator[Section]:
    """All checks of this installation and machine, and of a ``folder`` of results if one is given.

    Raises:
        ResultsError: There are no results of fairlane in ``folder``.
    """
    from fairlane.doctor import installation

    complete = is_good([Section("Libraries", tuple(installation.libraries()))])
    given = _results(folder) if folder is not None and complete else None
    installed = tuple(installation.checks())
    yield Section("Installation", installed)
    if complete and not any(check.name == "core" and check.status is Status.BROKEN for check in installed):
        yield from _surroundings()
    if given is not None:
        yield given


def _results(folder: Path) -> Section:
    from fairlane.doctor import folder as results

    return Section(f"Results in {folder}", tuple(results.checks(folder)))


def _surroundings() -> Iterator[Section]:
    """The machine and its programs; what looks at them needs the libraries and the core."""
    from fairlane.doctor import machine, programs

    yield Section("Machine", tuple(machine.checks()))
    yield Section("Programs that some commands start", tuple(programs.checks()))


def is_good(sections: Iterable[Section]) -> bool:
    """Whether nothing that is required is broken."""
    return all(check.status is not Status.BROKEN for section in sections for check in section.checks)
