"""Means of correlated series, as of the iteration times of a job.

*Warm-up.* The first values of a simulation are not like the later ones: it begins with an empty network. MSER-5 (K. P.
White, Simulation 69, 1997; White, Cobb and Spratt, Winter Simulation Conference 2000) averages the series in batches of
five and leaves out as many of the first batches as makes the estimated variance of the mean of the others least. If
that is half of them or more, the series is too short to tell a warm-up from other variation, and nothing is left out.

*Correlation.* Neighbouring values resemble each other, so ``n`` of them tell less than ``n`` independent ones would: as
much as the effective sample size, which Geyer's initial monotone sequence of autocorrelations gives (C. J. Geyer,
Statistical Science 7, 1992; A. Vehtari et al., Bayesian Analysis 16, 2021; computed by ArviZ). The standard error is
the deviation over its square root; the interval is Student's with as many degrees of freedom, less one.

MSER-5 takes any run of large values at the beginning for a warm-up, which makes means of skewed series too small (an
interval of 95% had 90.5% on the waits of an M/D/1 queue at a load of 0.8). So values are left out only if their mean is
more than three standard errors away from that of the others.

The interval is too narrow where the series is short compared with its memory. The tests have the coverage on AR(1)
processes and on the waiting times of an M/D/1 queue.
"""

from collections.abc import Sequence
from math import isfinite, sqrt
from typing import Any

import numpy
from numpy.typing import ArrayLike, NDArray

from fairlane.statistics.estimate import Estimate

Floats = NDArray[numpy.float64]

FEWEST = 10
"""Of fewer values than this no interval is computed."""
BATCH = 5
"""Values that MSER-5 averages."""
_LEAST_BATCHES = 4  # of fewer batches nothing is left out
_DIFFERS = 3.0  # standard errors
_TINY = 1e-12  # relative; differences below it are rounding


def warm_up(series: ArrayLike) -> int:
    """How many of the first values are left out: by MSER-5, if they differ from the others; 0 of fewer than 20."""
    values = numpy.asarray(series, float)
    cut = _mser(values)
    if not cut:
        return 0
    first, kept = values[:cut], values[cut:]
    error = float(kept.std(ddof=1)) / sqrt(max(1.0, effective_size(kept) * cut / len(kept)))
    return cut if abs(float(first.mean() - kept.mean())) > _DIFFERS * error else 0


def _mser(values: Floats) -> int:
    """How many of the first values MSER-5 leaves out."""
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
    found = int(numpy.flatnonzero(allowed <= allowed.min() + noise)[0])
    return found * BATCH if found < batches // 2 else 0


def effective_size(series: Floats) -> float:
    """To how many independent values a series amounts; at most its length."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    of_chain: Any = array_stats  # its functions have no types
    found = float(of_chain.ess(series[None, :], chain_axis=0, draw_axis=1, method="mean"))
    return min(found, len(series)) if isfinite(found) else float(len(series))


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
