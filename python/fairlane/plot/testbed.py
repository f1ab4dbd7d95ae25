"""Measured and predicted changes of a testbed's jobs side by side, with their intervals."""

from typing import TYPE_CHECKING

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from fairlane.plot.style import GRID, INK, PALETTE, bare, canvas, headline_of, percentages

if TYPE_CHECKING:
    from fairlane.testbed.results import Results

_LEAST = 0.05  # the smallest ratio that is shown
_KINDS = (("measured", PALETTE[0], "o", 0.14), ("predicted", PALETTE[1], "D", -0.14))


def testbed(results: "Results") -> Figure:
    """W of each job, and below it the effect of each treatment and of the agent."""
    panels = [("W: co-run against isolated", results.w)]
    if results.effects is not None:
        names = results.effects["treatment"].unique(maintain_order=True)
        panels += [(f"{name}: throughput over that without levels", _of(results.effects, name)) for name in names]
    if results.control is not None:
        panels.append(("levels of the agent: throughput over that without levels", results.control))
    jobs = results.w.height
    figure = canvas(10.5, 1.5 + len(panels) * (0.7 + 0.36 * jobs))
    for axes, (title, table) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        _panel(axes, title, table, ratio=table is not results.w)
    handles = figure.axes[0].get_legend_handles_labels()
    figure.axes[0].legend(*handles, ncols=2, loc="lower right", bbox_to_anchor=(1, 1.0), fontsize=11)
    model = results.fit.model
    words = (
        f"{results.file.name}: changes of throughput, means with 95% intervals over repetitions (measured) and seeds "
        f"(predicted). The simulator knows the isolated runs only: efficiency {model.efficiency:.3f}, overhead "
        f"{1e6 * model.overhead_s:.0f} µs."
    )
    headline_of(figure, "Measured on a real network, and predicted", words)
    return figure


def _of(effects: pl.DataFrame, treatment: str) -> pl.DataFrame:
    return effects.filter(treatment=treatment)


def _panel(axes: Axes, title: str, table: pl.DataFrame, *, ratio: bool) -> None:
    """Changes of a table; as ratios on a logarithmic axis, because effects of levels differ by orders of magnitude."""
    places = range(table.height)[::-1]
    for name, colour, marker, shift in _KINDS:
        values, low, high = (ratio + table[f"{name}{end}"].to_numpy() for end in ("", "_low", "_high"))
        low = low.clip(_LEAST) if ratio else low  # an interval may reach below nothing
        heights = [place + shift for place in places]
        ends = [values - low, high - values]
        axes.errorbar(values, heights, xerr=ends, fmt=marker, color=colour, capsize=3, markersize=6, label=name)
    axes.axvline(float(ratio), color=INK, linewidth=0.8)
    axes.set_yticks(list(places), table["job"].to_list())
    axes.set_ylim(-0.6, table.height - 0.4)
    axes.set_title(title, loc="left", fontsize=12)
    bare(axes)
    axes.grid(axis="x", color=GRID)
    if not ratio:
        percentages(axes.xaxis, signed=True)
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    left, right = axes.get_xlim()
    axes.set_xlim(min(left, 0.8), max(right, 1.25))
