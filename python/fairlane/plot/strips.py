"""Distributions side by side: one row a group, every value a dot, a box over the quartiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from fairlane.plot.style import INK

Floats = npt.NDArray[np.float64]


def draw_strips(axes: Axes, groups: Sequence[Floats], colours: Sequence[str]) -> None:
    """Draws ``groups`` downwards from y = 0, one a row. Dots are smaller and fainter the more of them there are."""
    for row, (values, colour) in enumerate(zip(groups, colours, strict=True)):
        if not values.size:
            continue
        size, alpha = (26.0, 0.8) if values.size <= 100 else (12.0, 0.6) if values.size <= 1000 else (6.0, 0.35)
        axes.scatter(values, row + _spread(values), s=size, color=colour, alpha=alpha, linewidths=0, zorder=2)
        axes.boxplot(
            values,
            positions=[row],
            orientation="horizontal",
            widths=0.6,
            whis=(0, 100),
            showfliers=False,
            manage_ticks=False,
            boxprops={"color": INK, "linewidth": 1.2},
            whiskerprops={"color": INK, "linewidth": 1.0},
            capprops={"color": INK, "linewidth": 1.0},
            medianprops={"color": INK, "linewidth": 2.6},
            zorder=3,
        )
    axes.set_ylim(len(groups) - 0.5, -0.5)


def _spread(values: Floats, height: float = 0.22) -> Floats:
    """Vertical offsets that keep equal values apart; a low-discrepancy sequence, so a redrawn figure is the same."""
    golden = (5**0.5 - 1) / 2
    steps = np.arange(values.size, dtype=np.float64)
    return ((steps * golden) % 1 * 2 - 1) * height
