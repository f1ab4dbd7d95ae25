"""Linux: hierarchical token buckets (HTB) on links that network namespaces stand for, with classes by DSCP.

Each device gets a root qdisc with the handle ``fa1:``, one class with the device's rate, and below it a class for the
default level and one for each level in use. A u32 filter for each host of a job sends packets with the host's source
address, and with the level's DSCP if it has one, to the class of the job's level. Only namespaces that the
configuration names are entered, a device with a root qdisc of somebody else is refused, and undoing deletes the qdisc
with that handle and nothing else.

Only IPv4 is classified. While settings change, packets that wait in the qdisc are dropped with it.
"""

import json
import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address

from pydantic import Field, PrivateAttr, model_validator
from typing_extensions import override

from fairlane.agent.backends.base import Backend, Surroundings
from fairlane.agent.commands import call
from fairlane.agent.errors import BackendError
from fairlane.agent.jobs import Setting, levels_of
from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.scenario.levels import Level
from fairlane.units import Bandwidth, Duration

HANDLE = "fa1:"
"""The handle of the agent's qdiscs."""
_ALL = "ffff"  # the class of the whole device
_FREE = ("noqueue", "pfifo_fast", "fq_codel", "mq", "fq", "pfifo")  # root qdiscs that the kernel gives by itself
_QUANTUM = 1514  # bytes of the smallest quantum, an Ethernet frame
_FILTER = re.compile(r"flowid fa1:([0-9a-f]+)[^\n]*\n((?:\s+match [^\n]*\n?)+)")
_SOURCE = re.compile(r"match ([0-9a-f]{8})/ffffffff at 12")


class Device(Table):
    """A link whose bandwidth is shared: a device within a network namespace."""

    namespace: str = Field(pattern=r"^[A-Za-z0-9_.-]+$", description="name of the network namespace")
    device: str = Field(pattern=r"^[A-Za-z0-9_.-]{1,15}$", description="name of the device that sends")
    rate: Bandwidth = Field(ge=8000, description="bandwidth of the link")


class LevelClass(Table):
    """How a service level is served."""

    level: Level = Field(description="service level")
    share: float = Field(gt=0, le=1, description="share of the rate that it has at least while it has packets")
    priority: int = Field(1, ge=0, le=7, description="of HTB for bandwidth that others leave: 0 is served first")
    dscp: int | None = Field(None, ge=0, le=63, description="mark of its packets; default: all of a job's packets")


