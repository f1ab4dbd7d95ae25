"""When axes and colours are logarithmic: one rule for figures and pages, which get these numbers (``report.page``)."""

WIDE = 10.0
"""An axis is logarithmic where all values are positive and the greatest is more than this many times the least."""
FEW_LARGE = 30.0
"""Colours are logarithmic where the greatest value is more than this many times the median."""
DECADES = 3
"""Decades of logarithmic colours; smaller values have the lowest one."""


def is_wide(low: float, high: float) -> bool:
    """Whether an axis from one value to another is logarithmic."""
    return 0 < WIDE * low < high
