"""``topology.conf`` of Slurm's tree plugin, from any fabric: which hosts hang at which switch, and what is above them.

As it is wired, every switch without hosts has a line with the switches directly below it. Slurm wants one switch above
each, though, and real trees have several; so *merged* switches stand for all that join the same ones below: a subtree
of each level, a group of a dragonfly. Whatever has nothing above it in the end gets a common root, for Slurm starts no
job across switches that are not joined.

Names that Slurm does not take are changed, and comments at the top of the file say which.
"""

from collections.abc import Sequence

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric import Fabric, Wiring
from fairlane.fabric.subtrees import subtrees
from fairlane.slurm.hostlist import can_hold, compress, slurm_names, unused


def of_wiring(wiring: Wiring, *, merged: bool) -> str:
    """The file for a real fabric; switches whose names Slurm does not take are named by GUID."""
    guids = {name: f"S-{guid:016x}" for guid, name in wiring.guids.items()}
    switches = [name if can_hold(name) else guids.get(name, name) for name in wiring.switches]
    return topology_conf(wiring.fabric("up_down"), wiring.hosts, switches, merged=merged)


def topology_conf(fabric: Fabric, hosts: Sequence[str], switches: Sequence[str], *, merged: bool) -> str:
    """The file. Raises ``ScenarioError`` for hosts without a switch."""
    if min(fabric.leaf_of) < 0:
        host = hosts[fabric.leaf_of.index(-1)]
        raise ScenarioError(Problem("fabric", "has a host that is cabled to another host, without a switch", host))
    nodes, names = slurm_names(hosts), slurm_names(switches, word="switch")
    lines: dict[str, str] = {}
    at_leaf: dict[int, list[str]] = {}
    for host, leaf in zip(nodes, fabric.leaf_of, strict=True):
        at_leaf.setdefault(leaf, []).append(host)
    for leaf in sorted(at_leaf):
        lines[names[leaf]] = f"Nodes={compress(at_leaf[leaf])}"
    above = _merged(fabric, names, set(at_leaf)) if merged else _wired(fabric, names, set(at_leaf))
    lines.update({name: f"Switches={compress(below)}" for name, below in above.items()})
    remarks = [
        f"# {kind} {given!r} is written as {name}\n"
        for kind, before, after in (("host", hosts, nodes), ("switch", switches, names))
        for given, name in zip(before, after, strict=True)
        if given != name
    ]
    return "".join((*remarks, *(f"SwitchName={name} {what}\n" for name, what in lines.items())))


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
    used = set(names)
    tops = {leaf: names[leaf] for leaf in sorted(leaves)}
    for word, domain_of in _domains(fabric):
        parts: dict[int, list[int]] = {}
        for leaf in tops:
            parts.setdefault(domain_of[leaf], []).append(leaf)
        for number, members in enumerate(parts.values()):
            below = list(dict.fromkeys(tops[leaf] for leaf in members))
            if len(below) > 1:
                name = unused(f"{word}{number}", used)
                found[name] = below
                tops.update(dict.fromkeys(members, name))
    rest = list(dict.fromkeys(tops.values()))
    return {**found, unused("fabric", used): rest} if len(rest) > 1 else found


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
