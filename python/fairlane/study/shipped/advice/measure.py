"""One simulation for advice: features and progress of an application and its neighbours.

Of each job: the shares of its time, its messages, and its progress; and the utilisation of links. Numbers are
picoseconds, bytes and shares.

Progress is measured so finely that a short simulation is enough. A count of whole iterations is coarse: of ten, a
tenth. Marks are not: between the first and the k-th one lie ``k - 1`` iterations, and a time that is known to the
picosecond. The time before the first mark, when queues fill, does not count. Two runs are compared by the same
iterations, which matters where iterations differ, as in a trace. A job with fewer than ``MIN_MARKS`` marks in either
run is compared by the bytes on the wire that have arrived at its hosts, which is coarse again if it sends in bursts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from fairlane.core.tables import EngineTables, frame, marks
from fairlane.model.scenario import Scenario
from fairlane.study.tasks.task import Stopwatch

MEASURED = (
    "run_time_ms",
    "computing_ms",
    "network_ms",
    "late_partner_ms",
    "self_queueing_ms",
    "messages",
    "kilobytes",
    "collective_share",
    "host_utilisation",
    "switch_utilisation",
)
"""The features of the application in a simulation, for one of its iterations."""
MIN_MARKS = 3
"""Marks from which on they are compared in place of bytes."""
_POINT_TO_POINT = ("send", "isend", "recv", "irecv", "probe", "wait", "wait_all", "wait_any", "wait_some")
_ONE_SIDED = (
    *("put", "get", "accumulate", "get_accumulate", "compare_and_swap"),
    *("win_lock", "win_unlock", "win_lock_all", "win_unlock_all", "win_flush"),
    *("win_post", "win_start", "win_complete", "win_wait"),
)


def simulate(scenario: Scenario, _arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """One simulation of the scenario's duration: features and progress of each job, utilisation of links."""
    with watch.lap("set-up"):
        decided = scenario.resolve()
        resolved = replace(decided, jobs=tuple(replace(job, marks=True) for job in decided.jobs))
    with watch.lap("simulating"):
        engine = watch.drive(resolved)
    measured, jobs = EngineTables.of(engine), list[dict[str, Any]]()
    links, marked = frame(resolved.fabric.link_rows()), marks(engine)
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
    used = link_utilisation(measured, links, measured.now)
    return {"jobs": jobs, **used, "packet_hops": measured.packet_hops, "digest": measured.digest}


def extract_features(measured: EngineTables, job: int) -> dict[str, float]:
    """Means over a job's ranks, and the share of collectives in its time in calls.

    ``computing``, ``network`` and ``late_partner`` are ps, the last two of waiting; ``messages`` and ``bytes`` are what
    a rank has sent.
    """
    ranks = measured.ranks.filter(pl.col("job") == job)
    kept = {
        "computing": "compute",
        "network": "network",
        "late_partner": "late_partner",
        "messages": "messages_sent",
        "bytes": "bytes_sent",
    }
    means = ranks.select(pl.col(column).cast(pl.Float64).mean().alias(name) for name, column in kept.items())
    calls = measured.calls.filter(pl.col("job") == job)
    whole = float(calls["time"].sum())
    collective = float(calls.filter(~pl.col("call").is_in(_POINT_TO_POINT + _ONE_SIDED))["time"].sum())
    return {**means.row(0, named=True), "collective_share": collective / whole if whole else 0.0}


def link_utilisation(measured: EngineTables, links: pl.DataFrame, span: int) -> dict[str, float]:
    """Utilisation of links over ``span`` ps.

    The busiest of a host, the busiest between switches, and the mean of all between switches that carried anything.
    """
    of_host = (pl.col("from_host") >= 0) | (pl.col("to_host") >= 0)
    busy = (
        measured.ports.group_by("link")
        .agg(pl.col("port_active").first())
        .join(links.select(pl.col("link").cast(pl.UInt32), of_host=of_host), on="link")
        .filter(pl.col("port_active") > 0)
        .with_columns(share=pl.col("port_active") / span)
    )
    hosts, between = busy.filter("of_host")["share"], busy.filter(~pl.col("of_host"))["share"]
    return {
        "host_utilisation": _number(hosts.max()),
        "switch_utilisation": _number(between.max()),
        "mean_switch_utilisation": _number(between.mean()),
    }


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def progress(marks: pl.DataFrame, ranks: int) -> dict[str, list[float]]:
    """Return the times of each iteration that all ranks have marked: ``last`` by the slowest, ``mean`` over all, ps."""
    whole = (
        marks.group_by("iteration")
        .agg(pl.len().alias("count"), pl.col("at").max().alias("last"), pl.col("at").mean().alias("mean"))
        .filter(pl.col("count") == ranks)
        .sort("iteration")
    )
    return {name: whole[name].cast(pl.Float64).to_list() for name in ("last", "mean")}


def pace(job: Mapping[str, Any], marks: int | None = None) -> float | None:
    """The mean time of an iteration, ps, of all or up to a number of marks; None if there are fewer than two."""
    times = job["last"][:marks]
    return (times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else None


def delivered(ports: pl.DataFrame, links: pl.DataFrame, hosts: Iterable[int]) -> int:
    """Bytes on the wire that have arrived at these hosts."""
    into = links.filter(pl.col("to_host").is_in(list(set(hosts)))).select(pl.col("link").cast(pl.UInt32))
    return int(ports.join(into, on="link")["bytes"].sum())


def change(co_run: Mapping[str, Any], without: Mapping[str, Any]) -> float | None:
    """The change of a job's rate, as -0.02 for a loss of two percent; None if it does nothing."""
    common = min(len(co_run["mean"]), len(without["mean"]))
    if common >= MIN_MARKS:
        slow, fast = (one["mean"][common - 1] - one["mean"][0] for one in (co_run, without))
        return float(fast / slow - 1)
    return float(co_run["delivered"] / without["delivered"] - 1) if without["delivered"] else None
