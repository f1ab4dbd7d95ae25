"""What goes in: the fabric, the parameters, and what every rank does."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple


def ser(size: int, bandwidth: int) -> int:
    """Picoseconds that `size` bytes take at `bandwidth` bits per second, rounded up."""
    return -(-8 * size * 10**12 // bandwidth)


@dataclass(frozen=True)
class Link:
    """One direction of a cable, and the port that feeds it. An end that is no host is a switch."""

    bandwidth: int
    latency: int
    from_host: int | None = None
    to_host: int | None = None
    from_switch: int | None = None
    to_switch: int | None = None
    between_groups: bool = False


class Hop(NamedTuple):
    """One step of a route: a link, and the virtual channel taken on it."""

    link: int
    channel: int = 0


@dataclass(frozen=True)
class Choice:
    """A routing with its parameters, and the links of its direct paths: by switch and the link to the destination."""

    name: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    direct: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Fabric:
    """Links, and the hops from each host to each other host; the topology and parameters that it was built from."""

    links: list[Link]
    routes: dict[tuple[int, int], list[Hop]]
    channels: int = 1
    topology: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    rails: dict[str, Any] | None = None
    more_routes: tuple[dict[tuple[int, int], list[Hop]], ...] = ()
    """The same for the adapters after the first, where hosts have several."""
    queues: tuple[int, ...] = ()
    """The first queue of each virtual lane, and their number, where lanes have different numbers of channels."""
    recorded: dict[tuple[int, int], list[Hop]] | None = None
    """Where the paths of packets are given instead of ``routes``: by the time and link of the first departure. A
    packet starts on channel 0 of the first link, which ``routes`` has for any destination."""
    routing: str = "d_mod_k"
    routing_params: dict[str, Any] = field(default_factory=dict)
    choices: tuple[Choice, ...] = ()
    """The routings of virtual lanes 0, 1, ...; lanes beyond have the last one's. Empty if none looks at loads."""
    by_flow: Callable[[int, int, int, int], list[Hop]] | None = None
    """Where the hops also depend on the job and the virtual lane, which follow source and destination."""

    def __repr__(self) -> str:
        """What it was built from: a case that fails is read by people, and links and routes follow from this."""
        routing = f"{self.routing}(**{self.routing_params})"
        return f"{self.topology}(**{self.params}, routing={routing}, rails={self.rails})"

    @property
    def hosts(self) -> int:
        """How many hosts there are."""
        return len({link.from_host for link in self.links if link.from_host is not None})

    def choice(self, lane: int) -> Choice:
        """The routing of a virtual lane."""
        return self.choices[min(lane, len(self.choices) - 1)]

    @property
    def adapters(self) -> int:
        """How many adapters each host has."""
        return 1 + len(self.more_routes)

    def queue(self, lane: int, channel: int) -> int:
        """The queue of a port that a virtual lane's packets on a virtual channel use."""
        return (self.queues[lane] if self.queues else lane * self.channels) + channel

    def lane_of(self, queue: int) -> int:
        """The virtual lane of a queue."""
        return bisect_right(self.queues, queue) - 1 if self.queues else queue // self.channels

    @cached_property
    def _parts(self) -> dict[int, list[int]]:
        """By host: the least switch that is joined with the switch of each adapter, over switches only."""
        switches = {link.from_switch for link in self.links if link.from_switch is not None}
        part = {switch: switch for switch in switches}
        changed = True
        while changed:
            changed = False
            for link in self.links:
                if link.from_switch is not None and link.to_switch is not None:
                    least = min(part[link.from_switch], part[link.to_switch])
                    changed |= {part[link.from_switch], part[link.to_switch]} != {least}
                    part[link.from_switch] = part[link.to_switch] = least
        found: dict[int, list[int]] = {}
        for link in self.links:
            if link.from_host is not None:
                found.setdefault(link.from_host, []).append(-1 if link.to_switch is None else part[link.to_switch])
        return found

    def rail_pairs(self, origin: int, target: int) -> list[tuple[int, int]]:
        """The adapters of two hosts that exchange messages."""
        here, there = self._parts[origin], self._parts[target]
        pairs = []
        for number in range(max(len(here), len(there))):
            own, other = number % len(here), number % len(there)
            if here[own] != there[other]:
                joined = [place for place, part in enumerate(there) if part == here[own]]
                if not joined:
                    continue
                other = joined[number % len(joined)]
            pairs.append((own, other))
        return pairs

    def gap(self, rail: int) -> int:
        """The least time between two messages of an adapter."""
        return int(self.rails["adapters"][rail].get("message_gap", 0)) if self.rails else 0

    def route(self, source: int, destination: int, rail: int, flow: tuple[int, int] = (0, 0)) -> list[Hop]:
        """The hops from an adapter of one host to that of another, of a job on a virtual lane."""
        if self.by_flow is not None:
            return self.by_flow(source, destination, *flow)
        return (self.routes, *self.more_routes)[rail][source, destination]

    def hops(self, source: int, destination: int) -> list[Link]:
        """The links from host to host, in order."""
        return [self.links[hop.link] for hop in self.routes[source, destination]]


