"""The configuration of an agent, ``agent.toml``: Slurm, the twin, what the agent may do, how it is carried out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import tomlkit
from pydantic import BeforeValidator, Field, PrivateAttr, model_validator

from fairlane.cluster.agent.backends import BackendField, DryRun
from fairlane.cluster.agent.progress import SSH
from fairlane.cluster.agent.system import FilePath
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.seeds import LARGEST_SEED
from fairlane.core.units import Duration, Size, Written
from fairlane.inputs.document import Document, current_document, override
from fairlane.inputs.files import write_text
from fairlane.inputs.hosts import SlurmJob, members, slurm_names
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.wiring import Wiring
from fairlane.model.scenario import Scenario
from fairlane.model.scenario.levels import MAX_LEVELS, Level
from fairlane.model.scenario.models import MOST_RANKS, Mpi, Qos
from fairlane.model.scenario.network import Network
from fairlane.model.scenario.starter import STARTER, Choice, fabric_table
from fairlane.model.workload import WorkloadField
from fairlane.model.workload.trace import Trace
from fairlane.sim.controller import controller_of_real_jobs
from fairlane.sim.controller.base import Controller

MS, SECOND = 10**9, 10**12  # in picoseconds


class SlurmTable(Table):
    """Source of the running jobs."""

    socket: FilePath
    """Path of the local socket on which prolog and epilog report jobs (``fairlane agent notify``). Only its owner may
    write to it, and ``socket_group``."""
    socket_group: str | None = Field(default=None, min_length=1)
    """A group of users who may write to it too: that of ``SlurmUser``, if the agent runs as another user."""
    squeue: list[str] = Field(default=["squeue", "--json"], min_length=1)
    """Command that prints all jobs as ``squeue --json`` of Slurm 22.05 or later does."""
    timeout: Duration = Field(default=60 * SECOND, gt=0)
    """Time limit of that command."""
    poll: Duration = Field(default=30 * SECOND, gt=0)
    """Interval between two comparisons of the jobs with its output."""
    hosts: dict[str, str] = Field(default_factory=dict)
    """Host of the fabric by node of Slurm, where they have different names; both may be lists of the same length, as
    ``"n[1-4]" = "host[0-3]"``."""

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        dict(self.pairs())
        return self

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each node with its host; raises ``Problems`` for lists that do not fit."""
        for nodes, hosts in self.hosts.items():
            try:
                left, right = members(nodes), members(hosts)
            except ValueError as error:
                raise Problems(Problem(f"hosts.{nodes}", str(error), hosts)) from None
            if len(left) != len(right):
                message = f"{len(left)} nodes have {len(right)} hosts"
                raise Problems(Problem(f"hosts.{nodes}", message, hosts, "lists of the same length"))
            yield from zip(left, right, strict=True)


class Profile(Table):
    """Traffic of jobs of one kind. The first profile whose patterns fit a job counts.

    Patterns are those of a shell: ``*``, ``?`` and ``[abc]``.
    """

    name: str = "*"
    """Pattern of the job's name."""
    account: str = "*"
    """Pattern of its account."""
    partition: str = "*"
    """Pattern of its partition."""
    user: str = "*"
    """Pattern of its user's name."""
    workload: WorkloadField | None = None
    """Program of its ranks: a workload's name, or a table with name and parameters."""
    trace: Annotated[
        Written[Trace | None], BeforeValidator(lambda given: {"path": given} if isinstance(given, str) else given)
    ] = None
    """A recorded application instead."""
    counters: FilePath | None = None
    """A CSV file with samples of port counters instead: columns ``time_s``, ``host`` and ``sent_bytes``, which only
    grows. The job then sends as much as its hosts did, to random ranks of its own."""
    message_size: Size = Field(default=65536, gt=0)
    """Size of the messages of a job with ``counters``."""
    ranks_per_host: int = Field(default=1, ge=1, le=MOST_RANKS)
    """Number of ranks on each of its nodes."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [key for key in ("workload", "trace", "counters") if getattr(self, key) is not None]
        if len(given) != 1:
            message = f"gives {' and '.join(given)}" if given else "says nothing about the traffic"
            raise Problems(Problem("", message, allowed="one of workload, trace and counters"))
        return self

    def fits(self, job: SlurmJob) -> bool:
        """Whether it describes this job."""
        keys = ("name", "account", "partition", "user")
        return all(fnmatchcase(getattr(job, key), getattr(self, key)) for key in keys)


class PolicyTable(Table):
    """Limits of the agent's decisions."""

    levels: list[Level] = Field(min_length=1, max_length=MAX_LEVELS)
    """Service levels that jobs may be given, besides ``qos.default``."""
    changes_per_minute: int = Field(default=2, ge=1, le=60)
    """Number of changes within any minute."""
    min_gain: float = Field(default=0.01, ge=0, le=10)
    """Mean gain over jobs that a change has to be predicted to have; its 95% interval has to be above zero, too."""
    max_loss: float = Field(default=0.05, ge=0, le=1)
    """Loss of any one job that the 95% interval of its predicted change must exclude."""
    unmodelled: Literal["hold", "ignore"] = "ignore"
    """What to do while jobs run that cannot be simulated, as those that no profile fits: ``ignore`` leaves their level
    as it is, predicts for the others without their traffic, and reports them with each decision; ``hold`` gives no new
    levels."""
    max_candidates: int = Field(default=64, ge=1, le=4096)
    """Number of changes that are tried for a decision; those of the jobs with the most hosts come first."""


