"""The same case on fairlane's engine: builds what it wants, runs it, and reads its tables into an `Outcome`."""

import json
from collections import defaultdict
from typing import Any

from fairlane import _core

from . import case as ops
from .case import Case, Compute, Datagram, InputQueued, Mark, Network, Pfc, Recv, Send, Wait
from .fabrics import decode, fabric_spec
from .outcome import Departure, Iteration, LinkTime, Outcome, PauseCount, PortCount, Progress

#: No case takes longer than this: 1000 seconds.
FOREVER = 10**15
#: Stages that the messages of one transfer can have.
STAGES = 16
KINDS = ("control", "eager", "bulk", "collective", "collective_control", "collective_eager")
#: The communicator of neighborhood collectives.
TOPOLOGY = 5
Key = tuple[str, int, str]
Latencies = dict[Key, tuple[int, int, int, int]]
Buckets = dict[Key, list[tuple[int, int, int]]]


def architecture(switch: InputQueued) -> dict[str, Any]:
    """The architecture of switches in the engine's terms."""
    params = {
        "queues": switch.queues,
        "speedup": switch.thousandths / 1000,
        "allocator": switch.allocator,
        "iterations": switch.iterations,
        "output_buffer": switch.output_buffer,
    }
    return {"name": "input_queued", "params": params}


def flow_control(pfc: Pfc | None) -> dict[str, Any]:
    """Priority flow control in the engine's terms."""
    if pfc is None:
        return {}
    given = {key: value for key, value in vars(pfc).items() if value is not None}
    return {"flow_control": {"name": "pfc", **given}}


def buffers(network: Network) -> dict[str, Any]:
    """The input buffers in the engine's terms."""
    if network.own:
        return {"port_buffer": {"lanes": list(network.own)}}
    if network.port_buffer is None:
        return {"buffer": network.buffer}
    return {"port_buffer": {"size": network.port_buffer, "sharing": "dynamic" if network.dynamic else "even"}}


def class_spec(one: ops.TrafficClass) -> dict[str, Any]:
    """A traffic class in the engine's terms."""
    jobs = None if one.jobs is None else [f"job-{job}" for job in one.jobs]
    return {**vars(one), "jobs": jobs}


def spec(case: Case, *, departures: bool = True) -> dict[str, Any]:
    """The case, but for its programs, in the engine's terms."""
    fabric, network, qos = case.fabric, case.network, case.qos
    return {
        "fabric": fabric_spec(fabric),
        "network": {
            "mtu": network.mtu,
            "header": network.header,
            **buffers(network),
            **flow_control(network.pfc),
            "switch_latency": network.switch_latency,
            "injection": network.injection,
            "switching": "cut_through" if network.cut_through else "store_and_forward",
            **({"switch": architecture(network.switch)} if network.switch else {}),
        },
        "qos": {
            "lanes": fabric.queue(qos.lanes, 0),
            "sl2vl": list(qos.sl2vl),
            "arbiter": {"name": qos.arbiter, "params": qos.params},
            "default": qos.default,
            "kinds": {kind: qos.kinds.get(kind) for kind in KINDS},
            "classes": [class_spec(one) for one in qos.classes],
        },
        "mpi": vars(case.mpi),
        "jobs": [
            {
                "name": f"job-{number}",
                "hosts": job.hosts,
                "service_level": job.service_level,
                "ranks": {str(rank): level for rank, level in job.ranks.items()},
                "rails": job.rails,
            }
            for number, job in enumerate(case.jobs)
        ],
        "observe": {"departures": departures},
    }


def program(case: Case, job: int) -> _core.Program:
    """The program of one job."""
    scripts = case.jobs[job].scripts
    builder = _core.ProgramBuilder(len(scripts))
    for rank, script in enumerate(scripts):
        for op in script:
            if isinstance(op, ops.OneSided):
                add_one_sided(builder, rank, op)
            elif isinstance(op, ops.SetName):
                builder.comm_set_name(rank, TOPOLOGY if op.communicator == "topology" else 0, op.name)
            elif isinstance(op, ops.Collective | ops.Topology | ops.Neighbor):
                add_collective(builder, rank, op)
            else:
                add(builder, rank, op)
    return builder.build()


def add(
    builder: _core.ProgramBuilder, rank: int, op: Compute | Send | Datagram | Recv | Wait | Mark | ops.Rest
) -> None:
    """Adds one operation to a rank's script."""
    match op:
        case Compute(time):
            builder.compute(rank, time)
        case Send() | Datagram() | Recv():
            add_message(builder, rank, op)
        case Wait((request,)):
            builder.wait(rank, request)
        case Wait(requests):
            builder.wait_all(rank, list(requests))
        case Mark():
            builder.mark_progress(rank)
        case ops.BeginTiming():
            builder.begin_timing(rank)
        case ops.EndBurst(after):
            builder.end_burst(rank, after)
        case ops.Pause(time):
            builder.pause(rank, time)


def add_message(builder: _core.ProgramBuilder, rank: int, op: Send | Datagram | Recv) -> None:
    """Adds a message, or the receive of one."""
    match op:
        case Send(to, size, tag, None, synchronous):
            builder.send(rank, to, size, tag, 0, synchronous)
        case Send(to, size, tag, int(request), synchronous):
            builder.isend(rank, to, size, request, tag, 0, synchronous)
        case Datagram(to, size):
            builder.datagram(rank, to, size)
        case Recv(source, tag, None):
            builder.recv(rank, source, tag)
        case Recv(source, tag, int(request)):
            builder.irecv(rank, source, request, tag)


