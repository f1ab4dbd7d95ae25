"""Arguments and options that several commands share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from fairlane.cli.command import completing
from fairlane.errors import FairlaneError, Problem, ScenarioError

__all__ = [
    "AllowCode",
    "Assignments",
    "RunFolder",
    "ScenarioFile",
    "TopologyName",
    "duration_of",
    "folder_for",
    "folder_of",
    "fresh",
    "tell_damaged",
]

ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="The scenario, a TOML file.", show_default=False)
]
"""A scenario's file."""
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help='Replace a value, e.g. network.mtu="2 KiB"; can be given many times.'
    ),
]
"""Values that replace those of the file."""
AllowCode = Annotated[
    bool, typer.Option("--allow-code", help="Permit code that the input names, e.g. the workload own.py:Ring.")
]
"""Whether code that a scenario names may run."""
TopologyName = Annotated[
    str | None,
    typer.Option(
        help="Name of a topology; its parameters are given by --set.",
        autocompletion=completing("fairlane.inputs.tables:entries", "topology"),
    ),
]
"""A topology's name."""
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.", show_default=False)]
"""A run's folder."""


def duration_of(option: str, given: str) -> int:
    """A duration that an option gives, ps. Raises ``ScenarioError`` if it is none."""
    from fairlane.units import DURATION

    try:
        return DURATION.parse(given)
    except ValueError as error:
        raise ScenarioError(Problem(option, str(error), given)) from None


def folder_of(folder: Path) -> Path:
    """The folder of ``--out``, made before anything is computed. Raises ``ScenarioError`` if it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScenarioError(Problem("--out", f"cannot be written: {error.strerror}", str(folder))) from None
    return folder


@contextmanager
def folder_for(folder: Path | None) -> Iterator[None]:
    """The folder of ``--out``, if there is one, as ``folder_of`` makes it; what was made goes if the input is wrong."""
    made = [] if folder is None else [path for path in (folder, *folder.parents) if not _there(path)]
    try:
        if folder is not None:
            folder_of(folder)
        yield
    except (FairlaneError, OSError):
        for path in made:
            with suppress(OSError):  # it holds something, or was not made
                path.rmdir()
        raise


def tell_damaged(names: Sequence[str], folder: Path | None) -> None:
    """Says on standard error which stored answers were damaged."""
    for name in names:
        typer.echo(f"fairlane: {folder}/{name}: has changed since it was stored; it was computed again", err=True)


def fresh(folder: Path | None) -> None:
    """Refuses the folder of ``--out`` if there is something in it. Raises ``ScenarioError``."""
    if folder is None:
        return
    try:
        taken = not folder.is_dir() or any(folder.iterdir()) if folder.exists() else False
    except OSError as error:
        raise ScenarioError(Problem("--out", f"cannot be read: {error.strerror}", str(folder))) from error
    if taken:
        problem = Problem("--out", "exists and is not an empty directory", str(folder), "a new or an empty directory")
        raise ScenarioError(problem)


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # as of a name that is too long
        return False
