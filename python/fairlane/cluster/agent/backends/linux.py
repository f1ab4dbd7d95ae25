"""Linux: hierarchical token buckets (HTB) on devices of switches that network namespaces stand for.

Without ``marks`` the devices tell packets by source address: each has a filter for each host of a job, which sends
packets with the host's address, and with the level's DSCP if it has one, to the class of the job's level. Ranks that
have addresses of their own, ``HOST/0``, ``HOST/1`` ..., have filters of their own.

With ``marks`` the senders set the DSCP, by rules of nftables on each host, and the devices only have a filter for the
DSCP of each level: a change of levels is written on the hosts that it is about. Packets of other addresses keep the
DSCP that their programs give them, and are served by it. Ranks that share an address share a level. Take all settings
back before you remove ``marks`` or a host: the marks of hosts that the configuration does not have stay. So do those of
a host that does not answer, until it does.

Only namespaces that the configuration names are entered, a device with a root qdisc of somebody else and a table of
somebody else are refused, and undoing deletes the qdisc with the agent's handle, its table, and nothing else.

Only IPv4 is classified. A change replaces classes and filters in place: packets that wait keep their place, and the
next packet of a connection has its new level. Taking all settings back deletes the qdisc, and drops what waits in it.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from ipaddress import IPv4Address
from typing import Any, ClassVar, Self

from pydantic import Field, PrivateAttr, model_validator
from typing_extensions import override

from fairlane.cluster.agent.backends import htb, nft
from fairlane.cluster.agent.backends.base import Backend, Surroundings, check_levels
from fairlane.cluster.agent.backends.htb import Device, LevelClass, Shaping
from fairlane.cluster.agent.backends.nft import Marks
from fairlane.cluster.agent.backends.places import Places
from fairlane.cluster.agent.jobs import Setting, levels_of, weights_of
from fairlane.cluster.agent.system import BackendError, call
from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.core.units import Duration
from fairlane.inputs.problems import Problems


class Linux(Backend):
    """Puts jobs' packets into HTB classes on devices inside network namespaces, by source address or by DSCP."""

    devices: list[Device] = Field(min_length=1, description="links whose bandwidth is shared")
    levels: list[LevelClass] = Field(min_length=2, description="classes of the default level and of all others")
    addresses: dict[str, IPv4Address] = Field(
        max_length=4094, description="IPv4 address by host; by `HOST/0`, `HOST/1` ... where each rank has its own"
    )
    marks: list[str] | None = Field(
        None,
        min_length=1,
        description='command that runs nft on a host, as `["ssh", "{host}", "nft"]`: hosts then mark packets with the '
        "DSCP of their levels, and devices classify by DSCP only; default: devices classify by source address",
    )
    timeout: Duration = Field(60 * 10**12, gt=0, description="how long a call of tc or nft may take")
    for_connected: ClassVar[bool] = True
    _default: int = PrivateAttr(0)
    _devices: Places[Shaping] = PrivateAttr()
    _senders: Places[Marks] = PrivateAttr()
    _configured: bool = PrivateAttr(False)  # whether this process has written the classes of its configuration

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len({entry.level for entry in self.levels}) < len(self.levels):
            raise Problems(Problem("levels", "a level is listed twice", [entry.level for entry in self.levels]))
        if (total := sum(entry.share for entry in self.levels)) > 1 + 1e-9:
            raise Problems(Problem("levels", "the shares are more than the link has", round(total, 3), "at most 1"))
        if len(set(self.addresses.values())) < len(self.addresses):
            raise Problems(Problem("addresses", "two hosts have one address"))
        if self.marks is not None and (problems := list(_without_mark(self.marks, self.levels))):
            raise Problems(*problems)
        return self

    @override
    def model_post_init(self, context: object, /) -> None:
        devices = {device.place: device for device in self.devices}
        self._devices = Places(devices, lambda name: self._read(devices[name]), partial(self._shape, devices))
        hosts = dict.fromkeys(map(_host, self.addresses)) if self.marks else ()
        self._senders = Places(hosts, self._marks_on, self._mark)

    @override
    def check(self, surroundings: Surroundings) -> None:
        have = [entry.level for entry in self.levels]
        for level in sorted(surroundings.lanes):
            if level not in have:
                message = "there is no class for this service level"
                raise ScenarioError(Problem("backend.levels", message, level, f"a class for each: have {have}"))
        for host in map(_host, self.addresses):
            if host not in surroundings.hosts:
                known = list(surroundings.hosts)
                raise ScenarioError(Problem.unknown("backend.addresses", "host of the fabric", host, known, host))
        self._read_anew()
        self._default = surroundings.default

    @override
    def endpoints(self, host: str, ranks: int) -> Sequence[str]:
        names = [f"{host}/{number}" for number in range(ranks)]
        return names if all(name in self.addresses for name in names) else (host,)

    @property
    @override
    def sets_weights(self) -> bool:
        return True

    @property
    @override
    def absent(self) -> Mapping[str, FairlaneError]:
        return self._senders.absent.errors

    @override
    def save(self) -> str:
        devices = self._devices.states(anew=self.marks is None)
        shapes = {name: [state.filters, state.quanta, state.is_there] for name, state in devices.items()}
        return json.dumps({"devices": shapes, "marks": self._senders.states()})

    @override
    def write(self, settings: Sequence[Setting]) -> None:
        levels = levels_of(settings)
        self._check_levels(levels)
        self._write(dict.fromkeys(self._devices.names, self._wanted(settings)), self._marks_of(levels))

    @override
    def in_force(self) -> dict[str, int]:
        self._read_anew()
        return self._levels()

    @override
    def verify(self, settings: Sequence[Setting]) -> None:
        check_levels(settings, self._levels())
        wanted = self._wanted(settings)
        for name, state in self._devices.states().items():
            if state.quanta != wanted.quanta:
                message = f"quanta {wanted.quanta} were written and {state.quanta} are in force"
                raise BackendError(f"{name}: {message}")
            if state != wanted:
                raise BackendError(f"{name}: filters or classes are not those that were written")

    @override
    def restore(self, saved: str) -> None:
        before: dict[str, dict[str, Any]] = json.loads(saved)
        devices = dict.fromkeys(self._devices.names, Shaping())
        for name, (filters, quanta, is_there) in before["devices"].items():
            for match, level in filters.items():
                self._check_level(level, match)
            devices[name] = Shaping(filters, {int(level): quantum for level, quantum in quanta.items()}, is_there)
        senders: dict[str, Marks] = {host: {} for host in self._senders.names}
        for host, marked in before["marks"].items():
            if marked and host not in senders:
                raise BackendError(f"backend.addresses: has no address of host {host}, which has marks")
            senders[host] = marked
        self._read_anew()
        self._write(devices, senders, restoring=True)

    def _wanted(self, settings: Sequence[Setting]) -> Shaping:
        """The state of each device."""
        levels, quanta = levels_of(settings), htb.quanta_of(self.levels, weights_of(settings))
        if not levels and not quanta:
            return Shaping()
        if self.marks is not None:
            return Shaping(self._by_mark(), quanta, is_there=True)
        dscp = {entry.level: entry.dscp for entry in self.levels}
        filters = {}
        for name in (name for name in self.addresses if name in levels):
            mark, match = dscp[levels[name]], htb.source(int(self.addresses[name]))
            filters[match if mark is None else f"{match} and {htb.mark(mark)}"] = levels[name]
        return Shaping(filters, quanta, is_there=True)

    def _by_mark(self) -> dict[str, int]:
        """The filters of devices where senders mark."""
        return {htb.mark(entry.dscp): entry.level for entry in self.levels if entry.dscp is not None}

    def _marks_of(self, levels: Mapping[str, int]) -> dict[str, Marks]:
        """The marks of each host: of its addresses that have a level."""
        dscp = {entry.level: entry.dscp or 0 for entry in self.levels}
        wanted: dict[str, Marks] = {host: {} for host in self._senders.names}
        for name, level in levels.items() if wanted else ():
            wanted[_host(name)][str(self.addresses[name])] = dscp[level]
        return wanted

    def _levels(self) -> dict[str, int]:
        """Level by endpoint, as last read; -1 where devices disagree or cannot tell, as after half a change."""
        shapes = list(self._devices.states().values())
        if self.marks is None:
            hosts = {int(address): name for name, address in self.addresses.items()}
            every = [
                {hosts[at]: level for match, level in shape.filters.items() if (at := htb.source_of(match)) in hosts}
                for shape in shapes
            ]
            return _agreed(every)
        names = {(_host(name), str(address)): name for name, address in self.addresses.items()}
        levels = {entry.dscp: entry.level for entry in self.levels}
        told = all(shape.is_there and shape.filters == self._by_mark() for shape in shapes)
        return {
            names.get((host, address), f"{host}/{address}"): levels.get(dscp, -1) if told else -1
            for host, marked in self._senders.states().items()
            for address, dscp in marked.items()
        }

    def _read_anew(self) -> None:
        self._devices.states(anew=True)
        self._senders.states(anew=True)

    def _write(self, devices: Mapping[str, Shaping], senders: Mapping[str, Marks], *, restoring: bool = False) -> None:
        """Classes are there before packets have marks, and as long as any have."""
        every = not self._configured
        if any(state.is_there for state in devices.values()):
            self._devices.write(devices, all=every)
            self._senders.write(senders, restoring=restoring)
        else:
            self._senders.write(senders, restoring=restoring)
            self._devices.write(devices, all=every)
        self._configured = True

    def _check_levels(self, levels: Mapping[str, int]) -> None:
        """Raises ``BackendError`` for an endpoint or a level that the configuration does not have, or has no more."""
        for name, level in levels.items():
            if name not in self.addresses:
                raise BackendError(f"backend.addresses: has no address of host {name}")
            self._check_level(level, f"host {name}")

    def _check_level(self, level: int, of: str) -> None:
        if level not in [entry.level for entry in self.levels]:
            raise BackendError(f"backend.levels: has no class for level {level} of {of}")

    def _tc(self, device: Device, lines: Iterable[str]) -> str:
        """Run commands of tc in the namespace of a device; return its output."""
        command = ["tc", "-n", device.namespace, "-d", "-batch", "-"]
        return call(command, self.timeout * 1e-12, BackendError, "".join(f"{line}\n" for line in lines))

    def _read(self, device: Device) -> Shaping:
        return htb.read(device, partial(self._tc, device))

    def _shape(self, devices: Mapping[str, Device], name: str, before: Shaping, wanted: Shaping) -> None:
        lines = list(htb.commands(devices[name], self.levels, self._default, before, wanted))
        if lines:
            self._tc(devices[name], lines)

    def _nft(self, host: str) -> list[str]:
        return [word.replace("{host}", host) for word in self.marks or ()]

    def _marks_on(self, host: str) -> Marks:
        return nft.read(self._nft(host), self.timeout * 1e-12)

    def _mark(self, host: str, before: Marks, wanted: Marks) -> None:
        nft.write(self._nft(host), self.timeout * 1e-12, before, wanted)


def _without_mark(command: Sequence[str], levels: Sequence[LevelClass]) -> Iterable[Problem]:
    """What senders cannot mark by."""
    if not any("{host}" in word for word in command):
        yield Problem("marks", "is the same command for every host", list(command), "a command with {host}")
    seen: dict[int, int] = {}
    for at, entry in enumerate(levels):
        allowed = "0 to 63, another one for each level"
        if entry.dscp is None:
            yield Problem(f"levels[{at}].dscp", "missing, and packets are classified by it", allowed=allowed)
        elif entry.dscp in seen:
            yield Problem(f"levels[{at}].dscp", f"level {seen[entry.dscp]} has it too", entry.dscp, allowed)
        else:
            seen[entry.dscp] = entry.level


def _host(endpoint: str) -> str:
    return endpoint.partition("/")[0]


def _agreed(every: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Level by host; -1 where devices disagree, as a change that was interrupted is on some of them only."""
    levels = {host: level for by_host in every for host, level in by_host.items()}
    return {
        host: level if all(by_host.get(host) == level for by_host in every) else -1 for host, level in levels.items()
    }
