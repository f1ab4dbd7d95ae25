"""Rules of other simulators by name, as defaults of a scenario: ``model = "snappr"``.

A model is a function; a line in ``MODELS`` gives it a name. What it returns is used for keys that the scenario does not
have. Users bring their own as ``file.py:function``, or by the name of an entry point ``fairlane.models`` of an
installed package. What a simulator has no default for stays as in fairlane, unless the comment says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from fairlane.core.errors import Problem
from fairlane.inputs.parameters import table_of_name
from fairlane.inputs.problems import Problems, under
from fairlane.inputs.registry import Registry, blamed

__all__ = ["MODELS", "Applied", "Model", "Rules", "rules_of", "with_model"]

_INSTEAD = (
    ("network", {"buffer", "port_buffer"}),
    ("network.port_buffer", {"size", "lanes"}),
    ("network.port_buffer", {"sharing", "lanes"}),
    ("mpi", {"send_overhead", "send_overheads"}),
)
"""By table, keys of which one says what the others would: a model sets none of them if the scenario has one."""


@dataclass(frozen=True)
class Rules:
    """Keys of a scenario that a model sets."""

    tables: Mapping[str, Mapping[str, Any]]
    """Tables of a scenario with the defaults of their keys."""
    routing: Mapping[str, str] = field(default_factory=dict)
    """By topology, the routing of a fabric that names none."""
    routings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Defaults of the parameters of routings, by name."""
    differs: Sequence[str] = ()
    """Rules of the simulator that fairlane does not have, and what it does in their place."""


@dataclass(frozen=True)
class Applied:
    """Changes by a model to a scenario; none without one."""

    keys: Mapping[str, Any] = field(default_factory=dict)
    """The keys that it has set, with their values."""
    differs: Sequence[str] = ()
    """Rules of the simulator that fairlane does not have, and what it does in their place."""


Model = Callable[[], Rules]
"""The rules of a simulator."""


def snappr() -> Rules:
    """SNAPPR, the packet network of SST/macro 10, with its MPI: Wilke and Kenny 2020."""
    # Files of github.com/sstsimulator/sst-macro, tag v10.0.0_Final; snappr/ and router/ are in sstmac/hardware.
    return Rules(
        tables={
            "network": {
                "header": "0 B",  # snappr/snappr.h: a packet is its payload
                "switch_latency": "0 ns",  # snappr/snappr_switch.cc:261: a packet is routed as its head arrives
                # snappr/snappr_switch.cc:145: the memory of a port, divided evenly among the lanes of all levels. Its
                # size has no default: it is that of 24 lanes (four levels under PAR) of 64 KiB, fairlane's. With a
                # memory for each lane (vl_credits, line 117) `buffer` takes its place.
                "port_buffer": {"size": "1536 KiB", "sharing": "even"},
                "injection": "adapter_fifo",  # snappr/snappr_nic.cc:140
            },
            "mpi": {
                "eager_threshold": "8 KiB",  # sumi-mpi/mpi_queue/mpi_queue.cc:95: senders do not wait for receives
                "mailbox_threshold": "512 B",  # sumi-mpi/mpi_queue/mpi_queue.cc:94: larger ones are fetched by RDMA
                "control_bytes": "64 B",  # sumi-mpi/mpi_protocol/rendezvous_rdma.cc:118, 259
                "send_overhead": "0 ns",  # sumi/sim_transport.cc:253 to 255
                "receive_overhead": "0 ns",
                "collectives": {
                    "allreduce": "rabenseifner",  # sumi/sim_transport.cc:627, for any size
                    "allgather": "bruck",  # sumi/sim_transport.cc:522
                    "alltoall": "bruck",  # sumi/sim_transport.cc:521
                },
            },
        },
        routing={"fat_tree": "rotation"},  # router/fat_tree_router.cc:159, 166
        # router/router.cc:86 and router/dragonfly_routing.cc:380: one intermediate group drawn at random, taken if its
        # load times hops is less: packets that wait, times 3 or 5 (1 or 2 in a group). PAR asks wherever the path is
        # minimal. 6 channels, one for each hop (line 376), as with `channels = "per_hop"`.
        routings={
            "progressive": {
                "samples": 1,
                "bias": "0 B",
                "load": "packets",
                "links": "longest",
                "revise": "minimal",
            },
            "ugal_l": {"samples": 1, "bias": "0 B", "load": "packets"},
        },
        # Effect of the first seven: docs/reproduction/peers.md.
        differs=(
            "a message is delivered with the head of its last packet; here with its tail",  # snappr/snappr_nic.cc:295
            # snappr/snappr_outport.cc:372, with the arbitrator fifo
            "a small packet passes larger ones of its lane that lack credits; here packets of a lane keep their order",
            # router/router.cc:104: with router.seed, each draw follows from the time and the seed alone
            "with a seed, all switches that draw at one time draw the same; here draws are independent",
            # router/dragonfly_routing.cc:225
            "a non-minimal path leaves its group by a cable of another switch; here by that of any",
            # snappr/snappr_switch.cc:99: a router for each level
            "a fat-tree's switch counts packets in turn for each service level; here for all together",
            # sumi/allreduce.cc:146: the rounds of a buffer with fewer elements than ranks
            "a collective sends its messages of no bytes; here it leaves them out",
            # sumi/allreduce.cc:146, 151
            "an allreduce halves its elements in each round; here it halves one block of bytes per rank",
            "a collective's messages of 512 bytes are fetched, as larger ones; here above 512",  # sumi/transport.h:333
            # nic/nic.cc:105, in sstmac/hardware
            "messages of up to 256 bytes wait nowhere, unless nic.negligible_size is set; here all do",
            # sumi-mpi/mpi_queue/mpi_queue.cc:459
            "a header is answered in its receiver's next MPI call; here by its adapter, at once",
            # sumi-mpi/mpi_protocol/eager1.cc:99
            "a later message may be matched before a fetched one; here in the order of their sends",
            # topology/fat_tree.cc:344
            "fat-tree switches with more ports than others have faster ones; here all have the fabric's bandwidth",
            # topology/dragonfly.cc:467
            "circulant leaves ports free that would lead to the own group; here they lead to others",
            "ugal_l: paths have 3 and 5 hops (1 and 2 in a group); here the hops of each path, if not links = longest",
            "an adapter cuts messages into 4 MB of packets that wait for credits; here a packet is cut when it starts",
            "a lane's minimum bandwidth is a deadline of its next packet; here the arbiters of fairlane",
            "an eager message is copied at both ends; here memory takes no time",
        ),
    )


