"""The file of a testbed: switches, hosts, trunks, the jobs that run on them, and how they are measured."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from fairlane.cluster.agent.backends.htb import LevelClass
from fairlane.core.errors import Problem
from fairlane.core.seeds import LARGEST_SEED
from fairlane.core.units import Bandwidth, Duration, Size, Written
from fairlane.inputs.document import Document
from fairlane.inputs.hosts import members
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.lab.testbed.script import script_of
from fairlane.model.scenario.levels import Level
from fairlane.model.workload import WorkloadField
from fairlane.sim.controller import Controller, controller_of_real_jobs

MOST_HOSTS = 64
"""Hosts of a testbed: each is a network namespace with a process of every job that runs on it."""
SLOWEST, FASTEST = 100_000, 10 * 10**9
"""Bounds of rates, bits per second."""
SMALLEST_QUEUE = 16 * 1514
"""The smallest queue, bytes: that of a window with which a TCP connection begins."""
SECOND = 10**12
_NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,30}$"


def _names(given: Any) -> Any:
    """Names as a list: one as it is, lists of Slurm's spread out."""
    whole = [given] if isinstance(given, str) else given
    if not isinstance(whole, list | tuple) or not all(isinstance(name_list, str) for name_list in whole):
        return given
    try:
        return tuple(name for name_list in whole for name in members(name_list))
    except ValueError as error:
        raise Problems(Problem("", str(error), given, 'names, or lists as "a[0-3]"')) from None


_WITHOUT_WINDOW = ("bbr",)
Names = Annotated[Written[tuple[str, ...]], BeforeValidator(_names, json_schema_input_type=str | list[str])]
"""A field that takes names or lists of names as Slurm writes them."""


class Link(Table):
    """A cable: its rate and the queue of either end."""

    rate: Bandwidth = Field(ge=SLOWEST, le=FASTEST)
    """Rate of either direction; Ethernet frames count with 14 bytes of header."""
    queue: Size = Field(default=1_500_000, ge=SMALLEST_QUEUE)
    """Bytes that wait at either end before frames are dropped."""


class Trunk(Link):
    """A cable between two switches."""

    between: Names
    """The two switches."""


class Switch(Table):
    """A switch and the hosts that are connected to it."""

    name: str = Field(pattern=_NAME)
    """Name of the switch."""
    hosts: Names = ()
    """Names of its hosts: a list, or as Slurm writes them: ``"a[0-3]"``."""


