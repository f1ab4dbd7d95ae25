"""Estimate memory and time of a scenario from its numbers, before anything of its size is allocated.

Memory is a sum of parts, each of which belongs to a key of the scenario; a scenario that needs more than it may have is
refused, and the largest parts are named. Time is a number of packet-hops times what one takes. Both are estimates: see
``docs/performance.md`` for how near they come.
"""

import os
import resource
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlane.core import bridge
from fairlane.core.errors import Problem
from fairlane.core.wording import bytes_text
from fairlane.inputs.problems import Problems
from fairlane.model.scenario.resolved import BASE, Estimate, Part
from fairlane.model.scenario.traffic import Load, MeanPath, load_of, recorded_load
from fairlane.model.workload.counting import Counted, counted

if TYPE_CHECKING:
    from fairlane.model.scenario.resolved import ResolvedJob
    from fairlane.model.scenario.tables import ScenarioTables

_GROUPS = Path("/sys/fs/cgroup")
DRAW = 24  # bytes of a random number that makes a compute time, while it is drawn
MESSAGES_AT_ONCE = 64  # messages of a rank that are in flight at the same time, at most
PER_LINK, PER_OPERATION, PER_RANK = 4e-6, 1.2e-6, 4e-5
"""Seconds for a link, an operation of a program and a rank, until a simulation can start."""
START = 2.0  # seconds until Python and its libraries have started, and for a small run's figures
GRAPH = 110  # bytes of a link in the graph, while it is built
PATH_TO_LEAF = 6  # bytes of a switch's path to a leaf, in routings that list them, while they are found
RANK = 700  # bytes of a rank in addition to the simulator's record of it: its host, in lists and tables
MESSAGE = 400  # bytes of a message in flight, with its packets
CROSSBAR_PORT, CROSSBAR_LANE = 72, 140  # bytes of a link, and of each of its lanes, at the crossbars of switches
PORT_ROW = 450  # bytes of a port's lane in tables that are made at the end
SAMPLE_ROW = 100
DEPARTURE = 230
MARK = 60
_FIXED = ("d_mod_k", "minimal", "dimension_order", "up_down", "tables")  # routings that do not look at loads
MOST_BYTES = 2**40  # the largest message
SHOWN = 3  # parts that the error message names
LARGE = 40_000  # ports of a fabric whose records fit no cache: there a packet-hop takes longest
HOP = {"output_queued": (90, 180), "input_queued": (450, 1350)}
"""Nanoseconds of a packet-hop on small and on large fabrics, by architecture of the switches."""


def within_memory(parts: Sequence[Part], scenario: "ScenarioTables") -> None:
    """Raises ``Problems`` if these parts take more memory than there may be."""
    needed, most = BASE + sum(part.bytes for part in parts), scenario.memory or machine_memory()
    if needed <= most:
        return
    large = sorted(parts, key=lambda part: -part.bytes)
    shown = "; ".join(map(str, [part for part in large if part.bytes > needed / 100][:SHOWN]))
    largest = f"; the largest parts are {shown}" if shown else ""
    whose = (
        "set by the key memory" if scenario.memory else "the memory of this machine; the key memory sets another limit"
    )
    message = f"the scenario needs about {bytes_text(needed)} of memory{largest}"
    raise Problems(Problem(large[0].key, message, allowed=f"at most {bytes_text(most)}, {whose}"))


