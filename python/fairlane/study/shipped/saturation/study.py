"""A scenario with open-loop load at every load and seed: load offered and accepted, and latency, after the warm-up."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any, Self

import polars as pl
from pydantic import Field
from typing_extensions import override

from fairlane.core.drive import Engine
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.tables import frame
from fairlane.core.units import DURATION, Duration
from fairlane.inputs.files import parse_toml
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario import Resolved, Scenario
from fairlane.model.scenario.models import Job
from fairlane.model.scenario.resolved import injection_of
from fairlane.model.workload.open_loop import OpenLoop
from fairlane.results.latency import Latency
from fairlane.study.shipped.base import (
    Measurement,
    Options,
    ShippedStudy,
    check_before,
    fabric_of,
    from_options,
    seeds_of,
)
from fairlane.study.shipped.saturation.results import Saturation
from fairlane.study.tasks.task import Answer, Stopwatch

WARM_UP = 0.375
"""The part of the simulated time that is warm-up unless another is given."""
DURATION_OF_ADDED_LOAD = 400_000_000
"""Simulated time where the scenario has no open-loop job and another is not given, ps."""
_ADDED = "The scenario has no open-loop job: one on all hosts replaces its jobs."
_ALLOWED = "a range as 0.05..1, or loads as 0.1,0.2,0.5; each above 0 and at most 1"


def loads_of(text: str, count: int) -> list[float]:
    """The loads of a range "0.05..1", ``count`` of them equally spaced with both ends, or those of a list "0.1,0.2".

    Raises ``ScenarioError`` if they are none.
    """
    first, dots, last = text.partition("..")
    loads = [_load(part, text) for part in ([first, last] if dots else text.split(","))]
    if not dots:
        if len(set(loads)) < len(loads):
            raise _wrong("a load given twice", text)
        return sorted(loads)
    low, high = loads
    if low > high:
        raise _wrong("the range ends before it begins", text)
    if low == high:
        return [low]
    if count < 2:
        raise ScenarioError(Problem("--loads", "a range has two loads at least", count, "2 or more"))
    # Rounded, so that names and tables show what is meant; a millionth of the load is far below what can be measured.
    return [round(low + (high - low) * step / (count - 1), 6) for step in range(count)]


def _load(part: str, text: str) -> float:
    try:
        load = float(part)
    except ValueError:
        raise _wrong(f"{part.strip()!r} is no number", text) from None
    if not 0 < load <= 1:
        raise _wrong(f"{part.strip()} is out of range", text)
    return load


def _wrong(message: str, text: str) -> ScenarioError:
    return ScenarioError(Problem("--load", message, text, _ALLOWED))


class SweepOptions(Options):
    """Options of a load sweep; None leaves what the scenario says."""

    loads: list[float] = Field(min_length=1)
    """Offered loads, shares of the injection bandwidth."""
    duration: Duration | None = None
    """Simulated time in all."""
    warm_up: Duration | None = None
    """Simulated time before measurement."""
    pattern: Any = None
    """Destination pattern of the open-loop jobs: a name, or a TOML table with its name and parameters."""
    message_size: str | None = None
    """Message size of the open-loop jobs, as "4 KiB"."""
    arrivals: str | None = None
    """Arrivals of the open-loop jobs: ``poisson`` or ``fixed``."""


class LoadSweep(ShippedStudy[Saturation]):
    """A scenario at several loads; one without an open-loop job gets one on all of its hosts in place of its jobs."""

    results, noun = Saturation, "sweep"

    def __init__(self, scenario: Scenario, **options: Any) -> None:
        """Prepares a sweep with ``SweepOptions``. Raises ``ScenarioError``."""
        wanted = from_options(SweepOptions, options)
        self.loads = wanted.loads
        load = wanted.model_dump(include={"pattern", "message_size", "arrivals"}, exclude_none=True)
        if isinstance(wanted.pattern, str):
            load["pattern"] = _name_or_table(wanted.pattern)
        added = not any(isinstance(job.workload, OpenLoop) for job in scenario.jobs)
        default = DURATION_OF_ADDED_LOAD if added else scenario.duration
        self.duration: int = default if wanted.duration is None else wanted.duration
        self.warm_up: int = round(self.duration * WARM_UP) if wanted.warm_up is None else wanted.warm_up
        check_before("--warm-up", self.warm_up, self.duration)
        changed = _with_load(scenario, load) if added else _replaced(scenario, load)
        observe = changed.observe.model_copy(update={"counters": True})  # latencies are among them
        self.scenario = changed.model_copy(update={"duration": self.duration, "observe": observe})
        self.seeds = seeds_of(scenario, wanted.replicates)
        self.remarks = [_ADDED] if added else [*_scattered(self.scenario)]

    @override
    def measurements(self) -> Iterator[Measurement]:
        for load, seed in product(self.loads, self.seeds):
            yield Measurement(self, {"load": load}, seed, cost=load)

    @override
    def at(self, condition: Mapping[str, Any], seed: int) -> Scenario:
        jobs = [
            job.model_copy(update={"workload": job.workload.model_copy(update=condition)})
            if isinstance(job.workload, OpenLoop)
            else job
            for job in self.scenario.jobs
        ]
        return self.scenario.model_copy(update={"jobs": jobs, "seed": seed})

    @override
    def described(self) -> dict[str, Any]:
        return {**super().described(), "warm_up_ps": self.warm_up, "duration_ps": self.duration}

    @override
    def summary(self) -> dict[str, Any]:
        return {"loads": self.loads}

    @override
    def measure(self, condition: Mapping[str, Any], seed: int, watch: Stopwatch) -> Answer:
        with watch.lap("set-up"):
            scenario = self.at(condition, seed)
            resolved = scenario.resolve()
            sources = _sources(scenario, resolved)
        with watch.lap("simulating"):
            engine = resolved.engine()
            watch.advance(engine, self.warm_up, self.duration)
            before = _State.of(engine)
            watch.advance(engine, self.duration, self.duration)
        return {**_answer(sources, before, _State.of(engine)), "digest": engine.digest()}


def _scattered(scenario: Scenario) -> Iterator[str]:
    """Jobs whose pattern counts ranks, and whose ranks a random placement puts anywhere."""
    for job in scenario.jobs:
        load = job.workload
        policy = (job.placement or scenario.placement).name
        if isinstance(load, OpenLoop) and load.pattern.by_rank and policy == "random":
            yield (
                f"{', '.join(job.names())}: {load.pattern.name} goes by numbers of ranks, and placement 'random' puts "
                "these anywhere; for the groups of the fabric, set placement = 'linear'."
            )


def _with_load(scenario: Scenario, parameters: Mapping[str, Any]) -> Scenario:
    """The fabric with one open-loop job on all of its hosts, in order."""
    hosts = fabric_of(scenario, Fabric.build).hosts
    job = {"name": "load", "ranks": hosts, "workload": from_options(OpenLoop, parameters)}
    kept = {name: getattr(scenario, name) for name in ("name", "seed", "fabric", "network", "qos", "mpi")}
    return Scenario(**kept, placement="linear", jobs=[from_options(Job, job, "pattern")])


def _replaced(scenario: Scenario, parameters: Mapping[str, Any]) -> Scenario:
    """The scenario with these parameters of its open-loop jobs."""
    jobs = []
    for job in scenario.jobs:
        changed = job
        if parameters and isinstance(job.workload, OpenLoop):
            changes = {**job.workload.model_dump(exclude_unset=True), **parameters}
            if "message_size" in parameters:
                changes.pop("sizes", None)
            workload = from_options(OpenLoop, changes)
            changed = from_options(Job, job.model_dump(exclude_unset=True) | {"workload": workload}, "pattern")
        jobs.append(changed)
    return scenario.model_copy(update={"jobs": jobs})


def _name_or_table(pattern: str) -> Any:
    """A name, or a TOML table."""
    if not pattern.lstrip().startswith("{"):
        return pattern
    try:
        return parse_toml(f"value = {pattern}")["value"]
    except ValueError as error:
        allowed = 'a name, or a table as { name = "next_group", group = 8 }'
        raise ScenarioError(Problem("--pattern", f"no table: {error}", pattern, allowed)) from None


@dataclass(frozen=True)
class _Source:
    """An open-loop job: how its messages and packets translate into shares of the injection bandwidth.

    That is the bandwidth of all ranks that send, bits per second. Bytes are means: headers of a message, and a packet
    on the wire.
    """

    job: int
    bandwidth: float
    header_bytes: float
    packet_bytes: float


@dataclass(frozen=True)
class _State:
    """Work of an engine so far: packet hops, messages and bytes sent by job, latencies."""

    now: int
    packet_hops: int
    sent: Mapping[int, tuple[int, int]]
    latency: Latency

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """The state of an engine."""
        columns = pl.col("messages_sent", "bytes_sent").sum().cast(pl.Int64)
        rows = frame(engine.table("ranks")).group_by("job").agg(columns).iter_rows()
        sent = {job: (messages, size) for job, messages, size in rows}
        return cls(engine.now, engine.packet_hops, sent, Latency.measured(engine))


def _answer(sources: list[_Source], before: _State, after: _State) -> Answer:
    """Return the measures between two states, as JSON.

    ``offered`` and ``accepted`` are shares of the injection bandwidth, ``links`` the mean number of links of a packet
    of any job. The tables ``exact`` and ``histogram`` have latencies of all open-loop jobs, messages and packets
    (``of``): count, sum, minimum, maximum; and buckets.
    """
    if after.now == before.now:
        message = "nothing is left to measure: a simulation advances by a link's latency at least"
        raise ScenarioError(Problem("--duration", message, DURATION.format(after.now)))
    latency = after.latency.since(before.latency)
    of_packets = latency.exact.filter(pl.col("of") == "packet").group_by("job").agg(pl.col("count").sum())
    packets: dict[int, int] = dict(of_packets.iter_rows())
    generated, delivered = 0.0, 0.0
    for source in sources:
        messages, size = (now - then for now, then in zip(after.sent[source.job], before.sent[source.job], strict=True))
        generated += size + messages * source.header_bytes
        delivered += packets.get(source.job, 0) * source.packet_bytes
    possible = sum(source.bandwidth for source in sources) * (after.now - before.now) / 8e12
    among = pl.col("job").is_in([source.job for source in sources])
    exact = latency.exact.filter(among).group_by("of")
    histogram = latency.histogram.filter(among).group_by("of", "low", "high").agg(pl.col("count").sum())
    totals = exact.agg(pl.col("count", "sum").sum(), pl.col("min").min(), pl.col("max").max())
    return {
        "offered": generated / possible,
        "accepted": delivered / possible,
        "links": (after.packet_hops - before.packet_hops) / max(1, sum(packets.values())),
        "exact": totals.sort("of").to_dict(as_series=False),
        "histogram": histogram.sort("of", "low").to_dict(as_series=False),
    }


def _sources(scenario: Scenario, resolved: Resolved) -> list[_Source]:
    """The open-loop jobs among the resolved ones: copies of a job follow each other."""
    workloads = [job.workload for job in scenario.with_background().jobs for _ in range(job.count)]
    sources = []
    for number, workload in enumerate(workloads):
        if not isinstance(workload, OpenLoop):
            continue
        job = resolved.jobs[number]
        injection, sizes = injection_of(resolved, job), workload.message_sizes()
        packets = fmean(injection.packets(size) for size in sizes)
        bandwidth = sum(injection.bandwidth(rank) for rank in workload.senders(job.ranks))
        wire = fmean(injection.wire(size) for size in sizes)
        sources.append(_Source(number, bandwidth, packets * injection.header, wire / packets))
    return sources
