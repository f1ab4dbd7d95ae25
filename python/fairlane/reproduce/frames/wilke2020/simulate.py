"""Simulating a cell of Wilke and Kenny 2020: until its foreground is done; background jobs never end."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane import _core
from fairlane.engine.iterations import job_finished
from fairlane.engine.measured import Measured, frame, marks
from fairlane.errors import RunError
from fairlane.results import derive
from fairlane.results.ports import by_link
from fairlane.scenario import Resolved

if TYPE_CHECKING:
    from fairlane.scenario import Scenario
    from fairlane.tasks.task import Stopwatch

__all__ = ["simulate"]


def simulate(scenario: "Scenario", _arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """When each rank of the foreground, the last job, ended each iteration, and what ports did with their time."""
    with watch.lap("set-up"):
        resolved = scenario.resolve()
    with watch.lap("simulating"):
        engine = watch.drive(resolved, done=job_finished(len(resolved.jobs) - 1))
    found, measured = marks(engine), Measured.of(engine)
    if found.is_empty():
        raise RunError(f"{scenario.name}: no iteration in {scenario.duration} ps", slug="limit")
    shares = pl.col("port_active_share", "port_stalled_share")
    ports = by_link(derive.ports(_links(resolved), measured)).select(shares)
    return {
        "marks": found.select("rank", "iteration", "at").to_dict(as_series=False),
        "ports": ports.to_dict(as_series=False),
        "simulated_ps": measured.now,
        "packet_hops": measured.packet_hops,
        "digest": measured.digest,
    }


def _links(resolved: Resolved) -> pl.DataFrame:
    fabric = _core.Fabric(json.dumps(resolved.tables["fabric"]))
    return derive.links(frame(fabric.links()), fabric.classes())
