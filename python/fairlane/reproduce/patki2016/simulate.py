"""Simulating a cell of Patki et al. 2016: until the application is done."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.errors import RunError
from fairlane.power.account import by_job, power
from fairlane.reproduce.until_done import until_done
from fairlane.results.measured import Measured

if TYPE_CHECKING:
    from fairlane.scenario import Scenario
    from fairlane.study.task import Stopwatch

__all__ = ["simulate"]


def simulate(scenario: "Scenario", _arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """The application's run time, whom its packets waited for, and the energy of its hosts; ps and J.

    ``others`` and ``own`` are sums over all packets and ports. ``rails`` has the bytes that each rail carried into
    the fabric, of both jobs.
    """
    with watch.lap("set-up"):
        resolved = scenario.resolve()
    with watch.lap("simulating"):
        engine = until_done(resolved, 0)
    measured = Measured.of(engine)
    ranks = measured.ranks.filter(pl.col("job") == 0)
    if not (ranks["finished"] != 0).all():
        raise RunError(f"{scenario.name}: not done after {scenario.duration} ps", slug="limit")
    end = int(ranks.select(pl.col("finished_at").max()).item())
    run_time = end - resolved.jobs[0].start
    sockets = resolved.jobs[0].power
    assert sockets is not None, "cells have a table of power"
    drawn = by_job(power(["application"], [sockets], ranks, run_time))
    waits = measured.interference.filter(pl.col("delayed") == 0)
    mine = pl.col("delaying") == 0
    return {
        "run_time": run_time,
        "others": int(waits.filter(~mine)["waiting"].sum()),
        "own": int(waits.filter(mine)["waiting"].sum()),
        "computing": float(ranks.select(pl.col("compute").mean()).item()),
        "energy_j": float(drawn["energy_j"].item()),
        "interference_iterations": _behind(measured.ranks),
        "packet_hops": measured.packet_hops,
        "digest": measured.digest,
    }


def _behind(ranks: pl.DataFrame) -> int:
    """How many iterations the slowest rank of the interference has done, all-to-alls that is."""
    others = ranks.filter(pl.col("job") == 1)
    return int(others.select(pl.col("iterations").min()).item()) if others.height else 0
