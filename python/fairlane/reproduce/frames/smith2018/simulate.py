"""Simulating a run of Smith et al. 2018: until MILC is done, with counters read after every timestep."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.engine import Engine
from fairlane.engine.measured import PS, frame
from fairlane.errors import RunError
from fairlane.runner.counters import IterationCounters

if TYPE_CHECKING:
    from fairlane.scenario import Resolved, Scenario
    from fairlane.tasks.task import Stopwatch

__all__ = ["simulate", "timesteps_done"]

WAITING = ("wait", "allreduce")
"""The calls that the paper finds dominant."""


def simulate(scenario: "Scenario", _arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """What MILC's switches and all switches counted in each timestep, and what its ranks spent their time on.

    ``own`` and ``all`` are tables by column, times are in seconds.
    """
    with watch.lap("set-up"):
        resolved = scenario.resolve()
        asked = resolved.switch_counters
        assert asked is not None, "cells say at which job counters are read"
        own = IterationCounters(resolved, asked)
        everywhere = IterationCounters(resolved, asked.model_copy(update={"all_switches": True}))
    with watch.lap("simulating"):
        done = timesteps_done(own, int(scenario.jobs[0].stop or 0))
        engine = watch.drive(resolved, done, [own, everywhere])
    ranks = frame(engine.table("ranks")).filter(pl.col("job") == 0)
    if not (ranks["finished"] != 0).all():
        raise RunError(f"{scenario.name}: not done after {scenario.duration} ps", slug="limit")
    calls = frame(engine.table("calls")).filter(pl.col("job") == 0)
    spent = int(calls["time"].sum())
    return {
        "own": own.table(engine).rename({"time_s": "seconds"}).to_dict(as_series=False),
        "all": everywhere.table(engine).rename({"time_s": "seconds"}).to_dict(as_series=False),
        "compute_s": (ranks["compute"] * PS).to_list(),
        "mpi_s": (ranks["communication"] * PS).to_list(),
        "calls": {call: time / spent for call, time in calls.select("call", "time").iter_rows()},
        "groups": _groups(resolved),
        "jobs": len(resolved.jobs) - 1,
        "hosts_filled": sum(len(set(job.hosts)) for job in resolved.jobs[1:]),
        "packet_hops": engine.packet_hops,
        "digest": engine.digest(),
    }


def timesteps_done(counters: IterationCounters, timesteps: int) -> Callable[[Engine], bool]:
    """A condition for ``drive``: all ranks of the first job have done their timesteps, and the counters saw it."""
    return lambda engine: counters.done == timesteps and min(engine.progress()[0]) == timesteps


def _groups(resolved: "Resolved") -> int:
    """Over how many groups the first job is spread."""
    from fairlane.fabric import Fabric

    fabric = Fabric.build(resolved.tables["fabric"])
    return len({fabric.leaf_of[host] // fabric.plan["switches"] for host in resolved.jobs[0].hosts})
