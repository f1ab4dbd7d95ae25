"""Fabrics as Slurm's topology plugins know them: trees of switches, blocks, rings, tori of three dimensions.

Tree: every host is below the switch of its first adapter, and no other, for Slurm has a host at one leaf only. As it is
wired, every switch above has the switches directly below it; those that have no host below them are left out. Slurm
wants one switch above each, though, and real trees have several; so *merged* switches stand for all that join the same
ones below: a subtree of each level, a group of a dragonfly. A switch with hosts and with switches below has its hosts
at an entry of their own, because Slurm takes either. If no switch reaches all hosts, a root does: Slurm starts no job
across switches that are not joined.

Blocks are the hosts of a leaf each. Rings and tori are recognised by the names of their switches, ``switch-0-1-2``, and
by every cable between them.

Names that Slurm does not take are changed; ``changes`` has a sentence on each, and on what is left out.

*Slurm's ``topology.yaml`` as tables that know their line, and lists. Scalars are texts: a host may be called 0123.*
Anchors and aliases, by which a small file can stand for a huge one, are refused.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import plural, renamed, some
from fairlane.inputs.files import MOST_DEPTH
from fairlane.inputs.hosts import can_hold, slurm_names, unused
from fairlane.model.fabric.levels import subtrees
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Wiring


class YamlError(ValueError):
    """Fault of a file, and its line."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class YamlTable(dict[str, Any]):
    """A table, with the number of its first line."""

    line: int = 0


def parse_yaml(text: str) -> Any:
    """Tables, lists and texts of a document; an empty value is None. Raises ``YamlError`` with the line."""
    import yaml

    try:
        document = _Document()
        for event in yaml.parse(text, Loader=getattr(yaml, "CLoader", yaml.Loader)):
            document.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = ": ".join(filter(None, (error.context, error.problem)))
        raise YamlError(message, mark.line + 1 if mark else 1) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(f"the character {error.character!r} is not allowed", line) from None
    return document.value


class _Document:
    """A document, put together from the events of its parser."""

    def __init__(self) -> None:
        self.value: Any = None
        self._documents = 0
        self._open: list[YamlTable | list[Any]] = []
        self._keys: list[str | None] = []  # of each open table, the key that waits for its value

    def take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if getattr(event, "anchor", None) is not None:
            raise YamlError("anchors and aliases are not supported", line)
        match type(event).__name__:
            case "DocumentStartEvent":
                self._documents += 1
                if self._documents > 1:
                    raise YamlError("a second document begins", line)
            case "ScalarEvent":
                self._put(event.value if event.value or event.style else None, line)
            case "MappingStartEvent":
                table = YamlTable()
                table.line = line
                self._begin(table, line)
            case "SequenceStartEvent":
                self._begin([], line)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._open.pop()
                self._keys.pop()

    def _begin(self, value: YamlTable | list[Any], line: int) -> None:
        if len(self._open) == MOST_DEPTH:
            raise YamlError(f"tables or lists are nested more than {MOST_DEPTH} deep", line)
        self._put(value, line)
        self._open.append(value)
        self._keys.append(None)

    def _put(self, value: Any, line: int) -> None:
        """A value to where it belongs; a text may be the key of the value that comes next."""
        if not self._open:
            self.value = value
        elif isinstance(self._open[-1], list):
            self._open[-1].append(value)
        elif self._keys[-1] is not None:
            self._open[-1][self._keys[-1]] = value
            self._keys[-1] = None
        elif not isinstance(value, str):
            raise YamlError("a key has to be a text", line)
        elif value in self._open[-1]:
            raise YamlError(f"duplicate key {value}", line)
        else:
            self._keys[-1] = value


LONGEST_NAME = 64
"""Letters of a switch's name."""
LARGEST_RING = 16
"""Hosts of a ring."""
_SHOWN = 3  # switches that a sentence names
_COORDINATES = re.compile(r"switch((?:-\d+){1,3})")


@dataclass(frozen=True)
class Entry:
    """A switch: either hosts are at it, or switches are below it."""

    name: str
    has_hosts: bool
    members: tuple[str, ...]


@dataclass(frozen=True)
class Tree:
    """The entries for Slurm's tree plugin."""

    entries: tuple[Entry, ...]
    changes: tuple[str, ...]

    @property
    def leaves(self) -> tuple[Entry, ...]:
        """The entries with hosts."""
        return tuple(entry for entry in self.entries if entry.has_hosts)


