"""The links of a cluster that are hot by their counters, the jobs that share them, and the roots of congestion."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from fairlane.cluster.counters.shared import HotLink
from fairlane.core.wording import bit_rate, data_size, listed, percent, plural
from fairlane.model.fabric.congestion import Root
from fairlane.views.model import View
from fairlane.views.tables import Column, Row, Table, fixed

UNSATURATED = "No link is saturated, and no stalled port leads to a busy one."


def roots_table(roots: Sequence[Root], most: int) -> Table:
    """The links that congestion comes from, of which a terminal shows so many."""

    def rate(row: Row) -> str:
        slow = row["bandwidth_bps"] < row["usual_bps"]
        more = f", most of its peers have {bit_rate(row['usual_bps'])}" if slow else ""
        return f"{bit_rate(row['bandwidth_bps'])}{more}"

    rows: list[dict[str, Any]] = [{**asdict(root), "names": listed(root.jobs)} for root in roots]
    columns = [
        Column("link", "link"),
        *([Column("jobs", "names", left=True, width=40)] if any(root.jobs for root in roots) else []),
        Column("busy", "active_share", percent),
        Column("bandwidth", rate, left=True),
        Column("stalled ports\nupstream", "upstream"),
    ]
    first = roots[0]
    stalls = f", with {plural(first.upstream, 'stalled port')} upstream" if first.upstream else ""
    sentence = f"{first.link} is busy for {percent(first.active_share)} of the time{stalls}."
    title = "Roots of congestion: links that are busy, and not stalled by others"
    return Table(columns, rows, title, sentence=sentence, most=most)


MOST = 20
"""Links that a terminal shows."""
_COLUMNS = (
    Column("link", "link"),
    Column("role", "role", left=True),
    Column("sent", "sent_bytes", data_size),
    Column("PortXmitWait,\nticks", "wait_ticks"),
    Column("ticks\nper word", "wait_per_word", fixed(3)),
    Column("utilisation", "utilisation", percent),
    Column("jobs", "jobs", ", ".join, left=True, width=40),
)


def view(links: Sequence[HotLink], jobs: Collection[str], roots: Sequence[Root] | None, notes: Sequence[str]) -> View:
    """The links in order of their wait; ``roots`` are those of congestion, None if times are not known."""
    rows = [asdict(link) for link in links]
    shown = [column for column in _COLUMNS if any(row[str(column.value)] not in (None, ()) for row in rows)]
    sent = data_size(sum(link.sent_bytes for link in links))
    table = Table(shown or _COLUMNS[:1], rows, most=MOST, sentence=f"{plural(len(links), 'link')}, {sent} sent.")
    return View(
        title="Counters of a cluster",
        headline=f"{plural(len(links), 'link')} in the order of PortXmitWait and of bytes sent",
        facts=() if roots or roots is None else [UNSATURATED],
        parts=[table, *([roots_table(roots, MOST)] if roots else [])],
        remarks=[*(_shared(links) if jobs else ()), *(f"Note: {note}" for note in notes)],
    )


def _shared(links: Sequence[HotLink]) -> Iterator[str]:
    """Links on routes of several jobs, and links with traffic of none."""
    shared = sum(len(link.jobs) > 1 and link.role != "host" for link in links)
    links_between = f"{plural(shared, 'link')} between switches with counters are on routes of several jobs"
    yield f"{links_between}; routes are those of the fabric's tables, or up/down."
    used = [link for link in links if link.sent_bytes]
    without = sum(not link.jobs for link in used)
    yield f"Links with traffic that none of these jobs can cause: {without:,} of {len(used):,}."
