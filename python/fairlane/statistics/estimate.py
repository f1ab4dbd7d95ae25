"""A number with its uncertainty."""

from dataclasses import dataclass, replace
from math import exp

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
    """How many values it is computed from, after the warm-up."""
    warm_up: int = 0
    """How many values before them were left out."""

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
