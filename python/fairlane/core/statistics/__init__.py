"""Uncertainty: 95% intervals within a run, over replicates, and of differences; false discoveries.

*Replicates: placements, and seeds within each.* Placements are drawn independently, seeds within one share it: so
placements, the outer units, are resampled whole (the hierarchical bootstrap; A. C. Davison and D. V. Hinkley, Bootstrap
Methods and their Application, 1997, section 3.8: the spread of their means has that of seeds in it already).
Percentiles of few units are too narrow by the factor sqrt((n - 1) / n) and by the difference between the normal and
Student's distribution; both are made good (T. C. Hesterberg, The American Statistician 69, 2015: the expanded
percentile interval). Fewer than ten units have too few different resamples: their interval is Student's. Values that
belong together, as of a treated and a default run, enter as their difference.

*Warm-up of correlated series, as of the iteration times of a job.* The first values of a simulation are not like the
later ones: it begins with an empty network. MSER-5 (K. P. White, Simulation 69, 1997; White, Cobb and Spratt, Winter
Simulation Conference 2000) averages the series in batches of five and leaves out as many of the first batches as makes
the estimated variance of the mean of the others least. If that is half of them or more, the series is too short to tell
a warm-up from other variation, and nothing is left out.

*Correlation.* Neighbouring values resemble each other, so ``n`` of them tell less than ``n`` independent ones would: as
much as the effective sample size, which Geyer's initial monotone sequence of autocorrelations gives (C. J. Geyer,
Statistical Science 7, 1992; A. Vehtari et al., Bayesian Analysis 16, 2021; computed by ArviZ). The standard error is
the deviation over its square root; the interval is Student's with as many degrees of freedom, less one.

MSER-5 takes any run of large values at the beginning for a warm-up, which makes means of skewed series too small (an
interval of 95% had 90.5% on the waits of an M/D/1 queue at a load of 0.8). So values are left out only if their mean is
more than three standard errors away from that of the others.

The interval is too narrow where the series is short compared with its memory. The tests have the coverage on AR(1)
processes and on the waiting times of an M/D/1 queue.

*Quantiles of what was counted in histograms, with intervals.* The time is divided into batches, and each has a
histogram. The share of a batch's values that are at most the overall quantile varies from batch to batch; the error of
its mean, turned back into a value by the overall distribution, is the interval (R. S. Woodruff, J. Am. Stat. Assoc. 47,
1952; for correlated output D. F. Munoz and P. W. Glynn, Operations Research 45, 1997).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, isfinite, isnan, sqrt
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

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


COVERAGE = 0.95
"""The probability with which intervals contain the true value."""


@dataclass(frozen=True)
class Estimate:
    """A number and its 95% interval, both in the unit of what was measured.

    ``low`` and ``high`` are None where there are too few values to say. ``error`` is the standard error and ``degrees``
    the degrees of freedom of Student's distribution by which the interval was computed.
    """

    value: float
    low: float | None = None
    high: float | None = None
    error: float | None = None
    degrees: float | None = None
    count: int = 0
    """Number of values it is computed from, after the warm-up."""
    warm_up: int = 0
    """Number of values before them that were left out."""

    @classmethod
    def student(cls, value: float, error: float, degrees: float, *, count: int = 0, warm_up: int = 0) -> "Estimate":
        """With the interval by Student's distribution (Biometrika 6, 1908)."""
        half = half_width(error, degrees)
        return cls(value, value - half, value + half, error, degrees, count, warm_up)

    def shifted(self, by: float) -> "Estimate":
        """The estimate of the value plus a known one."""
        low, high = (None if end is None else end + by for end in (self.low, self.high))
        return replace(self, value=self.value + by, low=low, high=high)

    def inverse(self) -> "Estimate":
        """The estimate of one over the value, where all of the interval is above zero; its error to first order."""
        low, high = (None if end is None or end <= 0 else 1 / end for end in (self.high, self.low))
        if low is None or high is None:
            return Estimate(1 / self.value, count=self.count, warm_up=self.warm_up)
        error = None if self.error is None else self.error / self.value**2
        return replace(self, value=1 / self.value, low=low, high=high, error=error)

    def on_log_scale(self) -> "Estimate":
        """The same value, positive as a ratio is, with the interval of its logarithm, which never reaches zero.

        The standard error of the logarithm is ``error / value``, to first order.
        """
        if not self.error or self.degrees is None or self.value <= 0:
            return self
        factor = exp(half_width(self.error / self.value, self.degrees))
        return replace(self, low=self.value / factor, high=self.value * factor)

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width: what stands after +-; None where there is no interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def half_width(error: float, degrees: float, coverage: float = COVERAGE) -> float:
    """Half of the width of the interval with this standard error and these degrees of freedom."""
    from scipy import special  # scipy.stats takes ten times as long to import

    return float(special.stdtrit(degrees, (1 + coverage) / 2)) * error


