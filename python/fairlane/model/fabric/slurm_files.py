"""``topology.conf`` and ``topology.yaml`` of Slurm as fabrics: its plugins tree, block, ring and torus3d.

They say which hosts are near to each other, and nothing of cables. One cable joins a switch with each switch or host
below it, the switches of neighbours on a ring or torus, blocks with the larger blocks of the sizes that the file has,
and these with a root.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.core.wording import listed, plural, some
from fairlane.inputs.files import content_lines
from fairlane.inputs.hosts import members, unused
from fairlane.model.fabric.slurm_topology import YamlError, YamlTable, parse_yaml
from fairlane.model.fabric.wiring import Cable, Wiring

_CONF = re.compile(r"(?:SwitchName|BlockName|RingName|BlockSizes)\s*=", re.IGNORECASE)
_YAML = re.compile(r"-\s+topology\s*:")
_KEYS = {"switchname": ("nodes", "switches", "linkspeed"), "blockname": ("nodes",), "ringname": ("nodes",)}
_PLUGINS = ("tree", "block", "ring", "torus3d")
_MOST_CELLS = 100_000  # cells of a torus
_MOST_HOSTS = 200_000  # hosts of a file
_DIGITS = 9  # of the size of a block
_SHOWN = 3


@dataclass
class _Group:
    """A switch, block or ring: what is in it, by name."""

    name: str
    line: int
    hosts: list[str] = field(default_factory=list)
    below: list[str] = field(default_factory=list)


@dataclass
class _Topology:
    """Content of a file for one plugin."""

    plugin: str
    groups: list[_Group] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    toruses: list[YamlTable] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def is_slurm_topology(text: str) -> bool:
    """Whether a file begins like one of these."""
    first = next((line for _, line in content_lines(text) if line != "---"), "")
    return _CONF.match(first) is not None or _YAML.match(first) is not None


def read_slurm_topology(text: str, file: Path) -> Wiring:
    """The wiring; ``ScenarioError`` names the line of what is wrong."""
    reader = _Reader(file)
    first = next((line for _, line in content_lines(text) if line != "---"), "")
    topology = reader.conf(text) if _CONF.match(first) else reader.yaml(text)
    build = {"tree": _tree, "block": _blocks, "ring": _rings, "torus3d": _toruses}[topology.plugin]
    cables = list(build(topology, reader))
    if reader.problems:
        raise ScenarioError(reader.problems)
    hosts = tuple(reader.hosts)
    remark = f"of Slurm's plugin {topology.plugin}, which knows no cables: there is one between any two that it joins"
    return Wiring(hosts, tuple(cables), remarks=(remark, *topology.remarks, *reader.remarks()), source=file)


class _Reader:
    """Reads a file; collects what is wrong with it."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.problems: list[Problem] = []
        self.hosts: dict[str, list[str]] = {}  # the groups that each host is in

    def wrong(self, message: str, line: int | None, allowed: str | None = None) -> None:
        self.problems.append(Problem.of_file(self._file, message, line, allowed))

    def remarks(self) -> list[str]:
        """Return remarks on unusual hosts."""
        several = [f"{host} ({listed(groups)})" for host, groups in self.hosts.items() if len(groups) > 1]
        if not several:
            return []
        count = plural(len(several), "host is", "hosts are")
        return [f"{count} in more than one switch, which Slurm warns of: {some(several, _SHOWN)}"]

    def conf(self, text: str) -> _Topology:
        """The lines of ``topology.conf``."""
        kinds: dict[str, list[_Group]] = defaultdict(list)
        sizes: list[int] = []
        for number, line in _joined(text):
            pairs = [word.partition("=") for word in line.partition("#")[0].split()]
            keys = {key.lower(): value for key, _, value in pairs}
            kind = pairs[0][0].lower()
            if any(not equals or not value for _, equals, value in pairs) or len(keys) < len(pairs):
                self.wrong(f"not a line of topology.conf: {line[:60]!r}", number, "KEY=VALUE, each key once")
            elif kind == "blocksizes":
                sizes = [self._count(size, number) for size in keys[kind].split(",")]
            elif kind not in _KEYS or set(keys) - {kind, *_KEYS[kind]}:
                unknown = kind if kind not in _KEYS else next(iter(set(keys) - {kind, *_KEYS[kind]}))
                names = ("SwitchName", "BlockName", "RingName", "BlockSizes", "Nodes", "Switches", "LinkSpeed")
                problem = Problem.unknown(unknown, "key", unknown, names, keys[unknown])
                self.problems.append(problem.at(str(self._file), number))
            else:
                group = self._group(keys[kind], keys.get("nodes"), keys.get("switches"), number)
                kinds[kind].append(group)
        if len(kinds) > 1:
            self.wrong("has lines of more than one plugin", kinds[list(kinds)[1]][0].line, "one of them")
        plugin = {"switchname": "tree", "blockname": "block", "ringname": "ring"}[next(iter(kinds), "blockname")]
        return _Topology(plugin, [group for groups in kinds.values() for group in groups], sizes)

    def yaml(self, text: str) -> _Topology:
        """The default topology of ``topology.yaml``."""
        try:
            tables = parse_yaml(text)
        except YamlError as error:
            raise ScenarioError(Problem.of_file(self._file, f"not YAML: {error}", error.line)) from None
        every = self._tables(tables, "the topologies", 1)
        if not every:
            raise ScenarioError(self.problems or Problem.of_file(self._file, "has no topology"))
        chosen = next(
            (candidate for candidate in every if str(candidate.get("cluster_default")).lower() == "true"), every[0]
        )
        plugin = next((name for name in _PLUGINS if name in chosen), None)
        if plugin is None:
            message = f"topology {chosen.get('topology')} has no plugin with a fabric"
            raise ScenarioError(Problem.of_file(self._file, message, chosen.line, ", ".join(_PLUGINS)))
        topology = _Topology(plugin)
        if len(every) > 1:
            others = listed([str(candidate.get("topology")) for candidate in every if candidate is not chosen])
            topology.remarks.append(f"of {len(every)} topologies {chosen.get('topology')} is read, not {others}")
        inside = chosen[plugin] if isinstance(chosen[plugin], YamlTable) else YamlTable()
        if plugin == "torus3d":
            topology.toruses = self._tables(inside.get("toruses"), "toruses", chosen.line)
            return topology
        topology.sizes = [self._count(size, inside.line) for size in _as_list(inside.get("block_sizes"))]
        names = {"tree": ("switches", "switch"), "block": ("blocks", "block"), "ring": ("rings", "ring")}
        several, singular = names[plugin]
        for row in self._tables(inside.get(several), several, chosen.line):
            allowed = (singular, "nodes", *(("children",) if plugin == "tree" else ()))
            for key in set(row) - set(allowed):
                self.problems.append(Problem.unknown(key, "key", key, allowed).at(str(self._file), row.line))
            if not isinstance(row.get(singular), str):
                self.wrong(f"{singular} is missing", row.line)
            else:
                topology.groups.append(self._group(row[singular], row.get("nodes"), row.get("children"), row.line))
        return topology

    def torus(self, table: YamlTable) -> tuple[tuple[int, ...], dict[tuple[int, ...], str]]:
        """The sides of a torus, and its hosts by coordinate."""
        sides = self._triple(table.get("dims"), "dims", table.line, 1)
        if prod(sides) > _MOST_CELLS:
            raise ScenarioError(Problem.of_file(self._file, f"a torus of more than {_MOST_CELLS:,} cells", table.line))
        regions = self._tables(table["regions"], "regions", table.line) if table.get("regions") else [table]
        hosts: dict[tuple[int, ...], str] = {}
        for region in regions:
            dims = self._triple(region.get("dims"), "dims", region.line, 1)
            anchor = self._triple(region["anchor"], "anchor", region.line, 0) if "anchor" in region else (0, 0, 0)
            names = self._names(region.get("nodes"), region.line)
            if len(names) != prod(dims):
                shape = " x ".join(map(str, dims))
                self.wrong(f"{plural(len(names), 'node')} for {shape} places", region.line, str(prod(dims)))
                continue
            for name, place in zip(names, _places(dims), strict=True):
                at = tuple(a + b for a, b in zip(anchor, place, strict=True))
                if any(a >= side for a, side in zip(at, sides, strict=True)) or at in hosts:
                    reason = "is outside the torus" if at not in hosts else f"is taken by {hosts[at]}"
                    self.wrong(f"the place {at} of {name} {reason}", region.line)
                    break
                hosts[at] = name
        for host in hosts.values():
            self.hosts.setdefault(host, []).append(str(table.get("name")))
        return sides, hosts

    def _group(self, name: str, nodes: Any, below: Any, line: int) -> _Group:
        group = _Group(name, line, self._names(nodes, line), self._names(below, line))
        if group.hosts and group.below:
            self.wrong(f"{name} has both nodes and switches", line, "either of them")
        for host in group.hosts:
            self.hosts.setdefault(host, []).append(name)
        if len(self.hosts) > _MOST_HOSTS:
            raise ScenarioError(Problem.of_file(self._file, f"more than {_MOST_HOSTS:,} hosts up to here", line))
        return group

    def _names(self, text: Any, line: int) -> list[str]:
        try:
            return members(str(text)) if text else []
        except ValueError as error:
            self.wrong(str(error), line, "as rack[01-03,7],login")
            return []

    def _count(self, text: str, line: int) -> int:
        if not (str(text).isdecimal() and len(text) <= _DIGITS and int(text) > 0):
            self.wrong(f"no size of a block: {str(text)[:40]!r}", line, "a number from 1")
            return 1
        return int(text)

    def _tables(self, rows: Any, what: str, line: int) -> list[YamlTable]:
        """The rows of a list; one alone may stand without it."""
        tables = [rows] if isinstance(rows, YamlTable) else rows
        if not isinstance(tables, list) or not all(isinstance(row, YamlTable) for row in tables):
            self.wrong(f"{what}: not a list of tables", line)
            return []
        return tables

    def _triple(self, given: Any, key: str, line: int, least: int) -> tuple[int, ...]:
        table = given if isinstance(given, Mapping) else {}
        texts = [str(table.get(axis, "")) for axis in "xyz"]
        if not all(text.isdecimal() and len(text) <= 5 and least <= int(text) < 65_536 for text in texts):
            raise ScenarioError(
                Problem.of_file(self._file, f"{key}: not three numbers", line, f"x, y and z, from {least}")
            )
        return tuple(map(int, texts))


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """The lines, with those joined that end with a backslash."""
    held, first = "", 0
    for number, line in content_lines(text):
        held, first = f"{held} {line}".strip(), first or number
        if held.endswith("\\"):
            held = held[:-1]
            continue
        yield first, held
        held, first = "", 0
    if held:
        yield first, held


