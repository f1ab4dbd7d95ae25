"""All hosts of a fabric for ``fairlane qos apply``: its configuration, and the ports of each node of Slurm."""

from collections.abc import Mapping

import tomlkit

from fairlane.fabric import Fabric, Wiring
from fairlane.opensm.policy import can_name_port
from fairlane.opensm.settings import Settings
from fairlane.slurm import compress, slurm_names
from fairlane.wording import plural

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
        rows = (f"{node} {' '.join(f'0x{guid:016x}' for guid in own)}\n" for node, own in known)
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
