"""When axes and colours are logarithmic: one rule for figures and pages, which get these numbers (``report.page``)."""

import numpy as np
import numpy.typing as npt

WIDE = 10.0
"""An axis is logarithmic where all values are positive and the greatest is more than this many times the least."""
FEW_LARGE = 30.0
"""Colours are logarithmic where the greatest value is more than this many times the median."""
DECADES = 3
"""Decades of logarithmic colours; smaller values have the lowest one."""


def is_wide(low: float, high: float) -> bool:
    """Whether an axis from one value to another is logarithmic."""
    return 0 < WIDE * low < high


def is_logarithmic(scale: str, values: npt.NDArray[np.float64]) -> bool:
    """Whether a figure's axis for these values is logarithmic, by its ``scale``: of ``auto`` if most of them need it.

    A few values of a distribution that are far from the others do not count: its 5% and 95% quantiles decide.
    """
    if scale != "auto" or not values.size:
        return scale == "log"
    low, high = np.percentile(values, (5, 95))
    return float(values.min()) > 0 and is_wide(float(low), float(high))
