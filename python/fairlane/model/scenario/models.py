"""Tables of a scenario, as pydantic models: QoS, MPI, placement and jobs, with what is allowed for each key."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Annotated, Any, NamedTuple, Self

import numpy
from pydantic import BeforeValidator, ConfigDict, Field, PrivateAttr, field_validator, model_validator

from fairlane.core.errors import Problem
from fairlane.core.seeds import LARGEST_SEED
from fairlane.core.units import DURATION, SIZE, Bandwidth, Duration, Power, Size, Written
from fairlane.inputs.hosts import HostsField, read_hosts
from fairlane.inputs.parameters import Parameterised, collectives, table_of_name
from fairlane.inputs.problems import Problems, under, unknown, validated
from fairlane.inputs.table import Table, TableModel
from fairlane.model.placement import LIST, PLACEMENTS, PlacementPolicy
from fairlane.model.placement.mapping import Linear, MappingField
from fairlane.model.qos import STRATEGIES as QOS_STRATEGIES
from fairlane.model.qos import Strategy as QosStrategy
from fairlane.model.scenario.levels import MAX_LANES, MAX_LEVELS, Level, RankLevelsField
from fairlane.model.scenario.nccl import Nccl
from fairlane.model.scenario.network import Transport
from fairlane.model.scenario.rails import RailPolicyField
from fairlane.model.workload import WorkloadField
from fairlane.model.workload.base import Workload
from fairlane.model.workload.trace import Trace

MOST_JOBS = 4096  # jobs on one fabric; the interference matrix has a cell for each pair of them
MOST_RANKS = 2**26  # ranks of a job, and of a host: more than any machine's memory has room for
LARGEST_COUNT = 2**63 - 1  # the largest whole number that the simulator counts to
_GB_PER_S = 8 * 10**9


class Arbiter(Parameterised):
    """Arbiter by which a port shares its link among lanes, with its parameters (see ``fairlane list arbiters``)."""

    of_table = "arbiter"
    name: str
    """Name of the arbiter."""


class Kinds(Table):
    """Service level by kind of traffic."""

    control: Level | None = None
    """Requests, gets and acknowledgements of the rendezvous protocol."""
    collective_control: Level | None = None
    """Control messages of collectives; default: the level of ``control``."""
    eager: Level | None = None
    """Point-to-point payload up to the eager threshold."""
    bulk: Level | None = None
    """Point-to-point payload above the eager threshold."""
    collective: Level | None = None
    """Payload of collectives."""
    collective_eager: Level | None = None
    """Payload of collectives up to the eager threshold; default: the level of ``collective``."""


class Qos(Table):
    """Service levels, virtual lanes, and how they share links.

    A message has its sender's level, else its receiver's, else its traffic kind's, else its job's, else ``default``.
    """

    strategy: str | None = None
    """Name of a QoS strategy (see ``fairlane list strategies``); it sets all other keys except ``lanes``, ``lossy`` and
    ``trim_vl``."""
    service_levels: int | None = Field(default=None, ge=1, le=MAX_LEVELS)
    """Number of service levels with a lane of their own. Default: as many as the scenario uses."""
    lanes: int | None = Field(default=None, ge=1, le=MAX_LANES)
    """Virtual lanes of a switch, at least one for each pair of virtual lane and virtual channel in use. Default: as
    many as are needed."""
    sl2vl: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1, max_length=MAX_LEVELS)] | None = None
    """Virtual lane of each service level. Default: level n is mapped to lane n."""
    default: Level = 0
    """Service level of messages to which no other rule applies."""
    kinds: Kinds = Field(default_factory=Kinds)
    """Service level by kind of traffic."""
    arbiter: Annotated[Written[Arbiter], BeforeValidator(table_of_name, json_schema_input_type=Arbiter | str)] = Field(
        default="weighted_round_robin", validate_default=True
    )
    """Arbiter by which a link is shared among lanes: its name, or a table with name and parameters."""
    lossy: bool | list[Annotated[int, Field(ge=0)]] = False
    """Virtual lanes without flow control: packets are lost at full queues. ``true``: all in use but ``trim_vl``."""
    trim_vl: int | None = Field(default=None, ge=0)
    """Virtual lane on which the headers of such packets continue to their receivers. Default: packets are dropped."""

    _expand: QosStrategy | None = PrivateAttr(None)

    @property
    def expand(self) -> QosStrategy | None:
        """The strategy's function; None without a strategy."""
        return self._expand

    @model_validator(mode="after")
    def _known(self) -> Self:
        if self.strategy is not None:
            with under("strategy"):
                self._expand = QOS_STRATEGIES.find(self.strategy)
        return self