class FabricTable(Table):
    """Switches, hosts and cables. The switches and trunks are a tree."""

    switches: list[Switch] = Field(min_length=1, max_length=16)
    """The switches with their hosts."""
    host_link: Written[Link]
    """The cable of every host."""
    trunks: list[Trunk] = Field(default_factory=list)
    """The cables between switches."""
    mtu: Size = Field(default=1500, ge=576, le=9000)
    """Largest IP packet; TCP and IP have 52 bytes of it for their headers."""
    window: Annotated[Size, Field(ge=SMALLEST_QUEUE)] | Literal["auto"] = "auto"
    """Congestion window of TCP connections: fixed, or ``auto``, as the congestion control chooses it."""
    congestion_control: str = Field(default="reno", pattern=r"^[a-z0-9_]{1,15}$")
    """TCP's congestion control, one that the kernel has loaded. ``bbr`` paces packets and keeps no fixed window."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """All hosts, in order of the switches."""
        return tuple(host for switch in self.switches for host in switch.hosts)

    @model_validator(mode="after")
    def _is_a_tree(self) -> Self:
        if problems := [*_twice(self), *_trunks(self)]:
            raise Problems(*problems)
        if self.window != "auto" and self.congestion_control in _WITHOUT_WINDOW:
            message = "does not keep a fixed window"
            raise Problems(
                Problem("congestion_control", message, self.congestion_control, 'reno or cubic, or window = "auto"')
            )
        return self


def _twice(fabric: FabricTable) -> Iterator[Problem]:
    """Names that are not names, or are given twice."""
    seen: set[str] = set()
    for at, switch in enumerate(fabric.switches):
        for key, names in (("name", (switch.name,)), ("hosts", switch.hosts)):
            for name in names:
                if re.match(_NAME, name) is None:
                    yield Problem(f"switches[{at}].{key}", "is no name", name, "letters, digits, '.', '_' and '-'")
                elif name in seen:
                    yield Problem(f"switches[{at}].{key}", "duplicate name of a host or switch", name)
                seen.add(name)
    if not 2 <= len(fabric.hosts) <= MOST_HOSTS:
        yield Problem("switches", "wrong number of hosts", len(fabric.hosts), f"2 to {MOST_HOSTS}")


def _trunks(fabric: FabricTable) -> Iterator[Problem]:
    """Trunks between unknown switches, loops, and switches that nothing connects."""
    names = [switch.name for switch in fabric.switches]
    part = {name: name for name in names}
    for at, trunk in enumerate(fabric.trunks):
        key = f"trunks[{at}].between"
        if unknown := [name for name in trunk.between if name not in names]:
            yield from (Problem.unknown(key, "switch", name, names, name) for name in unknown)
        elif len(trunk.between) != 2 or len(set(trunk.between)) != 2:
            yield Problem(key, "is not between two switches", list(trunk.between), "two of fabric.switches")
        else:
            left, right = (part[name] for name in trunk.between)
            if left == right:
                yield Problem(key, "closes a loop, in which Ethernet frames go round for ever", list(trunk.between))
            part = {name: left if part_name == right else part_name for name, part_name in part.items()}
    if len(set(part.values())) > 1:
        apart = next(name for name in names if part[name] != part[names[0]])
        yield Problem("trunks", f"nothing connects switch {apart} with {names[0]}", allowed="a tree of all switches")


class Job(Table):
    """A job: what its ranks do, and where; one rank on each host."""

    name: str = Field(pattern=_NAME)
    """Name of the job."""
    hosts: Names
    """Its hosts, in order of ranks."""
    workload: WorkloadField
    """Workload of its ranks: messages between two ranks, or ``all_to_all``."""

    @model_validator(mode="after")
    def _can_run(self) -> Self:
        if problems := list(self._problems()):
            raise Problems(*problems)
        return self

    def _problems(self) -> Iterator[Problem]:
        workload: Any = self.workload
        if len(set(self.hosts)) < len(self.hosts):
            yield Problem("hosts", "a host is listed twice", list(self.hosts), "one rank on each host")
        elif wrong := workload.problem_with(len(self.hosts)):
            yield Problem("hosts", "does not fit the workload", len(self.hosts), wrong)
        elif workload.compute is None:
            yield Problem("workload.compute", "missing", allowed='the compute time per iteration, as "2 ms"')
        elif refusal := script_of(workload, len(self.hosts)).refused:
            yield Problem("workload.name", refusal, workload.name, "messages between two ranks, and all-to-all")


class Treatment(Table):
    """Service levels of jobs, to be compared with none."""

    name: str = Field(pattern=_NAME)
    """Name of the treatment."""
    levels: dict[str, Level] = Field(min_length=1)
    """Service level by job; all others have level 0."""


class QosTable(Table):
    """Service levels as the agent's backend ``linux`` sets them up on the trunks."""

    levels: list[LevelClass] = Field(min_length=2)
    """Classes of the default level 0 and of all others."""
    treatments: list[Treatment] = Field(default_factory=list)
    """Settings that are measured, besides that without any."""

    @model_validator(mode="after")
    def _known(self) -> Self:
        numbers = [level_class.level for level_class in self.levels]
        problems = []
        if len(set(numbers)) < len(numbers) or 0 not in numbers:
            problems.append(Problem("levels", "needs each level once, and level 0", numbers))
        if (total := sum(level_class.share for level_class in self.levels)) > 1 + 1e-9:
            problems.append(Problem("levels", "the shares are more than the link has", round(total, 3), "at most 1"))
        for at, treatment in enumerate(self.treatments):
            for job, level in treatment.levels.items():
                if level not in numbers:
                    key = f"treatments[{at}].levels.{job}"
                    problems.append(Problem(key, "has no class", level, f"the levels of qos.levels: {numbers}"))
        if problems:
            raise Problems(*problems)
        return self


