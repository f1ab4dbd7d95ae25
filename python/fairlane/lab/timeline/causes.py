"""For whose packets every packet of a record waited, by the rules of the interference matrix.

While a link carries a packet, what waits there waits for the job of that packet. While it is idle because no queued
packet has credits, the delay counts for the job whose packet returns the next credit to a lane with queued packets
(``docs/model.md``). A credit of a link returns when its packet has left the buffer at the far end: one link latency
after its tail was sent on, or was delivered.

Summed over a whole run of switches with output queues these are the cells of the matrix. In a record of a shorter time
range, packets that left earlier are not known; delay that they caused, and delay before the range, counts for ``None``.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

QUEUEING = pl.Schema({"row": pl.UInt32, "aggressor": pl.UInt32, "queueing_ps": pl.Int64})
_UNKNOWN = -1
_Array = NDArray[np.int64]


def queueing_causes(departures: pl.DataFrame, links: pl.DataFrame, from_ps: int = 0) -> pl.DataFrame:
    """The queueing delay of each departure by the job that caused it, where there is any.

    The result has the columns ``row`` of the departure, ``aggressor``, the number of a job or null if it is not known,
    and ``queueing_ps``. ``departures`` has at least the columns of ``schemas.ANALYSIS``, ``links`` those of a run's
    fabric; the record begins at ``from_ps``.
    """
    table = _on_wires(departures, links)
    pieces = [_at_link(rows, from_ps) for _, rows in table.group_by("link", maintain_order=True)]
    causes = pl.concat([QUEUEING.to_frame(), *pieces])
    return causes.filter(pl.col("queueing_ps") > 0).sort("row", "aggressor", nulls_last=True)


def _on_wires(departures: pl.DataFrame, links: pl.DataFrame) -> pl.DataFrame:
    """The departures in order of link and time, with their time on the wire and when and where their credit returns."""
    wires = links.select(
        pl.col("link").cast(pl.UInt32),
        "bandwidth_bps",
        pl.col("latency_ps").cast(pl.Int64),
        pl.col("to_vertex").str.starts_with("host ").alias("last"),
    )
    rates = dict(zip(wires["link"].to_list(), wires["bandwidth_bps"].to_list(), strict=True))
    sizes = departures.select("link", "bytes").unique()
    spans = [-(-8 * 10**12 * size // rates[link]) for link, size in sizes.iter_rows()]
    sizes = sizes.with_columns(wire_ps=pl.Series(spans, dtype=pl.Int64))
    packet = ["job", "token", "stage", "packet"]
    at = pl.col("time_ps").cast(pl.Int64)
    # A token is used again only when its message is over, so that a packet's next departure is its next hop.
    onward = (at + pl.col("wire_ps")).shift(-1).over(packet, order_by="time_ps")
    delivered = at + pl.col("wire_ps") + pl.col("latency_ps")
    return (
        departures.with_row_index("row")
        .join(sizes, on=["link", "bytes"], how="left")
        .join(wires, on="link", how="left")
        .with_columns(credit_ps=pl.when("last").then(delivered).otherwise(onward) + pl.col("latency_ps"))
        .sort("link", "time_ps", "row")
    )


def _at_link(rows: pl.DataFrame, from_ps: int) -> pl.DataFrame:
    """The delays of the packets that left over one link."""
    times, waited, wire, jobs = (_numbers(rows[name]) for name in ("time_ps", "queueing_ps", "wire_ps", "job"))
    waiting = np.flatnonzero(waited)
    if not waiting.size:
        return QUEUEING.to_frame()
    ends, causes = _charges(times, wire, jobs, _credits(rows, times, waited))
    since, until = np.maximum(times - waited, from_ps)[waiting], times[waiting]
    numbers = rows["row"].to_numpy()[waiting]
    rest = waited[waiting]
    parts = []
    for job in np.unique(causes[causes != _UNKNOWN]).tolist():
        spent = _charged(ends, causes == job, until) - _charged(ends, causes == job, since)
        spent = np.minimum(np.maximum(spent, 0), rest)
        rest = rest - spent
        parts.append((numbers, job, spent))
    parts.append((numbers, None, rest))
    return pl.concat(
        pl.DataFrame(
            {"row": row, "aggressor": pl.repeat(job, len(row), dtype=pl.UInt32, eager=True), "queueing_ps": spent}
        )
        for row, job, spent in parts
    ).cast(QUEUEING)


def _credits(rows: pl.DataFrame, times: _Array, waited: _Array) -> pl.DataFrame:
    """Return the returns of credits to lanes in which packets wait: ``credit_ps`` and ``job``, one at an instant."""
    returned = rows.drop_nulls("credit_ps").select("credit_ps", "lane", "job").sort("credit_ps", "lane", "job")
    lanes = rows["lane"].to_numpy()
    kept = []
    for (lane,), of_lane in returned.group_by("lane", maintain_order=True):
        waiting = (lanes == lane) & (waited > 0)
        at = _numbers(of_lane["credit_ps"])
        begun = np.searchsorted(np.sort((times - waited)[waiting]), at, side="left")
        over = np.searchsorted(times[waiting], at, side="left")
        kept.append(of_lane.filter(pl.Series(begun > over)))
    return pl.concat(kept or [returned]).sort("credit_ps", "lane", "job").unique("credit_ps", maintain_order=True)


def _charges(times: _Array, wire: _Array, jobs: _Array, credits: pl.DataFrame) -> tuple[_Array, _Array]:
    """A link's time in consecutive parts, each from the end of the one before: their ends, and who is charged."""
    at, by = _numbers(credits["credit_ps"]), _numbers(credits["job"])
    last = np.searchsorted(times, at, side="left") - 1
    idle = (last < 0) | (at > (times + wire)[np.maximum(last, 0)])
    nobody = np.full(len(times), _UNKNOWN)
    ends = np.concatenate([times + wire, at[idle], times])
    causes = np.concatenate([jobs, by[idle], nobody])
    # At one instant a packet ends first, then credits come, then the next packet starts.
    kind = np.repeat([0, 1, 2], [len(times), int(idle.sum()), len(times)])
    order = np.lexsort((kind, ends))
    return ends[order], causes[order]