@dataclass(frozen=True)
class InputQueued:
    """The architecture of switches with queues at their inputs and a crossbar."""

    queues: str = "voq"
    """``fifo`` or ``voq``."""
    thousandths: int = 2000
    """Speed-up of the crossbar, in thousandths."""
    allocator: str = "round_robin"
    """``round_robin``, ``oldest_first`` or ``age_based``."""
    iterations: int = 4
    output_buffer: int | None = None
    """Bytes of each lane of an output; by default two full packets."""


@dataclass(frozen=True)
class Pfc:
    """Priority flow control: the thresholds of buffers, None for the defaults, and how long a sender takes to react."""

    xoff: int | None = None
    xon: int | None = None
    response: int = 0


@dataclass(frozen=True)
class Network:
    """Parameters of packets, ports and switches."""

    mtu: int = 4096
    header: int = 26
    buffer: int = 65536
    switch_latency: int = 100_000
    cut_through: bool = True
    switch: InputQueued | None = None
    """The architecture of switches: output-queued, or input-queued."""
    port_buffer: int | None = None
    """Memory of each input port for all queues, in place of `buffer`."""
    dynamic: bool = False
    """The queues share that memory beyond one full packet for each; else each has an equal part."""
    own: tuple[int, ...] = ()
    """Memory of each queue of an input port, in place of both."""
    pfc: Pfc | None = None
    """Priority flow control in place of credits."""
    injection: str = "messages"
    """Whose packets take turns at an adapter: ``messages``, ``queue_pairs`` or nobody's: ``fifo`` of each lane,
    ``adapter_fifo`` of all."""


@dataclass(frozen=True)
class TrafficClass:
    """Messages that all selectors select; None selects all."""

    name: str
    jobs: tuple[int, ...] | None = None
    communicators: tuple[str, ...] | None = None
    operations: tuple[str, ...] | None = None
    above: int | None = None
    up_to: int | None = None
    service_level: int | None = None

    def selects(self, job: int, communicator: str | None, message: Send) -> bool:
        """Whether it selects what belongs to a message of a job."""
        of_kind = ("collective", message.operation) if message.collective else (message.operation,)
        return (
            (self.jobs is None or job in self.jobs)
            and (self.communicators is None or communicator in self.communicators)
            and (self.operations is None or any(name in self.operations for name in of_kind))
            and (self.above is None or message.size > self.above)
            and (self.up_to is None or message.size <= self.up_to)
        )


@dataclass(frozen=True)
class Qos:
    """Which lane a message takes, and which lane a port serves."""

    sl2vl: tuple[int, ...] = (0,) * 16
    arbiter: str = "weighted_round_robin"
    params: dict[str, Any] = field(default_factory=lambda: {"weights": [1]})
    default: int = 0
    kinds: dict[str, int | None] = field(default_factory=dict)
    classes: tuple[TrafficClass, ...] = ()

    @property
    def lanes(self) -> int:
        """How many virtual lanes are in use."""
        return 1 + max(self.sl2vl)


@dataclass(frozen=True)
class Mpi:
    """Costs and thresholds of the message layer."""

    eager_threshold: int = 16384
    mailbox_threshold: int | None = None
    """Larger eager messages are fetched by the receiver's adapter."""
    send_overhead: int = 0
    send_overheads: tuple[dict[str, int], ...] = ()
    """Size and time of larger sends."""
    adapter_delays: tuple[dict[str, int], ...] = ()
    """Size of a message, and the time from which on its first packet can leave its adapter."""
    receive_overhead: int = 0
    control_bytes: int = 64
    memory_latency: int = 100_000
    memory_bandwidth: int = 80_000_000_000
    memory_contention: bool = True
    """Each rank has a link to a switch in its host, and one back."""
    max_messages: int = 1 << 23
    reduction_bandwidth: int = 80_000_000_000
    collectives: dict[str, str] = field(default_factory=dict)

    def sending(self, size: int) -> int:
        """CPU time of a send of this size."""
        return self._between(self.send_overhead, self.send_overheads, size)

    def fetching(self, size: int) -> int:
        """How long an adapter has a message before its first packet can leave."""
        return self._between(0, self.adapter_delays, size)

    @staticmethod
    def _between(none: int, of: tuple[dict[str, int], ...], size: int) -> int:
        """On the line through its neighbours."""
        points = [(0, none), *((it["size"], it["time"]) for it in of)]
        after = [point for point in points if point[0] > size]
        below, base = [point for point in points if point[0] <= size][-1]
        if not after:
            return base
        above, top = after[0]
        return (base * (above - size) + top * (size - below)) // (above - below)


@dataclass(frozen=True)
class Compute:
    """Work on the CPU."""

    time: int


