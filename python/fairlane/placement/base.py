"""What a placement strategy is: it picks hosts for a job among those that are free."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import numpy

__all__ = ["FabricView", "Strategy", "by_leaf"]


class FabricView(Protocol):
    """What a strategy may know of the fabric."""

    @property
    def hosts(self) -> int:
        """How many hosts there are."""

    @property
    def leaf_of(self) -> Sequence[int]:
        """The switch at each host."""


class Strategy(Protocol):
    """Picks ``count`` of the ``free`` hosts for a job, in the order in which its ranks fill them.

    ``free`` is in ascending order and has at least ``count`` hosts; ``rng`` is the job's own stream of random numbers.
    """

    def __call__(
        self, free: Sequence[int], count: int, fabric: FabricView, rng: numpy.random.Generator, /
    ) -> list[int]:
        """The hosts."""


def by_leaf(free: Sequence[int], fabric: FabricView) -> dict[int, list[int]]:
    """The free hosts of each leaf switch, both in ascending order."""
    leaves: dict[int, list[int]] = defaultdict(list)
    for host in free:
        leaves[fabric.leaf_of[host]].append(host)
    return dict(sorted(leaves.items()))
