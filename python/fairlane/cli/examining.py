"""What is installed and what is missing: doctor."""

import platform
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from fairlane.cli.command import Answer, ExitCode
from fairlane.cli.options import report

if TYPE_CHECKING:
    from fairlane.cli.terminal import Part
    from fairlane.doctor import Section
    from fairlane.views.tables import Row


def doctor(
    run: Annotated[Path | None, Argument(metavar="[RUN]", help="Also check a folder of results.")] = None,
) -> Answer:
    """Check this installation and machine: what is there, what is missing, which commands need it, what to do.

    A small simulation has to have the same digest as on every machine. The exit code is 1 if something that is
    required is broken. For a report of a problem: fairlane doctor --json
    """
    try:
        from fairlane.doctor import examine, is_good
    except ImportError as error:  # the library that the checks themselves need
        report(f"{error.name or error}: cannot be imported; install fairlane again")
        return Answer({"good": False, "missing": error.name}, code=ExitCode.RUN_FAILED)
    sections = tuple(examine(run))
    good = is_good(sections)
    data: dict[str, Any] = {
        "good": good,
        "platform": platform.platform(),
        "sections": {section.title: [asdict(check) for check in section.checks] for section in sections},
    }
    return Answer(data, _lines(sections, good=good), code=ExitCode.DONE if good else ExitCode.RUN_FAILED)


def _found(row: "Row") -> str:
    return "\n".join(filter(None, (row["found"], row["todo"])))


def _lines(sections: "tuple[Section, ...]", *, good: bool) -> Iterator["Part"]:
    from fairlane.views.tables import Column, Table

    shown = [
        Column("", lambda row: str(row["status"]), left=True),
        Column("checked", "name", left=True),
        Column("found; what to do", _found, left=True, wrap=True),
        Column("needed by", "needed_by", left=True, wrap=True),
    ]
    for section in sections:
        yield Table(shown, [vars(check) for check in section.checks], section.title)
    broken = [check.name for section in sections for check in section.checks if check.status == "broken"]
    yield ""
    yield "All that is required works." if good else f"Broken: {', '.join(broken)}."
