"""OpenSM's QoS policy file: groups of ports, levels, and rules that match requests for paths.

The grammar is that of ``QoS_management_in_OpenSM.txt``: sections with keywords and closing keywords, comments from
``#`` to the end of the line, the first rule that matches counts. A level ``DEFAULT`` is for all other requests.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fairlane.cluster.opensm.settings import LEVELS
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import whole_number
from fairlane.inputs.files import lines_of, read_text, reading
from fairlane.inputs.hosts import shortened

SECTIONS = {"port-groups": "port-group", "qos-levels": "qos-level", "qos-match-rules": "qos-match-rule"}
"""The sections and what they consist of."""
_KEYS = {
    "port-group": ("name", "use", "port-guid", "port-name", "pkey", "partition", "node-type"),
    "qos-level": ("name", "use", "sl", "mtu-limit", "rate-limit", "packet-life", "path-bits", "pkey"),
    "qos-match-rule": ("use", "source", "destination", "qos-level-name", "qos-class", "service-id", "pkey"),
}
_UNREAD = ("qos-setup", "qos-ulps")
_OF_SETUP = ("group:", "across:", "across-to:", "across-from:", "to:", "from:", "vlarb-", "sl2vl-")
_WORDS = (*SECTIONS, *SECTIONS.values(), *_UNREAD, *(f"{key}:" for keys in _KEYS.values() for key in keys), *_OF_SETUP)
_PORT = re.compile(r"[!-~]{1,64}")  # of a NodeDescription
PORT_NAMES = "1 to 64 ASCII characters without blanks, # and commas, and no keyword of a policy"
"""Allowed NodeDescriptions in a policy that names ports by them."""
_GUIDS = re.compile(r"0x([0-9a-fA-F]{1,16})(?:\s*-\s*0x([0-9a-fA-F]{1,16}))?")
DEFAULT = "DEFAULT"
"""The level of requests that no rule matches."""


@dataclass(frozen=True)
class Group:
    """A group of ports."""

    name: str
    guids: tuple[tuple[int, int], ...] = ()
    """Ranges of port GUIDs, both ends included."""
    names: tuple[str, ...] = ()
    """Ports as ``NodeDescription/Pnumber``."""
    line: int | None = None


@dataclass(frozen=True)
class Rule:
    """A rule; groups and the level are named."""

    source: str | None
    destination: str | None
    level: str
    use: str = ""
    line: int | None = None


@dataclass(frozen=True)
class Policy:
    """A policy."""

    groups: tuple[Group, ...]
    levels: Mapping[str, int]
    """Service level by name."""
    rules: tuple[Rule, ...]
    notes: tuple[str, ...] = ()
    """Parts that were not read."""

    @property
    def default(self) -> int:
        """The service level of requests that no rule matches."""
        return self.levels.get(DEFAULT, 0)

    def lines(self, hosts: Mapping[str, Sequence[str]]) -> Iterator[str]:
        """The level of each rule and the groups of ports that it is for, with their hosts where these are known."""
        for rule in self.rules:
            ends = [name for name in dict.fromkeys((rule.source, rule.destination)) if name]
            where = " to ".join(f"{end} ({shortened(hosts[end])})" if end in hosts else end for end in ends)
            yield f"service level {self.levels[rule.level]}: {where or 'all ports'}"


def can_name_port(description: str) -> bool:
    """Whether OpenSM finds the port of a node by its NodeDescription in a policy.

    OpenSM takes ``#`` for a comment and a comma for the end of a name, leaves blanks out, knows ASCII only, and reads a
    keyword of the policy within a name as that keyword.
    """
    return (
        _PORT.fullmatch(description) is not None
        and not set("#,") & set(description)
        and not any(word in description for word in _WORDS)
    )


def write_policy(policy: Policy, comments: Sequence[str] = ()) -> str:
    """The file, after comments."""
    lines = [f"# {comment}" for comment in comments]
    groups = []
    for group in policy.groups:
        ports = [f"port-name: {name}" for name in group.names]
        ports += [f"port-guid: 0x{low:016x}" + ("" if low == high else f"-0x{high:016x}") for low, high in group.guids]
        groups.append([f"name: {group.name}", *ports])
    lines += _section("port-groups", groups)
    lines += _section("qos-levels", [[f"name: {name}", f"sl: {level}"] for name, level in policy.levels.items()])
    rules = []
    for rule in policy.rules:
        ends = {"source": rule.source, "destination": rule.destination}
        use = [f"use: {rule.use}"] if rule.use else []
        rules.append([*use, *(f"{end}: {name}" for end, name in ends.items() if name), f"qos-level-name: {rule.level}"])
    lines += _section("qos-match-rules", rules)
    return "\n".join(lines) + "\n"


def _section(name: str, parts: Sequence[Sequence[str]]) -> list[str]:
    if not parts:
        return []
    inner = SECTIONS[name]
    lines = [name]
    for part in parts:
        lines += [f"    {inner}", *(f"        {line}" for line in part), f"    end-{inner}"]
    return [*lines, f"end-{name}"]


@dataclass
class _Reader:
    file: Path
    problems: list[Problem] = field(default_factory=list)
    parts: list[tuple[str, int, list[tuple[str, str, int]]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)

    def refuse(self, line: int, key: str, message: str, value: object = None, allowed: str | None = None) -> None:
        self.problems.append(Problem(key, message, value, allowed, file=str(self.file), line=line))

    def take(self, number: int, line: str) -> None:
        """One line without its comment."""
        inside = self.stack[-1] if self.stack else None
        if line.startswith("end-"):
            if line != f"end-{inside}":
                self.refuse(number, line, "closes what is not open", allowed=f"end-{inside}" if inside else "a section")
            else:
                self.stack.pop()
        elif inside in _UNREAD:
            return
        elif inside is None:
            if line not in SECTIONS and line not in _UNREAD:
                sections = [*SECTIONS, *_UNREAD]
                self.problems.append(Problem.unknown(line, "section", line, sections).at(str(self.file), number))
                return
            if line in _UNREAD:
                self.notes.append(f"line {number}: the section {line} is not read")
            self.stack.append(line)
        elif inside in SECTIONS:
            if line != SECTIONS[inside]:
                self.refuse(number, line, f"not expected in {inside}", allowed=SECTIONS[inside])
                return
            self.stack.append(line)
            self.parts.append((line, number, []))
        else:
            self._entry(inside, number, line)

    def _entry(self, inside: str, number: int, line: str) -> None:
        key, colon, value = (part.strip() for part in line.partition(":"))
        if not colon or key not in _KEYS[inside]:
            problem = Problem.unknown(key, f"keyword in {inside}", key, _KEYS[inside])
            self.problems.append(problem.at(str(self.file), number))
            return
        self.parts[-1][2].append((key, value, number))


def read_policy(file: Path) -> Policy:
    """The policy; ``ScenarioError`` names every line that is wrong, and groups and levels that are not defined."""
    with reading(file):
        text = read_text(file)
    reader = _Reader(file)
    for number, line in enumerate(lines_of(text), 1):
        if content := line.partition("#")[0].strip():
            reader.take(number, content)
    if reader.stack:
        reader.refuse(len(lines_of(text)), reader.stack[-1], "is not closed", allowed=f"end-{reader.stack[-1]}")
    groups = [_group(reader, *part[1:]) for part in reader.parts if part[0] == "port-group"]
    levels = dict(_level(reader, *part[1:]) for part in reader.parts if part[0] == "qos-level")
    rules = [_rule(reader, *part[1:]) for part in reader.parts if part[0] == "qos-match-rule"]
    for rule in rules:
        names = [group.name for group in groups]
        for key, name in (("source", rule.source), ("destination", rule.destination)):
            if name is not None and name not in names:
                reader.problems.append(Problem.unknown(key, "port group", name, names, name).at(str(file), rule.line))
        if rule.level not in levels:
            problem = Problem.unknown("qos-level-name", "QoS level", rule.level, list(levels), rule.level)
            reader.problems.append(problem.at(str(file), rule.line))
    if DEFAULT not in levels and not reader.notes:
        reader.refuse(1, "qos-levels", f"has no level {DEFAULT}, which OpenSM needs")
    if reader.problems:
        raise ScenarioError(reader.problems)
    return Policy(tuple(groups), levels, tuple(rules), tuple(reader.notes))


def _group(reader: _Reader, line: int, entries: list[tuple[str, str, int]]) -> Group:
    guids, names = [], []
    for key, value, at in entries:
        if key == "port-name":
            names += [name.strip() for name in value.split(",") if name.strip()]
        elif key == "port-guid":
            for part in filter(None, map(str.strip, value.split(","))):
                match = _GUIDS.fullmatch(part)
                if match is None:
                    reader.refuse(at, key, "not a port GUID or a range of them", part, "0xGUID or 0xLOW-0xHIGH")
                elif int(match[2] or match[1], 16) < int(match[1], 16):
                    ends = f"0x{match[2]}-0x{match[1]}"
                    reader.refuse(at, key, "a range of port GUIDs that ends before it begins", part, ends)
                else:
                    guids.append((int(match[1], 16), int(match[2] or match[1], 16)))
        elif key in ("pkey", "partition", "node-type"):
            reader.notes.append(f"line {at}: {key} is not read: the group has the ports that are listed")
    return Group(_one(reader, entries, "name", line), tuple(guids), tuple(names), line)


def _level(reader: _Reader, line: int, entries: list[tuple[str, str, int]]) -> tuple[str, int]:
    given = _one(reader, entries, "sl", line)
    if not given.isdecimal() or whole_number(given) >= LEVELS:
        at = next((at for key, _, at in entries if key == "sl"), line)
        reader.refuse(at, "sl", "not a service level", given, f"0 to {LEVELS - 1}")
        return _one(reader, entries, "name", line), 0
    return _one(reader, entries, "name", line), whole_number(given)


def _rule(reader: _Reader, line: int, entries: list[tuple[str, str, int]]) -> Rule:
    values = {key: value for key, value, _ in entries}
    for key, _, at in entries:
        if key in ("qos-class", "service-id", "pkey"):
            reader.notes.append(f"line {at}: {key} is not read: the rule is taken for one of its port groups")
    level = _one(reader, entries, "qos-level-name", line)
    return Rule(values.get("source"), values.get("destination"), level, values.get("use", ""), line)


def _one(reader: _Reader, entries: list[tuple[str, str, int]], key: str, line: int) -> str:
    values = [value for name, value, _ in entries if name == key]
    if len(values) != 1 or not values[0]:
        reader.refuse(line, key, "missing" if not values else "given more than once or empty")
        return ""
    return values[0]
