"""Uncertainty: 95% intervals within a run, over replicates, and of differences; false discoveries.

``series`` has the mean of a correlated series (as iteration times) and the ratio of two paired ones, ``tails``
quantiles of what was counted in histograms, ``replicates`` what is found over placements and seeds, ``comparing`` which
of many differences are beyond noise. All of them return an ``Estimate``.
"""

from fairlane.statistics.comparing import FALSE_DISCOVERIES, beyond_noise, difference, p_value
from fairlane.statistics.estimate import COVERAGE, Estimate, half_width
from fairlane.statistics.replicates import FEWEST_UNITS, SPREAD, independent, of_ratios, over_replicates, spread
from fairlane.statistics.series import FEWEST, differences, mean, ratio_change, warm_up
from fairlane.statistics.tails import quantile

__all__ = [
    "COVERAGE",
    "FALSE_DISCOVERIES",
    "FEWEST",
    "FEWEST_UNITS",
    "SPREAD",
    "Estimate",
    "beyond_noise",
    "difference",
    "differences",
    "half_width",
    "independent",
    "mean",
    "of_ratios",
    "over_replicates",
    "p_value",
    "quantile",
    "ratio_change",
    "spread",
    "warm_up",
]
