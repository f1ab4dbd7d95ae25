"""Arguments and options that several commands share."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from fairlane.cli.command import completing
from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.core.units import DURATION, Kind
from fairlane.core.wording import renamed

ScenarioFile = Annotated[Path, Argument(metavar="SCENARIO", help="The scenario, a TOML file.")]
Assignments = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help='Replace a value, e.g. network.mtu="2 KiB"; can be given many times.'),
]
AllowCode = Annotated[bool, Option("--allow-code", help="Permit code that the input names, e.g. own.py:Ring.")]
TopologyName = Annotated[
    str | None,
    Option(
        help="Name of a topology; its parameters are given by --set.",
        autocompletion=completing("fairlane.inputs.parameters:entries", "topology"),
    ),
]
Parameters = Annotated[list[str] | None, Option("--set", metavar="KEY=VALUE", help="A parameter of the topology.")]
RandomSeed = Annotated[int, Option("--seed", min=0, help="Seed of random choices.")]
Workers = Annotated[int | None, Option(min=1, help="Processes; by default one for each core.")]
Threads = Annotated[
    int | None,
    Option(min=1, max=32, help="Threads of a simulation; by default the free cores, on large fabrics."),
]
Dask = Annotated[str | None, Option(metavar="ADDRESS", help="Use a Dask cluster, e.g. tcp://host:8786.")]
Resume = Annotated[bool, Option("--resume", help="Compute only what is not stored yet.")]
RunFolder = Annotated[Path, Argument(metavar="RUN", help="The folder of a run.")]


def refused(option: str, message: str, value: object = None, allowed: str = "") -> ScenarioError:
    """The error of an option's value."""
    return ScenarioError(Problem(option, message, value, allowed))


def one_of(option: str, given: str, allowed: Iterable[str]) -> str:
    """The name that an option gives. Raises ``ScenarioError`` with the nearest one if it is unknown."""
    if given not in (known := list(allowed)):
        raise ScenarioError(Problem.unknown(option, "name", given, known, given))
    return given


def report(*messages: str) -> None:
    """Prints messages on standard error, a line each."""
    for message in messages:
        typer.echo(f"fairlane: {message}", err=True)


def report_renamed(given: Sequence[str], names: Sequence[str]) -> None:
    """Reports which names of hosts Slurm does not take, and what they are called for it."""
    report(*renamed("host", given, names, " for Slurm"))


def quantity_of(option: str, given: str, kind: Kind = DURATION, *, positive: bool = False) -> int:
    """The quantity that an option gives, by default a duration, ps. Raises ``ScenarioError`` if it is none."""
    try:
        value = kind.parse(given)
    except ValueError as error:
        raise refused(option, str(error), given) from None
    if positive and value == 0:
        raise refused(option, "out of range", given, "above 0")
    return value


def folder_of(folder: Path) -> Path:
    """The folder of ``--out``, made before anything is computed. Raises ``ScenarioError`` if it cannot be."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused("--out", f"cannot be written: {error.strerror}", str(folder)) from None
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


def report_damaged(names: Sequence[str], folder: Path | None) -> None:
    """Reports which stored answers were damaged."""
    for name in names:
        report(f"{folder}/{name}: has changed since it was stored; it was computed again")


def fresh(folder: Path | None, option: str = "--out") -> None:
    """Refuses the folder of an option if there is something in it. Raises ``ScenarioError``."""
    if folder is None:
        return
    try:
        taken = not folder.is_dir() or any(folder.iterdir()) if folder.exists() else False
    except OSError as error:
        raise refused(option, f"cannot be read: {error.strerror}", str(folder)) from error
    if taken:
        raise refused(option, "exists and is not an empty directory", str(folder), "a new or an empty directory")


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # as of a name that is too long
        return False