@dataclass(frozen=True)
class Torus:
    """Hosts on a torus of up to three dimensions, one at each switch."""

    sides: tuple[int, int, int]
    hosts: tuple[str, ...]
    """By coordinate, the first one counting fastest."""
    changes: tuple[str, ...]


def tree_of(wiring: Wiring, *, merged: bool) -> Tree:
    """The tree of a fabric.

    Switches whose names Slurm does not take are named by GUID.
    """
    fabric = wiring.fabric("up_down")
    nodes, names, changes = _names(wiring)
    at_leaf: dict[int, list[str]] = {}
    for host, leaf in zip(nodes, fabric.leaf_of, strict=True):
        at_leaf.setdefault(leaf, []).append(host)
    used = set(names)
    if merged:
        above = _merged(fabric, names, set(at_leaf), used)
        leaves = {names[leaf]: tuple(hosts) for leaf, hosts in sorted(at_leaf.items())}
    else:
        below = _below(fabric, set(at_leaf))
        leaves = {
            _leaf_name(names[leaf], used) if below.get(leaf) else names[leaf]: tuple(hosts)
            for leaf, hosts in sorted(at_leaf.items())
        }
        leaf_names = dict(zip(sorted(at_leaf), leaves, strict=True))
        above = {
            names[at]: [*([leaf_names[at]] if at in leaf_names else []), *(names[low] for low in lower)]
            for at, lower in sorted(below.items())
            if lower
        }
        absent = [names[at] for at in range(fabric.switches) if at not in below and at not in at_leaf]
        if absent:
            change = f"{plural(len(absent), 'switch', 'switches')} without hosts of a first adapter below left out"
            changes.append(f"{change}: {some(absent, _SHOWN)}")
        apart = [names[at] for at in sorted(at_leaf) if below.get(at)]
        if apart:
            change = f"hosts of {plural(len(apart), 'switch', 'switches')} that join others have an entry of their own"
            changes.append(f"{change}: {some(apart, _SHOWN)}")
    entries = [
        *(Entry(name, True, hosts) for name, hosts in leaves.items()),
        *(Entry(name, False, tuple(lower)) for name, lower in above.items()),
    ]
    return Tree((*entries, *_root(entries, used)), tuple(changes))


def torus_of(wiring: Wiring) -> Torus:
    """The torus that a fabric is. Raises ``ScenarioError`` if it is none with a host at each switch."""
    matches = {name: _COORDINATES.fullmatch(name) for name in wiring.switches}
    places = {name: tuple(map(int, match[1].split("-")[1:])) for name, match in matches.items() if match}
    if len(places) != len(matches) or len({len(place) for place in places.values()}) != 1:
        raise _no_torus("its switches are not named by coordinates")
    padded = {name: (*place, 0, 0)[:3] for name, place in places.items()}
    sides = tuple(1 + max(place[axis] for place in padded.values()) for axis in range(3))
    if len(set(padded.values())) != prod(sides):
        raise _no_torus(f"it has {len(padded)} switches, and {' x '.join(map(str, sides))} places")
    hosts = set(wiring.hosts)
    joined = {frozenset(match.ends) for match in wiring.cables if not hosts & set(match.ends)}
    at = {place: name for name, place in padded.items()}
    if joined != {frozenset((at[place], at[next_one])) for place in at for next_one in _neighbours(place, sides)}:
        raise _no_torus("its cables are not those between neighbours")
    host_at: dict[str, list[str]] = {}
    for cable in wiring.cables:
        if host := next((end for end in cable.ends if end in hosts), None):
            (switch,) = set(cable.ends) - {host}
            if host not in host_at.setdefault(switch, []):
                host_at[switch].append(host)
    if any(len(host_at.get(name, ())) != 1 for name in padded) or len(hosts) != len(padded):
        raise _no_torus("a switch has no host, or several")
    nodes, _, changes = _names(wiring)
    called = dict(zip(wiring.hosts, nodes, strict=True))
    order = sorted(padded, key=lambda name: padded[name][::-1])
    return Torus((sides[0], sides[1], sides[2]), tuple(called[host_at[name][0]] for name in order), tuple(changes))


def _no_torus(reason: str) -> ScenarioError:
    message = f"is no torus: {reason}"
    allowed = "one, two or three dimensions, one host at each switch, and switches called switch-0-0-0"
    return ScenarioError(Problem("fabric", message, allowed=allowed))


