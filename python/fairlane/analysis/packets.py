"""The packets of one message: over which links they went, how long they waited where, and for whose packets.

A packet waits in a port while the link carries other packets, or while the link is idle because the next switch has no
room. The first is charged to the jobs of the packets on the link, for as long as each was on it within the wait. The
second is charged to the jobs whose packets lay in the buffer at the link's far end, by bytes and time; that goes by who
was there, where the matrix of interference goes by the packet that made room in the end.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairlane.analysis.record import Record

AHEAD = "on the link"
"""The packet waited while the link carried others."""
NO_ROOM = "no room beyond"
"""The packet waited while the link was idle: there was no room in the buffer at its far end."""
OWN = "itself"
"""The message's own packets."""

_KEY = ["job", "token", "stage", "packet"]
_DELAYERS = pl.Schema({"link": pl.UInt32, "how": pl.String, "by": pl.String, "queueing_ps": pl.Int64})
_Row = tuple[int, str, str, int]


def message_packets(record: Record, message: dict[str, Any]) -> pl.DataFrame:
    """Departures of all packets of a message (a row of the record), its protocol's included, in order of time."""
    over = message["acknowledged_at_ps"] or message["received_at_ps"] or record.to_ps
    at = pl.col("time_ps")
    return record.departures.filter(
        pl.col("token") == message["token"], pl.col("job") == record.number, at >= message["sent_at_ps"], at <= over
    ).sort("time_ps")


def by_link(packets: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """Per link, in the order in which the message came to it: packets, their waiting in all, and the longest wait."""
    shown = ("from_vertex", "to_vertex", "link_name", "class")
    named = links.select(pl.col("link").cast(pl.UInt32), *(name for name in shown if name in links.columns))
    waited = pl.col("queueing_ps")
    sums = packets.group_by("link").agg(
        pl.len().alias("packets"),
        waited.sum(),
        waited.max().alias("greatest_ps"),
        (pl.col("time_ps") - waited).min().alias("first_ps"),
    )
    return sums.join(named, on="link", how="left").sort("first_ps", "link")


def delayers(record: Record, packets: pl.DataFrame, links: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the delays of a message's packets: ``link``, ``how`` (``AHEAD`` or ``NO_ROOM``), ``by``, ``queueing_ps``.

    ``by`` is a job's name, or ``OWN`` for packets of the message itself. Waiting before the record began is left out.
    ``packets`` are those of ``message_packets``, ``links`` the fabric's, ``names`` the jobs' by number.
    """
    waiting = packets.filter(pl.col("queueing_ps") > 0)
    if waiting.is_empty():
        return _DELAYERS.to_frame()
    wires = links.select(pl.col("link").cast(pl.UInt32), "from_vertex", "to_vertex", "bandwidth_bps")
    of_message = (pl.col("token") == packets["token"][0]) & (pl.col("job") == record.number)
    of_job = pl.col("job").replace_strict(dict(enumerate(names)), return_dtype=pl.String)
    left = record.departures.with_columns(by=pl.when(of_message).then(pl.lit(OWN)).otherwise(of_job))
    rows = [
        row
        for link in waiting["link"].unique(maintain_order=True)
        for row in _at_link(record, left, waiting.filter(pl.col("link") == link), wires)
    ]
    return pl.DataFrame(rows, schema=_DELAYERS, orient="row").filter(pl.col("queueing_ps") > 0)


def _at_link(record: Record, left: pl.DataFrame, waiting: pl.DataFrame, wires: pl.DataFrame) -> Iterator[_Row]:
    """Return the causes of the message's queueing at one link."""
    link = int(waiting["link"][0])
    until = waiting["time_ps"].to_numpy()
    since = np.maximum(until - waiting["queueing_ps"].to_numpy(), record.from_ps)
    wire = wires.row(by_predicate=pl.col("link") == link, named=True)
    over = left.filter(pl.col("link") == link, pl.col("time_ps") < int(until.max())).sort("time_ps")
    per_byte = Fraction(8 * 10**12, int(wire["bandwidth_bps"]))
    idle = int((until - since).clip(0).sum())
    for (by,), rows in over.group_by("by", maintain_order=True):
        starts = rows["time_ps"].to_numpy()
        wire_time = -(-rows["bytes"].to_numpy() * per_byte.numerator // per_byte.denominator)
        busy = int((_busy(starts, wire_time, until) - _busy(starts, wire_time, since)).clip(0).sum())
        idle -= busy
        yield link, AHEAD, str(by), busy
    longest = int((until - since).argmax())
    lane = over.filter(pl.col("lane") == waiting["lane"][longest])
    beyond = wires.filter(pl.col("from_vertex") == wire["to_vertex"])["link"]
    held = _holders(lane, left.filter(pl.col("link").is_in(beyond.implode())), int(since[longest]), int(until[longest]))
    for by, share in held.items():
        yield link, NO_ROOM, by, round(max(0, idle) * share)


def _busy(starts: NDArray[np.int64], spans: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time, up to each instant, of a link with packets that start in this order without overlap."""
    upto = np.searchsorted(starts, at, side="left")
    total = np.concatenate([[0], np.cumsum(spans)])[upto]
    last = np.maximum(upto - 1, 0)
    rest = np.where(upto > 0, np.maximum(starts[last] + spans[last] - at, 0), 0)
    return total - rest


def _holders(over: pl.DataFrame, beyond: pl.DataFrame, since: int, until: int) -> dict[str, float]:
    """The shares, by bytes and time, in which packets that came over a link lay beyond it within an interval."""
    onward = beyond.select(*_KEY, pl.col("time_ps"), pl.col("time_ps").alias("on_ps")).sort("time_ps")
    there = over.sort("time_ps").join_asof(onward, on="time_ps", by=_KEY, strategy="forward", check_sortedness=False)
    stay = pl.min_horizontal(pl.col("on_ps").fill_null(until), pl.lit(until)) - pl.max_horizontal(
        "time_ps", pl.lit(since)
    )
    weights = (
        there.with_columns(weight=stay.clip(0) * pl.col("bytes"))
        .group_by("by", maintain_order=True)
        .agg(pl.col("weight").sum().cast(pl.Float64))
        .filter(pl.col("weight") > 0)
    )
    total = float(weights["weight"].sum())
    return {by: weight / total for by, weight in weights.iter_rows()}
