"""A case on the second simulator, ``tests/oracle``, which is written from the model page alone, event for event.

The paths of packets are the engine's own: the oracle checks when, in which order and on which lanes they take them, for
every routing. What the oracle does not know (open-loop load, recordings, congestion control, some calls of MPI) makes a
case unsupported.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, cast

from fairlane import Simulation
from fairlane.inputs.parameters import named, resolve_parameters
from fairlane.model.power import Pace
from fairlane.model.scenario import Resolved, ResolvedJob
from fairlane.model.workload.builder import JobScript
from oracle import case as ops
from oracle import core, fabrics, simulate
from oracle.outcome import Outcome
from vopr.case import Action, Case, apply

__all__ = ["Unsupported", "compare"]

MOST_HOPS = 4_000
"""Packet-hops: the oracle takes some 50 us for each."""
TAIL = 50_000_000
"""For so long the engine goes on after the end, ps, so that the paths of packets in flight are known."""
ALGORITHMS = {
    "barrier": "dissemination",
    "bcast": "binomial",
    "allreduce": "recursive_doubling",
    "allgather": "ring",
    "alltoall": "scattered",
}
"""The algorithms of collectives that the oracle has."""

BLOCKS = ("repeat", "each")
"""The calls of a program builder that begin a block, up to a call of ``end``."""

Calls = list[tuple[str, tuple[Any, ...]]]


class Unsupported(Exception):
    """The oracle does not know something of the case."""


def compare(case: Case, resolved: Resolved) -> str:
    """Where the engine and the oracle differ; empty if they agree. Raises ``Unsupported``."""
    if "transport" in resolved.tables["network"] or any(
        job.spec().get("transport", {"name": "credits_only"})["name"] != "credits_only" for job in resolved.jobs
    ):
        raise Unsupported("a transport other than credits_only")
    if resolved.tables["faults"]:
        raise Unsupported("faults")
    if resolved.tables["qos"].get("classes"):
        raise Unsupported("traffic classes")
    scripts = [_script(resolved, job) for job in resolved.jobs]
    observe = {**resolved.tables["observe"], "counters": True, "departures": True, "record": None}
    mpi = {**resolved.tables["mpi"], "collectives": ALGORITHMS}
    resolved = replace(resolved, tables={**resolved.tables, "mpi": mpi, "observe": observe})
    one, changes = Simulation(resolved), []
    for action in [*case.changes, {"at": resolved.duration}]:
        one.engine.run_window_budget(action["at"], max(0, MOST_HOPS - one.packet_hops))
        if one.now < action["at"] and not one.finished:
            break
        one.run_until(action["at"])
        if "do" in action:
            changes.append(_change(resolved, one.now, action))
            apply(one, action)
    tail = one.fork()
    tail.engine.run_window_budget(one.now + TAIL, 4 * MOST_HOPS)
    lanes = 1 + max(resolved.tables["qos"]["sl2vl"], default=0)
    fabric = fabrics.with_queues(fabrics.any_fabric(resolved.tables["fabric"]), lanes)
    jobs = [_job(job, script) for job, script in zip(resolved.jobs, scripts, strict=True)]
    network = resolved.tables["network"]
    given = ops.Case(
        fabric,
        jobs,
        ops.Network(
            network["mtu"],
            network["header"],
            network.get("buffer", 0),
            network["switch_latency"],
            network["switching"] == "cut_through",
            _switch(network.get("switch")),
            *_port_buffer(network.get("port_buffer")),
            pfc=_pfc(network.get("flow_control")),
            injection=network["injection"],
        ),
        _qos(resolved),
        ops.Mpi(**mpi),
        tuple(changes),
        one.now,
    )
    try:
        given = fabrics.recorded(given, tail.engine, one.now)
    except fabrics.UntraceableError as error:
        raise Unsupported(str(error)) from error
    try:
        expected = simulate(given)
    except KeyError as error:
        time, link = error.args[0]
        return f"the oracle sends a packet at {time} ps on link {link} of a host, the engine does not"
    except (IndexError, AssertionError) as error:
        return f"the oracle cannot follow the paths of the engine's packets: {error!r}"
    return _difference(one, core.outcome(one.engine), expected)


def _switch(given: dict[str, Any] | None) -> ops.InputQueued | None:
    """The architecture of switches with the defaults of its parameters; None for output-queued ones."""
    if given is None:
        return None
    if given["name"] != "input_queued":
        raise Unsupported(f"architecture {given['name']}")
    params = {key: value for key, value in given["params"].items() if key != "speedup"}
    return ops.InputQueued(thousandths=round(1000 * given["params"].get("speedup", 2)), **params)


def _pfc(given: dict[str, Any] | None) -> ops.Pfc | None:
    """Priority flow control; None for credits."""
    if given is None:
        return None
    if "watchdog" in given:
        raise Unsupported("a watchdog")
    return ops.Pfc(given.get("xoff"), given.get("xon"), given.get("response", 0))


def _port_buffer(given: dict[str, Any] | None) -> tuple[int | None, bool]:
    """The memory of a port, and whether lanes share it dynamically."""
    return (None, False) if given is None else (given["size"], given["sharing"] == "dynamic")


def _difference(one: Simulation, found: Outcome, expected: Outcome) -> str:
    ours, theirs = found.facts(), expected.facts()
    for what, facts in ours.items():
        if facts != theirs[what]:
            return f"{what} until {one.now} ps: {_first(facts, theirs[what])}"
    exact, _ = core.latencies(one.engine)
    return "" if exact == expected.latency_facts() else f"latencies: {_first(exact, expected.latency_facts())}"


def _first(found: Any, expected: Any) -> str:
    """The first entry that differs."""
    if isinstance(found, dict):
        key = min((key for key in {*found, *expected} if found.get(key) != expected.get(key)), key=str)
        return f"{key}: engine {found.get(key)}, oracle {expected.get(key)}"
    both = enumerate(zip([*found, None], [*expected, None], strict=False))
    place, (ours, theirs) = next((place, pair) for place, pair in both if pair[0] != pair[1])
    return f"number {place} of {len(found)} and {len(expected)}: engine {ours}, oracle {theirs}"


def _qos(resolved: Resolved) -> ops.Qos:
    qos = resolved.tables["qos"]
    sl2vl = tuple([*qos["sl2vl"], *[0] * 16][:16])
    name, params = qos["arbiter"]["name"], qos["arbiter"]["params"]
    return ops.Qos(sl2vl, *_arbiter(name, params, 1 + max(sl2vl)), qos["default"], dict(qos["kinds"]))


def _arbiter(name: str, given: dict[str, Any], lanes: int) -> tuple[str, dict[str, Any]]:
    """An arbiter with the defaults of its parameters."""
    match name:
        case "weighted_round_robin":
            weights = given.get("weights", 1)
            return name, {"weights": [weights] * lanes if isinstance(weights, int) else weights}
        case "strict_priority":
            found = {key: value for key, value in given.items() if value is not None}
            return name, {"order": [*reversed(range(lanes))], **found}
        case "vlarb":
            high, low = given.get("vlarb_high") or [], given.get("vlarb_low")
            rest = [(lane, 64) for lane in range(lanes) if lane not in [entry[0] for entry in high]]
            tables = {"vlarb_high": high, "vlarb_low": rest if low is None else low}
            return name, {**tables, "high_limit": given.get("high_limit") or 0}
        case "oldest_first":
            return name, {}
    raise Unsupported(f"arbiter {name}")


def _change(resolved: Resolved, now: int, action: Action) -> ops.Change:
    numbers = {job.name: number for number, job in enumerate(resolved.jobs)}
    match action["do"]:
        case "job_level":
            return ops.Change(now, jobs={numbers[action["job"]]: action.get("level")})
        case "kind_level":
            return ops.Change(now, kinds={action["kind"]: action.get("level")})
        case "rank_levels":
            return ops.Change(
                now, ranks={numbers[action["job"]]: {int(rank): level for rank, level in action["levels"].items()}}
            )
    name = action["arbiter"]["name"]
    given = {key: value for key, value in action["arbiter"].items() if key != "name"}
    params = resolve_parameters(named("arbiter", name, "name"), given)
    return ops.Change(now, arbiter=_arbiter(name, params, 1 + max(resolved.tables["qos"]["sl2vl"], default=0)))


def _job(job: ResolvedJob, script: Sequence[Calls]) -> ops.Job:
    policy = job.rails or {"policy": "round_robin"}
    return ops.Job(
        list(job.hosts),
        cast("list[list[ops.Op]]", [_Script(calls) for calls in script]),  # which are only iterated over
        job.service_level,
        dict(job.rank_levels),
        dict(policy),
        job.start,
        job.stop,
    )


class _Recorder:
    """In the place of a program builder: notes every call."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.calls: list[Calls] = [[] for _ in range(ranks)]

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda rank, *args: self.calls[rank].append((name, args))

    def build(self) -> "_Recorder":
        """The same: calls are the program."""
        return self


