"""Installed and missing programs: doctor."""

import platform
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument

from fairlane.cli.command import Answer, ExitCode


def doctor(
    run: Annotated[Path | None, Argument(metavar="[RUN]", help="Also check a folder of results.")] = None,
) -> Answer:
    """Check this installation and machine: what is there, what is missing, which commands need it, what to do.

    A small simulation has to have the same digest as on every machine. The exit code is 1 if something that is
    required is broken. For a report of a problem: fairlane doctor --json
    """
    try:
        from fairlane.lab.doctor import examine, is_good
        from fairlane.lab.doctor.view import view
    except ImportError as error:  # the library that the checks themselves need
        typer.echo(f"fairlane: {error.name or error}: cannot be imported; install fairlane again", err=True)
        return Answer({"good": False, "missing": error.name}, code=ExitCode.RUN_FAILED)
    sections = tuple(examine(run))
    good = is_good(sections)
    data: dict[str, Any] = {
        "good": good,
        "platform": platform.platform(),
        "sections": {section.title: [asdict(check) for check in section.checks] for section in sections},
    }
    return Answer(data, [view(sections)], code=ExitCode.DONE if good else ExitCode.RUN_FAILED)
