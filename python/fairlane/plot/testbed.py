"""Measured and predicted changes of a testbed's jobs side by side, with their intervals."""

from typing import TYPE_CHECKING

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairlane.plot.style import GRID, INK, PALETTE, bare, canvas, headline_of, percentages

if TYPE_CHECKING:
    from fairlane.testbed.results import Results

_KINDS = (("measured", PALETTE[0], "o", 0.14), ("predicted", PALETTE[1], "D", -0.14))


def testbed(results: "Results") -> Figure:
    """W of each job, and below it the effect of each treatment and of the agent."""
    panels = [("W: co-run against isolated", results.w)]
    if results.effects is not None:
        names = results.effects["treatment"].unique(maintain_order=True)
        panels += [(f"improvement by {name}", results.effects.filter(treatment=name)) for name in names]
    if results.control is not None:
        panels.append(("improvement by the agent", results.control))
    jobs = results.w.height
    figure = canvas(10.5, 1.5 + len(panels) * (0.7 + 0.36 * jobs))
    for axes, (title, table) in zip(figure.subplots(len(panels), 1, squeeze=False)[:, 0], panels, strict=True):
        _panel(axes, title, table)
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


def _panel(axes: Axes, title: str, table: pl.DataFrame) -> None:
    places = range(table.height)[::-1]
    for name, colour, marker, shift in _KINDS:
        values = table[name].to_numpy()
        low, high = (table[f"{name}_{end}"].to_numpy() for end in ("low", "high"))
        axes.errorbar(
            values,
            [place + shift for place in places],
            xerr=[values - low, high - values],
            fmt=marker,
            color=colour,
            capsize=3,
            markersize=6,
            label=name,
        )
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks(list(places), table["job"].to_list())
    axes.set_ylim(-0.6, table.height - 0.4)
    axes.set_title(title, loc="left", fontsize=12)
    bare(axes)
    axes.grid(axis="x", color=GRID)
    percentages(axes.xaxis, signed=True)
