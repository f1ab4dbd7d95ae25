"""Packed placement: as few leaf switches as possible, like Slurm's best fit on a tree."""

from collections.abc import Sequence

import numpy

from fairlane.placement.base import FabricView, by_leaf

__all__ = ["packed"]


def packed(free: Sequence[int], count: int, fabric: FabricView, _rng: numpy.random.Generator) -> list[int]:
    """Hosts under as few leaf switches as possible; the last switch is the fullest one that has room for the rest."""
    leaves = by_leaf(free, fabric)
    taken: list[int] = []
    while len(taken) < count:
        missing = count - len(taken)
        enough = [leaf for leaf, hosts in leaves.items() if len(hosts) >= missing]
        best = (
            min(enough, key=lambda leaf: len(leaves[leaf]))
            if enough
            else max(leaves, key=lambda leaf: len(leaves[leaf]))
        )
        taken += leaves.pop(best)[:missing]
    return taken