FALSE_DISCOVERIES = 0.05
"""The expected share of those called beyond noise that are not."""


def difference(first: Estimate, second: Estimate) -> Estimate:
    """``second - first`` of two independent estimates.

    The degrees of freedom are those of Welch and Satterthwaite (B. L. Welch, Biometrika 34, 1947).
    """
    value = second.value - first.value
    if first.error is None or second.error is None or first.degrees is None or second.degrees is None:
        return Estimate(value)
    variances = [estimate.error**2 for estimate in (first, second) if estimate.error is not None]
    total = sum(variances)
    if not total:
        return Estimate(value, value, value, 0.0, min(first.degrees, second.degrees))
    parts = zip(variances, (first.degrees, second.degrees), strict=True)
    degrees = total**2 / sum(variance**2 / max(1.0, degrees_of_part) for variance, degrees_of_part in parts)
    return Estimate.student(value, total**0.5, degrees)


def p_value(difference: Estimate) -> float:
    """The probability of a difference at least as large by chance; not a number where its error is unknown."""
    from scipy import special  # scipy.stats takes ten times as long to import

    if difference.error is None or difference.degrees is None:
        return float("nan")
    if not difference.error:
        return 0.0 if difference.value else 1.0
    return float(2 * special.stdtr(difference.degrees, -abs(difference.value) / difference.error))


def beyond_noise(differences: Sequence[Estimate]) -> list[bool | None]:
    """For each difference whether it is beyond noise; None where its error is unknown.

    The expected share of false ones among those that are is at most 5%, for any dependence of the tests that is
    positive (Y. Benjamini and Y. Hochberg, J. R. Stat. Soc. B 57, 1995).
    """
    p_values = [p_value(probability) for probability in differences]
    known = sorted(probability for probability in p_values if not isnan(probability))
    significant = [p for rank, p in enumerate(known, 1) if p * len(known) <= FALSE_DISCOVERIES * rank]
    return [
        None if isnan(probability) else bool(significant) and probability <= significant[-1] for probability in p_values
    ]


SPREAD = ("_median", "_min", "_max")
"""Ends of the names of columns with the median and the range of values, as ``spread`` has them."""
RESAMPLES = 9999
"""Number of resamples."""
FEWEST_UNITS = 3
"""Of fewer outer units no interval is computed."""
FEWEST_RESAMPLED = 10
"""Number of outer units from which on the interval is that of the bootstrap."""


def independent(values: Sequence[float]) -> Estimate | None:
    """The mean of independent values with Student's interval, where there are two or more; None of no value."""
    if not values:
        return None
    array = numpy.asarray(values, float)
    if len(array) == 1:
        return Estimate(float(array[0]), count=1)
    error = float(array.std(ddof=1)) / sqrt(len(array))
    return Estimate.student(float(array.mean()), error, len(array) - 1, count=len(array))


def of_ratios(values: Sequence[float]) -> Estimate | None:
    """The mean of independent ratios, as slowdowns, by whose interval they stay positive; None of no value.

    Student's interval is that of the logarithm of the mean; that of the bootstrap is positive anyway.
    """
    estimate = over_replicates([[value] for value in values])
    if estimate is None or estimate.low is None or len(values) >= FEWEST_RESAMPLED:
        return estimate
    return estimate.on_log_scale()


def spread(values: Sequence[float]) -> tuple[float, float, float] | None:
    """Median, least and greatest value: what there is to say where the interval of a mean is wider than the mean."""
    if not len(values):
        return None
    array = numpy.asarray(values, float)
    return float(numpy.median(array)), float(array.min()), float(array.max())


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
    resampled = stats.bootstrap(
        (means,), numpy.mean, n_resamples=RESAMPLES, confidence_level=level, method="percentile", rng=seed
    ).confidence_interval
    return Estimate(value, float(resampled.low), float(resampled.high), error, count - 1, count)


Floats = NDArray[numpy.float64]

FEWEST = 10
"""Of fewer values than this no interval is computed."""
BATCH = 5
"""Values that MSER-5 averages."""
_LEAST_BATCHES = 4  # of fewer batches nothing is left out
_DIFFERS = 3.0  # standard errors
_TINY = 1e-12  # relative; differences below it are rounding


