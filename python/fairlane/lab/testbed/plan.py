"""Parts of a testbed on the machine: names of namespaces, devices, addresses, and the commands that make them.

Each host, switch and trunk is a network namespace whose name begins with ``fairlane-testbed-``; devices are made inside
of them. A switch is a bridge. A trunk is a bridge in a namespace of its own whose two devices are shaped, so that the
devices of the switches have no queueing discipline: that place is the agent's. Besides its cable every host has one to
a control network, over which Open MPI starts processes, and which is not shaped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from fairlane.cluster.agent.backends.htb import Device

if TYPE_CHECKING:
    from fairlane.lab.testbed.file import FabricTable, Link

PREFIX = "fairlane-testbed-"
"""With what the names of all namespaces of testbeds begin."""
CONTROL = f"{PREFIX}control"
"""The namespace of the control network, in which ``mpirun`` runs."""
DATA_NETWORK, CONTROL_NETWORK = "10.77.0.0/16", "10.78.0.0/16"
"""Addresses of the hosts on the measured network, and on that over which Open MPI starts processes."""
ETHERNET = 14
"""Bytes of an Ethernet frame besides its payload, as queueing disciplines count them."""
TCP_IP = 52
"""Bytes of the headers of IP, and of TCP with timestamps."""
_BURST_S = 1e-3
"""For how long a shaped device may be late without losing throughput: timers of a busy machine are that late. It can
send as much at once when it was idle."""
_RTO_MIN = "2s"
"""The shortest time after which TCP sends again: with the kernel's 200 ms it would send what waits in a queue twice."""
# Tail loss probes and recovery by time (RACK) would send again what only waits in a queue, as a short RTO would.
_SYSCTLS = (
    "net.ipv6.conf.all.disable_ipv6=1",
    "net.ipv6.conf.default.disable_ipv6=1",
    "net.ipv4.tcp_slow_start_after_idle=0",
    "net.ipv4.tcp_no_metrics_save=1",
    "net.ipv4.tcp_early_retrans=0",
    "net.ipv4.tcp_recovery=0",
    "net.ipv4.tcp_rmem=4096,2097152,6291456",
)


