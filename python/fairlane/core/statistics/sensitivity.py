"""Share of the variance of a result that each input explains by itself, from a sample that exists already.

The measure is Sobol's first-order index: the variance of the mean of the result given the input, over the variance of
the result (I. M. Sobol', Math. Comput. Simul. 55, 2001). It is estimated from given data: the values of an input are
divided into bins of equal count (of a categorical input the levels are the bins), and the variance between the means of
bins is compared with that within (E. Plischke, E. Borgonovo and C. L. Smith, Eur. J. Oper. Res. 226, 2013). With few
points a bin's mean differs from that of the others by chance. So the estimate is the one without that bias (Kelley's
epsilon squared, PNAS 21, 1935), and an index counts only if it is beyond those that the same inputs reach when the
results are permuted: the largest one over all inputs, so that with no effect at all an input is named in 5% of results.

What inputs do together is in no first-order index; neither is chance. The intervals are those of the bootstrap over
points, shifted by its own bias. Results are numbers; whoever has some that are infinite or far away ranks them first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy
from numpy.typing import ArrayLike, NDArray

from fairlane.core.statistics import COVERAGE, Estimate

Floats = NDArray[numpy.float64]
Codes = NDArray[numpy.int64]

FEWEST_POINTS = 20
"""Of fewer points no index is computed."""
PERMUTATIONS = 999
"""Number of permutations of the results."""
RESAMPLES = 499
"""Number of resamples of points for the intervals."""
SIGNIFICANCE = 0.05
"""The probability that any input is called beyond chance if none has an effect."""


@dataclass(frozen=True)
class Sensitivity:
    """The first-order index of an input."""

    index: float
    """Share of the variance that the input explains by itself, 0 to 1."""
    low: float
    high: float
    """Ends of its 95% interval."""
    p: float
    """Probability that, with results permuted, the largest index of all inputs is at least as large."""

    @property
    def beyond_chance(self) -> bool:
        """Whether the index is more than permuted results have."""
        return self.p <= SIGNIFICANCE


def share(count: int, of: int) -> Estimate:
    """A proportion with the interval of E. B. Wilson (J. Am. Stat. Assoc. 22, 1927); ``of`` is at least 1."""
    from scipy.stats import binomtest

    interval = binomtest(count, of).proportion_ci(confidence_level=COVERAGE, method="wilson")
    return Estimate(count / of, float(interval.low), float(interval.high), count=of)


def ranks(values: ArrayLike) -> Floats:
    """Ranks in place of values, from 0 to 1, equal ones in the middle: infinite values are the largest."""
    from scipy.stats import rankdata

    scaled: Floats = (rankdata(numpy.asarray(values, float)) - 0.5) / numpy.size(values)
    return scaled


def bins(values: Sequence[float] | Sequence[str], count: int | None = None) -> Codes:
    """The bin of each value, from 0: the level of a text, one of ``count`` bins of equal count of a number.

    Equal numbers are in the same bin. By default there are half as many bins as the root of the number of values.
    """
    names, codes = numpy.unique(numpy.asarray(values), return_inverse=True)
    wanted = max(2, round(sqrt(len(values)) / 2)) if count is None else count
    if names.dtype.kind in "US" or len(names) <= wanted:
        return codes.astype(numpy.int64)
    place = numpy.cumsum(numpy.bincount(codes))[codes] - 1
    return numpy.unique(place * wanted // len(values), return_inverse=True)[1].astype(numpy.int64)


def first_order(
    inputs: Mapping[str, Sequence[float] | Sequence[str]], result: Sequence[float], *, seed: int = 1
) -> dict[str, Sensitivity]:
    """The index of every input by name; none of too few points, or of results that are all the same."""
    y = numpy.asarray(result, float)
    if len(y) < FEWEST_POINTS or float(y.std()) == 0:
        return {}
    rng = numpy.random.default_rng(seed)
    codes = {name: bins(values) for name, values in inputs.items()}
    permuted = numpy.array([rng.permutation(y) for _ in range(PERMUTATIONS)])
    largest = numpy.max([_explained(permuted, of) for of in codes.values()], axis=0)
    chosen = rng.integers(len(y), size=(RESAMPLES, len(y)))
    indices = {}
    for name, of in codes.items():
        index = float(_explained(y[None, :], of)[0])
        p = (1 + int((largest >= index).sum())) / (1 + PERMUTATIONS)
        low, high = _interval(index, _explained(y[chosen], of[chosen]))
        indices[name] = Sensitivity(min(1.0, max(0.0, index)), low, high, p)
    return indices


def _interval(index: float, resampled: Floats) -> tuple[float, float]:
    """Percentiles of the resampled indices around the index; repeated points raise those, so they are shifted back."""
    known = resampled[numpy.isfinite(resampled)]
    if not known.size:
        return 0.0, 1.0
    tail = (1 - COVERAGE) / 2
    ends = numpy.quantile(known, (tail, 1 - tail)) - known.mean() + index
    low, high = (float(min(1.0, max(0.0, end))) for end in ends)
    return low, high


def _explained(y: Floats, codes: Codes) -> Floats:
    """Epsilon squared of each row: one less the variance within bins over the whole one, each without bias."""
    rows, n = y.shape
    k = int(codes.max()) + 1
    at = numpy.broadcast_to(codes, y.shape) + k * numpy.arange(rows)[:, None]
    counts = numpy.bincount(at.ravel(), minlength=rows * k).reshape(rows, k)
    sums = numpy.bincount(at.ravel(), weights=y.ravel(), minlength=rows * k).reshape(rows, k)
    used = (counts > 0).sum(axis=1)
    between = (sums**2 / numpy.maximum(counts, 1)).sum(axis=1) - n * y.mean(axis=1) ** 2
    whole = n * y.var(axis=1)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        explained: Floats = 1 - (whole - between) / (n - used) * (n - 1) / whole
    return explained
