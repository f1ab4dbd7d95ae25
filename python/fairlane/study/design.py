"""Which combinations of a study's factors are run: all of them, or some that are spread over all as evenly as few can.

The sample is the beginning of a scrambled Sobol' sequence (I. M. Sobol', USSR Comput. Math. Math. Phys. 7, 1967; A. B.
Owen, J. Complexity 14, 1998): every number of a row stands for a level of its factor.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

__all__ = ["combinations"]

_MOST_DRAWS = 2**20
"""Rows after which it is given up to find others that differ; reached only next to all combinations."""


def combinations(levels: Sequence[int], runs: int | None = None, seed: int = 1) -> Iterator[tuple[int, ...]]:
    """For each run the level of each factor, from 0; ``levels`` says how many each factor has.

    Without ``runs`` it is every combination, the last factor fastest. Else it is so many that differ, in the same
    order; ``runs`` is at most the number of all.
    """
    every = product(*map(range, levels))
    return every if runs is None or runs >= prod(levels) else iter(sorted(_sample(levels, runs, seed)))


def _sample(levels: Sequence[int], runs: int, seed: int) -> set[tuple[int, ...]]:
    from scipy.stats import qmc

    sampler = qmc.Sobol(len(levels), rng=seed)
    found: set[tuple[int, ...]] = set()
    power = max(1, (runs - 1).bit_length())
    while len(found) < runs and sampler.num_generated < _MOST_DRAWS:
        block = sampler.random_base2(power)
        power = (int(sampler.num_generated) - 1).bit_length()  # blocks double what there is
        for row in (block * levels).astype(int).tolist():
            if len(found) < runs:
                found.add(tuple(row))
    rest = (row for row in product(*map(range, levels)) if row not in found)
    while len(found) < runs:
        found.add(next(rest))
    return found