def _script(resolved: Resolved, job: ResolvedJob) -> list[Calls]:
    """What a job's ranks do, as calls of the builder; raises ``Unsupported``."""
    workload, recorder = job.table.workload, _Recorder(job.ranks)
    if workload is None:
        raise Unsupported("a recording")
    if workload.offered():
        raise Unsupported("open-loop load")
    capped = job.power is not None and job.power.capped()
    script = JobScript(
        job.ranks,
        seed=resolved.seed,
        job=job.number,
        variant=workload.variant,
        iterations=job.table.stop if isinstance(job.table.stop, int) else None,
        pace=Pace(job.power.frequencies(), workload.memory_bound) if job.power and capped else None,
        builder=recorder,  # type: ignore[arg-type]
    )
    workload.program(script, job.compute or 0)
    for calls in recorder.calls:
        for name, args in calls:
            if name not in BLOCKS and name != "end":
                list(_operations(name, args))
    return recorder.calls


class _Script:
    """The operations of a rank, loops and all."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def __iter__(self) -> Iterator[ops.Op]:
        return self._play(0, len(self.calls))

    def _play(self, begin: int, end: int) -> Iterator[ops.Op]:
        at = begin
        while at < end:
            name, args = self.calls[at]
            if name not in BLOCKS:
                yield from _operations(name, args)
                at += 1
                continue
            after = self._end(at)
            if name == "each":
                for time in args[0]:
                    yield ops.Compute(time)
                    yield from self._play(at + 1, after)
            else:
                for _ in count() if args[0] is None else range(args[0]):
                    yield from self._play(at + 1, after)
            at = after + 1

    def _end(self, at: int) -> int:
        """Where the loop ends that begins at a place."""
        depth = 0
        for place in range(at, len(self.calls)):
            name = self.calls[place][0]
            depth += (name in BLOCKS) - (name == "end")
            if not depth:
                return place
        raise AssertionError("a loop is left open")


CALLS: dict[str, Callable[..., ops.Op]] = {
    "compute": ops.Compute,
    "datagram": ops.Datagram,
    "mark_progress": ops.Mark,
    "begin_timing": ops.BeginTiming,
    "end_burst": ops.EndBurst,
    "pause": ops.Pause,
    "wait": lambda request: ops.Wait((request,)),
    "wait_all": lambda requests: ops.Wait(tuple(requests)),
    "dist_graph_create_adjacent": lambda _new, sources, to, comm: _in_world(
        comm, ops.Topology(tuple(sources), tuple(to))
    ),
    "win_create": lambda window, comm: _in_world(comm, ops.Create(window)),
    "win_free": ops.Free,
    "win_fence": ops.Fence,
    "rma": ops.Rma,
    "win_lock": ops.Lock,
    "win_unlock": ops.Unlock,
    "win_lock_all": ops.Lock,
    "win_unlock_all": ops.Unlock,
    "win_flush": ops.Flush,
    "win_post": lambda window, group: ops.Signal("post", window, tuple(group)),
    "win_start": lambda window, group: ops.Signal("start", window, tuple(group)),
    "win_complete": lambda window: ops.Signal("complete", window),
    "win_wait": lambda window: ops.Signal("wait", window),
    "send": lambda to, size, tag, comm, synchronous: _in_world(comm, ops.Send(to, size, tag, None, synchronous)),
    "isend": lambda to, size, request, tag, comm, synchronous: _in_world(
        comm, ops.Send(to, size, tag, request, synchronous)
    ),
    "recv": lambda source, tag, comm: _in_world(comm, ops.Recv(source, tag)),
    "irecv": lambda source, request, tag, comm: _in_world(comm, ops.Recv(source, tag, request)),
    "neighbor": lambda kind, volume, _comm: ops.Neighbor(kind, _volume(volume)),
    "ineighbor": lambda kind, request, volume, _comm: ops.Neighbor(kind, _volume(volume), request),
}
"""The calls of a program builder that are one operation, with its arguments after the rank."""


def _in_world(comm: int, op: ops.Op) -> ops.Op:
    """An operation of the communicator of all ranks, the only one that the oracle has."""
    if comm:
        raise Unsupported(f"communicator {comm}")
    return op


def _volume(volume: int | list[int]) -> int | tuple[int, ...]:
    return tuple(volume) if isinstance(volume, list) else volume


def _operations(name: str, args: tuple[Any, ...]) -> Iterator[ops.Op]:
    """What a call of the builder means to the oracle."""
    if name == "exchange":
        sources, targets, size, first = args
        for place, (source, to) in enumerate(zip(sources, targets, strict=True)):
            yield ops.Recv(source, place, first + 2 * place)
            yield ops.Send(to, size, place, first + 2 * place + 1)
        yield ops.Wait(tuple(range(first, first + 2 * len(sources))))
    elif name == "collective":
        yield _collective(None, *args)
    elif name == "icollective":
        kind, request, *others = args
        yield _collective(request, kind, *others)
    elif name in CALLS:
        yield CALLS[name](*args)
    elif name != "comm_free":
        raise Unsupported(f"the call {name}")


def _collective(request: int | None, kind: str, volume: int | list[int], comm: int, root: int) -> ops.Op:
    if kind not in ALGORITHMS or (isinstance(volume, list) and kind != "alltoall"):
        raise Unsupported(f"{kind} of {'blocks' if isinstance(volume, list) else 'one size'}")
    return _in_world(comm, ops.Collective(kind, _volume(volume), root, request))
