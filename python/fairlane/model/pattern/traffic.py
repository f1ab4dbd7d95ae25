"""The communication matrix of a job: its messages, counted without contention.

The job runs alone, with no time to compute, on a switch with a link of a terabit per second for every rank and a lane
of its own for every kind of traffic: every packet that leaves a rank's link and comes out at another's adds to a cell
of the communication matrix. So the matrix is that of the messages which a simulation sends, those of collectives'
algorithms among them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy
from numpy.typing import NDArray

from fairlane.core import bridge
from fairlane.core.drive import Slice, drive
from fairlane.core.errors import Problem, ScenarioError
from fairlane.model.fabric.graph import columns
from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import JobScript
from fairlane.model.workload.counting import counted
from fairlane.model.workload.trace import Trace

Ints = NDArray[numpy.int64]

KINDS = ("point to point", "collective")
"""The kinds of traffic, in the order of ``Traffic.bytes``: payload of messages, and of collectives."""
MOST_RANKS = 4096
"""Ranks up to which a matrix is observed: it has 16 bytes for every pair and kind."""
MOST_PACKETS = 20_000_000
"""Packets up to which a program is observed: each takes some hundred bytes until they are counted."""

_CONTROL, _POINT_TO_POINT, _COLLECTIVE = 0, 1, 2
_SLICE = 1_000_000
_MTU = 2**19
_FAST = 10**12


@dataclass(frozen=True)
class Traffic:
    """The messages of a job."""

    bytes: Ints
    """Payload by kind (see ``KINDS``), sender and receiver."""
    messages: Ints
    """Messages by kind, sender and receiver; empty ones count too."""
    sizes: dict[str, dict[int, int]]
    """Number of messages of each size in bytes, by kind."""

    @property
    def ranks(self) -> int:
        """Number of ranks of the job."""
        return int(self.bytes.shape[1])

    @cached_property
    def total(self) -> Ints:
        """Payload of all kinds, by sender and receiver."""
        sums: Ints = self.bytes.sum(axis=0)
        return sums

    @property
    def sent(self) -> Ints:
        """Bytes that each rank sends."""
        sums: Ints = self.total.sum(axis=1)
        return sums

    @property
    def received(self) -> Ints:
        """Bytes that each rank receives."""
        sums: Ints = self.total.sum(axis=0)
        return sums

    @property
    def collective_share(self) -> float:
        """Share of collectives in the payload; 0 without any."""
        return float(self.bytes[1].sum() / self.total.sum()) if self.total.any() else 0.0


def program_of(source: Workload | Trace, ranks: int, seed: int = 1, number: int = 0) -> bridge.Program:
    """A program for counting: one pass of a trace or a workload's distinct iterations, without compute time."""
    if isinstance(source, Trace):
        _check_recorded(source.describe(), source.message_scale)
        return source.model_copy(update={"repeat": False, "compute_scale": 0.0}).program()
    _check_ranks(ranks)
    written = counted(source, ranks, source.distinct_iterations)
    # Its collectives are counted by a rule of thumb.
    _check(round(sum(weight * traffic.sent for weight, traffic in written.ranks) * source.distinct_iterations / 4))
    _check(round(written.operations / 4))
    script = JobScript(ranks, seed=seed, job=number, variant=source.variant, iterations=source.distinct_iterations)
    return source.program(script, 0)


