"""Measuring steps of a collective beside production, and the gain of the unused service level."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.core.errors import RunError
from fairlane.core.statistics import of_ratios
from fairlane.core.tables import PS, EngineTables, job_finished
from fairlane.core.units import DURATION
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario.models import Placement
from fairlane.papers.published.leonardo_levels.production import allocations, jobs, moment

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario
    from fairlane.study.sql import Database
    from fairlane.study.tasks.task import Stopwatch

HERE = Path(__file__).parent
GPUS = 4
"""GPUs of a node, each with an adapter of its own."""
FITTED = "allreduce-1g-16"
"""The cell that the load of production is fitted on."""


def simulate(scenario: "Scenario", arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """A table ``measured``: the time of the measured job, and what ran beside it.

    Raises ``RunError`` if it is not done after the scenario's duration, ``ScenarioError`` for arguments.
    """
    with watch.lap("set-up"):
        job = scenario.jobs[0]
        assert job.ranks is not None, "the study gives ranks"
        known = allocations(HERE / arguments["allocations"])
        now = moment(known, job.ranks // (job.ranks_per_host or 1), scenario.seed)
        rate = float(Fabric.build(scenario.fabric.spec).links["bandwidth"].max()) / 8
        placed = job.model_copy(update={"placement": Placement(name="list", hosts=list(now.own))})
        beside = list(jobs(now, arguments, rate, scenario.seed))
        resolved = scenario.model_copy(update={"jobs": [placed, *beside]}).resolve()
    with watch.lap("simulating"):
        engine = watch.drive(resolved, done=job_finished(0))
    measured = EngineTables.of(engine)
    ranks = measured.ranks.filter(pl.col("job") == 0)
    if not (ranks["finished"] != 0).all():
        raise RunError(f"{scenario.name}: not done after {DURATION.format(scenario.duration)}", slug="limit")
    end = int(ranks.select(pl.col("finished_at").max()).item())
    assert job.workload is not None, "the study gives a workload"
    assert isinstance(job.stop, int), "the study gives a number of steps"
    time_s = (end - resolved.jobs[0].start) * PS
    row = {
        "nodes": len(now.own),
        "time_s": time_s,
        "node_gb_per_s": job.workload.message_size * GPUS * job.stop / time_s * 1e-9,
        "cells_used": len({host // 180 for host in now.own}),
        "other_jobs": len(beside),
        "other_nodes": sum(map(len, now.others)),
    }
    table = {key: [value] for key, value in row.items()}
    return {"tables": {"measured": table}, "packet_hops": measured.packet_hops, "digest": measured.digest}


def gains(tables: "Database") -> pl.DataFrame:
    """A row for each cell: the gain of the unused level, its mean over moments with interval, and what was measured.

    Both levels have the same moments, so the gain of each is a ratio of two times.
    """
    paired = tables.ask("""
        SELECT cell, default_.time_s / unused.time_s AS gain, default_.node_gb_per_s AS on_default,
            unused.node_gb_per_s AS on_unused
        FROM (FROM measured WHERE level = 'default') default_ JOIN (FROM measured WHERE level = 'unused') unused
            USING (cell, seed) ORDER BY cell, seed
    """)
    rows = []
    for position, of in enumerate(cells().iter_rows(named=True)):
        part = paired.filter(pl.col("cell") == of["cell"])
        gain = of_ratios(part["gain"].to_list())
        if gain is not None:
            predicted = {"predicted": gain.value, "low": gain.low, "high": gain.high, "moments": part.height}
            means = part.select(pl.col("on_default", "on_unused").mean()).row(0, named=True)
            rows.append({"position": position, **of, "fitted": of["cell"] == FITTED, **predicted, **means})
    return pl.DataFrame(rows, infer_schema_length=None)


def cells() -> pl.DataFrame:
    """Return the measurements: a row for each cell, with the name that it has in the study."""
    table = pl.read_csv(HERE / "service-levels.csv")
    kind = pl.col("collective").str.split(" ").list.last()
    mib = pl.col("size_bytes") // (1 << 20)
    size = pl.when(mib < 1024).then(pl.format("{}m", mib)).otherwise(pl.format("{}g", mib // 1024))
    return table.select(
        pl.format("{}-{}-{}", kind, size, "nodes").alias("cell"),
        "collective",
        "size_bytes",
        "nodes",
        (pl.col("sl1_unused") / pl.col("sl0_default")).alias("measured"),
    )
