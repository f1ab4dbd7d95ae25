"""Remarks on a network before a run: limits by buffers and memory, wrong round trips."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

from fairlane.core.units import BANDWIDTH, DURATION
from fairlane.core.wording import data_size, listed, percent, plural
from fairlane.model.fabric.view import Fabric

NEARLY_ALL = 0.995
"""The share of a link from which on it counts as all of it."""
FAR_ABOVE = 2
"""So many times the round trip of the fabric a transport's round trip is far above it."""
MANY_RANKS = 3
"""So many ranks on one host share its memory links noticeably: two have one partner each."""


class Loop(NamedTuple):
    """Links of one role, and the time from a packet's start until its credits are back."""

    role: str
    bandwidth: int
    latency: int
    packet: int  # bytes of a full packet
    time: int  # ps

    @property
    def wire(self) -> float:
        """The time that a full packet takes, ps."""
        return 8e12 * self.packet / self.bandwidth

    def share(self, buffer: int) -> float:
        """Return the share of a link that a lane with this buffer can use."""
        return min(1.0, buffer // self.packet * self.wire / self.time)

    def words(self, buffer: int) -> str:
        """Describe these links."""
        share, needed = self.share(buffer), ceil(self.time / self.wire) * self.packet
        rate, delay = BANDWIDTH.format(self.bandwidth), DURATION.format(self.latency)
        packets = plural(buffer // self.packet, "full packet")
        return (
            f"{self.role} links ({rate}, {delay}) reach {percent(share)} of their bandwidth with one lane at most: "
            f"its buffer of {buffer} B holds {packets}, whose credits are back after {DURATION.format(self.time)}; "
            f"{data_size(needed)} are enough"
        )


def network_notes(
    tables: Mapping[str, Any], fabric: Fabric, transports: Iterable[Mapping[str, Any] | None]
) -> Iterator[str]:
    """Sentences about the network of a scenario that has been resolved; ``transports`` are those of its jobs."""
    network = tables["network"]
    lanes = set(tables["qos"]["sl2vl"]) or {0}
    if "flow_control" not in network and not lanes <= set(tables["qos"].get("lossy") or ()):
        yield from _buffers(network, fabric, len(fabric.required_virtual_lanes(max(lanes) + 1)))
    yield from _round_trips(network, fabric, transports)


def memory_notes(tables: Mapping[str, Any], hosts: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """A sentence if three or more ranks of a job are on one host and exchange without contention.

    ``hosts`` has the host of each rank by job.
    """
    if tables["mpi"]["memory_contention"]:
        return
    most = {name: max(Counter(ranks).values(), default=0) for name, ranks in hosts.items()}
    dense = [name for name, count in most.items() if count >= MANY_RANKS]
    if dense:
        yield (
            f"up to {max(most.values())} ranks of {listed(dense)} are on one host and exchange there without "
            "contention, because mpi.memory_contention is false"
        )


def _buffers(network: Mapping[str, Any], fabric: Fabric, lanes: int) -> Iterator[str]:
    """Links that cannot be filled, a sentence for those of each role that reach the least of their bandwidth."""
    packet = network["mtu"] + network["header"]
    buffer = _lane_buffer(network, packet, lanes)
    least: dict[str, Loop] = {}
    for loop in _loops(network, fabric, packet):
        if loop.share(buffer) < least.get(loop.role, loop).share(buffer) or loop.role not in least:
            least[loop.role] = loop
    yield from (loop.words(buffer) for loop in least.values() if loop.share(buffer) < NEARLY_ALL)


def _lane_buffer(network: Mapping[str, Any], packet: int, lanes: int) -> int:
    """The most bytes of a lane at the end of a link; of lanes of different sizes, the smallest."""
    port = network.get("port_buffer")
    if port is None:
        return int(network["buffer"])
    if "lanes" in port:
        return int(min(port["lanes"]))
    return int(port["size"] // lanes if port["sharing"] == "even" else port["size"] - (lanes - 1) * packet)


def _loops(network: Mapping[str, Any], fabric: Fabric, packet: int) -> Iterator[Loop]:
    """Every kind of link with its loop of credits: at a host, or through a switch to a link that is as fast."""
    columns = (fabric.link_kinds[name].tolist() for name in ("role", "bandwidth", "latency", "to_host"))
    for role, rate, latency, host in dict.fromkeys(zip(*columns, strict=True)):
        wire = -(-8 * packet * 10**12 // rate)
        time = wire + 2 * latency
        if not host:
            time += network["switch_latency"] + wire * (network["switching"] == "store_and_forward")
        yield Loop(role, rate, latency, packet, time)


def _round_trips(
    network: Mapping[str, Any], fabric: Fabric, transports: Iterable[Mapping[str, Any] | None]
) -> Iterator[str]:
    """Transports whose round trip was set, and is far above that of the fabric."""
    transports_by_key = [("network.transport", network.get("transport"))]
    transports_by_key += [(f"jobs[{at}].transport", transport) for at, transport in enumerate(transports)]
    for key, transport in transports_by_key:
        given = transport and transport.get("params", {}).get("base_rtt")
        if not transport or given is None:
            continue
        real = fabric.round_trip(network, network["header"])
        if given > FAR_ABOVE * real:
            yield (
                f"{key}.base_rtt is {DURATION.format(given)}, and a round trip on the longest path of the fabric "
                f"takes {DURATION.format(real)} without load: {transport['name']} takes queueing delay for a part of "
                "it, and shares can stay unequal; without the key it is the round trip of the fabric"
            )
