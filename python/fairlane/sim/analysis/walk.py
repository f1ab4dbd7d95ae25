"""Why a rank waited: from a wait back along the critical path, through late partners, to what made them late.

A wait ends when a message is complete, and that began when the later of the two sides had made its call (an eager
message: when it was sent). From there the walk goes back on that side's rank to the last wait that it came out of, and
so on. So the path is without gaps: every picosecond of it is a rank's own work or a message under way. It ends at

- a *slow message*: beyond the time that its bytes take, it was under way for half of the first wait or more;
- a *computing* partner: it worked that much longer between its waits than the rank that waited for it;
- the beginning of the record, if the delay is made up of smaller ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from fairlane.core.errors import ResultsError
from fairlane.sim.analysis.delays import with_parts
from fairlane.sim.analysis.links import by_link, delayers, message_packets
from fairlane.sim.analysis.record import Record

Cause = Literal["slow message", "computing", "beginning"]
"""Cause at the end of a walk."""
SHARE = 0.5
"""The part of the first wait that something has to explain for the walk to end there."""
MAX_STEPS = 100_000
"""A walk has no more steps than this."""
_ENDED_BY = ("from_rank", "to_rank", "bytes", "origin_rank", "origin_ps", "received_ps", "under_way_ps", "excess_ps")
"""Columns of a step that say which message ended its wait."""


@dataclass(frozen=True)
class Walk:
    """The path from a wait back to its cause."""

    steps: pl.DataFrame
    """One row per wait on the path, backwards: ``rank``, ``call``, ``since_ps``, ``end_ps``, ``late_ps``,
    ``network_ps``; its ``message`` with ``from_rank``, ``to_rank``, ``bytes``; the ``origin_rank`` and ``origin_ps`` at
    which the message could be on its way, ``received_ps`` when it had come; ``under_way_ps`` from its origin to the end
    of the wait, and ``excess_ps``, without what its bytes take at the rate of a host's link."""
    cause: Cause
    """Cause at its end."""
    slow: int | None
    """The step whose message was slowest, beyond what its bytes take; None if the walk ended at a computing rank."""
    worked_ps: int
    """Time by which the partner computed longer, ps, if it ended there."""
    links: pl.DataFrame
    """The links of the slow message's packets and how long they waited at each (``packets.by_link``)."""
    delayers: pl.DataFrame
    """For whose packets they waited (``packets.delayers``)."""

    @property
    def jobs(self) -> pl.DataFrame:
        """The waiting of the slow message's packets by whose packets it was for: ``by``, ``queueing_ps``, ``share``."""
        sums = self.delayers.group_by("by").agg(pl.col("queueing_ps").sum())
        share = pl.col("queueing_ps") / pl.col("queueing_ps").sum()
        return sums.with_columns(share=share).sort("queueing_ps", "by", descending=[True, False])


def walk(record: Record, links: pl.DataFrame, names: Sequence[str], start: int | None = None) -> Walk | None:
    """Walks from a wait back to what made it long; None if the record has no wait.

    ``links`` are the fabric's, ``names`` the jobs' by number, and ``start`` is the row of ``record.waits`` to begin at,
    by default the longest.
    """
    first = longest_wait(record, record.from_ps, record.to_ps) if start is None else start
    if first is None:
        return None
    back = _Backwards(record, links)
    cause, worked = back.go(first)
    steps = pl.DataFrame(back.steps, infer_schema_length=None)
    known = steps["excess_ps"].arg_max() if cause != "computing" else None
    if known is None:
        packets = record.departures.clear()
    else:
        packets = message_packets(record, back.message(int(steps["message"][known])))
    return Walk(steps, cause, known, worked, by_link(packets, links), delayers(record, packets, links, names))


def longest_wait(record: Record, from_ps: int, to_ps: int) -> int | None:
    """The row of ``record.waits`` that is longest of those that end within a stretch; None if none does."""
    within = pl.col("end_ps").is_between(from_ps, to_ps, closed="left")
    rows = record.waits.with_row_index("row").filter(within)
    longest = (rows["end_ps"] - rows["since_ps"]).arg_max()
    return None if longest is None else int(rows["row"][longest])


