"""Distributions side by side: box plots out to the tail, and strips in which every value is a dot."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.cbook import boxplot_stats
from matplotlib.colors import to_rgb

from fairlane.plot.style import INK
from fairlane.statistics import Estimate

Floats = npt.NDArray[np.float64]

TAILS = (1.0, 99.0)  # percentiles that the whiskers reach
QUARTILES = 1.5  # whiskers of Tukey's box plots reach the last value within so many interquartile ranges
PALE = 0.7
"""Dots of paler colours than this, from 0 to 1, have an outline."""
MOST_DOTS = 2000
"""Of more outliers than this in a box, those that are evenly spaced in order, the extremes among them, are drawn."""


def draw_boxes(
    axes: Axes,
    groups: Sequence[Floats],
    colours: Sequence[str],
    *,
    positions: Sequence[float] | None = None,
    width: float = 0.6,
    horizontal: bool = False,
    whiskers: float | tuple[float, float] = TAILS,
) -> None:
    """Draws ``groups`` at 0, 1, 2 ... or at ``positions``; an empty one leaves its place free.

    Whiskers are at two percentiles, or as those of Tukey (``QUARTILES``); every value beyond them is a dot.
    """
    places = list(range(len(groups))) if positions is None else list(positions)
    for place, values, colour in zip(places, groups, colours, strict=True):
        if not values.size:
            continue
        box = {"boxprops": {"facecolor": colour, "edgecolor": INK, "alpha": 0.75}, "patch_artist": True}
        _box(axes, values, place, width, horizontal=horizontal, whis=whiskers, median=2.2, **box)
        beyond = _outliers(values, whiskers)
        at = np.full(beyond.size, place)
        across, along = (beyond, at) if horizontal else (at, beyond)
        outline = 0.6 if min(to_rgb(colour)) > PALE else 0.0
        axes.scatter(across, along, s=9, color=colour, alpha=0.7, edgecolors=INK, linewidths=outline)
    if horizontal:
        axes.set_ylim(max(places) + 0.6, min(places) - 0.6)


def draw_means(
    axes: Axes, means: Sequence[Estimate | None], positions: Sequence[float], *, horizontal: bool = False
) -> None:
    """A diamond over each box for a mean, with a whisker for its 95% interval where it has one."""
    for mean, place in zip(means, positions, strict=True):
        if mean is None:
            continue
        low, high = (mean.value if end is None else end for end in (mean.low, mean.high))
        reach = [[max(0.0, mean.value - low)], [max(0.0, high - mean.value)]]
        x, y, error = (mean.value, place, "xerr") if horizontal else (place, mean.value, "yerr")
        marker: dict[str, Any] = {"markersize": 5.5, "markerfacecolor": "white", "markeredgecolor": INK}
        whisker: dict[str, Any] = {error: reach, "ecolor": INK, "elinewidth": 2.2, "capsize": 4, "capthick": 2.2}
        axes.errorbar(x, y, fmt="D", zorder=6, **marker, **whisker)


def draw_dots(
    axes: Axes, values: Floats, y: float | Floats, colour: str, *, size: float, alpha: float, hollow: bool = False
) -> None:
    """A dot for each value along a row, hollow for what is not reliable."""
    look: dict[str, Any] = (
        {"facecolors": "none", "edgecolors": colour} if hollow else {"color": colour, "linewidths": 0}
    )
    axes.scatter(values, np.broadcast_to(y, values.shape), s=size, alpha=alpha, zorder=2, **look)


def _box(
    axes: Axes, values: Floats, place: float, width: float, *, horizontal: bool, median: float, **look: Any
) -> None:
    axes.boxplot(
        values,
        positions=[place],
        orientation="horizontal" if horizontal else "vertical",
        widths=width,
        showfliers=False,
        manage_ticks=False,
        medianprops={"color": INK, "linewidth": median},
        whiskerprops={"color": INK},
        capprops={"color": INK},
        **look,
    )


def _outliers(values: Floats, whiskers: float | tuple[float, float]) -> Floats:
    beyond = np.sort(np.asarray(boxplot_stats(values, whis=whiskers)[0]["fliers"], np.float64))
    if beyond.size <= MOST_DOTS:
        return beyond
    kept: Floats = beyond[np.linspace(0, beyond.size - 1, MOST_DOTS).round().astype(int)]
    return kept


def spread(count: int, reach: float = 0.22) -> Floats:
    """Offsets that keep equal values apart; a low-discrepancy sequence, so a redrawn figure is the same."""
    golden = (5**0.5 - 1) / 2
    steps = np.arange(count, dtype=np.float64)
    return ((steps * golden) % 1 * 2 - 1) * reach