def tracer() -> Rules:
    """TraceR with the QoS of TraceR pull request 42 and CODES pull request 210, on fat-trees: Savoie et al. 2020."""
    # TraceR: github.com/hpcgroup/TraceR, refs/pull/42/head; CODES: github.com/codes-org/codes, refs/pull/210/head.
    # fattree.conf is examples/conf/fattree.conf of TraceR, fattree.c is src/networks/model-net/fattree.c of CODES.
    return Rules(
        tables={
            "network": {
                "mtu": "8 KiB",  # fattree.conf: packet_size, chunk_size
                "header": "0 B",  # fattree.c:1880: a packet takes the time of its payload
                "buffer": "64 KiB",  # fattree.conf: vc_size, cn_vc_size, of each level
                "switch_latency": "60 ns",  # fattree.conf: router_delay
                "switching": "store_and_forward",  # fattree.c:2214: a packet is at the next switch when its tail is
                "injection": "messages",  # src/networks/model-net/core/model-net-lp.c:329: messages of a level in turn
            },
            "mpi": {
                "eager_threshold": "64000 B",  # fattree.conf: eager_limit
                "control_bytes": "16 B",  # tracer/p2p-events.C:452
                # soft_delay twice, as the time of a call (tracer/reader/otf2_reader.C:288) and before the message is
                # made (tracer/p2p-events.C:624), and copy_per_byte for an eager message (line 618)
                "send_overhead": "400 ns",
                "send_overheads": [{"size": "64000 B", "time": "1040 ns"}, {"size": "64001 B", "time": "200 ns"}],
                # tracer/p2p-events.C:642: nic_delay, after one soft_delay of the two; core/model-net-lp.c:714:
                # nic_seq_delay; tracer/p2p-events.C:328: and rdma_delay after a rendezvous
                "adapter_delays": [
                    {"size": "1 B", "time": "300 ns"},
                    {"size": "64000 B", "time": "300 ns"},
                    {"size": "64001 B", "time": "1500 ns"},
                ],
                # tracer/reader/otf2_reader.C:380: soft_delay; tracer/p2p-events.C:102: nic_delay if the rank waited.
                # Or soft_delay at each of irecv, its completion and that of an isend: lines 411, 440 and 354.
                "receive_overhead": "600 ns",
                "collectives": {"alltoall": "pairwise"},  # tracer/coll-events.C:304: of more than 512 bytes
            },
        },
        routings={"adaptive": {"threshold": "0 B", "ties": "random"}},  # fattree.c:2895
        differs=(
            "a credit returns when the next output queue, of 64 KiB a level, has room; here when the packet leaves the "
            "next switch, whose output queues have no limit",
            "a packet occupies 8 KiB of a buffer, whatever its size; here its size",
            "below the arbiter an adapter has one queue, of 64 KiB, and one credit count for all levels; here one for "
            "each",
            "adaptive routing compares the queues of level 0 only; here those of all levels",
            "a rendezvous is the receiver's notice and the data; here request, get, data and acknowledgement",
            "an eager message is copied at its receiver as well, 0.01 ns a byte, if the rank waited; here not",
            "a message of a collective takes 500 ns at both ends, and 0.01 ns a byte; here as any other",
            "a step of a collective ends when its message has left the adapter; here when it has been handed over, so "
            "that a rank that is late sends several at once",
            "alltoall up to 512 bytes is Bruck's, allgather Bruck's up to 160 KiB in all and a ring above, allreduce "
            "a tree up and down; here as without the model",
            "links have no latency; here the topology's",
        ),
    )


