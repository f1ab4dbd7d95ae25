"""QoS for OpenSM: what is exported, and what a real OpenSM has set in the ports of a subnet."""

from collections.abc import Iterator

from fairlane.opensm.check import Checked
from fairlane.opensm.export import Exported
from fairlane.stacks import Spelled
from fairlane.views.model import View
from fairlane.views.tables import Column, Table, columns
from fairlane.wording import plural, seconds

_MOST = 40
"""Differences that a terminal shows."""


def exported(found: Exported) -> Iterator[str]:
    """The service level of each job, and the shares of a link that lanes have."""
    yield from (f"{job}: service level {level}" for job, level in found.levels.items())
    for one in found.shares:
        always = f"VL{one.lane}: {one.exported:.1%} of a link on which all lanes always send"
        yield f"{always}, {one.simulated:.1%} simulated"


def spelled(found: Spelled) -> Iterator[str]:
    """The setting, level and lane of the messages of each job and communicator."""
    for one in found.spellings:
        names = "all messages" if one.communicators == ("*",) else ", ".join(one.communicators)
        yield f"{one.job}, {names}: {one.setting}, service level {one.level}, lane {one.lane}"


def checked(found: Checked) -> View:
    """What OpenSM has set against what was exported: what was compared, and the differences."""
    counts = [{"what": what, "count": count} for what, count in found.counts.items()]
    compared = f"{sum(found.counts.values()):,} compared."
    parts = [Table([Column("compared", "what"), Column("number", "count")], counts, sentence=compared)]
    differences = plural(len(found.differences), "difference") if found.differences else "all equal"
    if found.differences:
        shown = columns(
            node="node", port="port", what="what", expected="expected", found="found", cause="due to", effect="effect"
        )
        rows = [vars(one) for one in found.differences]
        left = [Column(one.header, one.value, left=True) for one in shown]
        parts.append(Table(left, rows, "Differences", sentence=f"{differences}.", most=_MOST))
    loaded = ", which has loaded the tables of the simulator" if found.engine == "file" else ""
    return View(
        title="OpenSM against the exported settings",
        headline=differences,
        facts=[
            f"routing engine: {found.engine}{loaded}",
            f"subnet up after {seconds(found.up_s)}, read back in {seconds(found.read_s)}",
        ],
        parts=parts,
    )
