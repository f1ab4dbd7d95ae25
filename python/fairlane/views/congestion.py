"""Roots of congestion trees, of a run or of the counters of a cluster."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fairlane.fabric.congestion import Root
from fairlane.views.tables import Column, Row, Table
from fairlane.wording import bit_rate, listed, percent, plural

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