@dataclass(frozen=True)
class Plan:
    """A testbed as namespaces and devices."""

    fabric: "FabricTable"

    def host(self, name: str) -> str:
        """The namespace of a host."""
        return f"{PREFIX}host-{name}"

    def switch(self, name: str) -> str:
        """The namespace of a switch."""
        return f"{PREFIX}switch-{name}"

    @property
    def namespaces(self) -> list[str]:
        """All namespaces."""
        hosts = [self.host(name) for name in self.fabric.hosts]
        switches = [self.switch(switch_table.name) for switch_table in self.fabric.switches]
        return [CONTROL, *switches, *(_trunk(at) for at in range(len(self.fabric.trunks))), *hosts]

    @property
    def addresses(self) -> dict[str, IPv4Address]:
        """Address of each host on the measured network."""
        first = IPv4Address(DATA_NETWORK.partition("/")[0])
        return {name: first + 257 + at for at, name in enumerate(self.fabric.hosts)}

    @property
    def trunk_devices(self) -> list[Device]:
        """The devices of switches on trunks: both ends of each."""
        return [
            Device(namespace=self.switch(name), device=f"trunk{at}", rate=f"{trunk.rate} b/s")
            for at, trunk in enumerate(self.fabric.trunks)
            for name in trunk.between
        ]

    @property
    def marks(self) -> list[str]:
        """Command of nft on ``{host}``."""
        return ["nsenter", f"--net=/run/netns/{self.host('{host}')}", "nft"]

    def links(self) -> list[tuple[str, list[str]]]:
        """For each namespace commands of ``ip``, in the order in which they have to be executed."""
        return [(CONTROL, _bridge("ctl0")), *self._switches(), *self._trunks(), *self._hosts()]

    def shaping(self) -> list[tuple[str, list[str]]]:
        """For each namespace commands of ``tc``."""
        commands_by_namespace = []
        for switch in self.fabric.switches:
            ports = [self._shape(f"port{at}", self.fabric.host_link) for at in self._numbers(switch.hosts)]
            commands_by_namespace.append((self.switch(switch.name), ports))
        for at, trunk in enumerate(self.fabric.trunks):
            commands_by_namespace.append((_trunk(at), [self._shape("left", trunk), self._shape("right", trunk)]))
        commands_by_namespace += [
            (self.host(name), [self._shape("eth0", self.fabric.host_link)]) for name in self.fabric.hosts
        ]
        return [(namespace, commands) for namespace, commands in commands_by_namespace if commands]

    @property
    def sysctls(self) -> tuple[str, ...]:
        """Settings of each namespace."""
        return (*_SYSCTLS, f"net.ipv4.tcp_congestion_control={self.fabric.congestion_control}")

    def _route(self, host: str) -> str:
        """Sets what a host's connections begin with: no retransmission of what only queues, and a fixed window."""
        route = f"route change {DATA_NETWORK} dev eth0 proto kernel scope link src {self.addresses[host]}"
        options = f"rto_min {_RTO_MIN}"
        if self.fabric.window != "auto":
            segments = max(2, self.fabric.window // (self.fabric.mtu - TCP_IP))
            options += f" initcwnd {segments} initrwnd {segments} cwnd lock {segments}"
        return f"{route} {options}"

    def _cable(self, device: str, other: str, namespace: str) -> list[str]:
        """A pair of devices between two namespaces. Without segmentation offload packets are those of a cable."""
        end = f"gso_max_segs 1 mtu {self.fabric.mtu}"
        return [f"link add {device} {end} type veth peer name {other} {end} netns {namespace}"]

    def _shape(self, device: str, link: "Link") -> str:
        burst = self.fabric.mtu + ETHERNET + round(link.rate * _BURST_S / 8)
        return f"qdisc add dev {device} root handle 1: tbf rate {link.rate}bit burst {burst} limit {link.queue}"

    def _numbers(self, names: tuple[str, ...]) -> list[int]:
        return [self.fabric.hosts.index(name) for name in names]

    def _switches(self) -> Iterator[tuple[str, list[str]]]:
        for switch in self.fabric.switches:
            yield self.switch(switch.name), _bridge("br0")

    def _trunks(self) -> Iterator[tuple[str, list[str]]]:
        for at, trunk in enumerate(self.fabric.trunks):
            yield _trunk(at), _bridge("br0")
            for end, name in zip(("left", "right"), trunk.between, strict=True):
                yield self.switch(name), [*self._cable(f"trunk{at}", end, _trunk(at)), *_up(f"trunk{at}", "br0")]
                yield _trunk(at), _up(end, "br0")

    def _hosts(self) -> Iterator[tuple[str, list[str]]]:
        control = IPv4Address(CONTROL_NETWORK.partition("/")[0]) + 257
        yield CONTROL, [f"addr add {control - 256}/16 dev ctl0"]
        for switch in self.fabric.switches:
            for at, name in zip(self._numbers(switch.hosts), switch.hosts, strict=True):
                yield (
                    self.host(name),
                    [
                        *self._cable("eth0", f"port{at}", self.switch(switch.name)),
                        *self._cable("ctl0", f"host{at}", CONTROL),
                        f"addr add {self.addresses[name]}/16 dev eth0",
                        f"addr add {control + at}/16 dev ctl0",
                        *(f"link set {device} up" for device in ("lo", "eth0", "ctl0")),
                        self._route(name),
                    ],
                )
                yield self.switch(switch.name), _up(f"port{at}", "br0")
                yield CONTROL, _up(f"host{at}", "ctl0")


def _trunk(at: int) -> str:
    return f"{PREFIX}trunk-{at}"


def _bridge(name: str) -> list[str]:
    return [f"link add {name} type bridge", f"link set {name} up", "link set lo up"]


def _up(device: str, bridge: str) -> list[str]:
    return [f"link set {device} master {bridge}", f"link set {device} up"]