MODELS: Registry[Model] = Registry(
    "model", "fairlane.models", {"snappr": snappr, "tracer": tracer}, unread=lambda: Rules({})
)
"""All models by name."""


def with_model(given: Any) -> tuple[Any, Applied]:
    """A scenario's tables with the rules of its ``model``, and what these have done."""
    if not isinstance(given, Mapping) or not isinstance(given.get("model"), str):
        return given, Applied()
    rules = rules_of(given["model"])
    table = {**given, **{name: _table(given[name]) for name in {*rules.tables, "fabric"} & given.keys()}}
    fabric = table.get("fabric")
    tables = dict(rules.tables)
    if isinstance(fabric, dict) and "routing" in fabric:
        table["fabric"] = {**fabric, "routing": _named(fabric["routing"])}
    elif isinstance(fabric, dict) and str(fabric.get("topology")) in rules.routing:
        tables["fabric"] = {"routing": {"name": rules.routing[str(fabric["topology"])]}}
    filled = _merged(table, tables)
    if isinstance(filled.get("fabric"), dict) and "routing" in filled["fabric"]:
        filled["fabric"] = {
            **filled["fabric"],
            "routing": _with_parameters(filled["fabric"]["routing"], rules.routings),
        }
    before = dict(_flat(table))
    keys = {key: value for key, value in _flat(filled) if before.get(key) != value}
    return filled, Applied(keys, tuple(rules.differs))


def rules_of(name: str) -> Rules:
    """The rules of a model by its name; ``Problems`` if there is no such model, or if it is a plug-in that fails."""
    with under("model"):
        model = MODELS.find(name)
    try:
        rules = model()
    except Exception as error:
        problem = blamed(model, "model", error)
        if problem is None:
            raise
        raise Problems(problem) from error
    if not isinstance(rules, Rules):
        raise Problems(
            Problem("model", f"returned {type(rules).__name__}", name, "fairlane.model.scenario.simulators.Rules")
        )
    return rules


def _table(given: Any) -> Any:
    """A table with the keys that were given; what is no table stays what it is."""
    if isinstance(given, BaseModel):
        return given.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return {key: value for key, value in given.items() if value is not None} if isinstance(given, Mapping) else given


def _unless_given(path: str, keys: Mapping[str, Any], written: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of a table without those in whose place the scenario has another."""
    given = written.keys()
    others = {key for table, keys in _INSTEAD if table == path and keys & given for key in keys - given}
    return {key: value for key, value in keys.items() if key not in others}


def _merged(table: Any, defaults: Mapping[str, Any], path: str = "") -> Any:
    """A table, at this path, with the defaults of the keys that it has not; tables in it alike."""
    if not isinstance(table, Mapping):
        return table
    defaults = _unless_given(path, defaults, table)
    both = {
        key: _merged(table[key], value, f"{path}.{key}".strip("."))
        for key, value in defaults.items()
        if key in table and isinstance(value, Mapping)
    }
    return {**defaults, **table, **both}


def _named(routing: Any) -> Any:
    """A routing as a table with its name, and those of its lanes alike."""
    table = table_of_name(_table(routing))
    if not isinstance(table, dict) or not isinstance(table.get("lanes"), list):
        return table
    return {**table, "lanes": [_named(lane) for lane in table["lanes"]]}


def _with_parameters(routing: Any, defaults: Mapping[str, Mapping[str, Any]]) -> Any:
    """A routing, as a table, with the defaults of its parameters, and those of its lanes alike."""
    if not isinstance(routing, dict):
        return routing
    merged = {**defaults.get(str(routing.get("name")), {}), **routing}
    if isinstance(merged.get("lanes"), list):
        merged["lanes"] = [_with_parameters(lane, defaults) for lane in merged["lanes"]]
    return merged


def _flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The keys of a table and of those in it, with their values."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
