"""Simulating a cell of Yang et al. 2016: until the job that is measured has gone once through its trace."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane import _core
from fairlane.engine.iterations import job_finished
from fairlane.engine.measured import Measured, frame
from fairlane.errors import RunError
from fairlane.scenario import Resolved

if TYPE_CHECKING:
    from fairlane.scenario import Scenario
    from fairlane.tasks.task import Stopwatch

__all__ = ["simulate"]


def simulate(scenario: "Scenario", arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """Of each rank of the measured job: time in data transfers, waiting for partners, and in MPI in all, ps.

    And of the fabric: over how many links between switches a byte went on average, and for which share of the time the
    busiest of them was active.
    """
    job = int(arguments["job"])
    with watch.lap("set-up"):
        resolved = scenario.resolve()
    with watch.lap("simulating"):
        engine = watch.drive(resolved, done=job_finished(job))
    measured = Measured.of(engine)
    ranks = measured.ranks.filter(pl.col("job") == job).sort("rank")
    if not (ranks["finished"] != 0).all():
        raise RunError(f"{scenario.name}: not done after {scenario.duration} ps", slug="limit")
    end: int = ranks["finished_at"].to_numpy().max().item()
    return {
        **ranks.select("network", "late_partner", "communication").to_dict(as_series=False),
        "end": end,
        **_links(resolved, measured, engine.now if engine.now < resolved.duration else end),
        "packet_hops": measured.packet_hops,
        "digest": measured.digest,
    }


def _links(resolved: Resolved, measured: Measured, span: int) -> dict[str, float]:
    """How far bytes went and how busy a link was; ``span`` is how long anything happened, ps."""
    links = frame(_core.Fabric(json.dumps(resolved.tables["fabric"])).links())
    of_hosts = links.select("link", first=pl.col("from_host") >= 0, last=pl.col("to_host") >= 0)
    ports = measured.ports.join(of_hosts.with_columns(pl.col("link").cast(measured.ports["link"].dtype)), on="link")
    between = ports.filter(~pl.col("first") & ~pl.col("last"))
    by_link = between.group_by("link").agg(pl.col("port_active").first())
    sent = ports.filter(pl.col("first"))["bytes"].sum()
    return {
        "links_per_byte": int(between["bytes"].sum()) / int(sent),
        "busiest_share": by_link["port_active"].to_numpy().max().item() / span,
    }
