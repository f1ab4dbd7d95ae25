"""Derive the tables of a run from the engine's integers: iterations, ``W``, shares of time, names.

``W`` compares the times that a job takes to the same iterations in the co-run and isolated: see ``milestones``.
``W`` by iterations, that of Savoie et al. 2020, compares how many iterations its slowest rank has marked,

    w_iterations = I / I_isolated - 1

over the same time: all that is simulated, or what of it lies between the job's start and its stop. A job whose program
ends is compared by its rate there: its iterations over the time from its start until it ended.

``labels`` are the jobs of the run, in the order of the engine's numbers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from fairlane.core.statistics import Estimate
from fairlane.core.tables import PS, EngineTables, Work
from fairlane.model.scenario.resolved import ResolvedJob
from fairlane.results.latency import KEY, QUANTILES, Latency, summarize
from fairlane.results.milestones import common, enough, milestones
from fairlane.results.schemas import RUN, types


def jobs(labels: Sequence[ResolvedJob], together: Work, alone: Sequence[Work | None]) -> pl.DataFrame:
    """The jobs table. ``alone`` holds each job's isolated run, None where there is none to compare with."""
    called = [(label.name, label.workload) for label in labels]
    names = pl.DataFrame(called, schema=dict.fromkeys(("name", "workload"), pl.String), orient="row")
    isolated = [
        work(run, [label]).with_columns(job=pl.lit(job, pl.UInt32))
        for job, (label, run) in enumerate(zip(labels, alone, strict=True))
        if run is not None
    ]
    shared = work(together, labels)
    reference = pl.concat(isolated) if isolated else shared.clear()
    joined = (
        names.with_row_index("job")
        .join(shared, on="job", how="left")
        .join(reference.select("job", pl.exclude("job").name.prefix("isolated_")), on="job", how="left")
    )
    w_iterations = change(pl.col("rate"), pl.col("isolated_rate"))
    compared = pl.DataFrame(list(_compared(labels, together, alone)), schema={"job": pl.UInt32, **_COMPARED})
    failed = together.failed | {job for job, run in enumerate(alone) if run is not None and run.failed}
    w_iterations = pl.when(~pl.col("job").is_in(failed)).then(w_iterations)
    table = joined.join(compared, on="job", how="left").with_columns(w_iterations=w_iterations)
    return table.sort("job").select(*_JOBS)


_JOBS = types(RUN["jobs"])
_PACE = [f"{of}seconds_per_iteration{end}" for of in ("", "isolated_") for end in ("", "_low", "_high")]
_OF_PAIR = ("compared_iterations", "compared_ps", "isolated_compared_ps", "warm_up", "w", "w_low", "w_high")
_COMPARED = {name: _JOBS[name] for name in (*_PACE, *_OF_PAIR, "ten_iterations_ps", "stop_ps")}


def _compared(labels: Sequence[ResolvedJob], together: Work, alone: Sequence[Work | None]) -> Iterator[dict[str, Any]]:
    """Of each job its time per iteration, how it compares with the isolated run, and the time that would be enough."""
    here = milestones(together, [label.start for label in labels])
    for job, (label, run) in enumerate(zip(labels, alone, strict=True)):
        there = None if run is None else milestones(run, [label.start]).get(0)
        mine = here.get(job)
        shared = common(mine, there) if mine is not None and there is not None else None
        pace, isolated = (of.pace if of else None for of in (mine, there))
        yield {
            "job": job,
            **interval("seconds_per_iteration", pace),
            **interval("isolated_seconds_per_iteration", isolated),
            "compared_iterations": shared and shared.iterations,
            "compared_ps": shared and shared.at,
            "isolated_compared_ps": shared and shared.reference_at,
            "warm_up": shared and shared.warm_up,
            **interval("w", shared.estimate if shared else None),
            "ten_iterations_ps": None if mine is None else enough(mine, there),
            "stop_ps": label.stop,
        }