def fabric_parts(fabric: Mapping[str, Any], lanes: int, architecture: str, engines: int | None = None) -> list[Part]:
    """What a fabric takes that has not been built, with switches of this architecture, in so many ``engines`` at once.

    By default one is built as a check before, and at the end an isolated run is simulated beside the co-run.
    Raises ``BuildError`` if it cannot be built.
    """
    _, switches, links = bridge.fabric_size(fabric)
    engines = min(2, machine_cores()) if engines is None else engines
    adaptive = fabric["routing"] not in _FIXED
    port, _, _ = bridge.footprint(lanes, adaptive)
    if architecture == "input_queued":
        port += CROSSBAR_PORT + CROSSBAR_LANE * lanes
    paths = PATH_TO_LEAF * min(switches, links // 2) * switches / 2 if fabric["routing"] in ("up_down", "tables") else 0
    total = links * (GRAPH * 2 + port * engines + PORT_ROW * lanes) + paths
    kind = "" if architecture == "output_queued" else f" {architecture}"
    amount = f"{links:,} ports, {lanes} {'lane' if lanes == 1 else 'lanes'} each, {switches:,}{kind} switches"
    return [Part("fabric", amount, total)]


def estimate(scenario: "ScenarioTables", jobs: Sequence["ResolvedJob"], path: MeanPath) -> Estimate:
    """Estimate a scenario whose jobs have not been placed."""
    lanes = len(path.lanes)
    architecture = scenario.network.switch.name
    # Until results are precise enough, the co-run and every other run are kept.
    left_out = _left_out(jobs) if scenario.observe.leave_one_out else 0
    engines = 1 + left_out + sum(job.iterates and not job.background for job in jobs) if scenario.until else None
    parts = fabric_parts(path.fabric, lanes, architecture, engines)
    loads: dict[str, Load] = {}
    sums: dict[str, _Table] = {}
    for job in jobs:
        program = sums.setdefault(job.key, _Table(job)).add(job)
        loads[job.name] = (
            recorded_load(scenario, job, path) if program is None else load_of(scenario, job, program, path)
        )
        sums[job.key].waiting += loads[job.name].waiting
    for table in sums.values():
        parts += table.parts(lanes)
    parts += _tables(scenario, path, jobs, loads)
    hops = sum(load.packet_hops for load in loads.values())
    ranks, operations = (sum(getattr(table, name) for table in sums.values()) for name in ("ranks", "operations"))
    # All together, each alone, and all without each.
    simulations = 1 if len(jobs) == 1 else 2 + max(0, left_out - 1)
    setup = PER_LINK * path.links + PER_OPERATION * operations + PER_RANK * ranks
    hop = packet_hop_time(path.links, architecture) * 1e-9
    seconds = START + setup + simulations * hops * hop
    return Estimate(tuple(sorted(parts, key=lambda part: -part.bytes)), hops, seconds, setup, hop)


def _left_out(jobs: Sequence["ResolvedJob"]) -> int:
    """Return the number of leave-one-out runs: of two jobs none, as they are the isolated runs."""
    aggressors = sum(not job.background for job in jobs) + any(job.background for job in jobs)
    return aggressors if len(jobs) > 2 else 0


class _Table:
    """All jobs of one ``[[jobs]]`` table."""

    def __init__(self, job: "ResolvedJob") -> None:
        self.key = job.key
        self.ranks = 0
        self.operations = self.messages = self.draws = self.waiting = 0.0
        self._program: Counted | None = None
        if job.table.workload is not None:
            stop = job.table.stop if isinstance(job.table.stop, int) else None
            self._program = counted(job.table.workload, job.ranks, stop)
            largest = max((size for _, traffic in self._program.ranks for size in traffic.messages), default=0)
            if largest > MOST_BYTES:
                allowed = f"at most {bytes_text(MOST_BYTES)}"
                raise Problems(Problem(f"{job.key}.workload", f"a message of {bytes_text(largest)}", allowed=allowed))

    def add(self, job: "ResolvedJob") -> Counted | None:
        """Adds a job; returns its program, unless it is a trace."""
        self.ranks += job.ranks
        if self._program is not None and job.table.workload is not None:
            self.operations += self._program.operations
            self.messages += sum(weight * traffic.sent for weight, traffic in self._program.ranks)
            self.draws = DRAW * job.table.workload.distinct_iterations * job.ranks
        return self._program

    def parts(self, lanes: int) -> Iterator[Part]:
        _, rank, operation = bridge.footprint(lanes, False)
        at_once = min(self.messages, MESSAGES_AT_ONCE * self.ranks)
        yield Part(f"{self.key}.ranks", f"{self.ranks:,} ranks", self.ranks * (rank + RANK))
        yield Part(
            f"{self.key}.workload", f"{self.operations:,.0f} operations", self.operations * operation + self.draws
        )
        yield Part(f"{self.key}.workload", f"{at_once:,.0f} messages at once", at_once * MESSAGE)
        if self.waiting > at_once:
            amount = f"up to {self.waiting:,.0f} waiting messages: senders are faster than receivers"
            yield Part(f"{self.key}.workload", amount, self.waiting * MESSAGE)


def packet_hop_time(links: int, architecture: str) -> float:
    """Nanoseconds of a packet-hop, from those measured on fabrics of 64 to 8192 hosts; see docs/performance.md."""
    small, large = HOP.get(architecture, HOP["output_queued"])  # plug-ins may add architectures
    return small + (large - small) * min(1.0, max(0.0, (links - 400) / LARGE))


def _tables(
    scenario: "ScenarioTables", path: MeanPath, jobs: Sequence["ResolvedJob"], loads: Mapping[str, Load]
) -> Iterator[Part]:
    observe, hops = scenario.observe, sum(load.packet_hops for load in loads.values())
    yield Part("jobs", f"{len(jobs):,} jobs, each with each", 40.0 * len(jobs) ** 2)
    if observe.departures:
        yield Part("observe.departures", f"about {hops:,.0f} departures", DEPARTURE * hops)
    if observe.interference_by_port:
        pairs = min(len(jobs), 16) ** 2
        yield Part("observe.interference_by_port", f"up to {pairs} pairs of jobs a port", 60.0 * pairs * path.links)
    if observe.interval:
        times = ceil(scenario.duration / observe.interval)
        rows = min(float(times * path.links * len(path.lanes)), hops)
        yield Part("observe.interval", f"{times:,} samples of {path.links:,} ports", SAMPLE_ROW * rows)
    kept = {*observe.iterations, *([observe.switch_counters.job] if observe.switch_counters else [])}
    for job in jobs:
        if job.name in kept:
            marks = loads[job.name].iterations
            yield Part("observe.iterations", f"{marks:,.0f} iterations a rank", MARK * marks * job.ranks)


def machine_memory() -> int:
    """Bytes of the machine's memory, or of what its resource limits or control group leave of it."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft != resource.RLIM_INFINITY:
        limits.append(soft)
    return min([*limits, *_memory_limits()])


def machine_cores() -> int:
    """The cores that this process may use, by its affinity and the quota of its control group."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *map(ceil, _core_limits())]))


def free_cores() -> int:
    """The idle cores that this process may use, by the load average of the last minute; at least one.

    The threads of a simulation wait for each other thousands of times a second: where they share cores they lose much.
    """
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return max(1, machine_cores() - ceil(load - 0.25))


def _memory_limits() -> Iterator[int]:
    """Limits of memory by control groups, bytes."""
    for group, v1 in _groups("memory"):
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            yield int((group / ("memory.limit_in_bytes" if v1 else "memory.max")).read_text(encoding="ascii"))


def _core_limits() -> Iterator[float]:
    """Limits of processor time by control groups, in cores."""
    for group, v1 in _groups("cpu"):
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if v1 else ("cpu.max",)
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            quota, period = (int(word) for name in names for word in (group / name).read_text(encoding="ascii").split())
            if quota > 0 and period > 0:
                yield quota / period


def _groups(controller: str) -> Iterator[tuple[Path, bool]]:
    """The folders of this process's control group and of those around it, and whether they are of version 1.

    Batch systems and containers set limits in them.
    """
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        v1 = controller in controllers.split(",")
        if controllers and not v1:
            continue
        root = _GROUPS / controller if v1 else _GROUPS
        group = root / path.lstrip("/")
        while group == root or root in group.parents:
            yield group, v1
            group = group.parent
