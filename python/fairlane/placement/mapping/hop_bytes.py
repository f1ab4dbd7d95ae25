"""Mapping by hop-bytes: the sum over all messages of bytes times links between switches.

To minimise it is the quadratic assignment problem, and scipy has a solver of just that: FAQ (Vogelstein et al. 2015),
polished by pairwise exchange (2-opt). A graph partitioner would minimise another thing, the bytes that are cut, and
would have to be called once for every level of the fabric.
"""

from collections.abc import Sequence
from typing import Any, cast

import numpy
from numpy.typing import NDArray

from fairlane.placement.mapping.base import Mapping, Slots

__all__ = ["MOST_EXCHANGED", "MOST_RANKS", "HopBytes", "hop_bytes"]

Floats = NDArray[numpy.float64]

MOST_RANKS = 1024
"""Ranks up to which it can be asked for: the time grows with their cube."""
MOST_EXCHANGED = 128
"""Ranks up to which the solution is polished by pairwise exchange, whose time grows with their fourth power."""


class HopBytes(Mapping):
    """Minimises hop-bytes by scipy's quadratic assignment; never worse than the linear mapping."""

    def places(self, slots: Slots) -> Sequence[int]:
        """The best of several starts."""
        traffic, distances = slots.traffic(), slots.distances().astype(float)
        ranks = len(traffic)
        if ranks < 2 or not traffic.any():
            return range(ranks)
        flow = (traffic + traffic.T) / traffic.sum()
        linear = numpy.arange(ranks)
        found = [linear, _faq(flow, distances, None), _faq(flow, distances, linear)]
        best = min(found, key=lambda places: hop_bytes(traffic, distances, places))
        if ranks <= MOST_EXCHANGED:
            best = min([best, _exchanged(flow, distances, best)], key=lambda at: hop_bytes(traffic, distances, at))
        places: list[int] = best.tolist()
        return places

    def problem_with(self, ranks: int) -> tuple[str, str, str] | None:
        """Large jobs would take too long."""
        return (
            ("name", f"takes too long for {ranks} ranks", f"up to {MOST_RANKS} ranks") if ranks > MOST_RANKS else None
        )


def hop_bytes(traffic: Floats, distances: NDArray[Any], places: NDArray[numpy.int64]) -> float:
    """Bytes times links of all messages with the ranks at these places."""
    return float((traffic * distances[numpy.ix_(places, places)]).sum())


def _faq(flow: Floats, distances: Floats, start: NDArray[numpy.int64] | None) -> NDArray[numpy.int64]:
    """FAQ from the middle of all permutations, or from halfway between it and ``start``."""
    from scipy.optimize import quadratic_assignment

    ranks = len(flow)
    middle = numpy.full((ranks, ranks), 1 / ranks)
    first = middle if start is None else (middle + numpy.eye(ranks)[start]) / 2
    found = quadratic_assignment(
        flow, distances, method="faq", options={"P0": first, "tol": 1e-4, "rng": numpy.random.default_rng(0)}
    )
    return cast("NDArray[numpy.int64]", found.col_ind)


def _exchanged(flow: Floats, distances: Floats, start: NDArray[numpy.int64]) -> NDArray[numpy.int64]:
    """2-opt from ``start``: exchanges two ranks as long as that helps."""
    from scipy.optimize import quadratic_assignment

    guess = numpy.column_stack([numpy.arange(len(flow)), start])
    found = quadratic_assignment(
        flow, distances, method="2opt", options={"partial_guess": guess, "rng": numpy.random.default_rng(0)}
    )
    return cast("NDArray[numpy.int64]", found.col_ind)
