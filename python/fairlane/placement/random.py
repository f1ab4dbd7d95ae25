"""Random placement: what a busy system's scheduler comes to in the long run (Savoie 2020, section 5.2)."""

from collections.abc import Sequence

import numpy

from fairlane.placement.base import FabricView, PlacementPolicy, Request

__all__ = ["Random"]


class Random(PlacementPolicy):
    """Free hosts drawn uniformly at random, in random order."""

    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        """Any free hosts."""
        del fabric
        if len(free) < request.hosts:
            return None
        order = numpy.argsort(request.rng.random(len(free)), kind="stable")
        return [free[at] for at in order[: request.hosts]]