def interval(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    """The three columns of an estimate: its value and the ends of its interval."""
    value, low, high = (estimate.value, estimate.low, estimate.high) if estimate else (None, None, None)
    return {name: value, f"{name}_low": low, f"{name}_high": high}


def change(value: pl.Expr, reference: pl.Expr) -> pl.Expr:
    """``value / reference - 1``: W where the reference is the isolated run, improvement where it is the default run."""
    return pl.when(reference > 0).then(value / reference - 1)


def work(measured: Work, labels: Sequence[ResolvedJob] = ()) -> pl.DataFrame:
    """Per job: ranks, iterations of the slowest rank and their rate (per ps), shares of all ranks' time.

    ``span_ps`` is the time that the rate is over: from the job's start until its program ended, or it was stopped, or
    to the end of the simulated time. Start and stop are those of ``labels``, by job; without, it is there throughout.
    Shares of time include what ranks are at when the simulation ends.
    """
    table = measured.ranks
    if measured.under_way is not None:
        table = table.join(
            measured.under_way, on=["job", "rank"], how="left", suffix="_under_way", maintain_order="left"
        )
    compute, communication = (
        pl.sum_horizontal(pl.col(f"^{name}(_under_way)?$").sum()) for name in ("compute", "communication")
    )
    busy = compute + communication
    stop = _of_job([label.stop for label in labels], None)
    until = pl.min_horizontal(pl.lit(measured.now, pl.UInt64), stop)
    end = pl.when((pl.col("finished") != 0).all()).then(pl.col("finished_at").max()).otherwise(until)
    span = end - pl.min_horizontal(end, _of_job([label.start for label in labels], 0))
    iterations = pl.col("iterations").min()
    return table.group_by("job", maintain_order=True).agg(
        pl.len().alias("ranks"),
        iterations,
        pl.when(span > 0).then(iterations / span).alias("rate"),
        span.alias("span_ps"),
        pl.when(busy > 0).then(compute / busy).alias("compute_share"),
        pl.when(busy > 0).then(communication / busy).alias("communication_share"),
    )


def _of_job(values: Sequence[int | None], missing: int | None) -> pl.Expr:
    """Each job's value, by its number."""
    return pl.col("job").first().replace_strict(dict(enumerate(values)), default=missing, return_dtype=pl.UInt64)


def ranks(labels: Sequence[ResolvedJob], together: EngineTables, hosts: Sequence[str]) -> pl.DataFrame:
    """The ranks table: the engine's columns, times marked as picoseconds, and the names of jobs and ``hosts``."""
    times = ["first_mark", "last_mark", "finished_at", "compute", "communication", "late_partner", "network"]
    table = _named(labels, _picoseconds(together.ranks, times)).with_columns(pl.col("finished") != 0)
    return with_host_names(table, hosts)


def with_host_names(table: pl.DataFrame, hosts: Sequence[str]) -> pl.DataFrame:
    """The table with the names of its hosts after their numbers."""
    names = pl.Series(hosts, dtype=pl.String).gather(table["host"]).alias("host_name")
    return table.insert_column(table.get_column_index("host") + 1, names)


def completions(labels: Sequence[ResolvedJob], together: Work) -> pl.DataFrame:
    """The completions table: when each job completed its iterations, of many those of multiples of a power of two."""
    numbers = [number for number, label in enumerate(labels) if label.iterates]
    marks = together.marks.filter(pl.col("job").is_in(numbers)).rename({"time": "at_ps", "elapsed": "elapsed_ps"})
    marks = marks.with_columns(pl.col("timed") != 0).cast({"job": pl.UInt32})
    return _named(labels, marks).select(*RUN["completions"])


def calls(labels: Sequence[ResolvedJob], together: EngineTables) -> pl.DataFrame:
    """The calls table: per job and MPI call, how often, and the time in it over all ranks."""
    return _named(labels, _picoseconds(together.calls, ["time"])).with_columns(time_s=pl.col("time_ps") * PS)


def ports(links: pl.DataFrame, together: EngineTables) -> pl.DataFrame:
    """The ports table: one row per port and lane, with the counters of the lane and the times of the whole port.

    ``port_active_ps`` and ``port_stalled_ps``, and the shares of time, are the port's and the same in the rows of all
    its lanes; it is idle when it is neither. ``mean_queue`` is the mean number of packets that waited (Little's law).
    """
    share = 1 / together.now if together.now else 0.0
    idle = together.now - pl.col("port_active_ps") - pl.col("port_stalled_ps")
    times = ["waiting", "stalled", "port_active", "port_stalled"]
    times += [name for name in together.ports.columns if name == "onward_waiting"]
    return (
        _picoseconds(together.ports.with_columns(pl.col("link").cast(pl.UInt32)), times)
        .with_columns(
            mean_queue=pl.col("queueing_ps") * share,
            port_active_share=pl.col("port_active_ps") * share,
            port_stalled_share=pl.col("port_stalled_ps") * share,
            port_idle_share=idle.cast(pl.Float64) * share,
        )
        .join(links, on="link", how="left")
        .sort("link", "lane")
    )


def interference(labels: Sequence[ResolvedJob], together: EngineTables) -> pl.DataFrame:
    """The interference table: queueing delay of the victim's packets, and its share of the victim's rank-seconds."""
    names = pl.Series([label.name for label in labels], dtype=pl.String)
    rank_time = work(together, labels).select(
        pl.col("job").cast(pl.UInt32), time=pl.col("ranks").cast(pl.Float64) * pl.col("span_ps")
    )
    cells = together.interference.with_columns(pl.col("delayed", "delaying").cast(pl.UInt32))
    joined = cells.join(rank_time, left_on="delayed", right_on="job", how="left").sort("delayed", "delaying")
    return joined.select(
        *_who_waits(names, joined),
        pl.when(pl.col("time") > 0).then(pl.col("waiting") / pl.col("time")).alias("share_of_time"),
    )


def failures(
    labels: Sequence[ResolvedJob], together: Work, alone: Sequence[Work | None], hosts: Sequence[str]
) -> pl.DataFrame:
    """The failures table: the jobs that failed in the co-run, then those that failed in their isolated runs."""
    isolated = [
        run.failures.with_columns(job=pl.lit(job, pl.UInt32), isolated=True)
        for job, run in enumerate(alone)
        if run is not None and run is not together
    ]
    raw = pl.concat([together.failures.with_columns(isolated=False), *isolated])
    named = _named(labels, _picoseconds(raw.rename({"from": "from_host", "to": "to_host"}), ["time"]))
    names = pl.Series(hosts, dtype=pl.String)
    sides = [names.gather(named[f"{side}_host"]).alias(f"{side}_name") for side in ("from", "to")]
    return named.with_columns(sides).select(*RUN["failures"])


def sweeps(raw: pl.DataFrame) -> pl.DataFrame:
    """The sweeps table; ``routing`` is null where none fits what is left of the fabric, and routes stay."""
    given = [pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in ("routing", "reason")]
    hosts = pl.when(pl.col("cut_off") == "").then(0).otherwise(pl.col("cut_off").str.count_matches(", ") + 1)
    table = _picoseconds(raw, ["time"]).with_columns(*given, hosts_cut_off=hosts.cast(pl.UInt32))
    return table.select(*RUN["sweeps"])


def pauses(links: pl.DataFrame, together: EngineTables) -> pl.DataFrame:
    """The pauses table: the lanes that priority flow control has paused, in order of their first pauses."""
    table = _picoseconds(together.pauses.rename({"peak": "peak_bytes"}), ["first", "paused", "longest"])
    share = 1 / together.now if together.now else 0.0
    table = table.with_columns(pl.col("storm") != 0, paused_share=pl.col("paused_ps") * share)
    nic = (pl.col("role") == "host") & (pl.col("from_level") == 0)
    named = table.cast({"link": pl.UInt32}).join(links, on="link", how="left", maintain_order="left")
    return named.with_columns(nic=nic).select(*RUN["pauses"])


def port_interference(labels: Sequence[ResolvedJob], links: pl.DataFrame, raw: pl.DataFrame) -> pl.DataFrame:
    """The same by port, where that is observed, with the class, the role and the name of each link."""
    names = pl.Series([label.name for label in labels], dtype=pl.String)
    table = raw.select(pl.col("link").cast(pl.UInt32), *_who_waits(names, raw))
    return table.join(links.select(_OF_LINK), on="link", how="left", maintain_order="left")


def _who_waits(names: pl.Series, raw: pl.DataFrame) -> tuple[Any, ...]:
    """The names of victim and aggressor, and the queueing delay."""
    return (
        names.gather(raw["delayed"].cast(pl.UInt32)).alias("victim"),
        names.gather(raw["delaying"].cast(pl.UInt32)).alias("aggressor"),
        pl.col("waiting").alias("queueing_ps"),
        (pl.col("waiting") * PS).alias("queueing_s"),
    )


def latency(labels: Sequence[ResolvedJob], measured: Latency, intervals: pl.DataFrame | None = None) -> pl.DataFrame:
    """The latency table: one row per quantity (``of``), job and traffic kind.

    ``intervals`` has the ends of the intervals; without them they are empty.
    """
    times = ["mean", "min", *QUANTILES, "max"]
    table = _named(labels, _picoseconds(measured.summary(), times), 2)
    return _with_ends(table, intervals, "", KEY).select(*_LATENCY)


def latency_merged(
    labels: Sequence[ResolvedJob], measured: Latency, intervals: pl.DataFrame | None = None
) -> pl.DataFrame:
    """The table of merged latencies: one row per quantity and job, workload and traffic kind (``level``)."""
    times = ["mean", "min", *QUANTILES, "max"]
    workloads = dict(enumerate(label.workload for label in labels))
    workload = pl.col("job").replace_strict(workloads, return_dtype=pl.String)
    exact, histogram = (table.with_columns(workload=workload) for table in (measured.exact, measured.histogram))
    tables = []
    for level in ("job", "workload", "kind"):
        table = _picoseconds(summarize(exact, histogram, ("of", level)), times)
        merged = _with_ends(table, intervals, level, ("of", level)).with_columns(level=pl.lit(level))
        named = _named(labels, merged).rename({"name": "label"}) if level == "job" else merged.rename({level: "label"})
        tables.append(named.select(*RUN["latency_merged"]))
    return pl.concat(tables)


_LATENCY = types(RUN["latency"])
_LATENCY_ENDS = {name: kind for name, kind in _LATENCY.items() if name.endswith(("_low_ps", "_high_ps"))}


def _with_ends(table: pl.DataFrame, intervals: pl.DataFrame | None, level: str, by: Sequence[str]) -> pl.DataFrame:
    """The table with the ends of the intervals of a level, empty where there are none."""
    empty = [pl.lit(None, kind).alias(name) for name, kind in _LATENCY_ENDS.items()]
    if intervals is None:
        return table.with_columns(empty)
    ends = intervals.filter(pl.col("level") == level).select(*by, *_LATENCY_ENDS)
    return table.join(ends, on=list(by), how="left", maintain_order="left")


def latency_histogram(labels: Sequence[ResolvedJob], measured: Latency) -> pl.DataFrame:
    """The buckets of its histograms in which something was counted."""
    return _named(labels, _picoseconds(measured.histogram, ["low", "high"]), 2)


def links(raw: pl.DataFrame, classes: Sequence[str]) -> pl.DataFrame:
    """The fabric's links: ends, class, role, levels (0 for a host), bandwidth in bit/s, latency in ps, rail, names.

    Links that all rails share have no rail. ``link_name`` is as "leaf4 port 7 to spine2".
    """
    end = [
        pl.when(pl.col(f"{side}_host") >= 0)
        .then(pl.format("host {}", f"{side}_host"))
        .otherwise(pl.format("switch {}", f"{side}_switch"))
        .alias(f"{side}_vertex")
        for side in ("from", "to")
    ]
    named = pl.Series(classes, dtype=pl.String).gather(raw["class"].cast(pl.UInt32)).alias("class")
    kept = ("role", "from_level", "to_level", pl.col("bandwidth").alias("bandwidth_bps"), "latency")
    rail = pl.when(pl.col("rail") >= 0).then(pl.col("rail")).cast(pl.UInt8)
    table = _picoseconds(raw.select(pl.col("link").cast(pl.UInt32), *end, named, *kept, rail), ["latency"])
    link_name = pl.format("{} port {} to {}", "from_name", "from_port", "to_name").alias("link_name")
    names = raw.select("from_name", "from_port", "to_name", "to_port", link_name)
    return pl.concat([table, names], how="horizontal")


_OF_LINK = ("link", "class", "role", "link_name")
"""Columns of links in the tables of samples, of departures and of interference by port."""


def samples(links: pl.DataFrame, raw: pl.DataFrame) -> pl.DataFrame:
    """The samples table: what each port and lane did from one instant to the next; no row where it did nothing.

    ``mean_queue`` is the mean number of packets that waited (Little's law), among those that started in the interval.
    """
    span = (pl.col("to_ps") - pl.col("from_ps")).cast(pl.Float64)
    times = ["waiting", "stalled", "port_active", "port_stalled"]
    return (
        _picoseconds(raw.with_columns(pl.col("link").cast(pl.UInt32)), times)
        .with_columns(
            mean_queue=pl.col("queueing_ps") / span,
            port_active_share=pl.col("port_active_ps") / span,
            port_stalled_share=pl.col("port_stalled_ps") / span,
            port_idle_share=1 - (pl.col("port_active_ps") + pl.col("port_stalled_ps")) / span,
        )
        .join(links.select(_OF_LINK), on="link", how="left", maintain_order="left")
    )


def iterations(labels: Sequence[ResolvedJob], marks: pl.DataFrame) -> pl.DataFrame:
    """The iterations table: when each rank marked each iteration, and the time since it marked the one before.

    With a timed part, the time is that of this part. It is null for a rank's first iteration.
    """
    time = pl.when(pl.col("iteration") > 1).then(pl.col("elapsed") * PS)
    ordered = marks.sort("job", "rank", "iteration").with_columns(time_s=time).drop("elapsed")
    return _named(labels, _picoseconds(ordered, ["at"]))


def messages(raw: pl.DataFrame) -> pl.DataFrame:
    """The messages table, with null for what had not happened; all are of one job."""
    later, flags = ["posted_at", "received_at", "acknowledged_at"], ["collective", "eager"]
    table = raw.drop("job").with_columns(_unless_not_yet(later), pl.col(flags) != 0)
    return _picoseconds(table, ["sent_at", *later])


def waits(raw: pl.DataFrame) -> pl.DataFrame:
    """The waits table; ``message`` is null where the message is not in the messages table."""
    table = raw.drop("job").with_columns(_unless_not_yet(["message"]), pl.col("receiver") != 0)
    return _picoseconds(table, ["since", "end", "partner_at"])


def departures(labels: Sequence[ResolvedJob], links: pl.DataFrame, raw: pl.DataFrame) -> pl.DataFrame:
    """The departures table, with the class, the role and the name of each link."""
    table = _picoseconds(_named(labels, raw, 5).rename({"message": "token"}), ["time", "waited"])
    return table.join(links.select(_OF_LINK), on="link", how="left", maintain_order="left")


def _unless_not_yet(columns: Sequence[str]) -> pl.Expr:
    """Null for the largest number, which the engine writes for what has not happened."""
    return pl.when(pl.col(columns) != pl.lit(2**64 - 1, pl.UInt64)).then(pl.col(columns))


def _named(labels: Sequence[ResolvedJob], table: pl.DataFrame, at: int = 1) -> pl.DataFrame:
    names = pl.Series([label.name for label in labels], dtype=pl.String).gather(table["job"].cast(pl.UInt32))
    return table.insert_column(at, names.alias("name"))


_COLUMN = {"waiting": "queueing", "waited": "queueing", "onward_waiting": "input_queueing"}
"""Columns of stored tables that have another name in the engine."""


def _picoseconds(table: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    return table.rename({name: f"{_COLUMN.get(name, name)}_ps" for name in columns})
