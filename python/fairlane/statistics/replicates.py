"""What is found over replicates: placements, and seeds within each.

Placements are drawn independently, seeds within one share it: so placements, the outer units, are resampled whole (the
hierarchical bootstrap; A. C. Davison and D. V. Hinkley, Bootstrap Methods and their Application, 1997, section 3.8: the
spread of their means has that of seeds in it already). Percentiles of few units are too narrow by the factor
sqrt((n - 1) / n) and by the difference between the normal and Student's distribution; both are made good (T. C.
Hesterberg, The American Statistician 69, 2015: the expanded percentile interval). Fewer than ten units have too few
different resamples: their interval is Student's. Values that belong together, as of a treated and a default run, enter
as their difference.
"""

from collections.abc import Sequence
from math import sqrt

import numpy

from fairlane.statistics.estimate import COVERAGE, Estimate

SPREAD = ("_median", "_min", "_max")
"""Ends of the names of columns with the median and the range of values, as ``spread`` has them."""
RESAMPLES = 9999
"""How often is resampled."""
FEWEST_UNITS = 3
"""Of fewer outer units no interval is computed."""
FEWEST_RESAMPLED = 10
"""From so many outer units on the interval is that of the bootstrap."""


def independent(values: Sequence[float]) -> Estimate | None:
    """The mean of independent values with Student's interval, where there are two or more; None of no value."""
    if not values:
        return None
    found = numpy.asarray(values, float)
    if len(found) == 1:
        return Estimate(float(found[0]), count=1)
    error = float(found.std(ddof=1)) / sqrt(len(found))
    return Estimate.student(float(found.mean()), error, len(found) - 1, count=len(found))


def of_ratios(values: Sequence[float]) -> Estimate | None:
    """The mean of independent ratios, as slowdowns, by whose interval they stay positive; None of no value.

    Student's interval is that of the logarithm of the mean; that of the bootstrap is positive anyway.
    """
    found = over_replicates([[value] for value in values])
    if found is None or found.low is None or len(values) >= FEWEST_RESAMPLED:
        return found
    return found.on_log_scale()


def spread(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Median, least and greatest value: what there is to say where the interval of a mean is wider than the mean."""
    if not len(values):
        return None
    found = numpy.asarray(values, float)
    return float(numpy.median(found)), float(found.min()), float(found.max())


def over_replicates(units: Sequence[Sequence[float]], *, seed: int = 1) -> Estimate | None:
    """The mean over outer units (as placements) of the means of their values (as of seeds); None without any value.

    Every unit has the same weight. The same values give the same interval.
    """
    means = numpy.array([numpy.mean(unit) for unit in units if len(unit)], float)
    count = len(means)
    if not count:
        return None
    value = float(means.mean())
    if count < FEWEST_UNITS:
        return Estimate(value, count=count)
    error = float(means.std(ddof=1)) / sqrt(count)
    if count < FEWEST_RESAMPLED or not error:
        return independent(means.tolist())
    from scipy import stats

    expanded = sqrt(count / (count - 1)) * float(stats.t.ppf((1 + COVERAGE) / 2, count - 1))
    level = 1 - 2 * float(stats.norm.cdf(-expanded))
    found = stats.bootstrap(
        (means,), numpy.mean, n_resamples=RESAMPLES, confidence_level=level, method="percentile", rng=seed
    ).confidence_interval
    return Estimate(value, float(found.low), float(found.high), error, count - 1, count)