class MeasureTable(Table):
    """Length and number of measurements."""

    repetitions: int = Field(default=10, ge=2, le=1000)
    """Number of repetitions; in each all jobs run isolated, then together, then with each treatment."""
    warm_up: Duration = Field(default=SECOND // 2, ge=0)
    """Time at the beginning of each phase that is left out."""
    duration: Duration = Field(default=3 * SECOND, gt=0)
    """Time of each phase after the warm-up."""
    eager_threshold: Size = Field(default=65536 - 1024, ge=1024, le=2**20)
    """Largest message that Open MPI sends without a rendezvous."""
    min_iterations: int = Field(default=5, ge=2)
    """Iterations that a job has to complete in each phase."""


class SimulateTable(Table):
    """Parameters of the prediction."""

    replicates: int = Field(default=5, ge=3, le=1000)
    """Number of simulations, each with other starts of the jobs."""
    duration: Duration = Field(default=10 * SECOND, gt=0)
    """Simulated time of each."""


class AgentTable(Table):
    """Limits of the agent on the testbed: keys of its table ``policy``."""

    levels: list[Level] = Field(min_length=1)
    """Service levels that it may give to jobs."""
    min_gain: float = Field(default=0.02, ge=0, le=10)
    """Mean gain over jobs that a change has to be predicted to have."""
    max_loss: float = Field(default=0.10, ge=0, le=1)
    """Loss of any job that the prediction must exclude."""


class SteerTable(Table):
    """A controller in the agent that reads the progress of ranks and gives them levels, against runs without it."""

    controller: Annotated[Written[Controller], BeforeValidator(controller_of_real_jobs)]
    """The controller: a name, or a table with its parameters."""
    period: Duration = Field(default=SECOND * 3 // 10, gt=0)
    """Length of a period."""
    periods: int = Field(default=200, ge=2, le=100_000)
    """Number of periods under control; a run without it has the same length."""
    repetitions: int = Field(default=10, ge=1, le=1000)
    """Number of pairs of runs, with and without control; every second pair has them in reverse order."""


class TestbedFile(Table):
    """A testbed: a small network on this machine, MPI jobs on it, and how both are measured and simulated."""

    name: str = Field(default="testbed", min_length=1, pattern=r"^[^/\\]+$")
    """Name of the testbed, and of its folders of results."""
    seed: int = Field(default=1, ge=0, le=LARGEST_SEED)
    """Seed of the workloads' random choices and of the simulations."""
    fabric: Written[FabricTable]
    """Switches, hosts and cables."""
    jobs: Written[list[Job]] = Field(min_length=1, max_length=16)
    """The jobs. No two share a host."""
    qos: Written[QosTable | None] = None
    """Service levels, and treatments that give them to jobs."""
    measure: Written[MeasureTable] = Field(default_factory=MeasureTable)
    """Length and number of measurements."""
    simulate: Written[SimulateTable] = Field(default_factory=SimulateTable)
    """Parameters of the prediction."""
    agent: Written[AgentTable | None] = None
    """With it the agent gets control after the measurement, and its effect is measured."""
    steer: Written[SteerTable | None] = None
    """With it a controller gets control afterwards, and its effect on each job is measured and simulated."""

    @field_validator("jobs")
    @classmethod
    def _names(cls, given: list[Job]) -> list[Job]:
        names = [job.name for job in given]
        twice = [at for at, name in enumerate(names) if name in names[:at]]
        if twice:
            raise Problems(*(Problem(f"[{at}].name", "duplicate job name", names[at]) for at in twice))
        return given

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if problems := [*self._host_problems(), *self._level_problems()]:
            raise Problems(*problems)
        return self

    def _host_problems(self) -> Iterator[Problem]:
        hosts = self.fabric.hosts
        taken: dict[str, str] = {}
        for at, job in enumerate(self.jobs):
            for host in job.hosts:
                key = f"jobs[{at}].hosts"
                if host not in hosts:
                    yield Problem.unknown(key, "host", host, list(hosts), host)
                elif host in taken:
                    yield Problem(key, f"host {host} belongs to job {taken[host]}", allowed="a host for each rank")
                taken.setdefault(host, job.name)

    def _level_problems(self) -> Iterator[Problem]:
        names = [job.name for job in self.jobs]
        for at, treatment in enumerate(self.qos.treatments if self.qos else ()):
            for job in treatment.levels:
                if job not in names:
                    yield Problem.unknown(f"qos.treatments[{at}].levels.{job}", "job", job, names, job)
        for key in ("qos", "steer"):
            if getattr(self, key) is not None and not self.fabric.trunks:
                yield Problem(key, "the fabric has no trunk on which levels could be served")
        if self.agent is not None:
            known = [level_class.level for level_class in self.qos.levels if level_class.level] if self.qos else []
            for at, level in enumerate(self.agent.levels):
                if level not in known:
                    message = "has no class of its own in qos.levels"
                    yield Problem(f"agent.levels[{at}]", message, level, f"one of {known}" if known else "")

    @classmethod
    def load(cls, path: Path, *, set: Sequence[str] = ()) -> Self:
        """Reads a TOML file; ``set`` has assignments that replace what it says.

        Raises ``ScenarioError`` with file, line and key of everything that is wrong.
        """
        document = Document.read(path)
        for assignment in set:
            document.set(assignment)
        document.data.setdefault("name", path.stem)
        return cls.from_document(document)
