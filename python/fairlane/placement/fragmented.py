"""Fragmented placement: what is left on a system where jobs of all sizes came and went (Wilke 2020, section V).

Such a system's free hosts are runs of neighbours of many lengths; a launcher puts a job on some of them and keeps the
order of hosts, so that neighbouring ranks are as near to each other as the runs allow.
"""

from collections import Counter
from collections.abc import Sequence

import numpy

from fairlane.placement.base import FabricView, PlacementPolicy, Request

__all__ = ["Fragmented"]


class Fragmented(PlacementPolicy):
    """Random runs of neighbouring free hosts, none longer than a leaf switch's hosts, in ascending order."""

    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        """Hosts of random runs, in ascending order."""
        if len(free) < request.hosts:
            return None
        longest = max(Counter(fabric.leaf_of).values())
        lengths = 1 + (request.rng.random(len(free)) * longest).astype(int)
        ends = numpy.cumsum(lengths)
        runs = numpy.split(numpy.asarray(free), ends[ends < len(free)])
        order = numpy.argsort(request.rng.random(len(runs)), kind="stable")
        taken = numpy.concatenate([runs[at] for at in order])[: request.hosts]
        found: list[int] = numpy.sort(taken).tolist()
        return found