class ProgressTable(Table):
    """Source of the progress of processes, which they mark by ``libfairlane-progress``."""

    period: Duration = Field(default=10 * SECOND, gt=0)
    """Time between two readings, and between two decisions of the controller."""
    socket: FilePath | None = None
    """The socket of ``fairlane agent progress --serve`` for processes on this machine; by default their pages are read,
    which only root can of all users."""
    directories: list[FilePath] = Field(default_factory=list)
    """Directories of the pages on this machine, in place of those of ``fairlane agent progress``."""
    through: list[str] = Field(default=list(SSH))
    """Command that prints the progress on another host, ``{host}``; empty if all processes are on this machine."""
    timeout: Duration = Field(default=20 * SECOND, gt=0)
    """Time limit of that command. Jobs on a host that does not answer are not controlled, and it is asked again after
    five minutes."""


def _controller_of(given: Any) -> Any:
    return None if given is None else controller_of_real_jobs(given)


class TwinTable(Table):
    """Simulations of the digital twin."""

    warm_up: Duration = Field(default=2 * MS, gt=0)
    """Simulated time before anything is compared. Jobs begin at random in its first half, because the twin does not
    know how far their iterations are."""
    horizon: Duration = Field(default=10 * MS, gt=0)
    """Simulated time over which settings are compared."""
    replicates: int = Field(default=5, ge=3, le=1000)
    """Number of simulations with different seeds; intervals are those over replicates."""
    seed: int = Field(default=1, ge=0, le=LARGEST_SEED)
    """Seed of the first replicate."""
    threads: int | None = Field(default=None, ge=1, le=32)
    """Threads of each simulation. Default: the free cores, on large fabrics."""
    time_limit: Duration = Field(default=300 * SECOND, gt=0)
    """How long simulating for one decision may take. Candidates that it does not reach are not tried; if not even the
    jobs without a change can be simulated, nothing is changed."""