@dataclass(frozen=True)
class Send:
    """Send to a rank; without a request it blocks."""

    to: int
    size: int
    tag: int = 0
    request: int | None = None
    synchronous: bool = False
    context: Hashable = "world"
    collective: bool = False
    eager: bool = False
    """Sent eagerly whatever its size."""
    operation: str = "point_to_point"
    """What it is part of."""


@dataclass(frozen=True)
class Datagram:
    """A message to a rank that nobody receives, handed to the NIC at once."""

    to: int
    size: int


@dataclass(frozen=True)
class Recv:
    """Receive from a rank or from any (`None`), with a tag or with any; without a request it blocks."""

    source: int | None = None
    tag: int | None = None
    request: int | None = None
    context: Hashable = "world"


@dataclass(frozen=True)
class Wait:
    """Wait until all these requests are complete."""

    requests: tuple[int, ...]


@dataclass(frozen=True)
class Collective:
    """A collective of all ranks of the job; with a request it does not block.

    `volume` is a number of bytes, or, for an all-to-all, the block for each rank.
    """

    kind: str
    volume: int | tuple[int, ...] = 0
    root: int = 0
    request: int | None = None


@dataclass(frozen=True)
class Topology:
    """Give the job's ranks a topology: the communicator of neighborhood collectives. Once in a program."""

    sources: tuple[int, ...]
    destinations: tuple[int, ...]


@dataclass(frozen=True)
class SetName:
    """Give a communicator a name at this rank: that of all ranks ("world") or that of the topology."""

    communicator: str
    name: str


@dataclass(frozen=True)
class Neighbor:
    """A neighborhood collective; with a request it does not block.

    `volume` is a number of bytes, or a block for each destination.
    """

    kind: str
    volume: int | tuple[int, ...]
    request: int | None = None


@dataclass(frozen=True)
class Create:
    """Create a window of all ranks of the job."""

    window: int


@dataclass(frozen=True)
class Free:
    """Free a window."""

    window: int


@dataclass(frozen=True)
class Rma:
    """A one-sided operation at a target; with a request it can be waited for."""

    kind: str
    window: int
    target: int
    size: int
    request: int | None = None


@dataclass(frozen=True)
class Fence:
    """Wait for all of one's own operations, then for all ranks."""

    window: int


@dataclass(frozen=True)
class Lock:
    """Lock a target's part of the window, or, without a target, everybody's, shared."""

    window: int
    target: int | None = None
    exclusive: bool = False


@dataclass(frozen=True)
class Unlock:
    """Give up what `Lock` took."""

    window: int
    target: int | None = None


@dataclass(frozen=True)
class Flush:
    """Wait for one's own operations at a target, or at all."""

    window: int
    target: int | None = None


@dataclass(frozen=True)
class Signal:
    """One of post, start, complete and wait; post and start have a group."""

    call: str
    window: int
    group: tuple[int, ...] = ()


@dataclass(frozen=True)
class Mark:
    """Count an iteration."""


@dataclass(frozen=True)
class BeginTiming:
    """The timed part of the iteration begins."""


@dataclass(frozen=True)
class EndBurst:
    """Rank 0 tells all whether its burst has lasted so long."""

    after: int


@dataclass(frozen=True)
class Pause:
    """If the burst is over, sleep for so long, and begin another."""

    time: int


Rest = BeginTiming | EndBurst | Pause

OneSided = Create | Free | Rma | Fence | Lock | Unlock | Flush | Signal
Op = Compute | Send | Datagram | Recv | Wait | Mark | Rest | Collective | Topology | SetName | Neighbor | OneSided


@dataclass(frozen=True)
class Job:
    """Where each rank lives and what it does; the job's service level, and those of single ranks; its rail policy."""

    hosts: list[int]
    scripts: list[list[Op]]
    service_level: int | None = None
    ranks: dict[int, int] = field(default_factory=dict)
    rails: dict[str, Any] = field(default_factory=lambda: {"policy": "only", "only": 0})
    start: int = 0
    stop: int | None = None


@dataclass(frozen=True)
class Change:
    """At a time, before anything else: new levels of jobs, ranks, classes or kinds, or a new arbiter on every port."""

    at: int
    jobs: dict[int, int | None] = field(default_factory=dict)
    ranks: dict[int, dict[int, int]] = field(default_factory=dict)
    kinds: dict[str, int | None] = field(default_factory=dict)
    classes: dict[str, int | None] = field(default_factory=dict)
    arbiter: tuple[str, dict[str, Any]] | None = None


@dataclass(frozen=True)
class Case:
    """Everything that a simulation needs."""

    fabric: Fabric
    jobs: list[Job]
    network: Network = Network()
    qos: Qos = field(default_factory=Qos)
    mpi: Mpi = Mpi()
    changes: tuple[Change, ...] = ()
    end: int | None = None
    """Nothing happens from then on; by default, until nothing is left to happen."""
