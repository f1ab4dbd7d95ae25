"""Spread placement: as many leaf switches as possible."""

from collections.abc import Sequence
from itertools import zip_longest

from fairlane.placement.base import FabricView, PlacementPolicy, Request, by_leaf

__all__ = ["Spread"]


class Spread(PlacementPolicy):
    """Free hosts of the leaf switches, round-robin: neighbouring ranks are under different switches."""

    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        """One host of each leaf switch in turn."""
        if len(free) < request.hosts:
            return None
        rounds = zip_longest(*by_leaf(free, fabric).values())
        return [host for hosts in rounds for host in hosts if host is not None][: request.hosts]