class TimeBySize(Table):
    """Time of a message of a size."""

    size: Size = Field(gt=0)
    """Payload of the message."""
    time: Duration
    """Its time."""


class Mpi(Table):
    """Costs and protocols of MPI."""

    eager_threshold: Size = 16384
    """The largest message that is sent at once, without a rendezvous."""
    mailbox_threshold: Size | None = None
    """The largest eager message that comes unasked; the receiver's adapter fetches larger ones. Default: all come."""
    send_overhead: Duration = 200_000
    """CPU time of a send; with ``send_overheads``, of one without payload."""
    send_overheads: list[TimeBySize] = Field(default_factory=list)
    """CPU time of larger sends, in ascending order of their sizes: linear between two, that of the last beyond it."""
    adapter_delays: list[TimeBySize] = Field(default_factory=list)
    """Delay from handing a message to the adapter until its first packet may leave, by payload, in ascending order of
    sizes: linear between two, from 0 at size 0, constant beyond the last. CPU and link are free meanwhile."""
    receive_overhead: Duration = 200_000
    """CPU time of a completed receive."""
    control_bytes: Size = 64
    """Payload of the rendezvous protocol's control messages."""
    memory_latency: Duration = 200_000
    """Latency between ranks of one host."""
    memory_bandwidth: Bandwidth = Field(default=10 * _GB_PER_S, gt=0)
    """Bandwidth between ranks of one host."""
    memory_contention: bool = True
    """Whether a rank shares this bandwidth among its messages within the host: each has a link to a switch in the host
    and one back, as GPUs in a scale-up domain have. Otherwise each message has the bandwidth to itself."""
    max_messages: int = Field(default=1 << 23, ge=1, lt=1 << 63)
    """How many messages can have been sent and not received, of all jobs together: more are an error. It bounds
    memory: a message takes about 200 bytes."""
    reduction_bandwidth: Bandwidth = Field(default=10 * _GB_PER_S, gt=0)
    """Rate at which a rank combines operands in a reduction."""
    collectives: dict[str, str] = Field(default_factory=dict)
    """Algorithm by collective operation, e.g. ``{ allreduce = "ring" }``. Default: chosen by message size and ranks."""

    def asks(self, size: float) -> bool:
        """Whether the receiver asks for a message of so many bytes: that of a rendezvous, or one beyond the mailbox."""
        limits = (self.eager_threshold, self.mailbox_threshold)
        return any(limit is not None and size > limit for limit in limits)

    def sending(self, size: float) -> float:
        """CPU time of a send of so many bytes, ps."""
        return _interpolated(size, self.send_overhead, self.send_overheads)

    def adapter_delay(self, size: float) -> float:
        """Delay until the first packet of a message of so many bytes may leave, ps."""
        return _interpolated(size, 0, self.adapter_delays)

    @field_validator("send_overheads", "adapter_delays")
    @classmethod
    def _ascending(cls, given: list[TimeBySize]) -> list[TimeBySize]:
        for place, (before, after) in enumerate(pairwise(given), 1):
            if after.size <= before.size:
                allowed = f"sizes in ascending order: more than {SIZE.format(before.size)}"
                raise Problems(Problem(f"[{place}].size", allowed, SIZE.format(after.size)))
        return given

    @field_validator("collectives")
    @classmethod
    def _known(cls, given: dict[str, str]) -> dict[str, str]:
        known = collectives()
        wrong = []
        for kind, name in given.items():
            if kind not in known:
                wrong.append(Problem.unknown(kind, "collective", kind, list(known), name))
            elif name not in known[kind]:
                wrong.append(Problem.unknown(kind, f"algorithm of {kind}", name, list(known[kind]), name))
        if wrong:
            raise Problems(*wrong)
        return given


def _interpolated(size: float, first: int, later: Sequence[TimeBySize]) -> float:
    """The time for a size, ps: linear from ``first`` at size 0, constant beyond the last of ``later``."""
    sizes, times = zip((0, first), *((point.size, point.time) for point in later), strict=True)
    return float(numpy.interp(size, sizes, times))


