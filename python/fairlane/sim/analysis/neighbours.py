"""Distance of two hosts by types of the fabric's topology: one small function for each family.

| family | types, from near to far |
|---|---|
| groups | same host, same switch, row link, column link (without rows: direct link), same group, other group |
| tree | same host, same switch, same subtree (of each level), other subtree |
| grid | same host, same switch, 1 hop, 2 hops ... by the grid's coordinates |
| any other | the same by links on a minimal path |

Row and column are those of a Cascade's groups, joined by green and black links.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairlane.core.errors import ResultsError
from fairlane.model.fabric.levels import subtrees
from fairlane.model.fabric.view import Fabric

DIRECT = ("row link", "column link", "direct link")
"""The types of pairs whose switches are joined by a link of their group."""
MOST_HOPS = 8
"""Pairs that are further apart than this are one type."""

_Ints = NDArray[np.int64]


def ends(hosts: Sequence[int], pairs: pl.DataFrame) -> tuple[_Ints, _Ints]:
    """The hosts of the ranks in ``from_rank`` and ``to_rank``; raises ``ResultsError`` for ranks without a host."""
    of_rank = np.asarray(hosts, dtype=np.int64)
    for column in ("from_rank", "to_rank"):
        outside = pairs.filter(pl.col(column) >= len(hosts))
        if outside.height:
            raise ResultsError(
                f"the record: column {column!r} has {outside[column][0]}; the job has {len(hosts)} ranks"
            )
    return of_rank[pairs["from_rank"].to_numpy()], of_rank[pairs["to_rank"].to_numpy()]


def neighbour_types(fabric: Fabric, hosts: Sequence[int], pairs: pl.DataFrame) -> pl.DataFrame:
    """Adds to ``pairs`` of ranks, in ``from_rank`` and ``to_rank``, what neighbours they are: ``neighbour``.

    That is an enumeration whose order is from near to far. ``hosts`` are those of the ranks.
    """
    known = pairs.select("from_rank", "to_rank").unique(maintain_order=True)
    a, b = ends(hosts, known)
    leaves = np.asarray(fabric.leaf_of, dtype=np.int64)
    names, type_of = _beyond_switch(fabric, a, b, leaves)
    apart = type_of(leaves[a], leaves[b]) + 2
    code = np.where(a == b, 0, np.where((leaves[a] == leaves[b]) & (leaves[a] >= 0), 1, apart))
    kind = pl.Enum(["same host", "same switch", *names])
    types = known.with_columns(pl.Series("neighbour", kind.categories.gather(code), dtype=kind))
    return pairs.join(types, on=["from_rank", "to_rank"], how="left", maintain_order="left")


def groups_spanned(fabric: Fabric, hosts: Sequence[int]) -> int | None:
    """Count the groups of the fabric that these hosts are in; None if it has no groups."""
    if fabric.plan["kind"] != "groups":
        return None
    return len({fabric.leaf_of[host] // fabric.plan["switches"] for host in hosts})


_Typing = tuple[list[str], Callable[[_Ints, _Ints], _Ints]]


def _beyond_switch(fabric: Fabric, a: _Ints, b: _Ints, leaves: _Ints) -> _Typing:
    """The types of pairs on different switches, and a function from two switches to the number of the type."""
    plan: dict[str, Any] = fabric.plan
    if leaves.min() < 0:
        return _by_distance(fabric, a, b)
    if plan["kind"] == "groups":
        return _in_groups(fabric, plan["switches"], plan["row"])
    if plan["kind"] == "grid":
        return _on_grid(plan["sides"], plan["line"])
    if max(fabric.levels, default=0) > 1:
        return _in_tree(fabric)
    return _by_distance(fabric, a, b)


def _in_groups(fabric: Fabric, size: int, row: int) -> _Typing:
    names = ["row link", "column link", "direct link", "same group", "other group"]
    starts, ends = fabric.links["from_switch"], fabric.links["to_switch"]
    between = (starts >= 0) & (ends >= 0)
    joined = starts[between] * fabric.switches + ends[between]  # each pair of switches with a link, as one number

    def type_of(a: _Ints, b: _Ints) -> _Ints:
        direct = np.isin(a * fabric.switches + b, joined)
        in_row = (a % size) // row == (b % size) // row
        near = np.where(row == size, 2, np.where(in_row, 0, 1))
        return np.where(a // size != b // size, 4, np.where(direct, near, 3))

    return names, type_of


def _in_tree(fabric: Fabric) -> _Typing:
    top = max(fabric.levels)
    trees = [np.asarray(subtrees(fabric, level)) for level in range(2, top)]
    names = ["same subtree" if top == 3 else f"same subtree of level {level}" for level in range(2, top)]
    far = "other subtree" if trees else "other switch"

    def type_of(a: _Ints, b: _Ints) -> _Ints:
        code = np.full(len(a), len(trees))
        for number, tree in reversed(list(enumerate(trees))):
            code = np.where(tree[a] == tree[b], number, code)
        return code

    return [*names, far], type_of


def _on_grid(sides: Sequence[int], line: str) -> _Typing:
    def type_of(a: _Ints, b: _Ints) -> _Ints:
        hops = np.zeros(len(a), dtype=np.int64)
        for side in sides:
            apart = np.abs(a % side - b % side)
            hops += {"ring": np.minimum(apart, side - apart), "open": apart, "full": np.minimum(apart, 1)}[line]
            a, b = a // side, b // side
        return np.clip(hops, 1, MOST_HOPS + 1) - 1

    return _hops(), type_of


def _by_distance(fabric: Fabric, a: _Ints, b: _Ints) -> _Typing:
    used, place = np.unique(np.concatenate([a, b]), return_inverse=True)
    between = fabric.distances(used.tolist()).round().astype(np.int64)
    distance = between[place[: len(a)], place[len(a) :]]
    return _hops(), lambda _a, _b: np.clip(distance, 1, MOST_HOPS + 1) - 1


def _hops() -> list[str]:
    return ["1 hop", *(f"{count} hops" for count in range(2, MOST_HOPS + 1)), f"over {MOST_HOPS} hops"]
