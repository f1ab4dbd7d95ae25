"""Features of a run, the simulation that they are taken from, and a first guess of its run time.

The features of an application come from one isolated simulation: its shares of computing, waiting for the network and
for late partners; number and size of its messages; utilisation of its links. Those of a condition are what the
application and its neighbours share: adapters, links by the weights of their lanes, and the isolated neighbours'
utilisation of links between switches.

The first guess, relative to the isolated reference run:

    T = c x + (1 - c) (b max(1, h / a, s / l) + (1 - b) (1 + v q (1 - w) / w))

``c`` is the share of computing in the time not spent on waiting for others, and ``x`` how much longer computing takes
under the cap. While it communicates, the application's busiest adapter has the utilisation ``h`` and its busiest link
between switches ``s``; ``b`` is the greater one. ``a`` is the share of the adapters that it uses. ``w`` is its share of
a link that all jobs want and ``v`` the utilisation by neighbours of links on its planes, so that ``l = max(w, 1 - v)``
of a link is left. A single message queues, where a link is busy, behind as many packets of the neighbours as are
arbitrated before it by weight, each of which takes ``q`` of the message's own time.

*One simulation for advice: what workers compute, and the features of an application and its neighbours in it.* Of each
job: the shares of its time, its messages, and its progress; and the utilisation of links. Numbers are picoseconds,
bytes and shares.

Progress is measured so finely that a short simulation is enough. A count of whole iterations is coarse: of ten, a
tenth. Marks are not: between the first and the k-th one lie ``k - 1`` iterations, and a time that is known to the
picosecond. The time before the first mark, when queues fill, does not count. Two runs are compared by the same
iterations, which matters where iterations differ, as in a trace. A job with fewer than ``MIN_MARKS`` marks in either
run is compared by the bytes on the wire that have arrived at its hosts, which is coarse again if it sends in bursts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from fairlane.core.errors import Problem, ScenarioError
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
COLUMNS = (
    "case",
    "application",
    "rails",
    "placement",
    "seed",
    "co_scheduled",
    "link_share",
    "adapters",
    "adapters_shared",
    "interference_utilisation",
    "cap_w",
    *MEASURED,
)
"""The columns of a table of runs: that of ``fairlane advise`` and those of ``fairlane reproduce patki2016``."""
RENAMED = {
    "beside": "co_scheduled",
    "interference_use": "interference_utilisation",
    "waits_for_itself_ms": "self_queueing_ms",
    "host_use": "host_utilisation",
    "switch_use": "switch_utilisation",
}
"""Former names of columns."""
FEATURES = (
    "guess",
    "stretch",
    "adapters",
    "interference",
    "link_share",
    "neighbour_utilisation",
    "packed",
    "spread",
    "compute_share",
    "network_share",
    "late_share",
    "self_queueing",
    "collective_share",
    "host_utilisation",
    "switch_utilisation",
    "message_size",
    "message_rate",
)
"""The logarithm of the first guess; of the condition: how much longer computing takes, the part of the adapters used,
whether there are neighbours, the share of a link, how busy they keep links on the application's planes, and whether it
is packed or spread, else it is random; and of the isolated application, over its run time: computing, waiting for the
network and for late partners, its packets' waiting for each other, its calls' time in collectives, its busiest links at
hosts and between switches; logarithms of the mean message, kB, and of messages a millisecond."""
PACKET_TIME = 0.5
"""``q``: a packet of 2 KiB takes about half as long as a small message on an idle path of four links."""
_SAME = ("case", "application")
_REFERENCE = (*MEASURED, "adapters")


def described(runs: pl.DataFrame) -> pl.DataFrame:
    """The runs with ``FEATURES``, ``reference_ms`` and ``ratio``, run time over that of the reference.

    The reference is an application's isolated run with the most adapters and the highest power cap, on random hosts
    if there is one. Raises ``ScenarioError`` where there is none.
    """
    joined = runs.join(_references(runs), on=_SAME, how="left", maintain_order="left")
    if joined["reference_run_time_ms"].null_count():
        lost = joined.filter(pl.col("reference_run_time_ms").is_null())["application"][0]
        raise ScenarioError(Problem("link_share", "no run without neighbours", lost, "an empty cell"))
    time = pl.col("reference_run_time_ms")

    def part(name: str) -> pl.Expr:
        return pl.col(f"reference_{name}") / time

    messages = pl.max_horizontal(pl.col("reference_messages"), pl.lit(1e-9))
    made = joined.with_columns(
        reference_ms=time,
        ratio=pl.col("run_time_ms") / time,
        stretch=(pl.col("computing_ms") / pl.col("reference_computing_ms")).fill_nan(1.0),
        adapters=pl.col("adapters") / pl.col("reference_adapters"),
        interference=pl.col("link_share").is_not_null().cast(pl.Float64),
        link_share=pl.col("link_share").fill_null(1.0),
        neighbour_utilisation=pl.col("interference_utilisation") * pl.col("adapters_shared"),
        packed=(pl.col("placement") == "packed").cast(pl.Float64),
        spread=(pl.col("placement") == "spread").cast(pl.Float64),
        compute_share=part("computing_ms"),
        network_share=part("network_ms"),
        late_share=part("late_partner_ms"),
        self_queueing=part("self_queueing_ms"),
        collective_share=pl.col("reference_collective_share"),
        host_utilisation=pl.col("reference_host_utilisation"),
        switch_utilisation=pl.col("reference_switch_utilisation"),
        message_size=(pl.col("reference_kilobytes") / messages).log1p(),
        message_rate=(pl.col("reference_messages") / time).log1p(),
    )
    return made.with_columns(guess=_guess().log()).drop(f"reference_{name}" for name in _REFERENCE)


def _references(runs: pl.DataFrame) -> pl.DataFrame:
    order: Sequence[pl.Expr] = (
        pl.col("adapters").neg(),
        (pl.col("computing_ms") * 100 / pl.col("computing_ms").min().over(_SAME)).fill_nan(100).round(),
        pl.col("placement") != "random",
        pl.col("seed"),
    )
    first = runs.filter(pl.col("link_share").is_null()).sort(*order).group_by(_SAME, maintain_order=True).first()
    return first.select(*_SAME, *(pl.col(name).alias(f"reference_{name}") for name in _REFERENCE))


def _guess() -> pl.Expr:
    """The first guess of the ratio, by the columns of ``described``."""
    work, net = pl.col("compute_share"), pl.col("network_share")
    computed = (work / (work + net)).fill_nan(1.0)
    talking = pl.max_horizontal(1 - work, pl.lit(1e-3))
    at_host, between = (
        pl.min_horizontal(pl.col(name) / talking, pl.lit(1.0)) for name in ("host_utilisation", "switch_utilisation")
    )
    bound = pl.max_horizontal(at_host, between)
    share, busy = pl.col("link_share"), pl.col("neighbour_utilisation")
    left = pl.max_horizontal(share, 1 - busy)
    flowing = pl.max_horizontal(pl.lit(1.0), at_host / pl.col("adapters"), between / left)
    single = 1 + busy * PACKET_TIME * (1 - share) / share
    return computed * pl.col("stretch") + (1 - computed) * (bound * flowing + (1 - bound) * single)


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
