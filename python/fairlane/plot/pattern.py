"""A job's communication matrix, rank by rank in logarithmic colours, and what each rank sends and receives."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairlane.pattern import Pattern
from fairlane.plot.heat import draw_heat
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import INK, PALETTE
from fairlane.wording import data_size, percent, significant

_UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def draw(found: Pattern, title: str, axes: Given = None) -> Drawn:
    """The matrix and the bytes of each rank."""
    panels = Panels.of(axes, (13.5, 7.4), 1, 2, width_ratios=(1.15, 1.0))
    matrix, ranks = panels.axes
    _matrix(matrix, found)
    _by_rank(ranks, found)
    verdict = found.verdict
    unit = f" (local unit {verdict.unit})" if verdict.unit else ""
    share = f"{percent(found.traffic.collective_share)} of the bytes are of collectives"
    return panels.headline(
        f"{title}: {verdict.kind}{unit}", f"{verdict.reason[:1].upper()}{verdict.reason[1:]}; {share}."
    )


def _matrix(axes: Axes, found: Pattern) -> None:
    total = found.traffic.total
    shown = np.ma.masked_equal(total.astype(np.float64), 0)
    least, most = (float(shown.min()), float(shown.max())) if total.any() else (0.0, 1.0)
    norm = LogNorm(min(least, most / 4), most) if total.any() else Normalize(0, 1)
    draw_heat(
        axes, shown, norm, ticks={tick: data_size(tick) for tick in _powers(least, most)} if total.any() else None
    )
    axes.set(xlabel="receiver", ylabel="sender")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=8))


def _by_rank(axes: Axes, found: Pattern) -> None:
    traffic = found.traffic
    ranks = np.arange(traffic.ranks)
    axes.step(ranks, traffic.sent, where="mid", color=PALETTE[0], linewidth=1.8)
    axes.step(ranks, traffic.received, where="mid", color=PALETTE[1], linewidth=1.8, linestyle=(0, (3, 1.5)))
    most = max(1.0, float(max(traffic.sent.max(), traffic.received.max())))
    unit, name = next((size, name) for size, name in _UNITS if most >= size)
    axes.set_yticks(unit * np.asarray(MaxNLocator(6).tick_values(0, 1.12 * most / unit)))
    axes.set_ylim(0, 1.12 * most)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{significant(value / unit)} {name}"))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.set_xlabel("rank")
    axes.grid(axis="y")
    axes.set_title("bytes of each rank", loc="left", fontsize=12, color=INK)
    axes.legend(["sent", "received"], loc="upper right", ncols=2, fontsize=10)


def _powers(least: float, most: float) -> list[float]:
    """Up to about eight powers of two between two amounts, evenly apart."""
    first, last = int(np.ceil(np.log2(least))), int(np.floor(np.log2(most)))
    step = max(1, -(-(last - first) // 7))
    return [2.0**power for power in range(first, last + 1, step)]
