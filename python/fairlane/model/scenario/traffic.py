"""Packet-hops of a job: packets of an iteration, times links of the path, times iterations in its time.

An iteration is taken to last as long as the compute time of the rank that computes longest, the CPU time of its
messages, their time on its own link, and a latency for each time that it waits. Other jobs do not slow it down here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from fairlane.core import bridge
from fairlane.core.seeds import Purpose, stream
from fairlane.core.units import CLOCK_END
from fairlane.model.fabric.view import Fabric
from fairlane.model.workload.counting import Counted, Traffic
from fairlane.model.workload.open_loop import OpenLoop

if TYPE_CHECKING:
    from fairlane.model.scenario.models import Mpi
    from fairlane.model.scenario.resolved import ResolvedJob
    from fairlane.model.scenario.tables import ScenarioTables

ROUTES = 48  # sampled routes for the mean length
CONTROL = 3  # control messages of a rendezvous


@dataclass(frozen=True)
class MeanPath:
    """The mean path of a packet through a fabric."""

    fabric: Mapping[str, Any]
    links: int  # links of the fabric
    lanes: Sequence[tuple[int, int]]  # lanes of every port
    hops: float  # mean number of links between two hosts
    bandwidth: float  # bits per second of a host's link, the mean
    latency: float  # of a packet without payload from host to host, ps
    adapters: float  # of a host, the mean

    @classmethod
    def of(cls, spec: Mapping[str, Any], fabric: Fabric, virtual_lanes: int, switch_latency: int) -> "MeanPath":
        """Measure the mean path of a fabric that is built."""
        _, _, links = bridge.fabric_size(spec)
        lanes = fabric.required_virtual_lanes(virtual_lanes)
        rng, hosts = Random(0), fabric.hosts
        pairs = [rng.sample(range(hosts), 2) for _ in range(ROUTES)] if hosts > 1 else []
        joined = [(a, b, rails) for a, b in pairs if (rails := fabric.rail_pairs(a, b))]
        routes = [fabric.route(a, b, *rails[at % len(rails)]) for at, (a, b, rails) in enumerate(joined)]
        hops = sum(map(len, routes)) / len(routes) if routes else 1.0
        bandwidth, latency = fabric.wires()
        mean = float(fabric.adapters_of_hosts.mean())
        return cls(spec, links, lanes, hops, bandwidth, latency * hops + switch_latency * (hops - 1), mean)


@dataclass(frozen=True)
class Load:
    """The load of a job in the simulated time."""

    packet_hops: float
    iterations: float  # iterations of a rank
    waiting: float = 0.0  # messages that may be sent and not delivered at the end: more come than receivers take


def load_of(scenario: "ScenarioTables", job: "ResolvedJob", program: Counted, path: MeanPath) -> Load:
    """That of a workload."""
    workload = job.table.workload
    assert workload is not None, "only for jobs with a workload"
    sent = sum(weight * traffic.sent for weight, traffic in program.ranks)
    mean = sum(weight * traffic.bytes for weight, traffic in program.ranks) / sent if sent else 0.0
    times = (_communication(scenario, job, traffic, mean, path) for _, traffic in program.ranks)
    communication = max(times, default=0.0)
    compute, offered = workload.compute, workload.offered()
    if offered is not None:
        communication = _wire(scenario, offered[1], path) * min(job.ranks_per_host, job.ranks) / offered[0]
    time = communication / (1 - workload.target_share) if compute is None else communication + compute
    iterations = _span(scenario, job) / max(time, 1.0)
    if isinstance(job.table.stop, int):
        iterations = min(iterations, job.table.stop)
    packets = sum(weight * _packets(scenario, traffic) for weight, traffic in program.ranks)
    waiting = _open_overload(scenario, job, path) if offered else _run_ahead(scenario, job, program, path, compute)
    return Load(packets * path.hops * iterations, iterations, waiting)


def _run_ahead(
    scenario: "ScenarioTables", job: "ResolvedJob", program: Counted, path: MeanPath, compute: int | None
) -> float:
    """Eager messages of ranks that only send, without those that the links of the ranks that receive can carry.

    An eager send is over when its CPU time is: nothing holds back a rank that waits for no other. That is how many
    messages there are at most; senders of a rendezvous wait.
    """
    mpi, span = scenario.mpi, _span(scenario, job)
    sent, limit, parts = 0.0, job.table.stop if isinstance(job.table.stop, int) else None, _compute_parts(scenario, job)
    for weight, traffic in program.ranks:
        eager = sum(count for size, count in traffic.messages.items() if size <= mpi.eager_threshold)
        if traffic.waits_for_others or not eager:
            continue
        times = _sending(mpi, traffic) + (compute or 0) * parts
        rounds = span / numpy.maximum(times, 1.0)
        sent += weight * eager * float((rounds if limit is None else numpy.minimum(rounds, limit)).mean())
    if not sent:
        return 0.0
    sizes = [(size, weight * count) for weight, rank in program.ranks for size, count in rank.messages.items()]
    mean = sum(size * count for size, count in sizes) / sum(count for _, count in sizes)
    each = max(_wire(scenario, mean, path), float(mpi.receive_overhead), 1.0)
    taken = sum(weight for weight, traffic in program.ranks if traffic.received) * span / each
    return max(0.0, sent - taken)


def _compute_parts(scenario: "ScenarioTables", job: "ResolvedJob") -> NDArray[numpy.float64]:
    """Each rank's part of the compute time."""
    assert job.table.workload is not None, "only for jobs with a workload"
    try:
        rng = stream(scenario.seed, Purpose.COMPUTE, job.number)
        return job.table.workload.imbalance.parts(job.ranks, rng)
    except Exception:  # of an imbalance of the user's own: reported when its program is written
        return numpy.ones(1)


