"""Random placement: what a busy system's scheduler comes to in the long run (Savoie 2020, section 5.2)."""

from collections.abc import Sequence

import numpy

from fairlane.placement.base import FabricView

__all__ = ["random"]


def random(free: Sequence[int], count: int, _fabric: FabricView, rng: numpy.random.Generator) -> list[int]:
    """Any free hosts, in any order, all choices equally likely."""
    order = numpy.argsort(rng.random(len(free)), kind="stable")
    return [free[at] for at in order[:count]]
