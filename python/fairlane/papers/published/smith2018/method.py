"""The measurements of Smith et al. 2018: counters of each timestep of a run, and a record of two of them."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.core.drive import Engine
from fairlane.core.errors import RunError
from fairlane.core.tables import PS, frame, marks, timed
from fairlane.results import derive
from fairlane.sim import analysis
from fairlane.sim.analysis.again import recorded, recording
from fairlane.sim.analysis.delays import quiet_wait
from fairlane.sim.analysis.record import Record, View, extremes, spans
from fairlane.sim.runner.counters import FEATURES, IterationCounters
from fairlane.study.measured import columns_of

if TYPE_CHECKING:
    from fairlane.model.scenario import Resolved, Scenario
    from fairlane.sim.analysis.record import Record, Span, View
    from fairlane.study.tasks.task import Stopwatch

JOB = 0
"""The job that is measured."""

Tables = dict[str, Any]


def counted(scenario: "Scenario", _arguments: Mapping[str, Any], watch: "Stopwatch") -> Tables:
    """Until MILC is done: what its ``own`` switches and those ``everywhere`` counted in each timestep, and its ``run``.

    With windows also what they counted before each timestep, in ``own_before`` and ``everywhere_before``. Of the run:
    over the ranks the least, the mean and the greatest time of computation and in MPI, s, and shares of the calls in
    the latter; the share of late partners in the time that ranks are blocked; how many groups the job spans; how many
    other jobs there are, and on how many hosts.
    """
    with watch.lap("set-up"):
        resolved = scenario.resolve()
        counters = _counters(resolved)
        everywhere = _counters(resolved, all_switches=True)
    with watch.lap("simulating"):
        done = _timesteps_done(counters, int(scenario.jobs[JOB].stop or 0))
        engine = watch.drive(resolved, done, [counters, everywhere])
    ranks = frame(engine.table("ranks")).filter(pl.col("job") == JOB)
    if not (ranks["finished"] != 0).all():
        raise RunError(f"{scenario.name}: not done after {scenario.duration} ps", slug="limit")
    calls = frame(engine.table("calls")).filter(pl.col("job") == JOB)
    spent = {call: time / int(calls["time"].sum()) for call, time in calls.select("call", "time").iter_rows()}
    milc: Any = scenario.jobs[JOB].workload
    run = {
        "ranks": ranks.height,
        "iterations": milc.iterations,
        "groups": _groups(resolved),
        **_spread("compute", (ranks["compute"] * PS).to_list()),
        **_spread("mpi", (ranks["communication"] * PS).to_list()),
        "wait_share": spent.get("wait", 0.0),
        "allreduce_share": spent.get("allreduce", 0.0),
        "late_share": int(ranks["late_partner"].sum()) / max(1, int((ranks["late_partner"] + ranks["network"]).sum())),
        "jobs": len(resolved.jobs) - 1,
        "hosts_filled": sum(len(set(job.hosts)) for job in resolved.jobs[1:]),
    }
    tables = {
        "own": _timesteps(scenario, counters.table(engine)),
        "everywhere": _timesteps(scenario, everywhere.table(engine)),
        "run": pl.DataFrame([run]),
    }
    windows = {"own_before": counters.windows(), "everywhere_before": everywhere.windows()}
    tables |= {name: _before(table) for name, table in windows.items() if table is not None}
    columns = {name: columns_of(table) for name, table in tables.items()}
    return {"tables": columns, "packet_hops": engine.packet_hops, "digest": engine.digest()}


def _counters(resolved: "Resolved", **different: bool) -> IterationCounters:
    asked = resolved.switch_counters
    assert asked is not None, "the scenario says at which job counters are read"
    return IterationCounters(resolved, asked.model_copy(update=different))


def _timesteps_done(counters: IterationCounters, timesteps: int) -> Callable[[Engine], bool]:
    """Whether all ranks of the job have done their timesteps, and the counters saw it."""
    return lambda engine: counters.done == timesteps and min(engine.progress()[JOB]) == timesteps


def _groups(resolved: "Resolved") -> int:
    """Over how many groups the job is spread."""
    fabric = resolved.fabric
    return len({fabric.leaf_of[host] // fabric.plan["switches"] for host in resolved.jobs[JOB].hosts})


def _spread(name: str, values: list[float]) -> dict[str, float]:
    return {
        f"{name}_min_s": min(values),
        f"{name}_mean_s": sum(values) / len(values),
        f"{name}_max_s": max(values),
    }


def _timesteps(scenario: "Scenario", table: pl.DataFrame) -> pl.DataFrame:
    """Timesteps, from 1: whether they only warm up, and whether ranks compute more than in the others."""
    milc: Any = scenario.jobs[JOB].workload
    timestep = pl.col("iteration").cast(pl.Int64)
    later = timestep - milc.warmup
    return table.select(
        timestep.alias("timestep"),
        (later <= 0).alias("warmup"),
        ((later > 0) & (later % milc.every == 0)).alias("extra"),
        pl.col("time_s").alias("seconds"),
        *FEATURES,
    )


def _before(windows: pl.DataFrame) -> pl.DataFrame:
    """Return the counts in windows before timesteps, by the length of the window, s."""
    length = (pl.col("window_ps") * PS).alias("window_s")
    return windows.select(pl.col("iteration").cast(pl.Int64).alias("timestep"), length, *FEATURES)


def traced(scenario: "Scenario", _arguments: Mapping[str, Any], watch: "Stopwatch") -> Tables:
    """Return the records of messages of the fastest and of the slowest timestep: their names are a column.

    The run is simulated once to find the two, and again with a record of each: the same seed gives the same run. Those
    to warm up, and those that compute more, do not count. Delays are waits that are longer than nearly all of the
    fastest timestep. Pairs of ranks are compared by one exchange of a timestep: of several iterations by that of
    the last but one, as ranks that are ahead are in the next timestep with the last.
    """
    with watch.lap("set-up"):
        resolved = scenario.resolve()
        view = View.of(resolved.tables["fabric"], [job.name for job in resolved.jobs], [j.hosts for j in resolved.jobs])
    with watch.lap("simulating"):
        chosen = _extremes(scenario, resolved, watch)
        records = [_record(resolved, period, watch) for period in chosen]
    threshold = quiet_wait(records[0])
    milc: Any = scenario.jobs[JOB].workload
    exchange = max(1, milc.iterations - 1)
    parts = [
        _recorded(recorded_job, record, view, threshold, exchange)
        for recorded_job, record in zip(chosen, records, strict=True)
    ]
    tables = {}
    for name in parts[0]:
        named = [
            part[name].select(pl.lit(recorded_job.name).alias("name"), pl.all())
            for recorded_job, part in zip(chosen, parts, strict=True)
        ]
        tables[name] = columns_of(pl.concat(named, how="diagonal_relaxed"))
    return {"tables": tables}


def _extremes(scenario: "Scenario", resolved: "Resolved", watch: "Stopwatch") -> "list[Span]":
    milc: Any = scenario.jobs[JOB].workload
    jobs = tuple(replace(job, marks=number == JOB) for number, job in enumerate(resolved.jobs))
    marked = replace(resolved, jobs=jobs)
    counters = _counters(marked)
    engine = watch.drive(marked, _timesteps_done(counters, int(scenario.jobs[JOB].stop or 0)), [counters])
    iterations = derive.iterations(resolved.jobs, marks(engine)).filter(pl.col("job") == JOB)
    table = spans(iterations, timed=timed(engine, JOB))
    later = pl.col("iteration") - milc.warmup
    chosen = extremes(table.filter((pl.col("iteration") > milc.warmup) & (later % milc.every != 0)))
    if len(chosen) < 2:
        raise RunError(f"{resolved.name}: fewer than two timesteps besides those to warm up", slug="limit")
    return chosen


def _record(resolved: "Resolved", period: "Span", watch: "Stopwatch") -> "Record":
    engine = watch.drive(recording(resolved, JOB, period))
    return Record.of(resolved.jobs[JOB].name, JOB, (period.from_ps, period.to_ps), **recorded(engine))


def _recorded(period: "Span", record: "Record", view: "View", threshold: int, exchange: int) -> dict[str, pl.DataFrame]:
    types = analysis.types_of(record, view)
    delays = analysis.wait_delays(record, types, threshold)
    messages, flits = analysis.message_delays(record, types), analysis.link_flits(record, view.links)
    begun = (pl.col("sent_at_ps") >= record.from_ps) & ~pl.col("collective")
    pairs = analysis.first_exchange(messages.filter(begun), exchange)
    against = analysis.flits_against_waits(pairs, flits, view.fabric, view.hosts[record.number])
    longest = delays.filter(~pl.col("collective")).group_by("rank").agg(pl.col("wait_ps").max()).sort("rank")
    span = {key: value for key, value in asdict(period).items() if key != "name"}
    return {
        "spans": pl.DataFrame([{**span, "threshold_ps": threshold}]),
        "inference": analysis.table_one(pairs, threshold),
        "truth": analysis.table_one(pairs, threshold, by="truth"),
        "confusion": analysis.confusion(delays),
        "longest_waits": longest,
        "points": against.points.select("flits", "wait_ps", "under_way_ps", "neighbour"),
        "flits": flits.select("class", "flits"),
    }
