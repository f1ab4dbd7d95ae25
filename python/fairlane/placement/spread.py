"""Spread placement: as many leaf switches as possible."""

from collections.abc import Sequence
from itertools import zip_longest

import numpy

from fairlane.placement.base import FabricView, by_leaf

__all__ = ["spread"]


def spread(free: Sequence[int], count: int, fabric: FabricView, _rng: numpy.random.Generator) -> list[int]:
    """One free host of each leaf switch in turn, so that neighbouring ranks sit under different switches."""
    rounds = zip_longest(*by_leaf(free, fabric).values())
    return [host for hosts in rounds for host in hosts if host is not None][:count]
