"""Links of a run: flits as counters of switches have them, waits against them, and which links are busy themselves.

A flit is taken to be 32 bytes on the wire. The size is a scale only: nothing here depends on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from fairlane.analysis.neighbours import DIRECT, ends
from fairlane.analysis.record import Record
from fairlane.fabric.congestion import PEERS, Port, Root, trees, usual_bandwidth
from fairlane.fabric.view import Fabric
from fairlane.results.run import Run
from fairlane.results.views import by_link

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
    links = by_link(run.ports)
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