def _as_list(given: Any) -> list[Any]:
    return given if isinstance(given, list) else [] if given is None else [given]


def _places(sides: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The places of a box, the first coordinate counting fastest."""
    return (place[::-1] for place in product(*(range(side) for side in reversed(sides))))


def _tree(topology: _Topology, reader: _Reader) -> Iterator[Cable]:
    by_name = _by_name(topology.groups, reader)
    for group in topology.groups:
        yield from (Cable((host, group.name), line=group.line) for host in group.hosts)
    seen: set[frozenset[str]] = set()
    for group in topology.groups:
        for name in group.below:
            pair = frozenset((name, group.name))
            if name not in by_name or name == group.name:
                near = nearest(name, by_name)
                hint = f"; did you mean {near!r}?" if near and near != name else ""
                message = f"{group.name} has an invalid child {name!r}: no other switch has that name{hint}"
                reader.wrong(message, group.line)
            elif pair not in seen:
                seen.add(pair)
                yield Cable((name, group.name), line=group.line)
    if circle := _circle(by_name):
        topology.remarks.append(f"{listed(circle)} are below each other, which Slurm refuses")


def _by_name(groups: Iterable[_Group], reader: _Reader) -> dict[str, _Group]:
    by_name: dict[str, _Group] = {}
    for group in groups:
        if group.name in by_name or group.name in reader.hosts:
            taken = f"on line {by_name[group.name].line}" if group.name in by_name else "of a node"
            reader.wrong(f"the name {group.name} is used already, {taken}", group.line)
        by_name.setdefault(group.name, group)
    return by_name


def _circle(by_name: Mapping[str, _Group]) -> list[str]:
    """Switches that are below each other, if there are some: those that are left when leaves are taken away."""
    left = {name: {low for low in group.below if low in by_name and low != name} for name, group in by_name.items()}
    while gone := [name for name, below in left.items() if not below & left.keys()]:
        for name in gone:
            del left[name]
    return list(left)


def _blocks(topology: _Topology, reader: _Reader) -> Iterator[Cable]:
    by_name = _by_name(topology.groups, reader)
    used = {*by_name, *reader.hosts}
    for group in topology.groups:
        yield from (Cable((host, group.name), line=group.line) for host in group.hosts)
    tops, base = list(by_name), topology.sizes[0] if topology.sizes else 1
    before = base
    for size in topology.sizes[1:]:
        ratio = size // before if size % before == 0 else 0
        if ratio < 2 or ratio & (ratio - 1):
            reader.wrong(f"a block of {size} is not two, four, eight ... times one of {before}", None)
            return
        parts = [tops[at : at + ratio] for at in range(0, len(tops), ratio)]
        tops, before = [unused(f"block{size}-{number}", used) for number in range(len(parts))], size
        yield from (Cable((low, top)) for top, part in zip(tops, parts, strict=True) for low in part)
    if len(tops) > 1:
        root = unused("fabric", used)
        yield from (Cable((top, root)) for top in tops)


def _rings(topology: _Topology, reader: _Reader) -> Iterator[Cable]:
    for group in topology.groups:
        places: dict[tuple[int, ...], str] = {(at,): host for at, host in enumerate(group.hosts)}
        yield from _torus((len(group.hosts),), places, "" if len(topology.groups) == 1 else f"{group.name}-")
    _by_name(topology.groups, reader)


def _toruses(topology: _Topology, reader: _Reader) -> Iterator[Cable]:
    for table in topology.toruses:
        sides, hosts = reader.torus(table)
        yield from _torus(sides, hosts, "" if len(topology.toruses) == 1 else f"{table.get('name')}-")


def _torus(sides: Sequence[int], hosts: Mapping[tuple[int, ...], str], prefix: str) -> Iterator[Cable]:
    """A switch at each place, joined with its neighbours; the names are those of the topology ``torus``."""

    def name(place: Sequence[int]) -> str:
        return f"{prefix}switch-{'-'.join(map(str, place))}"

    for place in _places(sides):
        if place in hosts:
            yield Cable((hosts[place], name(place)))
    for place in _places(sides):
        for axis, side in enumerate(sides):
            if side > 1:
                yield Cable((name(place), name((*place[:axis], (place[axis] + 1) % side, *place[axis + 1 :]))))
