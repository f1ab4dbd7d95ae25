"""Hierarchical token buckets (HTB) of a device: the commands of ``tc`` that write and read classes of levels.

The root qdisc has the handle ``fa1:``, one class has the device's rate, and below it there is a class for each level.
u32 filters send packets to the classes; what no filter matches goes to the class of the default level.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from pydantic import Field

from fairlane.cluster.agent.system import BackendError
from fairlane.core.units import Bandwidth
from fairlane.inputs.table import Table
from fairlane.model.scenario.levels import Level

HANDLE = "fa1:"
"""The handle of the agent's qdiscs."""
_ALL = "ffff"  # the class of the whole device
_FREE = ("noqueue", "pfifo_fast", "fq_codel", "mq", "fq", "pfifo")  # root qdiscs that the kernel gives by itself
_QUANTUM = 1514  # bytes of the smallest quantum, an Ethernet frame
_WEIGHTED = 1515  # the smallest quantum where weights are set, by which they are told from shares
_LEAST_SHARE = 0.001  # of classes with weights: what is guaranteed to none is divided by weight
_FILTER = re.compile(r" fh 800::([0-9a-f]+)[^\n]*flowid fa1:([0-9a-f]+)[^\n]*\n((?:\s+match [^\n]*\n?)+)")
_MATCH = re.compile(r"([0-9a-f]{8})/([0-9a-f]{8}) at (\d+)")
_SOURCE = re.compile(r"([0-9a-f]{8})/ffffffff at 12\b")
_CLASS = re.compile(r"class htb fa1:([0-9a-f]+) parent fa1:ffff .*?quantum (\d+)")
_QDISC = re.compile(r"qdisc (\S+) (\S+) root ")


class Device(Table):
    """A link whose bandwidth is shared: a device within a network namespace."""

    namespace: str = Field(pattern=r"^[A-Za-z0-9_.-]+$", description="name of the network namespace")
    device: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,15}$", description="name of the device that sends")
    rate: Bandwidth = Field(ge=8000, description="bandwidth of the link")

    @property
    def place(self) -> str:
        """Its name on this machine."""
        return f"{self.namespace}/{self.device}"


class LevelClass(Table):
    """Class of service of a service level."""

    level: Level = Field(description="service level")
    share: float = Field(gt=0, le=1, description="share of the rate that it has at least while it has packets")
    priority: int = Field(1, ge=0, le=7, description="of HTB for bandwidth that others leave: 0 is served first")
    dscp: int | None = Field(
        None, ge=0, le=63, description="mark of its packets, required with `marks`; default: all of a job's packets"
    )


@dataclass(frozen=True)
class Shaping:
    """State of a device as far as it is the agent's."""

    filters: dict[str, int] = field(default_factory=dict)
    """Level by match, as ``source`` and ``mark`` name them."""
    quanta: dict[int, int] = field(default_factory=dict)
    """Bytes per round of each level with weights; empty where levels have the configured shares."""
    is_there: bool = False
    """Whether the device has the agent's qdisc."""
    handles: dict[str, str] = field(default_factory=dict, compare=False)
    """Number of the filter by match."""


def source(address: int) -> str:
    """The match of packets with a source address."""
    return f"{address:08x}/ffffffff at 12"


def mark(dscp: int) -> str:
    """The match of packets with a DSCP."""
    return f"{dscp << 18:08x}/00fc0000 at 0"


def source_of(match: str) -> int | None:
    """The source address that a match begins with; None if it has none."""
    address = _SOURCE.match(match)
    return int(address[1], 16) if address else None


def quanta_of(levels: Sequence[LevelClass], weights: Mapping[int, float]) -> dict[int, int]:
    """Bytes of each level per round: in proportion to the weights; empty without weights."""
    if not weights:
        return {}
    relative = {entry.level: weights.get(entry.level, 1.0) for entry in levels}
    least = min(relative.values())
    return {level: round(_WEIGHTED * weight / least) for level, weight in relative.items()}


def read(device: Device, tc: Callable[[Iterable[str]], str]) -> Shaping:
    """The agent's state on a device. ``tc`` executes commands in its namespace, and returns the output.

    Raises ``BackendError`` if the root qdisc is of somebody else.
    """
    on = f"dev {device.device}"
    text = tc((f"qdisc show {on}", f"class show {on}", f"filter show {on}"))
    roots = _QDISC.findall(text)
    if ("htb", HANDLE) not in roots:
        if other := next((root for root in roots if root[0] not in _FREE), None):
            message = f"device {device.device} of namespace {device.namespace} has a root qdisc already"
            raise BackendError(f"{message}: {' '.join(other)}; remove it, or name another device")
        return Shaping()
    filters, handles = {}, {}
    for handle, number, lines in _FILTER.findall(text):
        match = " and ".join(found[0] for found in re.finditer(_MATCH, lines))
        filters[match], handles[match] = int(number, 16) - 1, handle
    quanta = {int(number, 16) - 1: int(quantum) for number, quantum in _CLASS.findall(text)}
    weighted = quanta if min(quanta.values(), default=0) == _WEIGHTED else {}
    return Shaping(filters, weighted, is_there=True, handles=handles)


def commands(
    device: Device, levels: Sequence[LevelClass], default: int, before: Shaping, wanted: Shaping
) -> Iterator[str]:
    """Yield the commands of tc that turn the state of a device into the wanted one."""
    on, rate = f"dev {device.device}", f"{device.rate}bit"
    if not wanted.is_there:
        if before.is_there:
            yield f"qdisc del {on} root handle {HANDLE}"
        return
    if not before.is_there:
        yield f"qdisc add {on} root handle {HANDLE} htb default {default + 1:x} r2q 10"
    yield f"class replace {on} parent {HANDLE} classid {HANDLE}{_ALL} htb rate {rate} ceil {rate} quantum {_QUANTUM}"
    least = min(entry.share for entry in levels)
    for entry in levels:
        share = min(_LEAST_SHARE, entry.share) if wanted.quanta else entry.share
        limits = f"rate {max(8, int(device.rate * share))}bit ceil {rate}"
        quantum = wanted.quanta.get(entry.level) or round(_QUANTUM * entry.share / least)
        shared = f"prio {0 if wanted.quanta else entry.priority} quantum {quantum}"
        yield f"class replace {on} parent {HANDLE}{_ALL} classid {HANDLE}{entry.level + 1:x} htb {limits} {shared}"
    of_filter = f"{on} parent {HANDLE} protocol ip prio 1"
    kept = {match for match, level in before.filters.items() if wanted.filters.get(match) == level}
    for match in before.filters.keys() - kept:
        yield f"filter del {of_filter} handle 800::{before.handles[match]} u32"
    taken = {int(before.handles[match], 16) for match in kept}
    free = (number for number in count(1) if number not in taken)
    for match, level in wanted.filters.items():
        if match not in kept:
            packets = " ".join(f"match u32 0x{value} 0x{mask} at {at}" for value, mask, at in _MATCH.findall(match))
            flow = f"flowid {HANDLE}{level + 1:x}"
            yield f"filter add {of_filter} handle 800::{next(free):x} u32 {packets} {flow}"