def _neighbours(place: Sequence[int], sides: Sequence[int]) -> Iterable[tuple[int, ...]]:
    for axis, side in enumerate(sides):
        if side > 1:
            yield (*place[:axis], (place[axis] + 1) % side, *place[axis + 1 :])


def _names(wiring: Wiring) -> tuple[list[str], list[str], list[str]]:
    """The names of hosts and switches for Slurm, and sentences on those that are others."""
    guids = {name: f"S-{guid:016x}" for guid, name in wiring.guids.items()}
    given = [
        name if can_hold(name) and len(name) <= LONGEST_NAME else guids.get(name, name) for name in wiring.switches
    ]
    short = [name if len(name) <= LONGEST_NAME else f"switch{at}" for at, name in enumerate(given)]
    nodes, names = slurm_names(wiring.hosts), slurm_names(short, word="switch")
    changes = [*renamed("host", wiring.hosts, nodes), *renamed("switch", wiring.switches, names, more="switches")]
    return nodes, names, changes


def _leaf_name(switch: str, used: set[str]) -> str:
    """A name for the entry with the hosts of a switch that joins others."""
    return unused(f"{switch[: LONGEST_NAME - 12]}-hosts", used)


def _root(entries: Sequence[Entry], used: set[str]) -> list[Entry]:
    """A switch above all that have none, unless one reaches all hosts."""
    by_name = {entry.name: entry for entry in entries}
    reached: dict[str, frozenset[str]] = {}
    for entry in entries:  # leaves come first, then switches by level or after those below them
        _reach(entry, by_name, reached)
    hosts = frozenset(host for entry in entries if entry.has_hosts for host in entry.members)
    if any(reached_hosts == hosts for reached_hosts in reached.values()):
        return []
    lower = {name for entry in entries if not entry.has_hosts for name in entry.members}
    return [Entry(unused("fabric", used), False, tuple(name for name in by_name if name not in lower))]


def _reach(entry: Entry, by_name: Mapping[str, Entry], reached: dict[str, frozenset[str]]) -> frozenset[str]:
    """The hosts below a switch."""
    if entry.name not in reached:
        below = [] if entry.has_hosts else [_reach(by_name[name], by_name, reached) for name in entry.members]
        reached[entry.name] = frozenset(entry.members if entry.has_hosts else ()).union(*below)
    return reached[entry.name]


def _below(fabric: Fabric, leaves: set[int]) -> dict[int, list[int]]:
    """The switches directly below each, without those that have no host below them; leaves without any have none."""
    joined, levels = _joined(fabric), fabric.levels
    lower_of: dict[int, list[int]] = {}
    for at in sorted(range(fabric.switches), key=levels.__getitem__):
        lower = [low for low in sorted(joined[at]) if levels[low] < levels[at] and (low in leaves or lower_of.get(low))]
        if lower:
            lower_of[at] = lower
    return lower_of


def _merged(fabric: Fabric, names: Sequence[str], leaves: set[int], used: set[str]) -> dict[str, list[str]]:
    """One switch for each subtree or group."""
    below_of: dict[str, list[str]] = {}
    tops = {leaf: names[leaf] for leaf in sorted(leaves)}
    for word, domain_of in _domains(fabric):
        parts: dict[int, list[int]] = {}
        for leaf in tops:
            parts.setdefault(domain_of[leaf], []).append(leaf)
        for number, members in enumerate(parts.values()):
            below = list(dict.fromkeys(tops[leaf] for leaf in members))
            if len(below) > 1:
                name = unused(f"{word}{number}", used)
                below_of[name] = below
                tops.update(dict.fromkeys(members, name))
    return below_of


def _domains(fabric: Fabric) -> list[tuple[str, list[int]]]:
    """Group leaf switches into domains, the smallest ones first."""
    if fabric.plan["kind"] == "groups":
        size = fabric.plan["switches"]
        return [("group", [switch // size for switch in range(fabric.switches)])]
    return [(f"level{level}-", subtrees(fabric, level)) for level in range(2, max(fabric.levels, default=0) + 1)]


def _joined(fabric: Fabric) -> list[set[int]]:
    a, b = fabric.links["from_switch"], fabric.links["to_switch"]
    neighbours: list[set[int]] = [set() for _ in range(fabric.switches)]
    for low, high in zip(*(end[(a >= 0) & (b >= 0)].tolist() for end in (a, b)), strict=True):
        neighbours[low].add(high)
    return neighbours
