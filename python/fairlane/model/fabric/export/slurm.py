"""Slurm's descriptions of a fabric: ``topology.conf`` and, from Slurm 25.05 on, ``topology.yaml``.

Both are for one of Slurm's topology plugins: ``tree``, ``block``, and from Slurm 26.05 on ``ring`` and, in YAML,
``torus3d``. Cables have no place in them.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.hosts import compress, in_order
from fairlane.model.fabric.export.cables import Written
from fairlane.model.fabric.slurm_topology import LARGEST_RING, Torus, torus_of, tree_of
from fairlane.model.fabric.wiring import Wiring

_Rows = tuple[list[tuple[str, str, str, str]], tuple[str, ...]]  # kind, name, key and list of each line; notes


def write_topology_conf(wiring: Wiring, *, merged: bool = False, plugin: str = "tree") -> Written:
    """The file; names that Slurm does not take are changed, with a note on each.

    With ``merged`` one switch stands for all that join the same ones below, so that each is below one other.
    """
    if plugin == "torus3d":
        raise ScenarioError(Problem("--plugin", "is described in topology.yaml only", plugin, "--topology-yaml"))
    rows, notes = _of_plugin(wiring, plugin, merged=merged)
    lines = [f"{kind}Name={name} {key}={members}" for kind, name, key, members in rows]
    lines += [f"BlockSizes={_block_size(wiring)}"] if plugin == "block" else []
    return Written("".join(f"{line}\n" for line in (*(f"# {note}" for note in notes), *lines)), notes)


def write_topology_yaml(wiring: Wiring, *, merged: bool = False, plugin: str = "tree") -> Written:
    """The same as YAML: one topology, ``default``."""
    import yaml

    if plugin == "torus3d":
        torus = torus_of(wiring)
        data: dict[str, Any] = {"toruses": [_torus(torus)]}
        notes = torus.changes
    else:
        rows, notes = _of_plugin(wiring, plugin, merged=merged)
        keys = {"Nodes": "nodes", "Switches": "children"}
        entries = [{kind.lower(): name, keys[key]: members} for kind, name, key, members in rows]
        plural = {"tree": "switches", "block": "blocks", "ring": "rings"}[plugin]
        data = {**({"block_sizes": [_block_size(wiring)]} if plugin == "block" else {}), plural: entries}
    table = [{"topology": "default", "cluster_default": True, plugin: data}]
    text = yaml.safe_dump(table, sort_keys=False, explicit_start=True, allow_unicode=True, width=float("inf"))
    return Written(text, notes)


def _of_plugin(wiring: Wiring, plugin: str, *, merged: bool) -> _Rows:
    if merged and plugin != "tree":
        raise ScenarioError(Problem("--merged", "needs the plugin tree", plugin))
    return _PLUGINS[plugin](wiring, merged)


def _tree(wiring: Wiring, merged: bool) -> _Rows:
    tree = tree_of(wiring, merged=merged)
    rows = [
        ("Switch", entry.name, "Nodes" if entry.has_hosts else "Switches", compress(entry.members))
        for entry in tree.entries
    ]
    return rows, tree.changes


def _blocks(wiring: Wiring, _: bool) -> _Rows:
    tree = tree_of(wiring, merged=True)
    return [("Block", leaf.name, "Nodes", compress(leaf.members)) for leaf in tree.leaves], tree.changes


def _block_size(wiring: Wiring) -> int:
    """The size of the smallest block: each has at least as many hosts."""
    return min(len(leaf.members) for leaf in tree_of(wiring, merged=True).leaves)


def _ring(wiring: Wiring, _: bool) -> _Rows:
    torus = torus_of(wiring)
    if sum(side > 1 for side in torus.sides) > 1 or len(torus.hosts) > LARGEST_RING:
        shape = " x ".join(map(str, torus.sides))
        message = f"is a torus of {shape} hosts, and a ring of Slurm has one dimension and at most {LARGEST_RING} hosts"
        raise ScenarioError(Problem("fabric", message, allowed="--plugin torus3d"))
    return [("Ring", "ring0", "Nodes", in_order(torus.hosts))], torus.changes


_PLUGINS: Mapping[str, Callable[[Wiring, bool], _Rows]] = {"tree": _tree, "block": _blocks, "ring": _ring}
PLUGINS = (*_PLUGINS, "torus3d")
"""The plugins of Slurm by name."""


def _torus(torus: Torus) -> dict[str, Any]:
    """The torus with its placements: the most compact box of each size whose sides divide those of the torus."""
    boxes: dict[int, tuple[int, int, int]] = {}
    for x, y, z in product(*(_divisors(side) for side in torus.sides)):
        size = x * y * z
        boxes[size] = min(boxes.get(size, (x, y, z)), (x, y, z), key=lambda corner: (sum(corner), corner))
    placements = [{"dims": dict(zip("xyz", boxes[size], strict=True))} for size in sorted(boxes)]
    dims = dict(zip("xyz", torus.sides, strict=True))
    return {"name": "torus0", "dims": dims, "nodes": in_order(torus.hosts), "placements": placements}


def _divisors(side: int) -> Iterable[int]:
    return (number for number in range(1, side + 1) if side % number == 0)
