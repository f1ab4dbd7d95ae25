"""Compares the service levels of path records with those of the policy's rules."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from fairlane.errors import Problem, ScenarioError, nearest
from fairlane.opensm.check.difference import Compared, Difference
from fairlane.opensm.check.layout import End
from fairlane.opensm.check.query import ask_paths, decode_level
from fairlane.opensm.check.simulated import Subnet
from fairlane.opensm.policy import Group, Policy

NO_PATH = "no path"


def members(policy: Policy, ends: Sequence[End], file: Path) -> dict[str, list[End]]:
    """The ports of each group of a policy. Raises ``ScenarioError`` for those that the subnet does not have."""
    hosts = [end for end in ends if not end.is_switch]
    by_name = {end.name: end for end in hosts}
    by_guid = {end.guid: end for end in hosts}
    problems: list[Problem] = []
    found: dict[str, list[End]] = {}
    for group in policy.groups:
        problems += _unknown(group, by_name, by_guid, file)
        ports = [by_name[name] for name in group.names if name in by_name]
        for low, high in group.guids:
            ports += [end for guid, end in by_guid.items() if low <= guid <= high]
        found[group.name] = list(dict.fromkeys(ports))
    if problems:
        raise ScenarioError(problems)
    return found


def _unknown(group: Group, by_name: Mapping[str, End], by_guid: Mapping[int, End], file: Path) -> Iterator[Problem]:
    place = {"file": str(file), "line": group.line}
    for name in group.names:
        if name not in by_name:
            words = f"the fabric has no such port (group {group.name})"
            near = nearest(name, by_name)
            yield Problem("port-name", words, name, "NodeDescription/Pnumber of a host", near, **place)  # type: ignore[arg-type]
    for low, high in group.guids:
        if not any(low <= guid <= high for guid in by_guid):
            value = f"0x{low:016x}" + ("" if low == high else f"-0x{high:016x}")
            near = nearest(value, [f"0x{guid:016x}" for guid in by_guid])
            words = f"the simulated subnet has no port with this GUID (group {group.name})"
            allowed = f"one of its {len(by_guid)} port GUIDs"
            yield Problem("port-guid", words, value, allowed, near, **place)  # type: ignore[arg-type]


def compare_paths(
    subnet: Subnet, policy: Policy, groups: Mapping[str, Sequence[End]], manager: int, most: int
) -> Compared:
    """Reads the path records of all pairs of ports that a rule is for, or of ``most`` evenly spaced ones.

    Pairs of ports of different rules, one for every two that follow each other, are read as well: they have the level
    of the first rule that matches, or DEFAULT.
    """
    sides = [(_side(groups, rule.source), _side(groups, rule.destination)) for rule in policy.rules]
    total = sum(len(begin) * len(end) for begin, end in sides)
    step = max(1, -(-total // max(1, most)))
    pairs = [pair for begin, end in sides for pair in _every(begin, end, step) if pair[0] != pair[1]]
    between = [(one[0], two[0]) for (one, _), (two, _) in pairwise(sides) if one and two and one[0] != two[0]]
    asked = list(dict.fromkeys([*pairs, *between]))
    answers = ask_paths(subnet, [(begin.guid, end.guid) for begin, end in asked], manager)
    matching = [(set(begin), set(end), policy.levels[rule.level]) for (begin, end), rule in zip(sides, policy.rules, strict=True)]
    differences = []
    for (begin, end), answer in zip(asked, answers, strict=True):
        expected = next((level for one, two, level in matching if begin in one and end in two), policy.default)
        found = NO_PATH if answer is None else str(decode_level(answer))
        if found != str(expected):
            differences.append(Difference(begin.node, f"to {end.name}", "service level of path", str(expected), found))
    notes = []
    if step > 1:
        words = f"path records: a sample of every {step}th of {total:,} pairs of ports that a rule is for"
        notes.append(f"{words}; --pairs {total} reads all")
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
        one, two = divmod(number, len(end))
        yield begin[one], end[(two + one) % len(end)]
