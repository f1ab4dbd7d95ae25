"""A scenario in which everything is decided: hosts, lanes, compute times, programs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fairlane.core import bridge
from fairlane.core.wording import bytes_text, seconds_text
from fairlane.inputs.hosts import Host
from fairlane.model.fabric.view import Fabric
from fairlane.model.placement import hosts_needed
from fairlane.model.power import JobPower
from fairlane.model.scenario.models import Job, Placement
from fairlane.model.scenario.nccl import Nccl
from fairlane.model.workload.builder import Injection

if TYPE_CHECKING:
    from fairlane.model.scenario.observe import SwitchCounters, Until

BACKGROUND = "background jobs"
"""The name of all jobs of the table ``background`` as one aggressor."""
BASE = 200 * 2**20  # bytes of Python with the libraries that a run loads


@dataclass(frozen=True)
class Part:
    """Memory and time of a key of the scenario."""

    key: str
    what: str  # what makes it so large, as "4,096 ranks"
    bytes: float

    def __str__(self) -> str:
        return f"{self.key}: {bytes_text(self.bytes)} ({self.what})"


@dataclass(frozen=True)
class Estimate:
    """Memory and time of a run of the scenario."""

    parts: tuple[Part, ...]  # what depends on the scenario, the largest first
    packet_hops: float  # of the co-run; isolated runs are not included
    seconds: float  # time on one core, jobs alone and tables included
    set_up_s: float = 0.0  # of this until the co-run begins
    hop_s: float = 0.0  # and for each packet-hop

    @property
    def simulation_s(self) -> float:
        """Time of the co-run on one core, s."""
        return self.set_up_s + self.packet_hops * self.hop_s

    @property
    def memory(self) -> float:
        """Largest memory, bytes."""
        return BASE + sum(part.bytes for part in self.parts)

    def __str__(self) -> str:
        return f"about {bytes_text(self.memory)} of memory, {seconds_text(self.seconds)} on one core"


@dataclass(frozen=True)
class ResolvedJob:
    """One job of a run: a copy of a ``[[jobs]]`` table with what is decided about it, step by step.

    ``copies`` makes it from the table, ``place`` gives it hosts, ``resolve`` rails, power and its program; ``spec`` is
    what the simulator takes.
    """

    table: Job
    """The ``[[jobs]]`` table that it is a copy of."""
    key: str
    """The table's key in the scenario, as ``jobs[2]``."""
    number: int
    """Its number among all copies of all jobs: its random streams depend on it."""
    name: str
    """Its name; no other job of the run has it."""
    ranks: int
    """Number of its ranks."""
    placement: Placement
    """The placement table that it follows: its own or the scenario's."""
    ranks_per_host: int
    """Number of consecutive ranks that share a host."""
    program: bridge.Program
    """Program of its ranks: empty until ``resolve`` writes it."""
    recorded: bridge.Program | None = None
    """The program of its trace, if it has one."""
    service_level: int | None = None
    """Service level of its messages."""
    rank_levels: Mapping[int, int] = field(default_factory=dict)
    """Service levels of ranks that have one of their own."""
    start: int = 0
    """Begin of its ranks, ps."""
    stop: int | None = None
    """Its departure time, ps; None if it does not depart at a time."""
    hosts: tuple[int, ...] = ()
    """The host of each rank; empty until it is placed."""
    rails: Mapping[str, Any] | None = None
    """Sharing of its messages among its hosts' adapters, as the simulator takes it; None for the default."""
    power: JobPower | None = None
    """The sockets that it runs on; None for a scenario without a table ``power``."""
    marks: bool = False
    """Whether the time of every iteration is kept, for the table ``marks``."""
    compute: int | None = None
    """Y: the compute time that the workload was given or calibrated to, ps; None for a trace."""
    calibrated: tuple[float, float] | None = field(default=None, compare=False)
    """Begin and end of the calibration of its compute time, on the monotonic clock, s; None if it was given."""

    @property
    def hosts_needed(self) -> int:
        """Number of hosts that it needs."""
        return hosts_needed(self.placed_ranks, self.ranks_per_host)

    @property
    def placed_ranks(self) -> int:
        """Number of ranks that the placement gives hosts: all but the last ones, whose hosts the workload names."""
        return self.ranks - len(self.fixed_hosts)

    @property
    def fixed_hosts(self) -> tuple[Host, ...]:
        """The hosts that the workload names for its last ranks."""
        return self.table.workload.fixed_hosts() if self.table.workload else ()

    @property
    def workload(self) -> str:
        """The name of its workload or trace."""
        return self.table.kind

    @property
    def measures(self) -> bool:
        """Whether its workload has results of its own, which need the time of every iteration."""
        return self.table.workload is not None and self.table.workload.measures

    @property
    def nccl(self) -> Nccl | None:
        """Parameters of NCCL's collectives; None if its collectives are those of ``mpi``."""
        workload = self.table.workload
        if self.table.nccl is None and workload is not None and workload.on_gpus:
            return Nccl()
        return self.table.nccl

    @property
    def iterates(self) -> bool:
        """Whether it has iterations that runs can be compared by; open-loop load has none."""
        return self.table.workload is None or self.table.workload.iterates

    @property
    def background(self) -> bool:
        """Whether it was drawn from the table ``background``; such jobs are not simulated in isolation."""
        return self.table.background

    def spec(self) -> dict[str, Any]:
        """The job as the simulator takes it."""
        levels = {str(rank): level for rank, level in self.rank_levels.items()}
        transport = self.table.transport
        transport_of_job = (
            {} if transport is None else {"transport": {"name": transport.name, "params": transport.parameters}}
        )
        return {
            "name": self.name,
            "hosts": list(self.hosts),
            "service_level": self.service_level,
            "ranks": levels,
            "rails": None if self.rails is None else dict(self.rails),
            "nccl": None if self.nccl is None else self.nccl.spec(),
            "start": self.start,
            "stop": self.stop,
            "marks": self.marks or self.measures,
            **transport_of_job,
        }