class AgentConfig(Table):
    """The configuration of an agent."""

    journal: FilePath
    """SQLite database with every decision and its reason. Dry runs and ``--apply`` may share it."""
    fabric: Written[FabricTable]
    """The fabric, as in scenarios."""
    network: Written[Network] = Field(default_factory=Network)
    """Packets, buffers and switches, as in scenarios."""
    mpi: Written[Mpi] = Field(default_factory=Mpi)
    """Costs and protocols of MPI, as in scenarios."""
    qos: Written[Qos] = Field(default_factory=Qos)
    """Service levels, virtual lanes and the arbiter of the real switches, as in scenarios."""
    slurm: Written[SlurmTable]
    """Source of the running jobs."""
    controller: Annotated[Written[Controller | None], BeforeValidator(_controller_of)] = None
    """A controller in place of the twin, by its name or with parameters (see ``fairlane list controllers``): it learns
    the progress of processes, and sets levels by rank."""
    progress: Written[ProgressTable] = Field(default_factory=ProgressTable)
    """Source of the progress of processes, for a controller."""
    profile: Written[list[Profile]] = Field(default_factory=list)
    """Traffic of the jobs; needed without a controller."""
    policy: Written[PolicyTable] = Field(default_factory=lambda: PolicyTable.model_construct(levels=[]))
    """Limits of the agent's decisions; needed without a controller."""
    twin: Written[TwinTable] = Field(default_factory=TwinTable)
    """Simulations of the digital twin."""
    backend: BackendField = Field(default_factory=DryRun)
    """Backend that carries settings to the network with ``--apply`` (see ``fairlane list backends``)."""

    _document: Document = PrivateAttr(default_factory=lambda: current_document.get())  # noqa: PLW0108 - it has overloads

    @model_validator(mode="after")
    def _has_lanes(self) -> Self:
        qos = self.qos
        if qos.strategy is not None:
            raise Problems(Problem("qos.strategy", "sets the levels of jobs, which the agent does", qos.strategy))
        wrong = [*self._unsuited(), *self._laneless()]
        if wrong:
            raise Problems(*wrong)
        return self

    @property
    def levels(self) -> Sequence[int]:
        """Service levels that the agent may give, besides ``qos.default``."""
        return self.policy.levels if self.controller is None else range(1, self.controller.service_levels)

    def _unsuited(self) -> Iterator[Problem]:
        """Yield the keys that do not go together with a controller, or without one."""
        controller = self.controller
        if controller is None:
            for key, allowed in (("profile", "a table for each kind of jobs"), ("policy", "a table with levels")):
                if not getattr(self, key) or key not in self.model_fields_set:
                    yield Problem(key, "missing", allowed=f"{allowed}, or a controller")
            return
        for key in ("profile", "policy", "twin"):
            if key in self.model_fields_set:
                yield Problem(key, "has no effect: a controller decides by progress", allowed="without it")
        if controller.needs_model:
            message = "needs a model of the jobs, and learns of real ones only their progress"
            yield Problem("controller", message, controller.name, "process_prioritization, slack, or one of your own")
        if controller.needs_mpi_times:
            message = "times in MPI calls are not known of real jobs"
            yield Problem("controller.mpi_times", message, allowed="mpi_times = false")
        if self.qos.default:
            yield Problem("qos.default", "a controller gives out all levels but 0", self.qos.default, "0")

    def _laneless(self) -> Iterator[Problem]:
        """Levels without a lane of their own. Of a controller's, which are all below a number, the lowest."""
        without = self._without_lane()
        if self.controller is None:
            for at, level, message, allowed in without:
                yield Problem(f"policy.levels[{at}]", message, level, allowed)
        elif lowest := next(without, None):
            _, level, message, allowed = lowest
            fewer = f"at most {level}, or " if level > 1 else ""
            message = f"level {level} {message}"
            yield Problem("controller.service_levels", message, self.controller.service_levels, f"{fewer}{allowed}")

    def _without_lane(self) -> Iterator[tuple[int, int, str, str]]:
        """Yield place, level, reason, and what is allowed."""
        default, taken = self.qos.default, {self.lane(self.qos.default): self.qos.default}
        for at, level in enumerate(self.levels):
            lane = self.lane(level)
            if level == default:
                yield at, level, "is the level of all other traffic, qos.default", "another level"
            elif lane is None or lane in taken:
                message = f"shares the lane of level {taken.get(lane, default)}: giving it to a job has no effect"
                yield at, level, message, "levels with a lane of their own (qos.service_levels or qos.sl2vl)"
            elif self.qos.lanes is not None and lane >= self.qos.lanes:
                message = f"needs lane {lane}, and the switches have {self.qos.lanes}"
                yield at, level, message, f"levels whose lane is below qos.lanes = {self.qos.lanes}"
            else:
                taken[lane] = level

    def lane(self, level: int) -> int | None:
        """The virtual lane of a service level; None if it has none of its own."""
        if self.qos.sl2vl is not None:
            return self.qos.sl2vl[level] if level < len(self.qos.sl2vl) else None
        return level if self.qos.service_levels is None or level < self.qos.service_levels else None

    def reading(self) -> AbstractContextManager[None]:
        """Within, paths are relative to the folder of the configuration, and code runs if it may run in it."""
        return override(current_document, self._document)


_LEVELS = {"service_levels": 2, "lanes": 2, "arbiter": {"name": "weighted_round_robin", "weights": [1, 4]}}


def agent_starter(wiring: Wiring, file: Path, choice: Choice, source: str) -> str:
    """The configuration for a fabric that is in ``file`` beside it.

    It has a profile for each pattern of ``choice.workloads``, and one for all other jobs.
    """
    document = tomlkit.document()
    for line in (
        f"A first configuration of fairlane agent for {source}, written by fairlane init: a dry run.",
        "Placeholders: what the switches do (fairlane qos import opensm.conf), and the profiles, which say what jobs",
        "send. The first profile whose pattern fits a job's name counts.",
    ):
        document.add(tomlkit.comment(line))
    document["journal"] = "agent.db"
    document["fabric"] = fabric_table(wiring, file)
    document["qos"] = _LEVELS
    other = {name: host for host, name in zip(wiring.hosts, slurm_names(wiring.hosts), strict=True) if name != host}
    document["slurm"] = {"socket": "agent.socket", **({"hosts": other} if other else {})}
    profiles = tomlkit.aot()
    for pattern, workload in {**choice.workloads, "*": choice.workloads.get("*", STARTER)}.items():
        profile = tomlkit.table()
        profile["name"] = pattern
        profile["workload"] = workload
        if choice.ranks_per_host > 1:
            profile["ranks_per_host"] = choice.ranks_per_host
        profiles.append(profile)
    document["profile"] = profiles
    document["policy"] = {"levels": [1]}
    return tomlkit.dumps(document)


def write_starters(texts: Mapping[Path, str], more: Sequence[Path], agent: Path | None) -> None:
    """Writes a scenario and a configuration ``agent``, and reads them as the commands will.

    None of them, nor of ``more``, is left if that fails. Raises ``ScenarioError``.
    """
    try:
        for file, text in texts.items():
            write_text(file, text)
            if file == agent:
                AgentConfig.from_file(file)
            else:
                Scenario.load(file).decide()
    except (ScenarioError, OSError):
        for file in (*texts, *more):
            file.unlink(missing_ok=True)
        raise
