"""Hosts of a fabric and their ports: of a policy, of each node of Slurm, and the files for ``fairlane sm check``."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import tomlkit

from fairlane.cluster.opensm.policy import Group, Policy, can_name_port
from fairlane.cluster.opensm.settings import Settings
from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.core.wording import plural
from fairlane.inputs.hosts import compress, slurm_names
from fairlane.model.fabric.export import FORMATS, wiring_of
from fairlane.model.fabric.export.infiniband import write_lfts
from fairlane.model.fabric.forwarding import tables_of
from fairlane.model.fabric.identities import endpoints_of
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Wiring


def names_of(fabric: Fabric, host: int) -> tuple[str, ...]:
    """The ports of a host as ``NAME/P1`` and so on: those of an adapter that has the host's name as its description."""
    count = int(fabric.adapters_of_hosts[host])
    return tuple(f"{fabric.host_names[host]}/P{port}" for port in range(1, count + 1))


def guids_of(wiring: Wiring, host: str, source: str) -> tuple[int, ...]:
    """The port GUIDs of a host of a dump. Raises ``ScenarioError`` for a host that it lacks."""
    guids = [port.guid for node in wiring.nodes if node.owner == host and not node.is_switch for port in node.ports]
    if not guids or None in guids:
        message = "no port GUIDs for this host"
        near = nearest(host, wiring.hosts) if not guids else None
        raise ScenarioError(Problem("host", message, host, "the hosts of the dump", near, file=source))
    return tuple(guid for guid in guids if guid is not None)


def hosts_of_groups(policy: Policy, wiring: Wiring, file: Path) -> dict[str, list[str]]:
    """The hosts of each group of ports; ``ScenarioError`` names the GUIDs and ports that the fabric does not have."""
    by_guid, by_name = _ports(wiring)
    problems: list[Problem] = []
    hosts_by_group: dict[str, list[str]] = {}
    for group in policy.groups:
        hosts: list[str] = []
        for low, high in group.guids:
            within = [owner for guid, owner in by_guid.items() if low <= guid <= high]
            if not within:
                value = f"0x{low:016x}" + ("" if low == high else f"-0x{high:016x}")
                near = nearest(value, [f"0x{guid:016x}" for guid in by_guid])
                message = f"the fabric has no port with this GUID (group {group.name})"
                problems.append(Problem("port-guid", message, value, _known(by_guid), near, str(file), group.line))
            hosts += within
        for name in group.names:
            if name in by_name:
                hosts.append(by_name[name])
                continue
            message, near = f"the fabric has no such port (group {group.name})", nearest(name, by_name)
            problems.append(Problem("port-name", message, name, "NodeDescription/Pnumber", near, str(file), group.line))
        hosts_by_group[group.name] = [host for host in dict.fromkeys(hosts) if host in set(wiring.hosts)]
    if problems:
        raise ScenarioError(problems)
    return hosts_by_group


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


_COMMENT = (
    "fairlane qos apply, with this folder, runs on the machine of OpenSM as the user of OpenSM (root as a rule).",
    "prolog.sh and epilog.sh write to `running` as SlurmUser: nobody else may. If Slurm's controller is another",
    "machine, it is a folder that both have. Paths are relative to this file.",
)


