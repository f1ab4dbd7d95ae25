"""Levels of a fabric: its subtrees, and what does not fit a tree, as hosts above the leaves, cables within a level."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy
from numpy.typing import NDArray

from fairlane.core.wording import some

if TYPE_CHECKING:
    from fairlane.model.fabric.graph import Graph

_NAMED = 4  # hosts, switches and cables of one kind that are named


def exceptions(fabric: "Graph") -> Iterator[str]:
    """Sentences, one for each kind of exception."""
    yield from _hosts_above(fabric)
    links = fabric.links
    keys = ("from_switch", "to_switch", "from_level", "to_level", "from_name", "to_name")
    apart: dict[tuple[bool, int, int], list[str]] = defaultdict(list)
    total = 0
    for a, b, level, other, begin, end in zip(*(links[key].tolist() for key in keys), strict=True):
        if 0 <= a < b:
            total += 1
            if abs(level - other) != 1:
                apart[level != other, min(level, other), max(level, other)].append(f"{begin} to {end}")
    for (skips, low, high), cables in sorted(apart.items()):
        levels = f"level {low} with level {high}" if skips else f"two of level {low}"
        yield f"{len(cables)} of {total} cables between switches join {levels}: {some(cables, _NAMED)}"


def _hosts_above(fabric: "Graph") -> Iterator[str]:
    links = fabric.links
    by_level: dict[int, dict[int, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
    names: dict[int, str] = {}
    keys = ("from_host", "to_switch", "to_level", "from_name", "to_name")
    for host, switch, level, begin, end in zip(*(links[key].tolist() for key in keys), strict=True):
        if host >= 0 and level > 1:
            by_level[level][switch][begin] = None
            names[switch] = end
    for level, switches in sorted(by_level.items()):
        hosts = {host for hosts_of in switches.values() for host in hosts_of}
        shown = [f"{names[switch]} ({some(hosts_of, _NAMED)})" for switch, hosts_of in sorted(switches.items())]
        verb = "is at a switch" if len(hosts) == 1 else "are at switches"
        yield f"{len(hosts)} of {fabric.hosts} hosts {verb} of level {level}: {some(shown, _NAMED)}"


class _Levels(Protocol):
    @property
    def levels(self) -> Sequence[int]: ...
    @property
    def links(self) -> Mapping[str, NDArray[numpy.int64]]: ...


def subtrees(fabric: _Levels, level: int) -> list[int]:
    """For each switch the number of its subtree: what stays joined when all switches above ``level`` are gone."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    levels = numpy.asarray(list(fabric.levels))
    a, b = fabric.links["from_switch"], fabric.links["to_switch"]
    keep = (a >= 0) & (b >= 0)
    a, b = a[keep], b[keep]
    below = (levels[a] <= level) & (levels[b] <= level)
    graph = coo_array((numpy.ones(below.sum()), (a[below], b[below])), shape=(len(levels), len(levels)))
    labels: list[int] = connected_components(graph.tocsr(), directed=False)[1].tolist()
    return labels
