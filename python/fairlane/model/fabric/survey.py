"""Survey of a cabling: levels, kind of tree, hosts per leaf, oversubscription, and anomalies."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from numpy import bincount

from fairlane.core.units import BANDWIDTH
from fairlane.core.wording import plural, some
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Cable, Wiring

_NAMED = 3  # cables, trunks and hosts that an anomaly names


@dataclass(frozen=True)
class Survey:
    """The survey of a fabric."""

    hosts: int
    switches: int
    cables: int
    levels: dict[int, tuple[str, ...]]
    """The switches of each level: 1 are the leaves of a tree, which have most hosts."""
    tree: str
    """The kind of tree, or why it is none."""
    hosts_per_leaf: dict[str, int]
    """Number of hosts of each leaf."""
    adapters: dict[int, int]
    """Number of hosts with 1, 2, ... cables to the fabric."""
    oversubscription: dict[str, float]
    """For each leaf: the bandwidth of its hosts over that of its links to other switches."""
    kinds: dict[str, int]
    """Number of cables by their name in the source, e.g. ``4xQDR``, or by bandwidth."""
    anomalies: tuple[str, ...]
    """Cables, hosts and switches that differ from most others at their level."""


def survey(wiring: Wiring) -> Survey:
    """Surveys a cabling; raises ``BuildError`` if it is no fabric: not connected, a port used twice."""
    fabric = wiring.fabric("minimal" if wiring.groups else "up_down")
    levels = {name: max(1, level) for name, level in zip(wiring.switches, fabric.levels, strict=True)}
    by_level: dict[int, list[str]] = defaultdict(list)
    for switch, level in levels.items():
        by_level[level].append(switch)
    down, up = _bandwidths(fabric, levels)
    hosts, leaves = set(wiring.hosts), by_level[1]
    attached = {frozenset(cable.ends) for cable in wiring.cables if hosts & {*cable.ends}}
    at_leaf = Counter(end for ends in attached for end in ends if end not in hosts)
    cables = Counter(end for cable in wiring.cables for end in cable.ends if end in hosts)
    return Survey(
        hosts=len(wiring.hosts),
        switches=len(levels),
        cables=len(wiring.cables),
        levels={level: tuple(names) for level, names in sorted(by_level.items())},
        tree=_tree(wiring, levels, fabric),
        hosts_per_leaf={leaf: at_leaf[leaf] for leaf in leaves},
        adapters=dict(sorted(Counter(cables.values()).items(), reverse=True)),
        oversubscription={leaf: down[leaf] / up[leaf] for leaf in leaves if up[leaf]},
        kinds=dict(Counter(_kind(cable) for cable in wiring.cables).most_common()),
        anomalies=tuple(_anomalies(wiring, levels, fabric)),
    )


def _kind(cable: Cable) -> str:
    return cable.kind or (BANDWIDTH.format(cable.bandwidth) if cable.bandwidth else "default")


def _bandwidths(fabric: Fabric, switches: Iterable[str]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bandwidth of each switch to its hosts, and to other switches, bits per second."""
    links, names = fabric.links, list(switches)
    sums_by_name = []
    for to in ("to_host", "to_switch"):
        chosen = (links["from_switch"] >= 0) & (links[to] >= 0)
        sums = bincount(links["from_switch"][chosen], links["bandwidth"][chosen], minlength=len(names))
        sums_by_name.append({name: int(rate) for name, rate in zip(names, sums.tolist(), strict=True)})
    return sums_by_name[0], sums_by_name[1]


def _trunks(wiring: Wiring, levels: dict[str, int]) -> Counter[tuple[str, str]]:
    """Parallel cables of each pair of joined switches, the lower one first."""
    between = (cable.ends for cable in wiring.cables if set(cable.ends) <= levels.keys())
    return Counter((low, high) for low, high in (sorted(ends, key=levels.__getitem__) for ends in between))


def _tree(wiring: Wiring, levels: dict[str, int], fabric: Fabric) -> str:
    top = max(levels.values())
    if wiring.groups:
        return _of_groups(wiring, *wiring.groups)
    trunks = _trunks(wiring, levels)
    across = sum(count for (low, high), count in trunks.items() if levels[low] == levels[high])
    if not fabric.is_tree:
        shape_name = "no tree: every switch has hosts" if top == 1 else "no tree"
        return f"{shape_name}, and {across} of {trunks.total()} cables between switches stay within a level"
    if top == 1:
        return "a single switch" if len(levels) == 1 else "leaves without anything above them"
    missing = []
    for level, above in pairwise(sorted(set(levels.values()))):
        lower = [name for name, level_of in levels.items() if level_of == level]
        upper = [name for name, level_of in levels.items() if level_of == above]
        missing += [(low, high) for low in lower for high in upper if (low, high) not in trunks]
    shape = " - ".join(str(sum(level_of == level for level_of in levels.values())) for level in range(1, top + 1))
    kind = f"a tree of {top} levels, {shape} switches"
    if top > 2:
        return kind
    if not missing:
        return f"{kind}; every leaf is joined with every spine"
    return f"{kind}; {len(missing)} pairs of leaf and spine are not joined, as {missing[0][0]} - {missing[0][1]}"