@dataclass(frozen=True)
class Resolved:
    """A scenario in which everything is decided."""

    name: str
    """Name of the scenario."""
    seed: int
    """Its seed."""
    duration: int
    """Simulated time, ps."""
    tables: Mapping[str, Any]
    """Fabric, network, QoS, MPI and observation as the simulator takes them."""
    jobs: tuple[ResolvedJob, ...]
    """The jobs, in the order of the scenario."""
    sample_interval: int | None = None
    """Interval between two samples of ports, ps; None for none."""
    switch_counters: "SwitchCounters | None" = None
    """The job after whose iterations flit and stall counters are read."""
    until: "Until | None" = None
    """Condition for an early end of a run; None if it lasts for ``duration``."""
    leave_one_out: bool = False
    """Whether a run also simulates the jobs without each aggressor."""
    notes: tuple[str, ...] = ()
    """Warnings about the results, one sentence each: printed by ``check`` and after a run."""
    estimate: Estimate | None = None
    """Estimated memory and time of a run; None if not estimated."""
    fabric: Fabric = field(kw_only=True, repr=False, compare=False)
    """The fabric of ``tables``, built."""

    @property
    def spec(self) -> dict[str, Any]:
        """Description from which the simulator builds, besides the programs: picoseconds, bytes and bits per second."""
        return {**self.tables, "jobs": [job.spec() for job in self.jobs]}

    @property
    def recorded(self) -> tuple[str, ...]:
        """The tables of single messages and packets that the simulation keeps."""
        observe = self.tables["observe"]
        record = ("messages", "waits") if observe["record"] else ()
        return (*record, "departures") if record or observe["departures"] else ()

    @property
    def calibration_s(self) -> float:
        """Wall time in which the compute time of some job was calibrated, s; jobs are calibrated at the same time."""
        total, until = 0.0, float("-inf")
        for begun, ended in sorted(job.calibrated for job in self.jobs if job.calibrated):
            total += max(0.0, ended - max(begun, until))
            until = max(until, ended)
        return total

    @property
    def aggressors(self) -> dict[str, tuple[int, ...]]:
        """Jobs that leave-one-out runs leave out, by name: each job, and all jobs of ``background`` together."""
        numbers = {job.name: (number,) for number, job in enumerate(self.jobs) if not job.background}
        drawn = tuple(number for number, job in enumerate(self.jobs) if job.background)
        return {**numbers, **({BACKGROUND: drawn} if drawn else {})}

    def alone(self, job: int) -> "Resolved":
        """The same with one job only."""
        return self.only([job])

    def only(self, jobs: Sequence[int]) -> "Resolved":
        """The same with some jobs only: same hosts, service levels and programs, no other co-running jobs."""
        observe = {**self.tables["observe"], "record": None}
        kept = tuple(self.jobs[job] for job in jobs)
        return replace(self, jobs=kept, tables={**self.tables, "observe": observe})

    def engine(self, threads: int = 1, *, automatic: bool = False) -> bridge.Simulation:
        """A fresh simulation, run by so many threads; ``automatic``: by one if the fabric is too small to gain.

        Raises ``BuildError`` if the parts do not fit together.
        """
        programs = [job.program for job in self.jobs]
        return self.fabric.simulation(self.spec, programs, threads=threads, automatic=automatic)


def injection_of(resolved: Resolved, job: ResolvedJob) -> Injection:
    """Return the injection of each rank of ``job``: ranks of a host share the links of their adapters evenly."""
    fabric, rails = resolved.fabric, job.rails or {}
    adapters = fabric.adapters_of_hosts
    match rails.get("policy"):
        case "only":
            adapters_of_ranks: list[int | None] = [rails["only"]] * job.ranks
        case "by_rank" | "by_source":
            adapters_of_ranks = list(rails["ranks"]) or [
                rank % int(adapters[host]) for rank, host in enumerate(job.hosts)
            ]
        case _:
            adapters_of_ranks = [None] * job.ranks
    sharing = Counter(zip(job.hosts, adapters_of_ranks, strict=True))
    rates = {adapter: fabric.bandwidths_of_hosts(adapter) for adapter in set(adapters_of_ranks)}
    network = resolved.tables["network"]
    places = zip(job.hosts, adapters_of_ranks, strict=True)
    bandwidths = [float(rates[adapter][host] / sharing[host, adapter]) for host, adapter in places]
    return Injection(bandwidths, network["mtu"], network["header"])
