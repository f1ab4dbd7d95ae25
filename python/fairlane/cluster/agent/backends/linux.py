"""Linux: hierarchical token buckets (HTB) on links that network namespaces stand for, with classes by DSCP.

Each device gets a root qdisc with the handle ``fa1:``, one class with the device's rate, and below it a class for each
level. A u32 filter for each host of a job sends packets with the host's source address, and with the level's DSCP if it
has one, to the class of the job's level. Ranks that have addresses of their own, ``HOST/0``, ``HOST/1`` ..., have
filters of their own. Only namespaces that the configuration names are entered, a device with a root qdisc of somebody
else is refused, and undoing deletes the qdisc with that handle and nothing else.

Only IPv4 is classified. A change replaces classes and filters in place: packets that wait keep their place, and the
next packet of a connection has its new level. Taking all settings back deletes the qdisc, and drops what waits in it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import ClassVar, TypeVar

from pydantic import Field, PrivateAttr, model_validator
from typing_extensions import override

from fairlane.cluster.agent.backends.base import Backend, Surroundings, check_levels
from fairlane.cluster.agent.jobs import Setting, levels_of, weights_of
from fairlane.cluster.agent.system import BackendError, call
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import Bandwidth, Duration
from fairlane.inputs.problems import Problems
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
_SOURCE = re.compile(r"match ([0-9a-f]{8})/ffffffff at 12")
_CLASS = re.compile(r"class htb fa1:([0-9a-f]+) parent fa1:ffff .*?quantum (\d+)")
_MOST_AT_ONCE = 32  # devices that are changed at a time
_Made = TypeVar("_Made")
_QDISC = re.compile(r"qdisc (\S+) (\S+) root ")


class Device(Table):
    """A link whose bandwidth is shared: a device within a network namespace."""

    namespace: str = Field(pattern=r"^[A-Za-z0-9_.-]+$", description="name of the network namespace")
    device: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,15}$", description="name of the device that sends")
    rate: Bandwidth = Field(ge=8000, description="bandwidth of the link")


class LevelClass(Table):
    """Class of service of a service level."""

    level: Level = Field(description="service level")
    share: float = Field(gt=0, le=1, description="share of the rate that it has at least while it has packets")
    priority: int = Field(1, ge=0, le=7, description="of HTB for bandwidth that others leave: 0 is served first")
    dscp: int | None = Field(None, ge=0, le=63, description="mark of its packets; default: all of a job's packets")


class Linux(Backend):
    """Puts jobs' packets into HTB classes on devices inside network namespaces, by source address and DSCP."""

    devices: list[Device] = Field(min_length=1, description="links whose bandwidth is shared")
    levels: list[LevelClass] = Field(min_length=2, description="classes of the default level and of all others")
    addresses: dict[str, IPv4Address] = Field(
        max_length=4094, description="IPv4 address by host; by `HOST/0`, `HOST/1` ... where each rank has its own"
    )
    timeout: Duration = Field(60 * 10**12, gt=0, description="how long a call of tc may take")
    for_connected: ClassVar[bool] = True
    _default: int = PrivateAttr(0)

    @model_validator(mode="after")
    def _each_once(self) -> "Linux":
        if len({entry.level for entry in self.levels}) < len(self.levels):
            raise Problems(Problem("levels", "a level is listed twice", [entry.level for entry in self.levels]))
        if (total := sum(entry.share for entry in self.levels)) > 1 + 1e-9:
            raise Problems(Problem("levels", "the shares are more than the link has", round(total, 3), "at most 1"))
        if len(set(self.addresses.values())) < len(self.addresses):
            raise Problems(Problem("addresses", "two hosts have one address"))
        return self

    @override
    def check(self, surroundings: Surroundings) -> None:
        have = [entry.level for entry in self.levels]
        for level in sorted(surroundings.lanes):
            if level not in have:
                message = "there is no class for this service level"
                raise ScenarioError(Problem("backend.levels", message, level, f"a class for each: have {have}"))
        for host in (name.partition("/")[0] for name in self.addresses):
            if host not in surroundings.hosts:
                known = list(surroundings.hosts)
                raise ScenarioError(Problem.unknown("backend.addresses", "host of the fabric", host, known, host))
        self._on_all()
        self._default = surroundings.default

    @override
    def endpoints(self, host: str, ranks: int) -> Sequence[str]:
        names = [f"{host}/{number}" for number in range(ranks)]
        return names if all(name in self.addresses for name in names) else (host,)

    @property
    @override
    def sets_weights(self) -> bool:
        return True

    @override
    def save(self) -> str:
        return json.dumps({_name(device): [state.levels, state.weights] for device, state in self._on_all()})

    @override
    def write(self, settings: Sequence[Setting]) -> None:
        levels, weights = levels_of(settings), weights_of(settings)
        self._check_levels(levels)
        quanta = self._quanta(weights) if weights else {}
        self._each(lambda device: self._set(device, levels, quanta))

    @override
    def in_force(self) -> dict[str, int]:
        return _agreed(self._on_all())

    @override
    def verify(self, settings: Sequence[Setting]) -> None:
        every, weights = self._on_all(), weights_of(settings)
        check_levels(settings, _agreed(every))
        quanta = self._quanta(weights) if weights else {}
        for device, state in every:
            if state.weights != quanta:
                raise BackendError(f"{_name(device)}: quanta {quanta} were written and {state.weights} are in force")

    @override
    def restore(self, saved: str) -> None:
        before = json.loads(saved)
        for levels, _ in before.values():
            self._check_levels(levels)

        def bring_back(device: Device) -> None:
            levels, quanta = before.get(_name(device), ({}, {}))
            self._set(device, levels, {int(level): quantum for level, quantum in quanta.items()})

        self._each(bring_back)

    def _quanta(self, weights: Mapping[int, float]) -> dict[int, int]:
        """Bytes of each level per round: in proportion to the weights."""
        relative = {entry.level: weights.get(entry.level, 1.0) for entry in self.levels}
        least = min(relative.values())
        return {level: round(_WEIGHTED * weight / least) for level, weight in relative.items()}

    def _check_levels(self, levels: dict[str, int]) -> None:
        """Raises ``BackendError`` for a host or a level that the configuration does not have, or has no more."""
        known = [entry.level for entry in self.levels]
        for host, level in levels.items():
            if host not in self.addresses:
                raise BackendError(f"backend.addresses: has no address of host {host}")
            if level not in known:
                raise BackendError(f"backend.levels: has no class for level {level} of host {host}")

    def _tc(self, device: Device, lines: Iterable[str]) -> str:
        """Run commands of tc in the namespace of a device; return its output."""
        command = ["tc", "-n", device.namespace, "-d", "-batch", "-"]
        return call(command, self.timeout * 1e-12, BackendError, "".join(f"{line}\n" for line in lines))

    def _on_all(self) -> list[tuple[Device, "_Found"]]:
        return list(zip(self.devices, self._each(self._on), strict=True))

    def _each(self, work: "Callable[[Device], _Made]") -> "list[_Made]":
        """The same on all devices at a time; raises the error of the first that fails when all have ended."""
        with ThreadPoolExecutor(min(len(self.devices), _MOST_AT_ONCE)) as pool:
            return [future.result() for future in [pool.submit(work, device) for device in self.devices]]

    def _on(self, device: Device) -> "_Found":
        """Return the agent's state on a device; raises ``BackendError`` if the root qdisc is of somebody else."""
        on = f"dev {device.device}"
        text = self._tc(device, (f"qdisc show {on}", f"class show {on}", f"filter show {on}"))
        roots = _QDISC.findall(text)
        if ("htb", HANDLE) not in roots:
            if other := next((root for root in roots if root[0] not in _FREE), None):
                message = f"device {device.device} of namespace {device.namespace} has a root qdisc already"
                raise BackendError(f"{message}: {' '.join(other)}; remove it, or name another device")
            return _Found()
        hosts = {int(address): host for host, address in self.addresses.items()}
        levels, handles = {}, {}
        for handle, number, matches in _FILTER.findall(text):
            source = _SOURCE.search(matches)
            if source is not None and (host := hosts.get(int(source[1], 16))):
                levels[host], handles[host] = int(number, 16) - 1, handle
        quanta = {int(number, 16) - 1: int(quantum) for number, quantum in _CLASS.findall(text)}
        weights = quanta if min(quanta.values(), default=0) == _WEIGHTED else {}
        return _Found(levels, weights, handles, is_there=True)

    def _set(self, device: Device, levels: dict[str, int], quanta: Mapping[int, int]) -> None:
        """Makes the device serve exactly these hosts' levels; nothing is left of the agent where there are none."""
        state = self._on(device)
        if not levels and not quanta:
            if state.is_there:
                self._tc(device, [f"qdisc del dev {device.device} root handle {HANDLE}"])
            return
        self._tc(device, self._batch(device, levels, quanta, state))

    def _batch(
        self, device: Device, levels: dict[str, int], quanta: Mapping[int, int], state: "_Found"
    ) -> Iterator[str]:
        """Yield the commands of tc that turn the state of a device into the wanted one."""
        on, rate = f"dev {device.device}", f"{device.rate}bit"
        if not state.is_there:
            yield f"qdisc add {on} root handle {HANDLE} htb default {self._default + 1:x} r2q 10"
        ceil = f"rate {rate} ceil {rate} quantum {_QUANTUM}"
        yield f"class replace {on} parent {HANDLE} classid {HANDLE}{_ALL} htb {ceil}"
        least = min(entry.share for entry in self.levels)
        for entry in self.levels:
            share = min(_LEAST_SHARE, entry.share) if quanta else entry.share
            limits = f"rate {max(8, int(device.rate * share))}bit ceil {rate}"
            quantum = quanta.get(entry.level) or round(_QUANTUM * entry.share / least)
            shared = f"prio {0 if quanta else entry.priority} quantum {quantum}"
            yield f"class replace {on} parent {HANDLE}{_ALL} classid {HANDLE}{entry.level + 1:x} htb {limits} {shared}"
        marks = {entry.level: entry.dscp for entry in self.levels}
        of_filter = f"{on} parent {HANDLE} protocol ip prio 1"
        for host, handle in state.handles.items():
            if levels.get(host) != state.levels[host]:
                yield f"filter del {of_filter} handle 800::{handle} u32"
        for number, host in enumerate(self.addresses, 1):
            if host not in levels or levels[host] == state.levels.get(host):
                continue
            mark = marks[levels[host]]
            tos = "" if mark is None else f" match ip tos {mark << 2:#x} 0xfc"
            source = f"match ip src {self.addresses[host]}/32"
            flow = f"flowid {HANDLE}{levels[host] + 1:x}"
            yield f"filter add {of_filter} handle 800::{number:x} u32 {source}{tos} {flow}"


@dataclass(frozen=True)
class _Found:
    """State of a device as far as it is the agent's."""

    levels: dict[str, int] = field(default_factory=dict)
    """Level by host with a filter."""
    weights: dict[int, int] = field(default_factory=dict)
    """Bytes per round of each level; empty where levels have the configured shares."""
    handles: dict[str, str] = field(default_factory=dict)
    """Number of the filter by host."""
    is_there: bool = False
    """Whether the device has the agent's qdisc."""


def _agreed(every: Iterable[tuple[Device, _Found]]) -> dict[str, int]:
    """Level by host; -1 where devices disagree, as a change that was interrupted is on some of them only."""
    levels = [state.levels for _, state in every]
    hosts = {host: level for by_host in levels for host, level in by_host.items()}
    return {
        host: level if all(by_host.get(host) == level for by_host in levels) else -1 for host, level in hosts.items()
    }


def _name(device: Device) -> str:
    return f"{device.namespace}/{device.device}"