class Linux(Backend):
    """Puts jobs' packets into HTB classes on devices inside network namespaces, by source address and DSCP."""

    devices: list[Device] = Field(min_length=1, description="links whose bandwidth is shared")
    levels: list[LevelClass] = Field(min_length=2, description="classes of the default level and of all others")
    addresses: dict[str, IPv4Address] = Field(description="IPv4 address by host")
    timeout: Duration = Field(60 * 10**12, gt=0, description="how long a call of tc may take")
    _default: int = PrivateAttr(0)

    @model_validator(mode="after")
    def _each_once(self) -> "Linux":
        if len({one.level for one in self.levels}) < len(self.levels):
            raise Problems(Problem("levels", "a level is listed twice", [one.level for one in self.levels]))
        if (total := sum(one.share for one in self.levels)) > 1 + 1e-9:
            raise Problems(Problem("levels", "the shares are more than the link has", round(total, 3), "at most 1"))
        if len(set(self.addresses.values())) < len(self.addresses):
            raise Problems(Problem("addresses", "two hosts have one address"))
        return self

    @override
    def check(self, surroundings: Surroundings) -> None:
        have = [one.level for one in self.levels]
        for level in sorted(surroundings.lanes):
            if level not in have:
                words = "there is no class for this service level"
                raise ScenarioError(Problem("backend.levels", words, level, f"a class for each: have {have}"))
        for host in self.addresses:
            if host not in surroundings.hosts:
                known = list(surroundings.hosts)
                raise ScenarioError(Problem.unknown("backend.addresses", "host of the fabric", host, known, host))
        for device in self.devices:
            self._is_ours(device)
        self._default = surroundings.default

    @override
    def save(self) -> str:
        return json.dumps({f"{one.namespace}/{one.device}": self._levels_on(one) for one in self.devices})

    @override
    def write(self, settings: Sequence[Setting]) -> None:
        levels = levels_of(settings)
        self._check_levels(levels)
        for device in self.devices:
            self._set(device, levels)

    @override
    def in_force(self) -> dict[str, int]:
        every = [self._levels_on(one) for one in self.devices]
        found = {host: level for levels in every for host, level in levels.items()}
        # A host counts only where all devices agree: a change that was interrupted is on some of them.
        return {host: level if all(one.get(host) == level for one in every) else -1 for host, level in found.items()}

    @override
    def restore(self, saved: str) -> None:
        before = json.loads(saved)
        for levels in before.values():
            self._check_levels(levels)
        for device in self.devices:
            self._set(device, before.get(f"{device.namespace}/{device.device}", {}))

    def _check_levels(self, levels: dict[str, int]) -> None:
        """Raises ``BackendError`` for a host or a level that the configuration does not have, or has no more."""
        known = [one.level for one in self.levels]
        for host, level in levels.items():
            if host not in self.addresses:
                raise BackendError(f"backend.addresses: has no address of host {host}")
            if level not in known:
                raise BackendError(f"backend.levels: has no class for level {level} of host {host}")

    def _tc(self, device: Device, *arguments: str, given: str | None = None) -> str:
        command = ["ip", "netns", "exec", device.namespace, "tc", *arguments]
        return call(command, self.timeout * 1e-12, BackendError, given)

    def _is_ours(self, device: Device) -> bool:
        """Whether the device has the agent's qdisc; raises ``BackendError`` if it has one of somebody else."""
        text = self._tc(device, "-j", "qdisc", "show", "dev", device.device)
        roots = [one for one in json.loads(text or "[]") if one.get("root")]
        if any(one["kind"] == "htb" and one["handle"] == HANDLE for one in roots):
            return True
        if other := next((one for one in roots if one["kind"] not in _FREE), None):
            words = f"device {device.device} of namespace {device.namespace} has a root qdisc already"
            raise BackendError(f"{words}: {other['kind']} {other['handle']}; remove it, or name another device")
        return False

    def _set(self, device: Device, levels: dict[str, int]) -> None:
        """Makes the device serve exactly these hosts' levels; nothing is left of the agent where there are none."""
        if self._is_ours(device):
            self._tc(device, "qdisc", "del", "dev", device.device, "root", "handle", HANDLE)
        if levels:
            self._tc(device, "-batch", "-", given="".join(f"{line}\n" for line in self._batch(device, levels)))

    def _batch(self, device: Device, levels: dict[str, int]) -> Iterator[str]:
        """What tc has to do on a device without the agent's qdisc."""
        on, rate = f"dev {device.device}", f"{device.rate}bit"
        yield f"qdisc add {on} root handle {HANDLE} htb default {self._default + 1:x} r2q 10"
        yield f"class add {on} parent {HANDLE} classid {HANDLE}{_ALL} htb rate {rate} ceil {rate} quantum {_QUANTUM}"
        least = min(one.share for one in self.levels)
        for one in self.levels:
            own = f"rate {max(8, int(device.rate * one.share))}bit ceil {rate}"
            shared = f"prio {one.priority} quantum {round(_QUANTUM * one.share / least)}"
            yield f"class add {on} parent {HANDLE}{_ALL} classid {HANDLE}{one.level + 1:x} htb {own} {shared}"
        marks = {one.level: one.dscp for one in self.levels}
        for host, level in sorted(levels.items()):
            mark = "" if marks[level] is None else f" match ip tos {(marks[level] or 0) << 2:#x} 0xfc"
            source = f"match ip src {self.addresses[host]}/32"
            yield f"filter add {on} parent {HANDLE} protocol ip prio 1 u32 {source}{mark} flowid {HANDLE}{level + 1:x}"

    def _levels_on(self, device: Device) -> dict[str, int]:
        """The level of every host that has a filter of the agent on this device."""
        if not self._is_ours(device):
            return {}
        hosts = {int(address): host for host, address in self.addresses.items()}
        text = self._tc(device, "filter", "show", "dev", device.device, "parent", HANDLE)
        found = {}
        for number, matches in _FILTER.findall(text):
            source = _SOURCE.search(matches)
            if source is not None and (host := hosts.get(int(source[1], 16))):
                found[host] = int(number, 16) - 1
        return found
