"""Measuring runs of Patki et al. 2016: until the application is done; or its interference alone, for a while."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.core.errors import RunError
from fairlane.core.tables import EngineTables, frame, job_finished
from fairlane.model.power import by_job, power
from fairlane.study.shipped.advice.measure import extract_features, link_utilisation

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario
    from fairlane.study.tasks.task import Stopwatch


def simulate(scenario: "Scenario", _arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """A table ``measured`` of the application: run time, what it was spent on, queueing, energy of its hosts; ps and J.

    ``others`` and ``own_queueing`` are sums over all packets and ports. How busy links were says something of the
    application where it is alone.
    """
    with watch.lap("set-up"):
        resolved = scenario.resolve()
    with watch.lap("simulating"):
        engine = watch.drive(resolved, done=job_finished(0))
    measured = EngineTables.of(engine)
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
    values = {
        "run_time": run_time,
        "ranks": ranks.height,
        "others": int(waits.filter(~mine)["waiting"].sum()),
        "own_queueing": int(waits.filter(mine)["waiting"].sum()),
        **extract_features(measured, 0),
        **link_utilisation(measured, frame(resolved.fabric.link_rows()), run_time),
        "energy_j": float(drawn["energy_j"].item()),
        "interference_iterations": _behind(measured.ranks),
    }
    return _answer(values, measured)


def interference(scenario: "Scenario", _arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """Measure the use of links by the interference alone, for the scenario's duration."""
    with watch.lap("set-up"):
        resolved = scenario.resolve()
    with watch.lap("simulating"):
        engine = watch.drive(resolved)
    measured = EngineTables.of(engine)
    used = link_utilisation(measured, frame(resolved.fabric.link_rows()), resolved.duration)
    return _answer({**extract_features(measured, 0), **used}, measured)


def _answer(values: Mapping[str, float], measured: EngineTables) -> dict[str, Any]:
    table = {key: [value] for key, value in values.items()}
    return {"tables": {"measured": table}, "packet_hops": measured.packet_hops, "digest": measured.digest}


def _behind(ranks: pl.DataFrame) -> int:
    """Return the number of iterations, all-to-alls, that the slowest rank of the interference has done."""
    others = ranks.filter(pl.col("job") == 1)
    return int(others.select(pl.col("iterations").min()).item()) if others.height else 0