class Placement(TableModel):
    """Placement policy of jobs with its parameters (see ``fairlane list placements``)."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)

    name: str = "random"
    """Name of the placement policy; ``list`` for explicit ``hosts``."""
    seed: int | None = Field(default=None, ge=0, le=LARGEST_SEED)
    """Seed of random choices. Default: that of the scenario's ``placement``, or else the scenario's seed."""
    ranks_per_host: int = Field(default=1, ge=1, le=MOST_RANKS)
    """Number of consecutive ranks on a host."""
    mapping: MappingField = Field(default_factory=Linear)
    """Mapping of ranks to hosts (see ``fairlane list mappings``): a name, or a table with parameters."""
    hosts: HostsField = None
    """For ``list``: the hosts, in the order in which ranks fill them: numbers, names or Slurm node lists, e.g.
    ``"cn[001-016,020],login1"``. With ``hosts``, no ``name`` is needed."""
    among: HostsField = None
    """For a policy: the hosts that it may choose from, such as those of a partition, named as ``hosts`` are. Default:
    all hosts."""
    shared: bool = False
    """Whether the hosts may be those of other jobs at the same time whose placement has ``shared``, too: as for
    servers of files or keys. Jobs on one host share its adapters."""
    _allocator: PlacementPolicy | None = PrivateAttr(None)

    @property
    def allocator(self) -> PlacementPolicy | None:
        """The placement policy with its parameters; None for an explicit list."""
        return self._allocator

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        """``hosts`` without a name is an explicit list."""
        if isinstance(given, dict) and given.get("hosts") is not None and "name" not in given:
            return {"name": LIST, **given}
        return given

    @model_validator(mode="after")
    def _known(self) -> Self:
        given, fields = self.model_extra or {}, list(type(self).model_fields)
        with under("name"):
            kind = None if self.name == LIST else PLACEMENTS.find(self.name)
        known = [] if kind is None else list(kind.model_fields)
        if kind is None or kind.model_config.get("extra") != "allow":
            problems = {
                key: unknown(key, "key", key, [*fields, *known], given[key]) for key in given if key not in known
            }
            if "strategy" in problems:  # renamed; without a name, the parameters of the policy are unknown, too
                raise Problems(problems["strategy"])
            if problems:
                raise Problems(*problems.values())
        if (self.name == LIST) != (self.hosts is not None):
            raise Problems(Problem("hosts", f"belongs to placement {LIST!r}: give both or neither"))
        if self.name == LIST and self.among is not None:
            raise Problems(Problem("among", f"applies to placement policies, and placement {LIST!r} names its hosts"))
        self._allocator = validated(kind, given) if kind else None
        return self


PlacementField = Annotated[Written[Placement], BeforeValidator(table_of_name, json_schema_input_type=Placement | str)]


class Stay(NamedTuple):
    """The interval in which a job occupies its hosts, ps: from its start, excluding its end."""

    start: float
    end: float

    def meets(self, other: "Stay") -> bool:
        """Whether the intervals overlap."""
        return self.start < other.end and other.start < self.end


class Job(Table):
    """A job, or several copies of it: a workload or a trace, and where and with which service levels it runs."""

    name: str | None = Field(default=None, min_length=1)
    """Name of the job. Default: that of its workload or trace. Copies have a number appended."""
    count: int = Field(default=1, ge=1, le=MOST_JOBS)
    """Number of copies."""
    ranks: int | None = Field(default=None, ge=1, le=MOST_RANKS)
    """Number of ranks; a trace has its own. Default with ``placement.hosts``: as many as fit there."""
    workload: WorkloadField | None = None
    """Workload of its ranks: a name, or a table with the name and its parameters."""
    trace: Annotated[
        Written[Trace | None], BeforeValidator(lambda given: {"path": given} if isinstance(given, str) else given)
    ] = None
    """A recorded application instead of a workload."""
    placement: PlacementField | None = None
    """Placement of this job. Default: the scenario's."""
    ranks_per_host: int | None = Field(default=None, ge=1, le=MOST_RANKS)
    """Number of consecutive ranks on a host. Default: that of the placement."""
    service_level: Level | None = None
    """Service level of its messages, unless a rank or the traffic kind has one."""
    service_levels: RankLevelsField | None = None
    """Service levels of its ranks: a table, or a file of ``rank level`` lines with at most one ``default level``."""
    rails: RailPolicyField | None = None
    """Rails that its messages use: a policy's name or a table. Default: ``round_robin``; with ``nccl``, ``by_rank``."""
    nccl: Nccl | None = None
    """Its collectives are NCCL's; ``{}`` for the defaults. Default: those of ``mpi``, and NCCL's for ``nccl_tests``,
    ``training`` and ``inference``."""
    transport: (
        Annotated[Written[Transport], BeforeValidator(table_of_name, json_schema_input_type=Transport | str)] | None
    ) = None
    """When a NIC starts its packets: a transport's name, or a table with name and parameters. Default:
    ``network.transport``."""
    power_cap: Power | None = None
    """Power cap of each socket of its hosts. Default: ``power.cap``."""
    start: Duration = 0
    """Arrival time: its ranks do nothing before."""
    stop: Annotated[int, Field(strict=True, ge=1, le=LARGEST_COUNT)] | str | None = None
    """Departure: a number of iterations, or a time. Default: never."""
    stream: int | None = Field(default=None, ge=0)
    """Number of its random stream. Default: its index among all copies of all jobs. Copies count up from it."""
    _background: bool = PrivateAttr(False)

    @property
    def background(self) -> bool:
        """Whether it was drawn from a scenario's table ``background``."""
        return self._background

    def drawn(self) -> Self:
        """The same, marked as a background job."""
        copy = self.model_copy()
        copy._background = True
        return copy

    @property
    def departure(self) -> int | None:
        """The time at which it departs, ps; None if it does not depart at a time."""
        return DURATION.parse(self.stop) if isinstance(self.stop, str) else None

    @property
    def stay(self) -> Stay:
        """Time for which it occupies its hosts.

        A job that ends after a number of iterations keeps them to the end of the run, because the time of its end is
        not known in advance; so does a background job.
        """
        departure = None if self._background else self.departure
        return Stay(self.start, inf if departure is None else departure)

    @model_validator(mode="before")
    @classmethod
    def _fills_its_hosts(cls, given: Any) -> Any:
        """Without ``ranks``, a job has as many as fit on the hosts that are listed for it."""
        if not isinstance(given, dict) or "ranks" in given or "trace" in given or given.get("count", 1) != 1:
            return given
        placement = given.get("placement")
        hosts = placement.get("hosts") if isinstance(placement, dict) else None
        per_host = given.get("ranks_per_host", placement.get("ranks_per_host", 1) if isinstance(placement, dict) else 1)
        if hosts is None or not isinstance(per_host, int):
            return given
        try:
            return {**given, "ranks": len(read_hosts(hosts)) * per_host}
        except Problems:
            return given  # the field says what is wrong with them

    @field_validator("stop", mode="before")
    @classmethod
    def _departs(cls, given: Any) -> Any:
        if given is not None and not isinstance(given, bool | int):
            try:
                DURATION.parse(given)
            except ValueError as error:
                raise Problems(Problem("", f"{error}; or a number of iterations", given)) from None
        return given

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = []
        if (self.workload is None) == (self.trace is None):
            problems.append(Problem("", "needs either a workload or a trace"))
        if self.workload and self.ranks is None:
            problems.append(Problem("ranks", "missing", allowed="the number of ranks"))
        if isinstance(self.stop, int) and (self.trace or (self.workload and not self.workload.stops)):
            message = f"{'a trace' if self.trace else self.kind} has no number of iterations to stop after"
            problems.append(Problem("stop", message, self.stop, "a time"))
        if self.departure is not None and self.departure <= self.start:
            problems.append(Problem("stop", "not after the job's start", self.stop, DURATION.format(self.start)))
        wrong = self.workload.problem_with(self.ranks) if self.workload and self.ranks else None
        if wrong:
            problems.append(Problem("ranks", "does not fit the workload", self.ranks, wrong))
        listed = self.service_levels.ranks if self.service_levels else ()
        if self.ranks and (outside := [rank for rank in listed if rank >= self.ranks]):
            message = f"rank {min(outside)} is not in the job"
            problems.append(Problem("service_levels", message, None, f"0 to {self.ranks - 1}"))
        if problems:
            raise Problems(*problems)
        return self

    @property
    def source(self) -> Workload | Trace:
        """Source of its program."""
        source = self.workload or self.trace
        assert source is not None, "a job has a workload or a trace"
        return source

    @property
    def kind(self) -> str:
        """The name of its workload or trace."""
        return type(self.workload).name if self.workload else str(self.trace)

    def names(self) -> list[str]:
        """The names of its copies."""
        name = self.name or self.kind
        return [name] if self.count == 1 else [f"{name}-{copy}" for copy in range(self.count)]
