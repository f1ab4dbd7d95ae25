"""Ports of a policy and hosts of a fabric: by GUID where a dump has them, else by NodeDescription and port number."""

from collections.abc import Sequence
from pathlib import Path

from fairlane.errors import Problem, ScenarioError, nearest
from fairlane.fabric import Fabric, Wiring
from fairlane.opensm.policy import Group, Policy


def names_of(fabric: Fabric, host: int) -> tuple[str, ...]:
    """The ports of a host as ``NAME/P1`` and so on: those of an adapter that has the host's name as its description."""
    count = int(fabric.adapters_of_hosts[host])
    return tuple(f"{fabric.host_names[host]}/P{port}" for port in range(1, count + 1))


def guids_of(wiring: Wiring, host: str, source: str) -> tuple[int, ...]:
    """The port GUIDs of a host of a dump. Raises ``ScenarioError`` for a host that it lacks."""
    found = [port.guid for node in wiring.nodes if node.owner == host and not node.is_switch for port in node.ports]
    if not found or None in found:
        words = "no port GUIDs for this host"
        near = nearest(host, wiring.hosts) if not found else None
        raise ScenarioError(Problem("host", words, host, "the hosts of the dump", near, file=source))
    return tuple(guid for guid in found if guid is not None)


def hosts_of_groups(policy: Policy, wiring: Wiring, file: Path) -> dict[str, list[str]]:
    """The hosts of each group of ports; ``ScenarioError`` names the GUIDs and ports that the fabric does not have."""
    by_guid, by_name = _ports(wiring)
    problems: list[Problem] = []
    found: dict[str, list[str]] = {}
    for group in policy.groups:
        hosts: list[str] = []
        for low, high in group.guids:
            within = [owner for guid, owner in by_guid.items() if low <= guid <= high]
            if not within:
                value = f"0x{low:016x}" + ("" if low == high else f"-0x{high:016x}")
                near = nearest(value, [f"0x{guid:016x}" for guid in by_guid])
                words = f"the fabric has no port with this GUID (group {group.name})"
                problems.append(Problem("port-guid", words, value, _known(by_guid), near, str(file), group.line))
            hosts += within
        for name in group.names:
            if name in by_name:
                hosts.append(by_name[name])
                continue
            words, near = f"the fabric has no such port (group {group.name})", nearest(name, by_name)
            problems.append(Problem("port-name", words, name, "NodeDescription/Pnumber", near, str(file), group.line))
        found[group.name] = [host for host in dict.fromkeys(hosts) if host in set(wiring.hosts)]
    if problems:
        raise ScenarioError(problems)
    return found


def _ports(wiring: Wiring) -> tuple[dict[int, str], dict[str, str]]:
    """The host of each port by GUID, and the host or switch by NodeDescription and number."""
    by_guid: dict[int, str] = {}
    by_name: dict[str, str] = {}
    for node in wiring.nodes:
        for port in node.ports:
            if port.guid is not None and not node.is_switch:
                by_guid[port.guid] = node.owner
            by_name[f"{node.description}/P{port.number}"] = node.owner
    for host in wiring.hosts if not wiring.nodes else ():
        by_name.update({f"{host}/P{number}": host for number in range(1, _cables(wiring, host) + 1)})
    return by_guid, by_name


def _known(guids: dict[int, str]) -> str:
    return f"one of its {len(guids)} port GUIDs" if guids else "port-name: the fabric's file has no GUIDs"


def _cables(wiring: Wiring, host: str) -> int:
    return sum(host in cable.ends for cable in wiring.cables)


def as_ranges(guids: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Each GUID as a range of one."""
    return tuple((guid, guid) for guid in guids)


def group_of(name: str, ports: Sequence[str] | Sequence[int]) -> Group:
    """A group of ports that are given by name, or by GUID."""
    names = tuple(port for port in ports if isinstance(port, str))
    return Group(name, as_ranges([port for port in ports if isinstance(port, int)]), names)