def _of_groups(wiring: Wiring, size: int, row: int) -> str:
    group = {name: at // size for at, name in enumerate(wiring.switches)}
    pairs = (sorted(group.get(end, -1) for end in cable.ends) for cable in wiring.cables)
    between = Counter((a, b) for a, b in pairs if 0 <= a < b)
    count = len(group) // size
    counts = sorted(set(between.values()))
    missing = count * (count - 1) // 2 - len(between)
    cables = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}" if counts else "no"
    grid = f" ({row} x {size // row})" if row != size else ""
    groups = f"{count} groups of {size} switches{grid}, {cables} cables between two groups"
    return f"{groups}; {missing} pairs of groups are not joined" if missing and counts else groups


def _anomalies(wiring: Wiring, levels: dict[str, int], fabric: Fabric) -> Iterator[str]:
    yield from wiring.remarks
    if wiring.groups:
        yield from _unusual_hosts(wiring)
        return
    yield from fabric.exceptions
    yield from _unusual_speeds(wiring, levels)
    yield from _slower_than_peers(wiring)
    yield from _unusual_trunks(wiring, levels)
    yield from _unusual_hosts(wiring)
    top = max(levels.values())
    above = [switch for switch, level in levels.items() if level == top]
    if top > 2 and len(above) == 1:  # an alternative path, or a spare
        yield f"switch {above[0]} (level {top}) joins only switches of level {top - 1}, no hosts"


def _unusual_speeds(wiring: Wiring, levels: dict[str, int]) -> Iterator[str]:
    """Cables slower or faster than most between the same levels."""
    between: dict[tuple[int, int], list[Cable]] = defaultdict(list)
    for cable in wiring.cables:
        low, high = sorted(levels.get(end, 0) for end in cable.ends)
        between[low, high].append(cable)
    for (low, high), cables in sorted(between.items()):
        usual = Counter(_kind(cable) for cable in cables).most_common(1)[0][0]
        others = [cable for cable in cables if _kind(cable) != usual]
        if not others:
            continue
        where = f"between level {low} and {high}" if low else "to hosts"
        yield f"{len(others)} of {len(cables)} cables {where} are not {usual}: {some(map(_worded, others), _NAMED)}"
    apart = [_worded(cable) for cable in wiring.cables if " and " in cable.kind]
    if apart:
        yield f"{plural(len(apart), 'cable has', 'cables have')} ends of different speeds: {some(apart, _NAMED)}"


def _slower_than_peers(wiring: Wiring) -> Iterator[str]:
    """Cables slower than others of their trunk, or than others of their host."""
    hosts = set(wiring.hosts)
    peers: dict[tuple[str, tuple[str, ...]], list[Cable]] = defaultdict(list)
    for cable in wiring.cables:
        if cable.bandwidth is not None:
            host = next((end for end in cable.ends if end in hosts), None)
            peers[("host", (host,)) if host else ("trunk", tuple(sorted(cable.ends)))].append(cable)
    for whose in ("host", "trunk"):
        slow = []
        for (kind, _), cables in peers.items():
            best = max(cable.bandwidth or 0 for cable in cables)
            slow += [_worded(slower) for slower in cables if kind == whose and (slower.bandwidth or 0) < best]
        if slow:
            verb = "cable is slower" if len(slow) == 1 else "cables are slower"
            yield f"{len(slow)} {verb} than another one of the same {whose}: {some(slow, _NAMED)}"


def _worded(cable: Cable) -> str:
    return f"{cable} {_kind(cable)}{f' (line {cable.line})' if cable.line else ''}"


def _unusual_trunks(wiring: Wiring, levels: dict[str, int]) -> Iterator[str]:
    """Pairs of switches with more or fewer cables than most of the same levels."""
    by_levels: dict[tuple[int, int], dict[tuple[str, str], int]] = defaultdict(dict)
    for (a, b), count in _trunks(wiring, levels).items():
        by_levels[levels[a], levels[b]][a, b] = count
    for (low, high), trunks in sorted(by_levels.items()):
        usual = Counter(trunks.values()).most_common(1)[0][0]
        others = [f"{a} - {b} has {count}" for (a, b), count in trunks.items() if count != usual]
        if others:
            yield f"trunks between level {low} and {high} have {usual} cables, but {some(others, _NAMED)}"


def _unusual_hosts(wiring: Wiring) -> Iterator[str]:
    """Hosts with more or fewer cables than most: jobs on them have fewer rails."""
    counts = Counter(end for cable in wiring.cables for end in cable.ends)
    lines = {end: cable.line for cable in reversed(wiring.cables) for end in cable.ends}
    usual = int(median(counts[host] for host in wiring.hosts))
    unlike = (host for host in wiring.hosts if counts[host] != usual)
    others = [f"{host} has {counts[host]}{f' (line {lines[host]})' if lines[host] else ''}" for host in unlike]
    if others:
        yield f"hosts have {usual} cable{'s' * (usual != 1)}, but {some(others, _NAMED)}"
