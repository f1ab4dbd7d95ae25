"""Loads on seeds: what was offered, what was accepted, and how late it came, after the warm-up."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self

import polars as pl

from fairlane.core import bridge
from fairlane.core.tables import frame
from fairlane.errors import Problem, ScenarioError
from fairlane.results.latency import Latency
from fairlane.saturation.plan import Plan
from fairlane.scenario import Resolved, Scenario
from fairlane.scenario.resolved import injection_of
from fairlane.tasks.task import Answer, Stopwatch, digest_of
from fairlane.units import DURATION
from fairlane.workload.open_loop import OpenLoop

_SHARES = ("offered", "accepted", "links")
_TABLES: Mapping[str, Mapping[str, Any]] = {
    "exact": {"of": pl.String, "count": pl.UInt64, "sum": pl.Float64, "min": pl.UInt64, "max": pl.UInt64},
    "histogram": {"of": pl.String, "low": pl.UInt64, "high": pl.UInt64, "count": pl.UInt64},
}
"""The tables of a replicate: their columns, with types."""


@dataclass(frozen=True)
class Replicate:
    """One load on one seed: what was measured, of all open-loop jobs together."""

    load: float
    seed: int
    offered: float
    """What was generated, as a part of the injection bandwidth of the ranks that send."""
    accepted: float
    """What was delivered, as a part of the same."""
    links: float
    """Links that a packet takes on average, those of hosts included; over the packets of all jobs."""
    exact: pl.DataFrame
    """Latencies: count, sum, minimum, maximum of messages and packets (``of``)."""
    histogram: pl.DataFrame
    """Their buckets."""
    digest: str
    """Of all results of the simulation."""


@dataclass(frozen=True)
class Measurement:
    """The task that measures one load on one seed of a sweep."""

    plan: Plan
    load: float
    seed: int

    @property
    def label(self) -> str:
        """What it is, for people."""
        return f"load {self.load:g}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """About how long it takes, compared with the others of its sweep."""
        return self.load

    @property
    def digest(self) -> str:
        """The same for those that have the same answer, in one sweep."""
        return digest_of([self.load, self.seed, self.plan.duration])

    @property
    def description(self) -> Mapping[str, Any]:
        """Its scenario."""
        scenario = self.plan.at(self.load, self.seed)
        return scenario.model_dump(mode="json", exclude_defaults=True, exclude_none=True)

    def compute(self, watch: Stopwatch) -> Answer:
        """Simulates it. Raises ``RunError`` if it cannot continue."""
        plan = self.plan
        with watch.lap("set-up"):
            scenario = plan.at(self.load, self.seed)
            resolved = scenario.resolve()
            sources = _sources(scenario, resolved)
            jobs = pl.Series([source.job for source in sources], dtype=pl.UInt32)
        with watch.lap("simulating"):
            engine = resolved.engine()
            watch.advance(engine, plan.warm_up, plan.duration)
            before = _State.of(engine, jobs)
            watch.advance(engine, plan.duration, plan.duration)
        return {**_answer(sources, before, _State.of(engine, jobs)), "digest": engine.digest()}

    def replicate(self, answer: Answer) -> Replicate:
        """What its answer says."""
        exact, histogram = (pl.DataFrame(answer[name], schema=schema) for name, schema in _TABLES.items())
        offered, accepted, links = (answer[name] for name in _SHARES)
        return Replicate(self.load, self.seed, offered, accepted, links, exact, histogram, answer["digest"])


@dataclass(frozen=True)
class _Source:
    """An open-loop job: how its messages and packets translate into parts of the injection bandwidth.

    That is the bandwidth of all ranks that send, bits per second. Bytes are means: headers of a message, and a packet
    on the wire.
    """

    job: int
    bandwidth: float
    header_bytes: float
    packet_bytes: float


@dataclass(frozen=True)
class _State:
    """What an engine has done so far: packets of all jobs; messages, bytes and latency of the open-loop ones."""

    now: int
    packet_hops: int
    packets: int
    sent: pl.DataFrame
    latency: Latency

    @classmethod
    def of(cls, engine: bridge.Simulation, jobs: pl.Series) -> Self:
        """The state of an engine; ``jobs`` are the open-loop ones."""
        among = pl.col("job").is_in(jobs.implode())
        ranks = frame(engine.table("ranks")).filter(among)
        sent = ranks.group_by("job").agg(pl.col("messages_sent", "bytes_sent").sum().cast(pl.Int64))
        found = Latency.measured(engine)
        packets = found.exact.filter(pl.col("of") == "packet")["count"].sum()
        latency = Latency(found.exact.filter(among), found.histogram.filter(among))
        return cls(engine.now, engine.packet_hops, int(packets), sent, latency)


def _answer(sources: list[_Source], before: _State, after: _State) -> Answer:
    """What was measured between two states, as JSON: ``_SHARES`` and ``_TABLES``."""
    latency = after.latency.since(before.latency)
    sent = after.sent.join(before.sent, on="job", suffix="_before")
    packets = dict(
        latency.exact.filter(pl.col("of") == "packet").group_by("job").agg(pl.col("count").sum()).iter_rows()
    )
    generated, delivered = 0.0, 0.0
    for source in sources:
        row = sent.row(by_predicate=pl.col("job") == source.job, named=True)
        messages = row["messages_sent"] - row["messages_sent_before"]
        generated += row["bytes_sent"] - row["bytes_sent_before"] + messages * source.header_bytes
        delivered += packets.get(source.job, 0) * source.packet_bytes
    if after.now == before.now:
        words = "nothing is left to measure: a simulation advances by a link's latency at least"
        raise ScenarioError(Problem("--duration", words, DURATION.format(after.now)))
    possible = sum(source.bandwidth for source in sources) * (after.now - before.now) / 8e12
    links = (after.packet_hops - before.packet_hops) / max(1, after.packets - before.packets)
    shares = dict(zip(_SHARES, (generated / possible, delivered / possible, links), strict=True))
    tables = dict(zip(_TABLES, _together(latency), strict=True))
    return {**shares, **{name: table.to_dict(as_series=False) for name, table in tables.items()}}


def _sources(scenario: Scenario, resolved: Resolved) -> list[_Source]:
    """The open-loop jobs among the resolved ones: copies of a job follow each other."""
    workloads = [job.workload for job in scenario.with_background().jobs for _ in range(job.count)]
    found = []
    for number, workload in enumerate(workloads):
        if not isinstance(workload, OpenLoop):
            continue
        job = resolved.jobs[number]
        injection, sizes = injection_of(resolved, job), workload.message_sizes()
        packets = fmean(injection.packets(size) for size in sizes)
        bandwidth = sum(injection.bandwidth(rank) for rank in workload.senders(job.ranks))
        wire = fmean(injection.wire(size) for size in sizes)
        found.append(_Source(number, bandwidth, packets * injection.header, wire / packets))
    return found


def _together(latency: Latency) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The latencies of all open-loop jobs and kinds merged."""
    exact = latency.exact.group_by("of").agg(
        pl.col("count").sum(), pl.col("sum").sum(), pl.col("min").min(), pl.col("max").max()
    )
    histogram = latency.histogram.group_by("of", "low", "high").agg(pl.col("count").sum())
    return exact.sort("of"), histogram.sort("of", "low")
