"""The roots of a run's congestion: which links are busy themselves, by the table of ports."""

import polars as pl

from fairlane.fabric.congestion import Port, Root, trees
from fairlane.fabric.speeds import PEERS, usual_bandwidth
from fairlane.results.run import Run
from fairlane.results.views import by_link


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
    found = trees(ports)
    delay = {link: sum(rows[port]["queueing_ps"] for port in (link, *stalled)) for link, stalled in found.items()}
    users = _users(run)
    return [
        Root(
            link=rows[link]["link_name"],
            active_share=rows[link]["port_active_share"],
            bandwidth_bps=rows[link]["bandwidth_bps"],
            usual_bps=rows[link]["usual_bps"],
            upstream=len(found[link]),
            jobs=users.get(link) or _on_host(run, rows[link]["from_vertex"], rows[link]["to_vertex"]),
        )
        for link in sorted(found, key=lambda link: (-delay[link], link))
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
