"""Linear placement: first free, first taken."""

from collections.abc import Sequence

import numpy

from fairlane.placement.base import FabricView

__all__ = ["linear"]


def linear(free: Sequence[int], count: int, _fabric: FabricView, _rng: numpy.random.Generator) -> list[int]:
    """The free hosts with the lowest numbers."""
    return list(free[:count])
