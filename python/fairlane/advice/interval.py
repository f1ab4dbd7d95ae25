"""Where the next run time will be, by those of a few seeds.

A prediction interval on logarithms, so of ratios: with mean ``m`` and standard deviation ``s`` of ``n`` of them, the
next one is within

    m +- t s sqrt(1 + 1 / n)

in the part ``COVERAGE`` of all cases, ``t`` being the quantile of Student's distribution with ``n - 1`` degrees of
freedom (Student, Biometrika 6, 1908; G. J. Hahn, J. Am. Stat. Assoc. 64, 1969), if logarithms of run times are
normally distributed over seeds. What it covers is what seeds change: placements, dealt adapters, jitter of workloads.
"""

from collections.abc import Sequence
from math import exp, log, sqrt

from scipy import stats

__all__ = ["COVERAGE", "prediction_interval"]

COVERAGE = 0.8
"""The part of the next run times that is within."""


def prediction_interval(times: Sequence[float]) -> tuple[float | None, float, float | None]:
    """Lower end, middle (the geometric mean) and upper end; a single time has no ends."""
    logs, count = [log(time) for time in times], len(times)
    middle = sum(logs) / count
    if count < 2:
        return None, exp(middle), None
    deviation = sqrt(sum((one - middle) ** 2 for one in logs) / (count - 1))
    half = float(stats.t.ppf((1 + COVERAGE) / 2, count - 1)) * deviation * sqrt(1 + 1 / count)
    return exp(middle - half), exp(middle), exp(middle + half)