def add_collective(builder: _core.ProgramBuilder, rank: int, op: ops.Collective | ops.Topology | ops.Neighbor) -> None:
    """Adds an operation of all ranks."""
    match op:
        case ops.Topology(sources, destinations):
            builder.dist_graph_create_adjacent(rank, TOPOLOGY, list(sources), list(destinations))
        case ops.Collective(kind, volume, root, request) if request is not None:
            builder.icollective(rank, kind, request, listed(volume), 0, root)
        case ops.Collective(kind, volume, root):
            builder.collective(rank, kind, listed(volume), 0, root)
        case ops.Neighbor(kind, volume, request) if request is not None:
            builder.ineighbor(rank, kind, request, listed(volume), TOPOLOGY)
        case ops.Neighbor(kind, volume):
            builder.neighbor(rank, kind, listed(volume), TOPOLOGY)


def listed(volume: int | tuple[int, ...]) -> int | list[int]:
    """A volume as the builder takes it."""
    return list(volume) if isinstance(volume, tuple) else volume


def add_one_sided(builder: _core.ProgramBuilder, rank: int, op: ops.OneSided) -> None:
    """Adds an operation on a window: the builder's method of this name, with the operation's arguments."""
    match op:
        case ops.Rma(kind, window, target, size, request):
            builder.rma(rank, kind, window, target, size, request)
        case ops.Lock(window, int(target), exclusive):
            builder.win_lock(rank, window, target, exclusive)
        case ops.Unlock(window, int(target)):
            builder.win_unlock(rank, window, target)
        case ops.Flush(window, target):
            builder.win_flush(rank, window, target)
        case ops.Lock(window) | ops.Unlock(window):
            getattr(builder, f"win_{type(op).__name__.lower()}_all")(rank, window)
        case ops.Signal(call, window, group):
            getattr(builder, f"win_{call}")(rank, window, *([list(group)] if call in ("post", "start") else []))
        case ops.Create(window) | ops.Free(window) | ops.Fence(window):
            getattr(builder, f"win_{type(op).__name__.lower()}")(rank, window)


def simulate(case: Case, programs: list[_core.Program] | None = None, *, departures: bool = True) -> Outcome:
    """Runs a case, or other programs in its place, to its end.

    Raises `RuntimeError` if ranks wait for what can no longer come.
    """
    return outcome(run(case, programs, departures=departures), departures=departures)


def run(case: Case, programs: list[_core.Program] | None = None, *, departures: bool = True) -> _core.Simulation:
    """The simulation of a case, or of other programs in its place, at its end; raises as `simulate` does."""
    programs = programs or [program(case, job) for job in range(len(case.jobs))]
    simulation = _core.Simulation(json.dumps(spec(case, departures=departures)), programs)
    try:
        finished = simulation.run_until(FOREVER)
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # which is no Exception, so nobody would look for a smaller case
            raise RuntimeError(f"the engine panicked: {error}") from error
        raise
    if not finished:
        raise RuntimeError(f"not finished after {FOREVER} ps")
    return simulation


def latencies(simulation: _core.Simulation) -> tuple[Latencies, Buckets]:
    """Exact figures of latency, and the buckets of the histograms: lowest, highest, count."""
    texts, exact = simulation.table("latency"), decode(simulation.table("latency"))
    facts = {
        (of, job, kind): (count, low + (high << 64), least, most)
        for of, kind, job, count, low, high, least, most in zip(
            json.loads(texts["of"][1]),
            json.loads(texts["kind"][1]),
            *(exact[name] for name in ("job", "count", "sum_low", "sum_high", "min", "max")),
            strict=True,
        )
    }
    table = simulation.table("latency_histogram")
    columns, buckets = decode(table), defaultdict(list)
    for of, kind, job, *bucket in zip(
        json.loads(table["of"][1]),
        json.loads(table["kind"][1]),
        *(columns[name] for name in ("job", "low", "high", "count")),
        strict=True,
    ):
        buckets[of, job, kind].append(tuple(bucket))
    return facts, dict(buckets)


def outcome(simulation: _core.Simulation, *, departures: bool = True) -> Outcome:
    """What was measured."""

    def rows(table: str, *names: str) -> list[list[int]]:
        found = decode(simulation.table(table))
        return [list(row) for row in zip(*(found[name] for name in names), strict=True)]

    found = Outcome()
    if departures:
        columns = ("time", "link", "lane", "job", "packet", "bytes", "message", "stage")
        for time, link, lane, job, packet, size, message, stage in rows("departures", *columns):
            found.departures.append(Departure(time, link, lane, job, packet, size, message * STAGES + stage))
    for link, lane, *counts in rows("pauses", "link", "lane", "pauses", "paused", "longest", "first", "peak"):
        found.pauses[link, lane] = PauseCount(*counts)
    for job, rank, *marks in rows("ranks", "job", "rank", "iterations", "first_mark", "last_mark"):
        found.progress[job, rank] = Progress(*marks)
    for job, iteration, *times in rows("job_marks", "job", "iteration", "time", "elapsed"):
        found.iterations[job, iteration] = Iteration(0, *times)
    for link, lane, *counts in rows("ports", "link", "lane", "bytes", "packets", "waiting", "stalled", "max_queue"):
        found.ports[link, lane] = PortCount(*counts)
    for link, *times in rows("ports", "link", "port_active", "port_stalled"):
        found.links[link] = LinkTime(*times)
    for delayed, delaying, waited in rows("interference", "delayed", "delaying", "waiting"):
        found.interference[delayed, delaying] += waited
    return found
