"""The subtrees of a fabric with levels."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy
from numpy.typing import NDArray


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
    found: list[int] = connected_components(graph.tocsr(), directed=False)[1].tolist()
    return found
