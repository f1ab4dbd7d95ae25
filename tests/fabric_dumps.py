"""Dumps of invented fabrics, line by line as the format strings of infiniband-diags' ibnetdiscover.c print them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Far = tuple["Device", int, str]


@dataclass(eq=False)
class Device:
    """A switch, adapter or router; ``far`` has by port the device, its port and the speed."""

    kind: str  # "Switch", "Ca" or "Rt"
    guid: int
    description: str
    lid: int
    size: int
    far: dict[int, Far] = field(default_factory=dict)
    system: int | None = None  # what a switch states in front of its GUID
    card: int | None = None  # the system image GUID, if it is not its own

    @property
    def identifier(self) -> str:
        return f"{ {'Switch': 'S', 'Ca': 'H', 'Rt': 'R'}[self.kind] }-{self.guid:016x}"

    def port_guid(self, port: int) -> int:
        return self.guid + port

    def port_lid(self, port: int) -> int:
        return self.lid if self.kind == "Switch" else self.lid + port - 1

    def section(self) -> str:
        lines = ["vendid=0x2c9", "devid=0xd2f2", f"sysimgguid=0x{self.card or self.guid:x}"]
        if self.kind == "Switch":
            lines.append(f"switchguid=0x{self.system or self.guid:x}({self.guid:x})")
            heading = f'"{self.description}" enhanced port 0 lid {self.lid} lmc 0'
        else:
            lines.append(f"{ {'Ca': 'caguid', 'Rt': 'rtguid'}[self.kind] }=0x{self.guid:x}")
            heading = f'"{self.description}"'
        lines.append(f'{self.kind}\t{self.size} "{self.identifier}"\t\t# {heading}')
        lines += [self._port(port, *self.far[port]) for port in sorted(self.far)]
        return "\n".join(lines)

    def _port(self, port: int, to: Device, there: int, speed: str) -> str:
        far = f'{to.identifier}"[{there}]'
        if self.kind == "Switch":
            far += "" if to.kind == "Switch" else f"({to.port_guid(there):x}) "
            return f'[{port}]\t"{far}\t\t# "{to.description}" lid {to.port_lid(there)} {speed}'
        far += "" if to.kind == "Switch" else f" ({to.port_guid(there):x}) "
        own = f"lid {self.port_lid(port)} lmc 0"
        lid = to.port_lid(there)
        return f'[{port}]({self.port_guid(port):x}) \t"{far}\t\t# {own} "{to.description}" lid {lid} {speed}'


def join(one: Device, port: int, other: Device, there: int, speed: str = "4xNDR") -> None:
    """Puts a cable between two ports."""
    one.far[port], other.far[there] = (other, there, speed), (one, port, speed)


def dump(devices: Iterable[Device]) -> str:
    """What the tool prints."""
    head = "#\n# Topology file: generated on Mon Jan  1 00:00:00 2024\n#\n# Initiated from node 1 port 1\n\n"
    return head + "\n\n".join(device.section() for device in devices) + "\n"


def tree(leaves: int, spines: int, hosts: Mapping[int, int], speed: str = "4xNDR") -> list[Device]:
    """A tree of two levels; ``hosts`` has by leaf the number of adapters, each of a host of its own."""
    up = [Device("Switch", 0xB000_0000_0000_0000 + 256 * at, f"spine{at}", 2 + at, leaves) for at in range(spines)]
    down: list[Device] = []
    adapters: list[Device] = []
    for at in range(leaves):
        leaf = Device("Switch", 0xA000_0000_0000_0000 + 256 * at, f"leaf{at}", 1000 + at, hosts[at] + spines)
        for port in range(1, hosts[at] + 1):
            number = len(adapters)
            guid = 0xC000_0000_0000_0000 + 256 * number
            adapters.append(Device("Ca", guid, f"node{number:04} mlx5_0", 2000 + 2 * number, 2))
            join(leaf, port, adapters[-1], 1, speed)
        for number, spine in enumerate(up):
            join(leaf, hosts[at] + 1 + number, spine, at + 1, speed)
        down.append(leaf)
    return [*down, *up, *adapters]
