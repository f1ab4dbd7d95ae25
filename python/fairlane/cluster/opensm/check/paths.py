"""Compares service levels of path records with the policy's rules, and forwarding tables with the simulator's."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from fairlane.cluster.opensm.check.layout import End
from fairlane.cluster.opensm.check.ports import EXPORTED, OPENSM, Compared, Difference
from fairlane.cluster.opensm.check.query import ask_paths, decode_level
from fairlane.cluster.opensm.check.simulated import Subnet
from fairlane.cluster.opensm.nodes import as_ranges
from fairlane.cluster.opensm.policy import Group, Policy
from fairlane.core.errors import BuildError, Problem, ScenarioError, nearest
from fairlane.model.fabric.forwarding import Entries, by_endpoint, misled, read_entries, summary
from fairlane.model.fabric.identities import endpoint_lids, endpoints_of
from fairlane.model.fabric.wiring import Wiring

NO_PATH = "no path"


def members(policy: Policy, ends: Sequence[End], file: Path) -> dict[str, list[End]]:
    """The ports of each group of a policy. Raises ``ScenarioError`` for those that the fabric does not have."""
    hosts = [end for end in ends if not end.is_switch]
    by_name = {end.name: end for end in hosts}
    by_guid = {end.fabric_guid: end for end in hosts}
    problems: list[Problem] = []
    ends_of: dict[str, list[End]] = {}
    for group in policy.groups:
        place = {"file": str(file), "line": group.line}
        if lacking := [name for name in group.names if name not in by_name]:
            message = _lacking(group, lacking, len(group.names), "such port")
            near = nearest(lacking[0], by_name)
            allowed = "NodeDescription/Pnumber of a host"
            problems.append(Problem("port-name", message, lacking[0], allowed, near, **place))  # type: ignore[arg-type]
        ranges = {
            _range(low, high): [by_guid[number] for number in by_guid if low <= number <= high]
            for low, high in group.guids
        }
        if lacking := [message for message, within in ranges.items() if not within]:
            message = _lacking(group, lacking, len(ranges), "port with this GUID")
            near = nearest(lacking[0], [_range(guid, guid) for guid in by_guid])
            allowed = f"one of its {len(by_guid)} port GUIDs"
            problems.append(Problem("port-guid", message, lacking[0], allowed, near, **place))  # type: ignore[arg-type]
        named = [by_name[name] for name in group.names if name in by_name]
        ends_of[group.name] = list(dict.fromkeys([*named, *(end for within in ranges.values() for end in within)]))
    if problems:
        raise ScenarioError(problems)
    return ends_of


def _range(low: int, high: int) -> str:
    return f"0x{low:016x}" + ("" if low == high else f"-0x{high:016x}")


def _lacking(group: Group, lacking: Sequence[str], total: int, what: str) -> str:
    return f"the fabric has no {what} (group {group.name}: {len(lacking)} of {total})"


def for_subnet(policy: Policy, groups: Mapping[str, Sequence[End]]) -> tuple[Policy, tuple[str, ...]]:
    """The policy with the GUIDs of the simulated subnet, and a note if some are others than in the fabric."""
    other = {end for ends in groups.values() for end in ends if end.guid != end.fabric_guid}
    if not other or not any(group.guids for group in policy.groups):
        return policy, ()
    renamed = [
        replace(group, guids=as_ranges([end.guid for end in groups[group.name]]), names=()) for group in policy.groups
    ]
    remark = f"{len(other)} port GUIDs of hosts with several adapters are others in the simulated subnet"
    return replace(policy, groups=tuple(renamed)), (f"{remark}: its policy has those",)


def compare_paths(
    subnet: Subnet,
    policy: Policy,
    groups: Mapping[str, Sequence[End]],
    manager: int,
    most: int,
    cause: str = OPENSM,
) -> Compared:
    """Reads the path records of all pairs of ports that a rule is for, or of ``most`` evenly spaced ones.

    ``cause`` is what other levels are due to.

    Pairs of ports of different rules, one for every two that follow each other, are read as well: they have the level
    of the first rule that matches, or DEFAULT.
    """
    sides = [(_side(groups, rule.source), _side(groups, rule.destination)) for rule in policy.rules]
    total = sum(len(begin) * len(end) for begin, end in sides)
    step = max(1, -(-total // max(1, most)))
    pairs = [pair for begin, end in sides for pair in _every(begin, end, step) if pair[0] != pair[1]]
    between = [(first[0], two[0]) for (first, _), (two, _) in pairwise(sides) if first and two and first[0] != two[0]]
    asked = list(dict.fromkeys([*pairs, *between]))
    answers = ask_paths(subnet, [(begin.guid, end.guid) for begin, end in asked], manager)
    matching = [
        (set(begin), set(end), policy.levels[rule.level])
        for (begin, end), rule in zip(sides, policy.rules, strict=True)
    ]
    differences = []
    for (begin, end), answer in zip(asked, answers, strict=True):
        expected = next((level for first, two, level in matching if begin in first and end in two), policy.default)
        level_found = NO_PATH if answer is None else str(decode_level(answer))
        if level_found != str(expected):
            differences.append(
                Difference(begin.node, f"to {end.name}", "service level of path", str(expected), level_found, cause)
            )
    notes = []
    if step > 1:
        remark = f"path records: a sample of every {step}th of {total:,} pairs of ports that a rule is for"
        notes.append(f"{remark}; --pairs {total} reads all")
    return Compared({"path records": len(asked)}, tuple(differences), tuple(notes))


def _side(groups: Mapping[str, Sequence[End]], name: str | None) -> Sequence[End]:
    """The ports of a group; a rule without one is for all ports of groups."""
    if name is not None:
        return groups[name]
    return list(dict.fromkeys(end for ports in groups.values() for end in ports))


def _every(begin: Sequence[End], end: Sequence[End], step: int) -> Iterator[tuple[End, End]]:
    """Every ``step``-th pair, from the first on; at least one."""
    for number in range(0, len(begin) * len(end), step):
        # Shifted with the source, so that a step that divides the number of destinations visits all of them.
        at, two = divmod(number, len(end))
        yield begin[at], end[(two + at) % len(end)]


READ_FILE = "read.lfts"
"""The tables as ``dump_fts`` prints them."""
_NO_PATH = "no path"
_DEADLOCK = "can deadlock"


@dataclass(frozen=True)
class Read:
    """Forwarding tables that were read."""

    text: str
    """As ``dump_fts`` prints them: for ``fairlane fabric import --tables``."""
    wiring: Wiring
    """The fabric, with the LIDs of the subnet."""
    entries: Entries
    """The port for each LID of an adapter."""


def read_routes(subnet: Subnet, wiring: Wiring) -> Read:
    """The forwarding tables of all switches, by ``dump_fts``."""
    file = subnet.folder / READ_FILE
    text = subnet.run(["dump_fts"]).decode(errors="replace")
    file.write_text(text, encoding="utf-8")
    return Read(text, wiring, read_entries(wiring, file))


def compare_routes(read: Read, expected: Entries | None, *, loaded: bool) -> Compared:
    """Compares entries for all LIDs of adapters, follows each to its end, and routes between all pairs of hosts.

    ``expected`` are the simulator's tables; entries of 0 are not used by a route. Only if OpenSM was asked to load them
    (``loaded``) is another port a difference; other routing engines choose other ports, which a note counts.
    """
    owners, endpoints = endpoint_lids(read.wiring), endpoints_of(read.wiring)
    of_host = Counter(endpoints[endpoint][0] for endpoint in owners.values())
    counts = {"forwarding table entries": len(read.entries) * len(owners)}
    differences, notes = [], []
    same = total = 0
    for switch, ports in (expected or {}).items():
        for lid, port in ports.items():
            there = read.entries.get(switch, {}).get(lid, 0)
            total += port != 0
            same += port != 0 and port == there
            if loaded and port not in (0, there):
                host, number = endpoints[owners[lid]]
                to = f"to {host}" + (f" port {number} (LID {lid})" if of_host[host] > 1 else "")
                shown = f"port {there}" if there else _NO_PATH
                differences.append(Difference(switch, to, "forwarding table", f"port {port}", shown))
    if expected is not None and not loaded:
        message = f"{same:,} of {total:,} entries of forwarding tables are those of the simulated routing"
        notes.append(f"{message}; the others are OpenSM's own choice")
    if elsewhere := misled(read.wiring, read.entries):
        cause = EXPORTED if loaded and expected and misled(read.wiring, expected) else OPENSM
        message = summary(elsewhere, len(owners))
        differences.append(
            Difference("all switches", "all hosts", "routes", "each LID ends at its port", message, cause)
        )
    elif problem := _unusable(read):
        if _DEADLOCK in problem:
            notes.append(f"the routes reach all hosts, but cannot be simulated in one virtual lane: {problem}")
        else:
            differences.append(Difference("all switches", "all hosts", "routes", "every host is reached", problem))
    return Compared(counts, tuple(differences), tuple(notes))


def _unusable(read: Read) -> str:
    """Why the simulator cannot use the tables; empty if a packet of every host arrives at every other."""
    try:
        replace(read.wiring, source=None, tables=by_endpoint(read.wiring, read.entries)).fabric("tables")
    except BuildError as error:
        return (error.allowed or str(error)).partition(";")[0]
    except ScenarioError as error:
        return str(error)
    return ""