class _Backwards:
    """The waits of every rank in order of their ends, and the steps taken so far."""

    def __init__(self, record: Record, links: pl.DataFrame) -> None:
        self._waits = with_parts(record.waits).with_row_index("row").sort("rank", "end_ps", "since_ps")
        self._ranks = self._waits["rank"].to_numpy()
        self._ends = self._waits["end_ps"].to_numpy()
        self._messages = record.messages.sort("message")
        self._numbers = self._messages["message"].to_numpy()
        rate = links.filter(pl.col("role") == "host")["bandwidth_bps"].max()
        self._ps_per_byte = 8e12 / float(rate) if isinstance(rate, int | float) else 0.0
        self.steps: list[dict[str, Any]] = []

    def message(self, number: int) -> dict[str, Any]:
        """A message of the record by its number. Raises ``ResultsError`` if the record does not have it."""
        at = int(np.searchsorted(self._numbers, number))
        if at >= len(self._numbers) or self._numbers[at] != number:
            raise ResultsError(f"the record: its waits name message {number}, which its messages do not have")
        return self._messages.row(at, named=True)

    def go(self, row: int) -> tuple[Cause, int]:
        """Takes steps until something explains the wait; what that is, and how much longer the partner computed."""
        first = int(self._waits.with_row_index("at").filter(pl.col("row") == row)["at"].item())
        enough = SHARE * float(self._waits["wait_ps"][first])
        at: int | None = first
        while at is not None and len(self.steps) < MAX_STEPS:
            wait = self._waits.row(at, named=True)
            step = self._step(wait)
            self.steps.append(step)
            if step["excess_ps"] is None:
                return "beginning", 0
            if step["excess_ps"] >= enough:
                return "slow message", 0
            before = self._before(step["origin_rank"], step["origin_ps"])
            worked = self._worked_longer(wait, step, before)
            if worked >= enough:
                return "computing", worked
            at = before
        return "beginning", 0

    def _step(self, wait: dict[str, Any]) -> dict[str, Any]:
        """A wait and what ended it."""
        kept = ("rank", "call", "since_ps", "end_ps", "late_ps", "network_ps", "message")
        step = {name: wait[name] for name in kept} | dict.fromkeys(_ENDED_BY)
        if wait["message"] is None:
            return step
        message = self.message(wait["message"])
        sent, posted = message["sent_at_ps"], message["posted_at_ps"]
        # What is done only when the wait is over has not begun the transfer.
        receiver_was_later = not message["eager"] and posted is not None and sent < posted < wait["end_ps"]
        side, origin = ("to_rank", posted) if receiver_was_later else ("from_rank", sent)
        under_way = wait["end_ps"] - origin
        if under_way < 0:
            late = f"message {wait['message']} begins after the end of the wait that it ends"
            raise ResultsError(f"the record: {late}, at {wait['end_ps']} ps of rank {wait['rank']}")
        ends = (message["from_rank"], message["to_rank"], message["bytes"], message[side], origin)
        excess = under_way - round(message["bytes"] * self._ps_per_byte)
        return step | dict(zip(_ENDED_BY, (*ends, message["received_at_ps"], under_way, excess), strict=True))

    def _before(self, rank: int, instant: int) -> int | None:
        """The last wait that a rank came out of by an instant."""
        low, high = np.searchsorted(self._ranks, [rank, rank + 1])
        at = int(low + np.searchsorted(self._ends[low:high], instant, side="right")) - 1
        return at if at >= low else None

    def _worked_longer(self, wait: dict[str, Any], step: dict[str, Any], before: int | None) -> int:
        """Return the work of the late partner since its last wait less that of the waiting rank since its own, ps."""
        mine = self._before(wait["rank"], wait["since_ps"])
        if before is None or mine is None or not wait["late_ps"] or step["origin_rank"] == wait["rank"]:
            return 0
        partner_worked = step["origin_ps"] - int(self._ends[before])
        return int(partner_worked - (wait["since_ps"] - int(self._ends[mine])))
