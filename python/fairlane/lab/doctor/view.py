"""The checks of an installation as a view."""

from collections.abc import Sequence

from fairlane.core.wording import plural
from fairlane.lab.doctor import Section, Status
from fairlane.views.model import View
from fairlane.views.tables import Column, Row, Table


def view(sections: Sequence[Section]) -> View:
    """Show the checks by section, and those that are broken."""
    shown = [
        Column("", "status", str, left=True),
        Column("checked", "name", left=True),
        Column("found; what to do", _found, left=True, wrap=True),
        Column("needed by", "needed_by", left=True, wrap=True),
    ]
    broken = [check.name for section in sections for check in section.checks if check.status is Status.BROKEN]
    return View(
        title="Installation of fairlane",
        headline=f"Broken: {', '.join(broken)}." if broken else "All that is required works.",
        facts=(),
        parts=[
            Table(shown, rows, section.title, sentence=f"{plural(len(rows), 'check')}.")
            for section in sections
            if (rows := [vars(check) for check in section.checks])
        ],
    )


def _found(row: Row) -> str:
    return "\n".join(filter(None, (row["found"], row["todo"])))