def _open_overload(scenario: "ScenarioTables", job: "ResolvedJob", path: MeanPath) -> float:
    """Messages of open-loop load above the bandwidth of those that receive.

    Links between switches may carry less; what waits for them is not counted.
    """
    workload = job.table.workload
    if not isinstance(workload, OpenLoop):
        return 0.0
    load, size = workload.offered()
    share, ranks = workload.pattern.share, job.ranks
    try:
        targets = workload.pattern.targets(ranks, lambda: stream(scenario.seed, Purpose.PATTERN, job.number))
    except Exception:  # of a pattern of the user's own: reported when its program is written
        return 0.0
    arriving = [(1 - share) * load] * ranks
    for chosen in targets:
        for target in chosen:
            arriving[target] += share * load / len(chosen)
    above = sum(max(0.0, part - 1) for part in arriving)
    return above * _span(scenario, job) / max(_wire(scenario, size, path) * min(job.ranks_per_host, ranks), 1.0)


def recorded_load(scenario: "ScenarioTables", job: "ResolvedJob", path: MeanPath) -> Load:
    """Estimate the load of a trace, from its description: at the pace at which it was recorded."""
    trace = job.table.trace
    assert trace is not None, "only for jobs with a trace"
    described = trace.describe()
    steps = max(1, (job.ranks - 1).bit_length())
    calls = [(kind["calls"], kind["bytes"]) for kind in described["collectives"].values()]
    sent = described["p2p_messages"] + sum(count for count, _ in calls) * steps
    size = (described["p2p_bytes"] + sum(size for _, size in calls) * steps) * trace.message_scale
    packets = sent + size / scenario.network.mtu
    computed = (described.get("cpu_seconds") or 0.0) - (described.get("cpu_seconds_in_mpi") or 0.0)
    mean = size / sent if sent else 0.0
    traffic = Traffic({mean: sent / job.ranks}, sent / job.ranks, sent / job.ranks)
    time = 1e12 * computed / job.ranks * trace.compute_scale + _communication(scenario, job, traffic, mean, path)
    passes = _span(scenario, job) / max(time, 1.0)
    if not trace.repeat:
        passes = min(trace.share(described), passes)
    return Load(packets * path.hops * passes, passes)


def _span(scenario: "ScenarioTables", job: "ResolvedJob") -> float:
    """The time between the job's arrival and departure, ps."""
    end = min(scenario.duration, job.table.stay.end, CLOCK_END)
    return max(0.0, float(end - job.start))


def _communication(
    scenario: "ScenarioTables", job: "ResolvedJob", traffic: Traffic, mean: float, path: MeanPath
) -> float:
    """Time of a rank's communication in an iteration, ps; ``mean`` is the size of the messages that come to it."""
    mpi = scenario.mpi
    overhead = _sending(mpi, traffic) + traffic.received * mpi.receive_overhead
    moved = max(traffic.bytes, mean * traffic.received, traffic.arriving)
    trips = 3 if mpi.asks(mean) else 1
    delays = mpi.adapter_delay(mean) + (trips - 1) * mpi.adapter_delay(mpi.control_bytes)
    latency = traffic.rounds * (trips * path.latency + delays)
    # Adapters over which a rank sends one message; how far several overlap on other rails is not known.
    striped = job.table.rails is not None and job.table.rails.policy == "stripe"
    rails = max(1.0, path.adapters / job.ranks_per_host) if striped else 1.0
    return overhead + _wire(scenario, moved, path) / rails + latency


def _sending(mpi: "Mpi", traffic: Traffic) -> float:
    """CPU time of a rank's sends, ps."""
    return sum(count * mpi.sending(size) for size, count in traffic.messages.items())


def _wire(scenario: "ScenarioTables", moved: float, path: MeanPath) -> float:
    """Time of so many bytes on a host's link, ps, headers included."""
    return 8e12 / path.bandwidth * moved * (1 + scenario.network.header / scenario.network.mtu)


def _packets(scenario: "ScenarioTables", traffic: Traffic) -> float:
    """Packets of a rank in an iteration."""
    mpi, mtu = scenario.mpi, scenario.network.mtu
    return sum(
        count * (max(1, ceil(size / mtu)) + (CONTROL if mpi.asks(size) else 0))
        for size, count in traffic.messages.items()
    )
