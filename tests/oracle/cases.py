"""Random small cases, made so that lanes, credits, ties and matching all matter.

Rates and latencies come from a few round numbers, so that many things happen at the same instant, and from odd ones,
so that rounding counts. Buffers hold one to three packets. Programs always come to an end, see `Scripts`.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

from hypothesis import strategies as st

from fairlane.core.errors import BuildError
from fairlane.inputs.parameters import entries
from fairlane.model.fabric.table import FabricTable
from vopr.fabrics import draw_fabric

from .case import (
    BeginTiming,
    Case,
    Collective,
    Compute,
    Create,
    Datagram,
    EndBurst,
    Fabric,
    Fence,
    Flush,
    Free,
    InputQueued,
    Job,
    Lock,
    Mark,
    Mpi,
    Neighbor,
    Network,
    Op,
    Pause,
    Pfc,
    Qos,
    Recv,
    Rma,
    Send,
    SetName,
    Signal,
    Topology,
    TrafficClass,
    Unlock,
    Wait,
)
from .core import KINDS
from .fabrics import any_fabric, fat_tree, with_queues
from .network import reverse
from .pauses import headroom
from .schedules import NAMES

WIRE_RATES = (8 * 10**12, 4 * 10**12, 3 * 10**12, 99_999_999_977)
WIRE_LATENCIES = (10, 64, 100, 1000, 12_345)
RATES, LATENCIES = st.sampled_from(WIRE_RATES), st.sampled_from(WIRE_LATENCIES)
SENDS = ({"size": 40, "time": 500}, {"size": 1000, "time": 77})
OVERHEADS = st.sampled_from([0, 0, 64, 333])
SIZES = st.sampled_from([0, 1, 16, 32, 40, 41, 64, 100, 255, 300])
SPANS = st.sampled_from([0, 0, 0, 10, 64, 777])
LEVELS = st.sampled_from([None, 0, 1, 2, 3, 7, 15])


@st.composite
def fabrics(draw: st.DrawFn) -> Fabric:
    """One switch, or two or three levels of them, mostly tapered, with slower or faster links inside."""
    links = {name: draw(RATES) for name in ("bandwidth", "host_bandwidth")}
    links |= {name: draw(LATENCIES) for name in ("latency", "host_latency")}
    hosts, levels = draw(st.sampled_from([2, 3, 3, 4, 4, 5, 6, 8])), draw(st.sampled_from([1, 2, 2, 3]))
    if levels == 2:
        links |= {"leaf_down": draw(st.integers(1, 4)), "leaf_up": draw(st.integers(1, 3))}
    rails = draw(st.none() | adapters(hosts))
    seed = draw(st.sampled_from([None, 0, 7])) if rails is None and levels > 1 else None
    return fat_tree(rails, seed, hosts=hosts, levels=levels, **links, **({"radix": 4} if levels == 3 else {}))


@cache
def any_topology(routing: str, seed: int) -> Fabric:
    """Any topology that a routing suits, all parameters of both, and links of any rate and latency."""
    rng = Random(f"{routing} {seed}")
    drawn = draw_fabric(rng, routing)
    if drawn.get("rails") and (not isinstance(drawn["rails"], int) and drawn["rails"]["wiring"] == "shared"):
        del drawn["rails"]  # parts of a message meet at switches, where they cannot be told apart
    spec = FabricTable(**drawn).spec
    for wired in (spec["params"], *spec["params"].get("links", ())):
        for key in {*wired, "bandwidth", "latency"} - {"bandwidths"}:
            if key.endswith("bandwidth"):
                wired[key] = rng.choice(WIRE_RATES)
            elif key.endswith("latency"):
                wired[key] = rng.choice(WIRE_LATENCIES)
    lanes = spec["routing_params"].get("lanes", [])
    spec["routing_params"] |= (
        {"lanes": [small(rng, name) for name in lanes]} if lanes else small(rng, spec["routing"])["params"]
    )
    try:
        return any_fabric(spec)
    except BuildError:  # hosts that have several links of their own have no rails
        return any_fabric({**spec, "rails": None})


def small(rng: Random, name: str) -> dict[str, Any]:
    """A routing with a bias and a threshold of the size of small packets."""
    keys = entries("routing")[name].schema.get("properties", {})
    values = {"bias": [0, 0, 30, 100, 400], "threshold": [0, 0, 30, 100], "samples": [1, 2, 8]}
    drawn: dict[str, Any] = {key: rng.choice(values[key]) for key in values if key in keys}
    if "ties" in keys and rng.random() < 0.5:
        drawn["ties"] = "d_mod_k" if name == "adaptive" else "random"
    others = {"revise": "minimal", "load": "packets", "links": "longest"} if name == "progressive" else {}
    drawn |= {key: value for key, value in others.items() if rng.random() < 0.5}
    if "channels" in keys and rng.random() < 0.5:
        drawn["channels"] = "fewest"
    return {"name": name, "params": drawn}


@st.composite
def adapters(draw: st.DrawFn, hosts: int) -> dict[str, object]:
    """Two or three adapters a host, alike or not, on planes or on one fabric."""
    shared = hosts in (4, 6, 8) and draw(st.booleans())
    one = {"bandwidth": st.none() | RATES, "latency": st.none() | LATENCIES, "message_gap": SPANS}
    count = 2 if shared else draw(st.sampled_from([2, 3]))
    each = [draw(st.fixed_dictionaries(one)) for _ in range(count)]
    return {"count": count, "wiring": "shared" if shared else "planes", "adapters": each}


@st.composite
def architectures(draw: st.DrawFn, full: int) -> InputQueued:
    """Input-queued switches, with room for one packet at an output or for a few."""
    return InputQueued(
        draw(st.sampled_from(["fifo", "voq"])),
        draw(st.sampled_from([1000, 1000, 1500, 1999, 2000, 4000])),
        draw(st.sampled_from(["round_robin", "round_robin", "oldest_first", "age_based"])),
        draw(st.sampled_from([1, 1, 2, 4])),
        draw(st.none() | st.integers(full, 4 * full)),
    )


@st.composite
def networks(draw: st.DrawFn) -> Network:
    """Small packets; buffers for one packet, for a few, or for all that a link carries until credits come back."""
    mtu, header = draw(st.sampled_from([16, 32, 50])), draw(st.sampled_from([2, 6, 14]))
    buffer = (mtu + header) * draw(st.sampled_from([1, 1, 2, 5, 10])) + draw(st.integers(0, 2 * (mtu + header)))
    latency, cut_through = draw(st.sampled_from([0, 16, 100, 999])), draw(st.booleans())
    injection = draw(st.sampled_from(["messages", "queue_pairs", "fifo", "adapter_fifo"]))
    switch = draw(st.none() | architectures(mtu + header))
    return Network(mtu, header, buffer, latency, cut_through, switch, injection=injection)


@st.composite
def with_memory(draw: st.DrawFn, network: Network, lanes: int) -> Network:
    """The same, or with a memory for each lane of a port, or for all, even or dynamic: a packet for each, or a few."""
    kind = draw(st.sampled_from(["buffer", "buffer", "own", "even", "dynamic"]))
    full = network.mtu + network.header
    if kind == "buffer":
        return network
    if kind == "own":
        each = st.integers(full, 4 * full)
        return replace(network, own=tuple(draw(st.lists(each, min_size=lanes, max_size=lanes))))
    size = lanes * full + draw(st.sampled_from([0, 1, full, 3 * full])) + draw(st.integers(0, lanes * full))
    return replace(network, port_buffer=size, dynamic=kind == "dynamic")


@st.composite
def with_pauses(draw: st.DrawFn, network: Network, fabric: Fabric, lanes: int) -> Network:
    """The same with priority flow control: PAUSE above a packet or a few, and room for what comes then."""
    if lanes > 8 or not draw(st.sampled_from([False, True])):
        return network
    full, back = network.mtu + network.header, reverse(fabric.links)
    pfc = Pfc(response=draw(st.sampled_from([0, 0, 500])))
    room = max(headroom(link, fabric.links[back[at]], pfc, full) for at, link in enumerate(fabric.links))
    xoff = full * draw(st.sampled_from([1, 1, 2, 5])) + draw(st.integers(0, full))
    if draw(st.booleans()):
        pfc = replace(pfc, xoff=xoff)
    if draw(st.booleans()):
        pfc = replace(pfc, xon=draw(st.integers(0, xoff)))
    return replace(network, buffer=room + xoff, port_buffer=None, dynamic=False, own=(), pfc=pfc)


@st.composite
def arbiters(draw: st.DrawFn, lanes: int) -> tuple[str, dict[str, object]]:
    """Any arbiter, such that every lane is served."""
    name = draw(st.sampled_from(["vlarb", "weighted_round_robin", "strict_priority", "oldest_first"]))
    order = draw(st.permutations(range(lanes)))
    weights = draw(st.lists(st.integers(1, 4), min_size=lanes, max_size=lanes))
    if name == "oldest_first":
        return name, {}
    if name == "weighted_round_robin":
        return name, {"weights": weights}
    if name == "strict_priority":
        shares = draw(st.dictionaries(st.integers(0, lanes - 1), st.sampled_from([10, 50, 100])))
        interval = draw(st.sampled_from([333, 2000]))
        return name, {"order": order, "shares": list(shares.items()), "interval": interval}
    high = draw(st.lists(st.tuples(st.integers(0, lanes - 1), st.integers(0, 3)), max_size=3))
    low = list(zip(order, weights, strict=True))
    return name, {"vlarb_high": high, "vlarb_low": low, "high_limit": draw(st.sampled_from([0, 1, 255]))}


@st.composite
def qualities(draw: st.DrawFn, most: int = 4) -> Qos:
    """One to four lanes, any level to any lane."""
    lanes = draw(st.sampled_from([lanes for lanes in (1, 2, 2, 3, 4) if lanes <= most]))
    others = draw(st.lists(st.integers(0, lanes - 1), min_size=16 - lanes, max_size=16 - lanes))
    kinds = {kind: draw(LEVELS) for kind in KINDS} if draw(st.booleans()) else {}
    classes = draw(traffic_classes()) if draw(st.booleans()) else ()
    return Qos((*range(lanes), *others), *draw(arbiters(lanes)), draw(st.integers(0, 3)), kinds, classes)


COMMUNICATORS = ("world", "grid", "experts")
OPERATIONS = ("point_to_point", "one_sided", "collective", "alltoall", "allgather", "barrier", "neighbor_alltoall")


@st.composite
def traffic_classes(draw: st.DrawFn) -> tuple[TrafficClass, ...]:
    """Up to three classes, which may overlap."""

    def some(values: Sequence[Any]) -> tuple[Any, ...] | None:
        return draw(st.none() | st.lists(st.sampled_from(values), min_size=1, max_size=2).map(tuple))

    def size() -> int | None:
        return draw(st.sampled_from([None, None, 0, 16, 64]))

    return tuple(
        TrafficClass(f"class-{at}", some((0, 1)), some(COMMUNICATORS), some(OPERATIONS), size(), size(), draw(LEVELS))
        for at in range(draw(st.integers(1, 3)))
    )


@st.composite
def mpis(draw: st.DrawFn, mtu: int) -> Mpi:
    """Thresholds among the sizes, overheads that are often zero, control messages of one packet."""
    return Mpi(
        eager_threshold=draw(st.sampled_from([0, 40, 100, 10**6])),
        mailbox_threshold=draw(st.sampled_from([None, None, 0, 32, 40])),
        send_overhead=draw(OVERHEADS),
        send_overheads=draw(st.sampled_from([(), (), SENDS[:1], SENDS])),
        adapter_delays=draw(st.sampled_from([(), (), SENDS[:1], SENDS])),
        receive_overhead=draw(OVERHEADS),
        control_bytes=draw(st.sampled_from([1, 8, mtu])),
        memory_latency=draw(st.sampled_from([0, 64, 1000])),
        memory_bandwidth=draw(RATES),
        memory_contention=draw(st.booleans()),
        reduction_bandwidth=draw(RATES),
        collectives=NAMES,
    )


class Scripts:
    """Scripts of one job that always come to an end.

    They go in rounds, each with tags of its own, in which every message has its receive. In a *burst*, each rank first
    posts all of its sends and receives in any order, and waits for them afterwards; in a *chain*, messages follow one
    after another with blocking calls. The receives of a rank in a burst name source and tag, or only one of the two.
    One rank may be *wild* and name neither, ever: then a message may take the receive of a later one, so nobody waits
    for a send to that rank before the end.
    """

    def __init__(self, draw: st.DrawFn, ranks: int) -> None:
        self.draw, self.ranks = draw, ranks
        self.wild = draw(st.none() | st.integers(0, ranks - 1))
        self.scripts: list[list[Op]] = [[] for _ in range(ranks)]
        self.at_end: list[list[int]] = [[] for _ in range(ranks)]
        self.requests = 0
        self.begin()
        for number in range(draw(st.sampled_from([1, 2, 2, 3]))):
            self.datagrams()
            self.round(10 * number)
            for script in self.scripts:
                script.append(Mark())
                if draw(st.sampled_from([False, False, True])):
                    script.append(SetName("world", draw(st.sampled_from(COMMUNICATORS))))
                if draw(st.booleans()):
                    script += [Compute(draw(SPANS)), BeginTiming()]
        for script, requests in zip(self.scripts, self.at_end, strict=True):
            script.extend([Wait(tuple(requests)), Mark()] if requests else [])

    def begin(self) -> None:
        """What comes before the rounds."""

    def round(self, tag: int) -> None:
        """A burst or a chain."""
        (self.chain if self.draw(st.sampled_from([False, False, True])) else self.burst)(tag)

    def request(self) -> int:
        """A new request number."""
        self.requests += 1
        return self.requests

    def messages(self) -> list[tuple[int, int, int, bool]]:
        """Source, destination, size, and whether synchronous, of the messages of a round."""
        rank = st.integers(0, self.ranks - 1)
        rare = st.sampled_from([False, False, False, True])
        count = self.draw(st.integers(2, 10))
        return self.draw(st.lists(st.tuples(rank, rank, SIZES, rare), min_size=count, max_size=count))

    def datagrams(self) -> None:
        """Messages that nobody receives, some of them."""
        for source, to, size, _ in self.messages() if self.draw(st.sampled_from([False, False, True])) else []:
            self.scripts[source] += [Compute(self.draw(SPANS)), Datagram(to, size)]

    def chain(self, tag: int) -> None:
        """Blocking calls, each pair after the one before."""
        for source, to, size, synchronous in self.messages():
            if source == to:
                continue
            request = self.request() if to == self.wild else None
            if request is not None:
                self.at_end[source].append(request)
            self.scripts[source] += [
                Compute(self.draw(SPANS)),
                Send(to, size, tag, request, synchronous),
            ]
            self.scripts[to].append(Recv() if to == self.wild else Recv(source, tag))

    def burst(self, tag: int) -> None:
        """Everything is posted, then awaited."""
        posts: list[list[Op]] = [[] for _ in range(self.ranks)]
        names = [self.draw(st.sampled_from(["both", "source", "tag"])) for _ in range(self.ranks)]
        for source, to, size, synchronous in self.messages():
            this = tag + (self.draw(st.integers(0, 2)) if names[to] == "both" else 0)
            posts[source].append(Send(to, size, this, self.request(), synchronous))
            wanted_source = None if to == self.wild or names[to] == "tag" else source
            wanted_tag = None if to == self.wild or names[to] == "source" else this
            posts[to].append(Recv(wanted_source, wanted_tag, self.request()))
        for rank in range(self.ranks):
            soon: list[int] = []
            for op in self.draw(st.permutations(posts[rank])):
                self.scripts[rank] += [Compute(self.draw(SPANS)), op]
                assert isinstance(op, Send | Recv)
                assert op.request is not None
                late = (isinstance(op, Send) and op.to == self.wild) or self.draw(st.sampled_from([False, False, True]))
                (self.at_end[rank] if late else soon).append(op.request)
            order = self.draw(st.permutations(soon))
            together = self.draw(st.booleans()) and order
            self.scripts[rank] += [Wait(tuple(order))] if together else [Wait((request,)) for request in order]


class MoreScripts(Scripts):
    """Scripts with collectives, a topology and a window as well, in rounds in which all ranks take part.

    A rank may wait for what it has started at the end only, so that it goes on beside other rounds.
    """

    def __init__(self, draw: st.DrawFn, ranks: int) -> None:
        super().__init__(draw, ranks)
        if draw(st.booleans()):
            self.everywhere(Free(WINDOW))
        for script in self.scripts:
            script.append(Mark())

    def begin(self) -> None:
        """A window, and edges between any ranks, several and to oneself too."""
        rank = st.integers(0, self.ranks - 1)
        self.edges = self.draw(st.lists(st.tuples(rank, rank), max_size=6))
        for number in range(self.ranks):
            self.scripts[number] += [
                Create(WINDOW),
                Topology(
                    tuple(source for source, to in self.edges if to == number),
                    tuple(to for source, to in self.edges if source == number),
                ),
            ]
            if self.draw(st.booleans()):
                self.scripts[number].append(SetName("topology", self.draw(st.sampled_from(COMMUNICATORS))))

    def round(self, tag: int) -> None:
        """Any kind of round."""
        rounds = [
            self.burst,
            self.chain,
            self.together,
            self.together,
            self.fences,
            self.locking,
            self.signals,
            self.rest,
        ]
        self.draw(st.sampled_from(rounds))(tag)

    def rest(self, _tag: int) -> None:
        """The burst may be over, and a pause follows if it is."""
        self.everywhere(EndBurst(self.draw(SPANS | st.just(10**9))))
        pause = self.draw(SPANS)
        for script in self.scripts:
            script += [Mark(), Pause(pause)]

    def everywhere(self, op: Op) -> None:
        """All ranks do the same, some later than others."""
        for script in self.scripts:
            script += [Compute(self.draw(SPANS)), op]

    def started(self, rank: int, op: Op, *, soon: list[list[int]]) -> None:
        """Notes when a rank waits for what it starts."""
        assert isinstance(op, Collective | Neighbor | Rma)
        self.scripts[rank] += [Compute(self.draw(SPANS)), op]
        if op.request is not None:
            (self.at_end if self.draw(st.sampled_from([False, False, True])) else soon)[rank].append(op.request)

    def together(self, _tag: int) -> None:
        """Collectives one after another, of the communicator or of neighbours, some of which do not block."""
        soon: list[list[int]] = [[] for _ in range(self.ranks)]
        for _ in range(self.draw(st.integers(1, 4))):
            kind = self.draw(st.sampled_from(["barrier", "bcast", "allreduce", "allgather", "alltoall", *NEIGHBOR]))
            blocks = self.draw(st.none() | st.lists(SIZES, min_size=self.ranks, max_size=self.ranks))
            volume = self.draw(SIZES)
            root, free = self.draw(st.integers(0, self.ranks - 1)), self.draw(st.booleans())
            for rank in range(self.ranks):
                request = self.request() if free else None
                if kind in NEIGHBOR:
                    each = tuple(self.draw(SIZES) for source, _ in self.edges if source == rank)
                    listed = kind == "neighbor_alltoall" and blocks is not None
                    self.started(rank, Neighbor(kind, each if listed else volume, request), soon=soon)
                else:
                    some = tuple(blocks) if kind == "alltoall" and blocks is not None else volume
                    its_root = root if kind == "bcast" else 0
                    self.started(rank, Collective(kind, some, its_root, request), soon=soon)
        self.wait(soon)

    def wait(self, soon: list[list[int]]) -> None:
        """Waits for what is not waited for at the end."""
        for script, requests in zip(self.scripts, soon, strict=True):
            order = self.draw(st.permutations(requests))
            script.extend(Wait((request,)) for request in order)

    def operations(self, rank: int, targets: list[int], soon: list[list[int]]) -> None:
        """Some one-sided operations, and perhaps a flush."""
        for _ in range(self.draw(st.integers(0, 3)) if targets else 0):
            target, kind = self.draw(st.sampled_from(targets)), self.draw(st.sampled_from(RMA))
            request = self.request() if self.draw(st.booleans()) else None
            self.started(rank, Rma(kind, WINDOW, target, self.draw(SIZES), request), soon=soon)
            if self.draw(st.sampled_from([False, False, True])):
                self.scripts[rank].append(Flush(WINDOW, self.draw(st.sampled_from([None, target]))))

    def fences(self, _tag: int) -> None:
        """Operations at anybody, between fences."""
        soon: list[list[int]] = [[] for _ in range(self.ranks)]
        for _ in range(self.draw(st.integers(1, 2))):
            for rank in range(self.ranks):
                self.operations(rank, list(range(self.ranks)), soon)
            self.everywhere(Fence(WINDOW))
        self.wait(soon)

    def locking(self, _tag: int) -> None:
        """Each rank locks this and that."""
        soon: list[list[int]] = [[] for _ in range(self.ranks)]
        for rank in range(self.ranks):
            for target in self.draw(st.lists(st.none() | st.integers(0, self.ranks - 1), max_size=3)):
                self.scripts[rank] += [
                    Compute(self.draw(SPANS)),
                    Lock(WINDOW, target, target is not None and self.draw(st.booleans())),
                ]
                self.operations(rank, [target] if target is not None else list(range(self.ranks)), soon)
                self.scripts[rank].append(Unlock(WINDOW, target))
        self.wait(soon)

    def signals(self, _tag: int) -> None:
        """Post, start, complete and wait along edges, each at most once."""
        soon: list[list[int]] = [[] for _ in range(self.ranks)]
        edges = sorted(set(self.edges))
        for rank in range(self.ranks):
            origins, targets = ([a for a, b in edges if b == rank], [b for a, b in edges if a == rank])
            self.scripts[rank] += [Compute(self.draw(SPANS)), Signal("post", WINDOW, tuple(origins))]
            self.scripts[rank].append(Signal("start", WINDOW, tuple(targets)))
            self.operations(rank, targets, soon)
            self.scripts[rank] += [Signal("complete", WINDOW), Signal("wait", WINDOW)]
        self.wait(soon)


WINDOW = 3
NEIGHBOR = ("neighbor_allgather", "neighbor_alltoall")
RMA = ("put", "get", "accumulate", "get_accumulate", "compare_and_swap")


def policies(rails: int) -> st.SearchStrategy[dict[str, object]]:
    """Any way to share messages among rails."""
    stripe = st.fixed_dictionaries({"policy": st.just("stripe"), "above": st.sampled_from([0, 16, 64])})
    only = st.fixed_dictionaries({"policy": st.just("only"), "only": st.integers(0, rails - 1)})
    others = ["round_robin", "by_destination", "by_source"]
    return stripe | only | st.sampled_from(others).map(lambda name: {"policy": name})


@st.composite
def jobs(draw: st.DrawFn, places: list[int], rails: int, scripts: type[Scripts]) -> Job:
    """A job with its ranks on these hosts."""
    ranks = len(places)
    levels = draw(st.dictionaries(st.integers(0, ranks - 1), st.integers(0, 3), max_size=2))
    return Job(places, scripts(draw, ranks).scripts, draw(LEVELS), levels, draw(policies(rails)))


@st.composite
def placements(draw: st.DrawFn, hosts: int) -> list[list[int]]:
    """Hosts of the two to four ranks of one to three jobs: each rank has one of its own, or any host has any ranks."""
    wanted = [draw(st.integers(2, 4)) for _ in range(draw(st.sampled_from([1, 2, 2, 3])))]
    if draw(st.booleans()):
        free = draw(st.permutations(range(hosts)))
        own = [[free.pop() for _ in range(min(ranks, len(free)))] for ranks in wanted]
        return [places for places in own if len(places) > 1]
    return [draw(st.lists(st.integers(0, hosts - 1), min_size=ranks, max_size=ranks)) for ranks in wanted]


@st.composite
def cases(draw: st.DrawFn, scripts: type[Scripts] = Scripts) -> Case:
    """A small case."""
    fabric = draw(fabrics())
    some_jobs = [draw(jobs(places, fabric.adapters, scripts)) for places in draw(placements(fabric.hosts))]
    network, qos = draw(networks()), draw(qualities())
    network = draw(with_memory(network, fabric.queue(qos.lanes, 0)))
    network = draw(with_pauses(network, fabric, fabric.queue(qos.lanes, 0)))
    return Case(fabric, some_jobs, network, qos, draw(mpis(network.mtu)))


@st.composite
def wide_cases(draw: st.DrawFn, routing: str) -> Case:
    """A small case with a routing, on any topology that it suits."""
    seed = draw(st.integers(0, 2**32 - 1))
    fabric = any_topology(routing, seed)
    used = Random(seed).sample(range(fabric.hosts), min(fabric.hosts, 8))
    rails = [sum(link.from_host == host for link in fabric.links) for host in range(fabric.hosts)]
    some_jobs = []
    for places in draw(placements(len(used))):
        hosts = [used[place] for place in places]
        adapters = min(rails[host] for host in hosts)
        job = draw(jobs(hosts, adapters, Scripts))
        if fabric.rails is None and job.rails["policy"] == "stripe":
            job = replace(job, rails={"policy": "round_robin"})  # parts of a message meet at switches
        some_jobs.append(job)
    network = draw(networks())
    # A port has at most 64 lanes.
    qos = draw(qualities(min(4, 64 // fabric.channels)))
    fabric = with_queues(fabric, qos.lanes)
    network = draw(with_memory(network, fabric.queue(qos.lanes, 0)))
    network = draw(with_pauses(network, fabric, fabric.queue(qos.lanes, 0)))
    return Case(fabric, some_jobs, network, qos, draw(mpis(network.mtu)))
