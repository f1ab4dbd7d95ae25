"""Quantiles of what was counted in histograms, with intervals.

The time is divided into batches, and each has a histogram. The share of a batch's values that are at most the overall
quantile varies from batch to batch; the error of its mean, turned back into a value by the overall distribution, is the
interval (R. S. Woodruff, J. Am. Stat. Assoc. 47, 1952; for correlated output D. F. Munoz and P. W. Glynn, Operations
Research 45, 1997).
"""

from collections.abc import Sequence

import numpy
from numpy.typing import ArrayLike

from fairlane.statistics.estimate import Estimate
from fairlane.statistics.series import FEWEST, ratio_change


def quantile(values: Sequence[float], counts: ArrayLike, share: float) -> Estimate | None:
    """The value that a ``share`` of what was counted does not exceed.

    ``values`` are the upper ends of the buckets in order, ``counts`` has a row for each batch and a column for each
    bucket. Batches without a count are left out. Without an interval where fewer than ten have any, or where so few
    counts are above the quantile, or below it, that its ends would be the extremes; None where none has a count.
    """
    table = numpy.asarray(counts, float)
    table = table[table.sum(axis=1) > 0]
    total = table.sum(axis=0)
    if not total.any():
        return None
    reached = numpy.cumsum(total) / total.sum()
    at = _index(reached, share)
    found = float(values[at])
    beyond = total.sum() * min(share, 1 - share)  # counts on the shorter side of the quantile
    if len(table) < FEWEST or beyond < FEWEST * (1 - 1e-9):  # 1 - share is rounded
        return Estimate(found, count=len(table))
    below = table[:, : at + 1].sum(axis=1)
    # The share below is a ratio of two counts, each of which varies from batch to batch.
    shared = ratio_change(below, table.sum(axis=1), skip=0)
    half = shared.half_width if shared else None
    if half is None:
        return Estimate(found, count=len(table))
    low, high = (_index(reached, share + sign * half) for sign in (-1, 1))
    return Estimate(found, float(values[low]), float(values[high]), count=len(table))


def _index(reached: numpy.typing.NDArray[numpy.float64], share: float) -> int:
    """The first bucket up to which this share is reached."""
    rounding = 1e-12
    return min(int(numpy.searchsorted(reached, max(share, 0.0) - rounding)), len(reached) - 1)