def observe(program: bridge.Program) -> Traffic:
    """Runs a program that ends, and counts its messages. Raises ``ScenarioError`` or ``RunError`` if it cannot."""
    ranks = program.ranks
    _check_ranks(ranks)
    if ranks == 1:
        nothing = numpy.zeros((2, 1, 1), numpy.int64)
        return Traffic(nothing, nothing, {kind: {} for kind in KINDS})
    simulation = bridge.simulation(_spec(ranks), [program])
    drive(simulation, every=Slice(hops=_SLICE), progress=lambda engine: _check(engine.packet_hops // 2))
    return _counted(simulation, ranks)


def _check_recorded(described: dict[str, Any], scale: float) -> None:
    """A trace's messages; collectives are counted as one message of each rank."""
    kinds = described["collectives"].values()
    messages = described["p2p_messages"] + sum(kind["calls"] for kind in kinds)
    size = described["p2p_bytes"] + sum(kind["bytes"] for kind in kinds)
    _check(round(messages + scale * size / _MTU))


def _check_ranks(ranks: int) -> None:
    if ranks > MOST_RANKS:
        raise ScenarioError(Problem("ranks", "too many for a communication matrix", ranks, f"up to {MOST_RANKS}"))


def _check(packets: int) -> None:
    if packets > MOST_PACKETS:
        allowed = (
            f"up to {MOST_PACKETS:,}; a workload has fewer with distinct_iterations = 1 or fewer messages an iteration"
        )
        raise ScenarioError(Problem("packets", "too many for a communication matrix", packets, allowed))


def _spec(ranks: int) -> dict[str, object]:
    """All ranks on one switch; nothing takes long, and every message is sent eagerly."""
    kinds = {
        **dict.fromkeys(["control", "collective_control"], _CONTROL),
        **dict.fromkeys(["eager", "bulk"], _POINT_TO_POINT),
        "collective": _COLLECTIVE,
    }
    arbiter = {"name": "weighted_round_robin", "params": {"weights": [1, 1, 1]}}
    job = {"name": "job", "hosts": list(range(ranks)), "ranks": {}, "start": 0}
    return {
        "fabric": _fabric(ranks),
        "network": {"mtu": _MTU, "header": 0, "buffer": 8 * _MTU, "switch_latency": 0, "switching": "cut_through"},
        "qos": {"lanes": 3, "sl2vl": [0, 1, 2], "default": 0, "kinds": kinds, "arbiter": arbiter},
        "mpi": {
            "eager_threshold": 2**40,
            "control_bytes": 64,
            **dict.fromkeys(["send_overhead", "receive_overhead", "memory_latency"], 0),
            **dict.fromkeys(["memory_bandwidth", "reduction_bandwidth"], _FAST),
            "collectives": {},
        },
        "observe": {"counters": False, "interference_by_port": False, "departures": True},
        "jobs": [{**job, "service_level": None, "stop": None}],
    }


def _fabric(ranks: int) -> dict[str, object]:
    params = {"sides": [1], "hosts_per_switch": ranks, "bandwidth": _FAST, "latency": 1000}
    return {"topology": "hyperx", "params": params, "routing": "dimension_order", "routing_params": {}}


def _counted(simulation: bridge.Simulation, ranks: int) -> Traffic:
    sent, received = _departures(simulation, ranks)
    size, kind = sent["bytes"].astype(numpy.int64), sent["lane"].astype(numpy.int64) - 1
    first = sent["packet"] == 0
    cell = numpy.ravel_multi_index((kind, sent["rank"], received["rank"]), (2, ranks, ranks))
    payload, messages = (
        numpy.bincount(cell, weights, 2 * ranks * ranks).astype(numpy.int64).reshape(2, ranks, ranks)
        for weights in (size, first)
    )
    # The packets of a message are adjacent, the first one first.
    whole = numpy.add.reduceat(size, numpy.flatnonzero(first)) if len(size) else size
    sizes = {}
    for at, name in enumerate(KINDS):
        values, counts = numpy.unique(whole[kind[first] == at], return_counts=True)
        sizes[name] = dict(zip(values.tolist(), counts.tolist(), strict=True))
    return Traffic(payload, messages, sizes)


def _departures(simulation: bridge.Simulation, ranks: int) -> tuple[dict[str, Ints], dict[str, Ints]]:
    """Payload packets as they left a rank, and the same ones in the same order as they left the switch.

    Both are sorted by name of the message, then as they went. Packets of a message go one after the other, and its name
    is used again only once it is gone: so they are adjacent, the first one first, and in the same order at both ends.
    """
    links = columns(bridge.fabric(_fabric(ranks)).links())
    log = columns(simulation.table("departures"))
    ordered = []
    for end in ("from_host", "to_host"):
        rank = links[end][log["link"]]
        keep = (rank >= 0) & (log["lane"] > _CONTROL)
        rows = {"rank": rank[keep], **{name: log[name][keep] for name in ("message", "packet", "bytes", "lane")}}
        order = numpy.argsort(rows["message"], kind="stable")
        ordered.append({name: column[order] for name, column in rows.items()})
    return ordered[0], ordered[1]
