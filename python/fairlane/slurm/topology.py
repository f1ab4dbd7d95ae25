"""``topology.conf`` of Slurm's tree plugin, from any fabric: which hosts hang at which switch, and what is above them.

As it is wired, every switch without hosts has a line with the switches directly below it. Slurm wants one switch above
each, though, and real trees have several; so *merged* switches stand for all that join the same ones below: a subtree
of each level, a group of a dragonfly. Whatever has nothing above it in the end gets a common root, for Slurm starts no
job across switches that are not joined.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric import Fabric, Wiring
from fairlane.placement.domain import subtrees
from fairlane.slurm.hostlist import can_hold, compress

__all__ = ["host_names", "of_wiring", "switch_names", "topology_conf"]


def host_names(spec: Mapping[str, Any]) -> list[str]:
    """The hosts' names: those of an imported fabric, else ``host0`` and so on."""
    given = spec["params"].get("hosts")
    return list(given) if isinstance(given, list) else _numbered("host", Fabric.build(spec).hosts)


def switch_names(spec: Mapping[str, Any]) -> list[str]:
    """The switches' names, in the same way."""
    given = spec["params"].get("hosts")
    if not isinstance(given, list):
        return _numbered("switch", Fabric.build(spec).switches)
    hosts = set(given)
    ends = dict.fromkeys(end for link in spec["params"]["links"] for end in link["ends"])
    return [name for name in ends if name not in hosts]


def of_wiring(wiring: Wiring, *, merged: bool) -> str:
    """The file for a real fabric; switches whose names such a file cannot hold are named by GUID."""
    guids = {name: f"S-{guid:016x}" for guid, name in wiring.guids.items()}
    switches = [name if can_hold(name) else guids.get(name, name) for name in wiring.switches]
    return topology_conf(wiring.fabric("up_down"), wiring.hosts, switches, merged=merged)


def topology_conf(fabric: Fabric, hosts: Sequence[str], switches: Sequence[str], *, merged: bool) -> str:
    """The file. Raises ``ScenarioError`` for hosts without a switch, or names that such a file cannot hold."""
    if min(fabric.leaf_of) < 0:
        host = hosts[fabric.leaf_of.index(-1)]
        raise ScenarioError(Problem("fabric", "has a host that is cabled to another host, without a switch", host))
    names = [name if can_hold(name) else f"switch{at}" for at, name in enumerate(switches)]
    lines: dict[str, str] = {}
    at_leaf: dict[int, list[str]] = {}
    for host, leaf in zip(hosts, fabric.leaf_of, strict=True):
        at_leaf.setdefault(leaf, []).append(host)
    for leaf in sorted(at_leaf):
        lines[names[leaf]] = f"Nodes={compress(at_leaf[leaf])}"
    above = _merged(fabric, names, set(at_leaf)) if merged else _wired(fabric, names, set(at_leaf))
    lines.update({name: f"Switches={compress(below)}" for name, below in above.items()})
    return "".join(f"SwitchName={name} {what}\n" for name, what in lines.items())


def _numbered(word: str, count: int) -> list[str]:
    return [f"{word}{at}" for at in range(count)]


def _wired(fabric: Fabric, names: Sequence[str], leaves: set[int]) -> dict[str, list[str]]:
    """What is directly below each switch that has no hosts."""
    joined = _joined(fabric)
    levels = fabric.levels
    return {
        names[at]: [names[low] for low in sorted(joined[at]) if levels[low] < levels[at]]
        for at in range(fabric.switches)
        if at not in leaves and any(levels[low] < levels[at] for low in joined[at])
    }


def _merged(fabric: Fabric, names: Sequence[str], leaves: set[int]) -> dict[str, list[str]]:
    """One switch for each subtree or group, and a root if they are still several."""
    found: dict[str, list[str]] = {}
    tops = {leaf: names[leaf] for leaf in sorted(leaves)}
    for word, domain_of in _domains(fabric):
        parts: dict[int, list[int]] = {}
        for leaf in tops:
            parts.setdefault(domain_of[leaf], []).append(leaf)
        for number, members in enumerate(parts.values()):
            below = list(dict.fromkeys(tops[leaf] for leaf in members))
            if len(below) > 1:
                name = f"{word}{number}"
                found[name] = below
                tops.update(dict.fromkeys(members, name))
    rest = list(dict.fromkeys(tops.values()))
    return {**found, "fabric": rest} if len(rest) > 1 else found


def _domains(fabric: Fabric) -> list[tuple[str, list[int]]]:
    """How leaf switches belong together, the smallest domains first."""
    if fabric.plan["kind"] == "groups":
        size = fabric.plan["switches"]
        return [("group", [switch // size for switch in range(fabric.switches)])]
    return [(f"level{level}-", subtrees(fabric, level)) for level in range(2, max(fabric.levels, default=0) + 1)]


def _joined(fabric: Fabric) -> list[set[int]]:
    a, b = fabric.links["from_switch"], fabric.links["to_switch"]
    found: list[set[int]] = [set() for _ in range(fabric.switches)]
    for low, high in zip(*(end[(a >= 0) & (b >= 0)].tolist() for end in (a, b)), strict=True):
        found[low].add(high)
    return found
