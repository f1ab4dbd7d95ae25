"""When axes and colours are logarithmic: one rule for every chart."""

import numpy as np
import numpy.typing as npt

WIDE = 10.0
"""An axis is logarithmic where all values are positive and the greatest is more than this many times the least."""
TAIL = 5.0
"""An axis for distributions is logarithmic where the greatest value of one is more than this many times its median."""
MANY_DECADES = 3000.0
"""A logarithmic axis over more than this factor has labels at powers of ten only."""
SHORT = 5.0
"""A logarithmic axis over less than this factor has more labels than at 1, 2 and 5."""
FEW_LARGE = 30.0
"""Colours are logarithmic where the greatest value is more than this many times the median."""
DECADES = 3
"""Decades of logarithmic colours; smaller values have the lowest one."""


def steps(low: float, high: float) -> tuple[float, ...]:
    """Where a logarithmic axis has labels in each decade: at 1, 2 and 5, on a short one at more."""
    if high / low > MANY_DECADES:
        return (1.0,)
    return (1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0) if high / low < SHORT else (1.0, 2.0, 5.0)


def is_wide(low: float, high: float) -> bool:
    """Whether an axis from one value to another is logarithmic."""
    return 0 < WIDE * low < high


def has_tail(median: float, most: float) -> bool:
    """Whether a distribution has a tail that would press the rest of it together on a linear axis."""
    return 0 < TAIL * median < most


def is_logarithmic(scale: str, values: npt.NDArray[np.float64]) -> bool:
    """Whether a figure's axis for these values is logarithmic, by its ``scale``: of ``auto`` if most of them need it.

    A few values of a distribution that are far from the others do not count: its 5% and 95% quantiles decide.
    """
    if scale != "auto" or not values.size:
        return scale == "log"
    low, high = np.percentile(values, (5, 95))
    return float(values.min()) > 0 and is_wide(float(low), float(high))
