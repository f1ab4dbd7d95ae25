"""Differences of two estimates, and which of many are beyond noise."""

from collections.abc import Sequence
from math import isnan

from fairlane.statistics.estimate import Estimate

FALSE_DISCOVERIES = 0.05
"""The expected share of those called beyond noise that are not."""


def difference(first: Estimate, second: Estimate) -> Estimate:
    """``second - first`` of two independent estimates.

    The degrees of freedom are those of Welch and Satterthwaite (B. L. Welch, Biometrika 34, 1947).
    """
    value = second.value - first.value
    if first.error is None or second.error is None or first.degrees is None or second.degrees is None:
        return Estimate(value)
    variances = [one.error**2 for one in (first, second) if one.error is not None]
    total = sum(variances)
    if not total:
        return Estimate(value, value, value, 0.0, min(first.degrees, second.degrees))
    parts = zip(variances, (first.degrees, second.degrees), strict=True)
    degrees = total**2 / sum(variance**2 / max(1.0, own) for variance, own in parts)
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
    p_values = [p_value(one) for one in differences]
    known = sorted(one for one in p_values if not isnan(one))
    found = [p for rank, p in enumerate(known, 1) if p * len(known) <= FALSE_DISCOVERIES * rank]
    return [None if isnan(one) else bool(found) and one <= found[-1] for one in p_values]
