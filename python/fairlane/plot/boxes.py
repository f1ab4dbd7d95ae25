"""Box plots out to the tail: whiskers at 1% and 99%, and every value beyond them as a dot."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from fairlane.plot.style import INK

__all__ = ["draw_boxes"]

WHISKERS = (1, 99)
"""Percentiles that the whiskers reach."""
MOST_DOTS = 2000
"""Of more outliers than this in a box, those that are evenly spaced in order, the extremes among them, are drawn."""


def draw_boxes(
    axes: Axes,
    groups: Sequence[npt.NDArray[np.float64]],
    colours: Sequence[str],
    *,
    positions: Sequence[float] | None = None,
    width: float = 0.6,
    horizontal: bool = False,
) -> None:
    """Draws ``groups`` at 0, 1, 2 ... or at ``positions``; an empty one leaves its place free."""
    places = list(range(len(groups))) if positions is None else list(positions)
    for place, values, colour in zip(places, groups, colours, strict=True):
        if not values.size:
            continue
        axes.boxplot(
            values,
            positions=[place],
            orientation="horizontal" if horizontal else "vertical",
            widths=width,
            whis=WHISKERS,
            showfliers=False,
            manage_ticks=False,
            patch_artist=True,
            boxprops={"facecolor": colour, "edgecolor": INK, "alpha": 0.75},
            medianprops={"color": INK, "linewidth": 2.2},
            whiskerprops={"color": INK},
            capprops={"color": INK},
        )
        beyond = _outliers(values)
        at = np.full(beyond.size, place)
        across, along = (beyond, at) if horizontal else (at, beyond)
        axes.scatter(across, along, s=9, color=colour, alpha=0.7, linewidths=0)
    if horizontal:
        axes.set_ylim(max(places) + 0.6, min(places) - 0.6)


def _outliers(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    low, high = np.percentile(values, WHISKERS)
    beyond = np.sort(values[(values < low) | (values > high)])
    if beyond.size <= MOST_DOTS:
        return beyond
    kept: npt.NDArray[np.float64] = beyond[np.linspace(0, beyond.size - 1, MOST_DOTS).round().astype(int)]
    return kept
