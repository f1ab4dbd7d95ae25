"""Links of a run: flits as counters of switches have them, waits against them, and which links are busy themselves.

A flit is taken to be 32 bytes on the wire. The size is a scale only: nothing here depends on it.

The packets of one message: over which links they went, how long they waited where, and for whose packets.

A packet waits in a port while the link carries other packets, or while the link is idle because the next switch has no
room. The first is charged to the jobs of the packets on the link, for as long as each was on it within the wait. The
second is charged to the jobs whose packets lay in the buffer at the link's far end, by bytes and time; that goes by who
was there, where the matrix of interference goes by the packet that made room in the end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairlane.model.fabric.congestion import PEERS, Port, Root, trees, usual_bandwidth
from fairlane.model.fabric.view import Fabric
from fairlane.results.run import Run
from fairlane.results.views import by_link as ports_by_link
from fairlane.sim.analysis.neighbours import DIRECT, ends
from fairlane.sim.analysis.record import Record

FLIT_BYTES = 32
"""Bytes that are counted as one flit."""


def link_flits(record: Record, links: pl.DataFrame) -> pl.DataFrame:
    """The flits of all jobs that left over each link of the fabric within the record: ``link``, ``role``, ``flits``.

    Links that nothing left over are in it, with zero.
    """
    sums = record.departures.group_by("link").agg(
        ((pl.col("bytes").sum() + FLIT_BYTES - 1) // FLIT_BYTES).alias("flits")
    )
    named = links.select(pl.col("link").cast(pl.UInt32), "class", "role")
    return named.join(sums, on="link", how="left", maintain_order="left").with_columns(pl.col("flits").fill_null(0))


@dataclass(frozen=True)
class Trend:
    """Dependence of a time on flits; None where there are too few points."""

    low_p95: float | None
    """95th percentile in the lowest quarter of flits, ps."""
    high_p95: float | None
    """The same in the highest quarter."""
    pearson: float | None
    """Pearson's coefficient of correlation; None as well if one of the two does not vary."""

    @classmethod
    def of(cls, points: pl.DataFrame, column: str) -> Self:
        """The trend of a column of ``points`` with its ``flits``."""
        known = points.drop_nulls([column, "flits"])
        if known.height < 2:
            return cls(None, None, None)
        x, y = known["flits"].cast(pl.Float64).to_numpy(), known[column].cast(pl.Float64).to_numpy()
        low, high = np.quantile(x, [0.25, 0.75])
        p95 = [float(np.quantile(y[chosen], 0.95)) for chosen in (x <= low, x >= high)]
        varies = x.std() > 0 and y.std() > 0
        return cls(p95[0], p95[1], float(np.corrcoef(x, y)[0, 1]) if varies else None)


@dataclass(frozen=True)
class FlitsAgainstWaits:
    """Waits of receivers against the flits on the link that joins the pair's switches."""

    points: pl.DataFrame
    """One row per pair or message: its ranks, ``neighbour``, ``flits``, ``wait_ps``, ``under_way_ps``."""
    waits: Trend
    """Dependence of receivers' waits on flits."""
    under_way: Trend
    """Dependence of the times under way of messages on flits."""


def flits_against_waits(
    delays: pl.DataFrame, flits: pl.DataFrame, fabric: Fabric, hosts: Sequence[int]
) -> FlitsAgainstWaits:
    """Figure 8 of Smith et al. 2018: pairs whose switches share a link of their group, without late partners.

    ``delays`` are pairs of ``first_exchange`` or messages of ``message_delays``, ``flits`` are those of ``link_flits``,
    ``hosts`` those of the ranks. A row is left out if the receiver waited longer for the sender's call than for the
    network. One that the receiver did not wait for counts as a wait of zero. Parallel links count with their mean.
    """
    direct = delays.filter(
        pl.col("neighbour").cast(pl.String).is_in(DIRECT), pl.col("receiver_late_ps") <= pl.col("receiver_network_ps")
    )
    a, b = ends(hosts, direct)
    leaves = np.asarray(fabric.leaf_of, dtype=np.int64)
    joined = direct.with_columns(from_switch=pl.Series(leaves[a]), to_switch=pl.Series(leaves[b])).join(
        _between_switches(flits, fabric), on=["from_switch", "to_switch"], how="inner", maintain_order="left"
    )
    wait = pl.col("receiver_ps").alias("wait_ps")
    points = joined.select("from_rank", "to_rank", "flits", wait, "under_way_ps", "neighbour")
    return FlitsAgainstWaits(points, Trend.of(points, "wait_ps"), Trend.of(points, "under_way_ps"))


def _between_switches(flits: pl.DataFrame, fabric: Fabric) -> pl.DataFrame:
    """The mean flits of the links from one switch to another."""
    columns = {name: fabric.links[name] for name in ("link", "from_switch", "to_switch")}
    links = pl.DataFrame(columns).with_columns(pl.col("link").cast(pl.UInt32))
    between = links.filter(pl.col("from_switch") >= 0, pl.col("to_switch") >= 0)
    return between.join(flits, on="link").group_by("from_switch", "to_switch").agg(pl.col("flits").mean())


def roots(run: Run) -> list[Root]:
    """The roots of a run, those with most queueing delay in their trees first."""
    links = ports_by_link(run.ports)
    usual = usual_bandwidth({name: links[name].to_numpy() for name in (*PEERS, "bandwidth_bps")}, "bandwidth_bps")
    rows = {row["link"]: row for row in links.with_columns(usual_bps=pl.Series(usual)).iter_rows(named=True)}
    ports = (
        Port(
            row["link"],
            row["from_vertex"],
            row["to_vertex"],
            row["port_active_share"],
            row["port_stalled_share"],
            row["queueing_ps"],
        )
        for row in rows.values()
    )
    stalled_by_root = trees(ports)
    delay = {
        link: sum(rows[port]["queueing_ps"] for port in (link, *stalled)) for link, stalled in stalled_by_root.items()
    }
    users = _users(run)
    return [
        Root(
            link=rows[link]["link_name"],
            active_share=rows[link]["port_active_share"],
            bandwidth_bps=rows[link]["bandwidth_bps"],
            usual_bps=rows[link]["usual_bps"],
            upstream=len(stalled_by_root[link]),
            jobs=users.get(link) or _on_host(run, rows[link]["from_vertex"], rows[link]["to_vertex"]),
        )
        for link in sorted(stalled_by_root, key=lambda link: (-delay[link], link))
    ]


def _users(run: Run) -> dict[int, tuple[str, ...]]:
    """By link the jobs whose packets wait at it, most first; nothing without ``observe.interference_by_port``."""
    if run.port_interference is None:
        return {}
    delays = run.port_interference.group_by("link", "victim").agg(pl.col("queueing_ps").sum())
    ordered = delays.filter(pl.col("queueing_ps") > 0).sort("queueing_ps", "victim", descending=[True, False])
    return {link: tuple(names) for link, names in ordered.group_by("link").agg(pl.col("victim")).iter_rows()}


def _on_host(run: Run, *vertices: str) -> tuple[str, ...]:
    """The jobs on the host at an end of a link, if one is there."""
    hosts = [int(vertex.removeprefix("host ")) for vertex in vertices if vertex.startswith("host ")]
    return tuple(run.ranks.filter(pl.col("host").is_in(hosts))["name"].unique(maintain_order=True))


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
