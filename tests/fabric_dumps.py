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


_PER_LANE = {"SDR": "2.5", "QDR": "10.0", "FDR": "14.0625", "EDR": "25.78125", "HDR": "53.125", "NDR": "106.25"}


def ports_report(devices: Iterable[Device]) -> str:
    """What ``ibnetdiscover -p`` prints: ports from the last to the first, also those without a cable."""
    short = {"Switch": "SW", "Ca": "CA", "Rt": "RT"}
    lines = []
    for device in devices:
        for port in range(device.size, 0, -1):
            here = f"{short[device.kind]:>2} {device.port_lid(port):5} {port:2} 0x{device.guid:016x}"
            if port not in device.far:
                lines.append(f"{here} 4x ???{'':36}'{device.description}'")
                continue
            to, there, speed = device.far[port]
            width, _, rate = speed.partition("x")
            far = f"{short[to.kind]:>2} {to.port_lid(there):5} {there:2} 0x{to.guid:016x}"
            lines.append(f"{here} {width}x {rate} - {far} ( '{device.description}' - '{to.description}' )")
    return "\n".join(lines) + "\n"


def link_report(devices: Iterable[Device], *, line_mode: bool = False) -> str:
    """What ``iblinkinfo`` prints, by node or with ``-l``."""
    lines = []
    for device in devices:
        is_switch = device.kind == "Switch"
        if not line_mode:
            name = {"Switch": f"Switch: 0x{device.guid:016x}", "Ca": "CA:", "Rt": "Router:"}[device.kind]
            lines.append(f"{name} {device.description}:")
        for port in range(1, device.size + 1):
            guid = device.guid if is_switch else device.port_guid(port)
            here = f'0x{guid:016x} "{device.description:>30}" ' if line_mode else "      "
            here += f"0x{guid:016x} " if not is_switch and not line_mode else ""
            state, far = "              {:>6}/{:>8}".format("Down", "Polling"), '           [  ] "" ( )'
            if port in device.far:
                to, there, speed = device.far[port]
                width, _, rate = speed.partition("x")
                state = "{:>3} {:>18} {:>6}/{:>8}".format(f"{width}X", f"{_PER_LANE[rate]} Gbps", "Active", "LinkUp")
                there_guid = to.guid if to.kind == "Switch" else to.port_guid(there)
                far = f"0x{there_guid:016x} " if line_mode else ""
                far += f'{to.port_lid(there):6} {there:4}[  ] "{to.description}" ( )'
            lines.append(f"{here}{device.port_lid(port):6} {port:4}[  ] ==({state})==>  {far}")
    return "\n".join(lines) + "\n"


def ndt(devices: Iterable[Device], *, both_ends: bool, header: str = "StartDevice,StartPort,EndDevice,EndPort") -> str:
    """A topology file of UFM: a row for each cable, or for either end; ports as UFM labels them."""
    rows = [header + ",State,Domain"]
    blank = "," * header.split("StartDevice", maxsplit=1)[0].count(",")
    for device in devices:
        for port, (to, there, _) in sorted(device.far.items()):
            if both_ends or (device.guid, port) < (to.guid, there):
                row = f"{device.description},Port {port},{to.description},Port {there},Active,In-Scope"
                rows.append(blank + row)
    return "\n".join(rows) + "\n"
