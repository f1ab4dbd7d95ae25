"""A job's communication matrix, rank by rank in logarithmic colours, and what each rank sends and receives."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairlane.pattern import Pattern
from fairlane.plot.interference import HEAT
from fairlane.plot.style import INK, PALETTE, canvas, headline_of
from fairlane.results.text import percent
from fairlane.wording import data_size, significant

__all__ = ["figure"]

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def figure(found: Pattern, title: str) -> Figure:
    """The picture."""
    made = canvas(13.5, 7.4)
    matrix, ranks = made.subplots(1, 2, width_ratios=(1.15, 1.0))
    _matrix(made, matrix, found)
    _by_rank(ranks, found)
    verdict = found.verdict
    unit = f" (local unit {verdict.unit})" if verdict.unit else ""
    share = f"{percent(found.traffic.collective_share)} of the bytes are of collectives"
    headline_of(made, f"{title}: {verdict.kind}{unit}", f"{verdict.reason[:1].upper()}{verdict.reason[1:]}; {share}.")
    return made


def _matrix(made: Figure, axes: Axes, found: Pattern) -> None:
    total = found.traffic.total
    shown = np.ma.masked_equal(total, 0)
    least, most = (float(shown.min()), float(shown.max())) if total.any() else (0.0, 1.0)
    norm = LogNorm(min(least, most / 4), most) if total.any() else Normalize(0, 1)
    axes.imshow(shown, cmap=HEAT.with_extremes(bad="#f2f2f2"), norm=norm, interpolation="nearest")
    axes.set_xlabel("receiver")
    axes.set_ylabel("sender")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.spines[:].set_visible(False)
    bar = made.colorbar(ScalarMappable(norm, HEAT), ax=axes, shrink=0.8, aspect=30, pad=0.02)
    if total.any():
        ticks = _powers(least, most)
        bar.set_ticks(ticks, labels=[_written(tick) for tick in ticks])
        bar.minorticks_off()
    bar.outline.set_visible(False)


def _by_rank(axes: Axes, found: Pattern) -> None:
    traffic = found.traffic
    ranks = np.arange(traffic.ranks)
    axes.step(ranks, traffic.sent, where="mid", color=PALETTE[0], linewidth=1.8)
    axes.step(ranks, traffic.received, where="mid", color=PALETTE[1], linewidth=1.8, linestyle=(0, (3, 1.5)))
    most = max(1.0, float(max(traffic.sent.max(), traffic.received.max())))
    unit = _unit(most)[0]
    axes.set_yticks(unit * np.asarray(MaxNLocator(6).tick_values(0, 1.12 * most / unit)))
    axes.set_ylim(0, 1.12 * most)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _written(value, unit)))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.set_xlabel("rank")
    axes.grid(axis="y")
    axes.set_title("bytes of each rank", loc="left", fontsize=12, color=INK)
    axes.legend(["sent", "received"], loc="upper right", ncols=2, frameon=False, fontsize=10)


def _powers(least: float, most: float) -> list[float]:
    """Up to about eight powers of two between two amounts, evenly apart."""
    first, last = int(np.ceil(np.log2(least))), int(np.floor(np.log2(most)))
    step = max(1, -(-(last - first) // 7))
    return [2.0**power for power in range(first, last + 1, step)]


def _unit(value: float) -> tuple[int, str]:
    return next(((size, unit) for size, unit in _UNITS if value >= size), _UNITS[-1])


def _written(value: float, unit: int | None = None) -> str:
    """An amount in a unit that fits it, or in the one given."""
    if unit is None:
        return data_size(value)
    size, name = _unit(unit)
    return f"{significant(value / size)} {name}"
