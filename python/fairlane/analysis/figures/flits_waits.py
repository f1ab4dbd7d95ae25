"""Waits of receivers against flits on the link between the pair's switches (Smith et al. 2018, Figure 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from fairlane.analysis.result import Analysis
from fairlane.plot.style import GRID, PALETTE, canvas, headline
from fairlane.results.text import seconds, time_unit


def draw(found: Analysis) -> Figure | None:
    """A dot for each message between switches that share a link of their group; None if there is none."""
    against = found.slowest.against
    points = against.points
    if against.low_p95_ps is None or against.high_p95_ps is None:
        return None
    factor, unit = time_unit(float(points["wait_ps"].to_numpy().max()) * 1e-12)
    figure = canvas(10, 5)
    axes = figure.add_subplot()
    size = 22 if points.height <= 1000 else 7
    for (name,), rows in points.group_by("neighbour", maintain_order=True):
        colour = PALETTE[0] if name == "row link" else PALETTE[1]
        y = rows["wait_ps"].to_numpy() * 1e-12 / factor
        dots: dict[str, Any] = {"s": size, "color": colour, "alpha": 0.55, "linewidths": 0}
        axes.scatter(rows["flits"].to_numpy(), y, label=str(name), zorder=3, **dots)
    for bound in np.quantile(points["flits"].to_numpy(), [0.25, 0.75]):
        axes.axvline(float(bound), color=GRID, linewidth=1.4, zorder=1)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Flits on the link between the two switches")
    axes.set_ylabel(f"Receiver's wait [{unit}]")
    axes.grid(axis="y")
    axes.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)
    headline(figure, _title(against.low_p95_ps, against.high_p95_ps), found.run, _note(found, against.pearson, points))
    return figure


def _title(low: float, high: float) -> str:
    few, many = seconds(low * 1e-12), seconds(high * 1e-12)
    return f"95% of waits are below {few} where flits are few, below {many} where they are many"


def _note(found: Analysis, pearson: float | None, points: pl.DataFrame) -> str:
    r = "" if pearson is None else f", Pearson's r {pearson:.2f}"
    grey = "Grey lines: quarters of the messages by flits. Late partners are left out."
    return f"{found.job}, {found.slowest.period.name}: {points.height} messages{r}. {grey}"
