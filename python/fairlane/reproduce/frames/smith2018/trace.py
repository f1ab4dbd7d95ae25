"""Tracing a run of Smith et al. 2018: its fastest and its slowest timestep, message by message.

The run is simulated once to find the two, and again with a record of each: the same seed gives the same run.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.analysis import (
    Period,
    Record,
    View,
    confusion,
    extremes,
    first_exchange,
    flits_against_waits,
    link_flits,
    message_delays,
    periods,
    quiet_wait,
    table_one,
    types_of,
    wait_delays,
)
from fairlane.analysis.again import recorded, recording
from fairlane.engine.measured import marks
from fairlane.errors import RunError
from fairlane.reproduce.frames.smith2018.simulate import timesteps_done
from fairlane.results import derive
from fairlane.runner.counters import IterationCounters

if TYPE_CHECKING:
    from fairlane.scenario import Resolved, Scenario
    from fairlane.tasks.task import Stopwatch

__all__ = ["trace"]

JOB = 0
"""The job that is traced."""


def trace(scenario: "Scenario", arguments: Mapping[str, Any], watch: "Stopwatch") -> dict[str, Any]:
    """What was recorded of the fastest and the slowest timestep, as tables by column.

    Those to warm up, and those that compute more, do not count.

    ``threshold_ps`` is what nearly all waits of the fastest timestep stay below: longer ones are delays.
    """
    with watch.lap("set-up"):
        resolved = scenario.resolve()
        view = View.of(resolved.tables["fabric"], [job.name for job in resolved.jobs], [j.hosts for j in resolved.jobs])
    with watch.lap("simulating"):
        timesteps = int(scenario.jobs[JOB].stop or 0)
        chosen = _extremes(resolved, timesteps, arguments["warmup"], arguments["every"], watch)
        records = [_record(resolved, period, watch) for period in chosen]
    threshold = quiet_wait(records[0])
    stretches = {one.name: _stretch(one, record, view, threshold) for one, record in zip(chosen, records, strict=True)}
    return {"threshold_ps": threshold, **stretches}


def _extremes(resolved: "Resolved", timesteps: int, warmup: int, every: int, watch: "Stopwatch") -> list[Period]:
    asked = resolved.switch_counters
    assert asked is not None, "cells say at which job counters are read"
    jobs = tuple(replace(job, marks=number == JOB) for number, job in enumerate(resolved.jobs))
    marked = replace(resolved, jobs=jobs)
    counters = IterationCounters(marked, asked)
    engine = watch.drive(marked, timesteps_done(counters, timesteps), [counters])
    table = periods(derive.iterations(derive.labels_of(resolved), marks(engine)).filter(pl.col("job") == JOB))
    alike = (pl.col("iteration") > warmup) & ((pl.col("iteration") - warmup) % every != 0)
    found = extremes(table.filter(alike))
    if len(found) < 2:
        raise RunError(f"{resolved.name}: fewer than two timesteps besides those to warm up", slug="limit")
    return found


def _record(resolved: "Resolved", period: Period, watch: "Stopwatch") -> Record:
    engine = watch.drive(recording(resolved, JOB, period))
    span = (period.from_ps, period.to_ps)
    return Record.of(resolved.jobs[JOB].name, JOB, span, **recorded(engine))


def _stretch(period: Period, record: Record, view: View, threshold: int) -> dict[str, Any]:
    types = types_of(record, view)
    delays = wait_delays(record, types, threshold)
    messages, flits = message_delays(record, types), link_flits(record, view.links)
    begun = (pl.col("sent_at_ps") >= record.from_ps) & ~pl.col("collective")
    pairs = first_exchange(messages.filter(begun))
    against = flits_against_waits(pairs, flits, view.fabric, view.hosts[record.number])
    longest = delays.filter(~pl.col("collective")).group_by("rank").agg(pl.col("wait_ps").max()).sort("rank")
    return {
        "period": asdict(period),
        "inference": _columns(table_one(pairs, threshold)),
        "truth": _columns(table_one(pairs, threshold, by="truth")),
        "confusion": _columns(confusion(delays)),
        "longest_waits": _columns(longest),
        "points": _columns(against.points.select("flits", "wait_ps", "under_way_ps", pl.col("neighbour").cast(str))),
        "waits_trend": asdict(against.waits),
        "under_way_trend": asdict(against.under_way),
        "flits": _columns(_spread(flits)),
    }


def _spread(flits: pl.DataFrame) -> pl.DataFrame:
    """The flits of links by their class: how many links, the sum, and quantiles."""
    shares = (0.01, 0.25, 0.5, 0.75, 0.99)
    quantiles = [pl.col("flits").quantile(at, "linear").alias(f"p{round(100 * at)}") for at in shares]
    count = [pl.len().alias("links"), pl.col("flits").sum()]
    return flits.group_by("class").agg(*count, *quantiles, pl.col("flits").max().alias("max")).sort("class")


def _columns(table: pl.DataFrame) -> dict[str, list[Any]]:
    enumerations = [pl.col(name).cast(pl.String) for name, kind in table.schema.items() if kind == pl.Enum]
    return table.with_columns(enumerations).to_dict(as_series=False)
