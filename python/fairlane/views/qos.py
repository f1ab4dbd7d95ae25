"""QoS for OpenSM: what is exported, and what a real OpenSM has set in the ports of a subnet."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from fairlane.cluster.opensm.check import Checked, Compared
from fairlane.cluster.opensm.export import Exported
from fairlane.core.wording import plural, seconds
from fairlane.model.stacks import Spelled
from fairlane.views.model import View
from fairlane.views.tables import Column, Table, columns

_MOST = 40
"""Differences that a terminal shows."""


def exported(export: Exported) -> Iterator[str]:
    """The service level of each job, and the shares of a link that lanes have."""
    yield from (f"{job}: service level {level}" for job, level in export.levels.items())
    for share in export.shares:
        always = f"VL{share.lane}: {share.exported:.1%} of a link on which all lanes always send"
        yield f"{always}, {share.simulated:.1%} simulated"


def spelled(spelling: Spelled) -> Iterator[str]:
    """The setting, level and lane of the messages of each job and communicator."""
    for entry in spelling.spellings:
        names = "all messages" if entry.communicators == ("*",) else ", ".join(entry.communicators)
        yield f"{entry.job}, {names}: {entry.setting}, service level {entry.level}, lane {entry.lane}"


def checked(check: Checked) -> View:
    """Compare OpenSM's settings with those exported: counts, and the differences."""
    loaded = ", which has loaded the tables of the simulator" if check.engine == "file" else ""
    return _compared(
        "OpenSM against the exported settings",
        check,
        [
            f"routing engine: {check.engine}{loaded}",
            f"subnet up after {seconds(check.up_s)}, read back in {seconds(check.read_s)}",
        ],
    )


def classes(check: Compared, file: Path) -> View:
    """Compare the lanes of classes and jobs in a file of OpenSM with those of a scenario."""
    return _compared(f"Traffic classes and jobs in {file}", check)


def _compared(title: str, check: Compared, facts: Sequence[str] = ()) -> View:
    counts = [{"what": what, "count": count} for what, count in check.counts.items()]
    compared = f"{sum(check.counts.values()):,} compared."
    parts = [Table([Column("compared", "what"), Column("number", "count")], counts, sentence=compared)]
    differences = plural(len(check.differences), "difference") if check.differences else "all equal"
    if check.differences:
        shown = columns(
            node="node", port="port", what="what", expected="expected", found="found", cause="due to", effect="effect"
        )
        rows = [vars(difference) for difference in check.differences]
        left = [Column(difference.header, difference.value, left=True) for difference in shown]
        parts.append(Table(left, rows, "Differences", sentence=f"{differences}.", most=_MOST))
    return View(title=title, headline=differences, facts=list(facts), parts=parts)
