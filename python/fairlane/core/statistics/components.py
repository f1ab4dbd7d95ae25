"""Variance between runs and within a run, and how many runs of a length a mean needs.

Runs are replicates, each cut into segments of equal length. The segments of a run differ by what happens in it, the
means of runs also by what is the same throughout a run. This is a randomised block design (R. A. Fisher, The Design of
Experiments, 1935): runs are blocks, and what all runs have in common in a segment, as a warm-up, is no variance. The
mean of a run of length ``T`` then has the variance ``between + within / T``. With a cost of ``fixed + rate * T`` for
each run, the variance of the mean for a given total cost is smallest at ``T = sqrt(within * fixed / (between *
rate))`` (W. G. Cochran, Sampling Techniques, 1977, chapter 10, where runs are the primary units).
"""

from dataclasses import dataclass
from math import ceil

import numpy
from numpy.typing import NDArray

from fairlane.core.statistics import COVERAGE


@dataclass(frozen=True)
class Components:
    """Components of the variance of a run's mean, in the square of its unit."""

    between: float
    """Variance between runs that last for ever."""
    within: float
    """Variance that a run's own course adds, times the length of the run."""

    @classmethod
    def of(cls, segments: NDArray[numpy.float64], length: float) -> "Components":
        """Estimate them from a row for each run, with its segments, each ``length`` long; at least two of each."""
        runs, columns = segments.shape
        means = segments.mean(axis=1)
        rest = segments - means[:, None] - segments.mean(axis=0) + segments.mean()
        within = float((rest**2).sum()) / ((runs - 1) * (columns - 1))
        between = max(0.0, float(means.var(ddof=1)) - within / columns)
        return cls(between, within * length)

    def variance(self, length: float) -> float:
        """The variance of the mean of a run of this length."""
        return self.between + self.within / length


def runs_needed(variance: float, half: float) -> int:
    """About how many runs, each with this variance, have a mean whose 95% interval reaches ``half`` to either side.

    Student's quantile is that of the normal distribution, to which half of its square in runs is added.
    """
    from scipy import special  # scipy.stats takes ten times as long to import

    squared = float(special.ndtri((1 + COVERAGE) / 2)) ** 2
    return ceil(squared * variance / half**2 + squared / 2)