def apply_files(
    fabric: Fabric,
    dump: Wiring | None,
    settings: Settings,
    default: int,
    levels: Mapping[str, int],
    policy_file: str,
) -> tuple[dict[str, str], list[str]]:
    """The text of each file, and notes. Slurm may start jobs on any host, so all that have a port are there."""
    names = slurm_names(fabric.host_names)
    both = list(zip(fabric.host_names, names, strict=True))
    notes = []
    if dump is None:
        hosts = [
            node for host, node in zip(fabric.host_names, names, strict=True) if host == node and can_name_port(node)
        ]
        ports = range(1, max(map(int, fabric.adapters_of_hosts), default=1) + 1)
        backend: dict[str, object] = {"port": [f"{{host}}/P{port}" for port in ports]}
        files = {}
        left_out = fabric.hosts - len(hosts)
    else:
        guids: dict[str, list[int]] = {}
        for node in dump.nodes:
            if not node.is_switch:
                guids.setdefault(node.owner, []).extend(port.guid for port in node.ports if port.guid is not None)
        known = [(node, guids[host]) for host, node in both if guids.get(host)]
        hosts = [node for node, _ in known]
        rows = (f"{node} {' '.join(f'0x{guid:016x}' for guid in numbers)}\n" for node, numbers in known)
        files = {"guids.txt": "# Port GUIDs of each node of Slurm\n" + "".join(rows)}
        backend = {"guids": "guids.txt"}
        left_out = fabric.hosts - len(hosts)
    if left_out:
        why = "no names for a policy of OpenSM (give --guids)" if dump is None else "no port GUIDs"
        notes.append(f"apply.toml leaves out {plural(left_out, 'host')} with {why}: jobs there get no level")
    document = tomlkit.document()
    for line in _COMMENT:
        document.add(tomlkit.comment(line))
    document["running"] = "running"
    document["interval"] = "10 s"
    document["default"] = default
    document["hosts"] = compress(hosts)
    document["lanes"] = {str(level): settings.sl2vl[level] for level in sorted({default, *levels.values()})}
    document["backend"] = {
        "name": "opensm",
        "policy": policy_file,
        "conf": "/etc/opensm/opensm.conf",
        "log": "/var/log/opensm.log",
        **backend,
    }
    return {**files, "apply.toml": tomlkit.dumps(document), "running/README": _RUNNING}, notes


_RUNNING = "A file for each job that has a service level, written by prolog.sh: number, level, nodes.\n"

FABRIC_FILE = "fabric.ibnetdiscover"
"""The fabric as ``ibnetdiscover`` prints it."""
ROUTES_FILE = "fabric.lfts"
"""Forwarding tables as ``dump_lfts`` prints them, of routings that have some."""
_MOST_ENTRIES = 1_000_000  # entries of forwarding tables that are written: 75 MB


def fabric_files(fabric: Fabric, spec: Mapping[str, Any], dump: Wiring | None) -> tuple[dict[str, str], list[str]]:
    """The text of each file, and notes on what could not be written.

    ``spec`` is the specification of the fabric; GUIDs and LIDs are those of ``dump``, or generated.
    """
    wiring = dump or wiring_of(fabric)
    try:
        text = _dump(wiring)
    except ScenarioError as error:
        return {}, [f"{FABRIC_FILE}, which fairlane sm check reads, is left out: {error.problems[0]}"]
    tables = tables_of(fabric, spec)
    if tables is None:
        return {FABRIC_FILE: text}, []
    order = _columns(fabric, wiring)
    if order is None or set(tables) != set(wiring.switches):
        remark = f"{ROUTES_FILE} is left out: the dump has other hosts, adapters or switches than the fabric"
        return {FABRIC_FILE: text}, [remark]
    entries = len(tables) * (len(tables) + int(fabric.adapters_of_hosts.sum()))
    if entries > _MOST_ENTRIES:
        remark = (
            f"{ROUTES_FILE} is left out: the forwarding tables have {entries:,} entries, more than {_MOST_ENTRIES:,}"
        )
        return {FABRIC_FILE: text}, [remark]
    rows = {switch: [ports[column] for column in order] for switch, ports in tables.items()}
    return {FABRIC_FILE: text, ROUTES_FILE: write_lfts(wiring, rows)}, []


def _columns(fabric: Fabric, wiring: Wiring) -> list[int] | None:
    """The endpoint of the fabric for each endpoint of the wiring, adapter by adapter; None if they differ."""
    begins = accumulate(fabric.adapters_of_hosts.tolist(), initial=0)
    ranges = dict(zip(fabric.host_names, pairwise(begins), strict=True))
    hosts = [host for host, _ in endpoints_of(wiring)]
    if Counter(hosts) != Counter({host: end - begin for host, (begin, end) in ranges.items()}):
        return None
    rest = {host: iter(range(*of)) for host, of in ranges.items()}
    return [next(rest[host]) for host in hosts]


def _dump(wiring: Wiring) -> str:
    """The fabric as a dump; bandwidths that InfiniBand does not have are left out, which no check needs."""
    write = FORMATS["ibnetdiscover"].write
    try:
        return write(wiring).text
    except ScenarioError:
        return write(
            replace(wiring, cables=tuple(replace(cable, bandwidth=None, kind="") for cable in wiring.cables))
        ).text