def _charged(ends: _Array, is_charged: NDArray[np.bool_], at: _Array) -> _Array:
    """Return the time up to each instant that is in parts charged to somebody."""
    spans = np.diff(ends, prepend=ends[:1])
    total = np.concatenate([[0], np.cumsum(np.where(is_charged, spans, 0))])
    upto = np.searchsorted(ends, at, side="left")
    inside = np.minimum(upto, len(ends) - 1)
    begun = np.where(inside > 0, ends[np.maximum(inside - 1, 0)], at)
    partial = np.where((upto < len(ends)) & is_charged[inside], np.maximum(at - begun, 0), 0)
    return np.asarray(total[upto] + partial, dtype=np.int64)


def _numbers(column: pl.Series) -> _Array:
    return np.asarray(column.to_numpy(), dtype=np.int64)


def of_messages(departures: pl.DataFrame, messages: pl.DataFrame, causes: pl.DataFrame) -> pl.DataFrame:
    """The delays of ``queueing_causes`` summed over the packets of each message: ``message``, ``aggressor``, sum.

    A packet belongs to the last message of its job with the same token that was sent before it. Packets of messages
    that are not in the record are left out.
    """
    sent = messages.select("job", "token", "message", pl.col("sent_at_ps").cast(pl.Int64).alias("at_ps"))
    packets = departures.with_row_index("row").select(
        "row", pl.col("job", "token").cast(pl.UInt32), pl.col("time_ps").cast(pl.Int64).alias("at_ps")
    )
    owner = packets.filter(pl.col("row").is_in(causes["row"].unique().implode())).sort("at_ps")
    owner = owner.join_asof(sent.sort("at_ps"), on="at_ps", by=["job", "token"], check_sortedness=False)
    joined = causes.join(owner.select("row", "message"), on="row").drop_nulls("message")
    sums = joined.group_by("message", "aggressor").agg(pl.col("queueing_ps").sum())
    return sums.sort("message", "aggressor", nulls_last=True)


def main_cause(sums: Sequence[tuple[int | None, int]]) -> int | None:
    """The job that caused most of the delay, the first among equals; None if that is not known, or there is none."""
    known = [(-spent, job) for job, spent in sums if job is not None]
    return min(known)[1] if known else None
