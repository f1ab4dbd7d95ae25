"""Waits of receivers against flits on the link between the pair's switches (Smith et al. 2018, Figure 8).

Beside it what only a simulator knows: how long the message was under way, whether somebody waited for it or not.
"""

from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from fairlane.analysis.result import Analysis
from fairlane.plot.legend import legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import GRID, PALETTE
from fairlane.wording import seconds, time_unit


def draw(found: Analysis, axes: Given = None) -> Drawn | None:
    """A dot for each pair of ranks whose switches share a link of their group; None if there are too few."""
    against = found.chosen.against
    if against.waits.low_p95 is None:
        return None
    panels = Panels.of(axes, (13, 5), 1, 2)
    left, right = panels.axes
    _panel(left, against.points, "wait_ps", "Receiver's wait")
    _panel(right, against.points, "under_way_ps", "Message under way")
    legend_above(left, 3)
    return panels.headline_of_run(_title(found), found.run, _note(found))


def _panel(axes: Axes, points: pl.DataFrame, column: str, label: str) -> None:
    known = points.drop_nulls(column)
    factor, unit = time_unit(float(known[column].to_numpy().max(initial=0)) * 1e-12)
    dots: dict[str, Any] = {"s": 22 if points.height <= 1000 else 7, "alpha": 0.55, "linewidths": 0, "zorder": 3}
    for (name,), rows in known.group_by("neighbour", maintain_order=True):
        colour = PALETTE[0] if name == "row link" else PALETTE[1]
        y = rows[column].to_numpy() * 1e-12 / factor
        axes.scatter(rows["flits"].to_numpy() / 1000, y, label=str(name), color=colour, **dots)
    for bound in np.quantile(points["flits"].to_numpy(), [0.25, 0.75]):
        axes.axvline(float(bound) / 1000, color=GRID, linewidth=1.6, zorder=1)
    axes.set(xlim=(0, None), ylim=(0, None), xlabel="Thousand flits on the link between the two switches")
    axes.set_ylabel(f"{label} [{unit}]")
    axes.grid(axis="y")


def _title(found: Analysis) -> str:
    against = found.chosen.against
    what, trend = ("waits last", against.waits) if against.waits.high_p95 else ("messages take", against.under_way)
    few, many = (seconds((value or 0.0) * 1e-12) for value in (trend.low_p95, trend.high_p95))
    return f"95% of {what} at most {few} where flits are few, {many} where they are many"


def _note(found: Analysis) -> str:
    against = found.chosen.against
    r = ["–" if trend.pearson is None else f"{trend.pearson:.2f}" for trend in (against.waits, against.under_way)]
    pairs = f"{against.points.height} pairs; Pearson's r {r[0]} (waits), {r[1]} (under way)"
    grey = "Grey lines: quarters of the pairs by flits. Late partners are left out."
    return f"{found.job}, {found.chosen.span.name}: {pairs}. {grey}"