def warm_up(series: ArrayLike) -> int:
    """Return the number of first values left out: by MSER-5, if they differ from the others; 0 of fewer than 20."""
    values = numpy.asarray(series, float)
    cut = _mser(values)
    if not cut:
        return 0
    first, kept = values[:cut], values[cut:]
    error = float(kept.std(ddof=1)) / sqrt(max(1.0, effective_size(kept) * cut / len(kept)))
    return cut if abs(float(first.mean() - kept.mean())) > _DIFFERS * error else 0


def _mser(values: Floats) -> int:
    """Return the number of first values that MSER-5 leaves out."""
    batches = len(values) // BATCH
    if batches < _LEAST_BATCHES:
        return 0
    means = values[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    kept = numpy.arange(batches, 0, -1)
    total = numpy.cumsum(means[::-1])[::-1]
    squares = numpy.cumsum((means**2)[::-1])[::-1]
    score = (squares - total**2 / kept) / kept**2
    allowed = score[: batches // 2 + 1]
    noise = _TINY * float(numpy.square(means).max())  # without variation the differences are rounding
    least = int(numpy.flatnonzero(allowed <= allowed.min() + noise)[0])
    return least * BATCH if least < batches // 2 else 0


def effective_size(series: Floats) -> float:
    """To how many independent values a series amounts; at most its length."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    of_chain: Any = array_stats  # its functions have no types
    size = float(of_chain.ess(series[None, :], chain_axis=0, draw_axis=1, method="mean"))
    return min(size, len(series)) if isfinite(size) else float(len(series))


def mean(series: ArrayLike, *, skip: int | None = None) -> Estimate | None:
    """The mean after the warm-up, of ``skip`` values or as many as MSER-5 leaves out; None of an empty series."""
    values = numpy.asarray(series, float)
    start = warm_up(values) if skip is None else skip
    kept = values[start:]
    if not kept.size:
        return None
    return _student(float(kept.mean()), kept, start)


def ratio_change(reference: ArrayLike, series: ArrayLike, *, skip: int | None = None) -> Estimate | None:
    """The change ``mean(reference) / mean(series) - 1`` of two series whose values belong together in pairs.

    Of times per iteration it is the change of throughput against the reference. The error is that of the residuals
    ``(reference - ratio * series) / mean(series)`` (the delta method; W. G. Cochran, Sampling Techniques, 1977,
    chapter 6): what both series have in common does not widen the interval. None of empty series, or where ``series``
    took no time.
    """
    above, below = numpy.asarray(reference, float), numpy.asarray(series, float)
    start = max(warm_up(above), warm_up(below)) if skip is None else skip
    above, below = above[start:], below[start:]
    total = float(below.sum())
    if not total:
        return None
    ratio = float(above.sum()) / total
    return _student(ratio - 1, (above - ratio * below) / float(below.mean()), start)


def _student(value: float, values: Floats, start: int) -> Estimate:
    """The estimate whose error is that of the mean of ``values``."""
    if len(values) < FEWEST:
        return Estimate(value, count=len(values), warm_up=start)
    deviation = float(values.std(ddof=1))
    if deviation <= _TINY * max(1.0, float(numpy.abs(values).max())):
        return Estimate(value, value, value, 0.0, len(values) - 1, len(values), start)
    size = effective_size(values)
    degrees = max(1.0, size - 1)
    return Estimate.student(value, deviation / sqrt(size), degrees, count=len(values), warm_up=start)


def differences(times: Sequence[int]) -> Floats:
    """The time between each instant and the one before, the first counted from 0."""
    return numpy.diff(numpy.asarray([0, *times], float))


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
    value_at = float(values[at])
    beyond = total.sum() * min(share, 1 - share)  # counts on the shorter side of the quantile
    if len(table) < FEWEST or beyond < FEWEST * (1 - 1e-9):  # 1 - share is rounded
        return Estimate(value_at, count=len(table))
    below = table[:, : at + 1].sum(axis=1)
    # The share below is a ratio of two counts, each of which varies from batch to batch.
    shared = ratio_change(below, table.sum(axis=1), skip=0)
    half = shared.half_width if shared else None
    if half is None:
        return Estimate(value_at, count=len(table))
    low, high = (_index(reached, share + sign * half) for sign in (-1, 1))
    return Estimate(value_at, float(values[low]), float(values[high]), count=len(table))


def _index(reached: numpy.typing.NDArray[numpy.float64], share: float) -> int:
    """The first bucket up to which this share is reached."""
    rounding = 1e-12
    return min(int(numpy.searchsorted(reached, max(share, 0.0) - rounding)), len(reached) - 1)
