"""What workers compute for advice: one simulation, and what it tells of each job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from fairlane.scenario import Scenario
    from fairlane.tasks.task import Stopwatch

__all__ = ["simulate"]


def simulate(scenario: Scenario, _arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """One simulation of the scenario's duration: progress of each job, where its time went, how busy links were."""
    from fairlane import _core
    from fairlane.advice.fingerprint import extract_features, link_utilisation
    from fairlane.advice.progress import delivered, progress
    from fairlane.engine.measured import Measured, frame, marks

    with watch.lap("set-up"):
        decided = scenario.resolve()
        resolved = replace(decided, jobs=tuple(replace(job, marks=True) for job in decided.jobs))
    with watch.lap("simulating"):
        engine = watch.drive(resolved)
    measured, jobs = Measured.of(engine), list[dict[str, Any]]()
    fabric = _core.Fabric(json.dumps(resolved.tables["fabric"]))
    links, marked = frame(fabric.links()), marks(engine)
    for number, job in enumerate(resolved.jobs):
        ranks = measured.ranks.filter(pl.col("job") == number)
        ended = bool((ranks["finished"] != 0).all())
        span = (int(ranks.select(pl.col("finished_at").max()).item()) if ended else measured.now) - job.start
        own = measured.interference.filter((pl.col("delayed") == number) & (pl.col("delaying") == number))
        jobs.append(
            {
                "job": job.name,
                "span": span,
                **progress(marked.filter(pl.col("job") == number), job.ranks),
                "delivered": delivered(measured.ports, links, job.hosts) / measured.now,
                **extract_features(measured, number),
                "own": int(own["waiting"].sum()) / job.ranks,
            }
        )
    used = link_utilisation(measured, fabric, measured.now)
    return {"jobs": jobs, **used, "packet_hops": measured.packet_hops, "digest": measured.digest}
