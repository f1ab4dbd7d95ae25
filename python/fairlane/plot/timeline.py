"""How busy and how blocked the ports are over time, by their role in the fabric."""

from typing import Any

import numpy as np
import polars as pl

from fairlane.engine.tables import PS
from fairlane.plot.legend import legend_above
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import colours, percentages
from fairlane.results.run import Run
from fairlane.results.views import over_time
from fairlane.wording import percent, seconds, time_unit

LEAST_RANGE = 0.01  # a panel shows at least this share of time, so that next to nothing looks like it


def draw(run: Run, axes: Given = None) -> Drawn | None:
    """Mean share of time that the ports of a role carry packets (top) and are stalled (bottom); None if not sampled."""
    if run.samples is None or run.samples.is_empty():
        return None
    table = over_time(run.samples, run.ports)
    if table.is_empty():  # ports that none of the samples is of
        return None
    factor, unit = time_unit(run.meta.simulated_s)
    panels = Panels.of(axes, (12, 7), 2, sharex=True)
    top, bottom = panels.axes
    colour = colours(table["role"].unique().sort())
    shown = (top, "port_active_share", "Carrying packets"), (bottom, "port_stalled_share", "Stalled")
    for panel, column, label in shown:
        for (role,), unsorted in table.group_by("role", maintain_order=True):
            rows = unsorted.sort("from_ps")
            edges = np.append(rows["from_ps"], rows["to_ps"][-1]) * PS / factor
            look: dict[str, Any] = {"color": colour[str(role)], "linewidth": 1.8}
            panel.stairs(rows[column].to_numpy(), edges, label=f"{role} ({rows['ports'][0]})", **look)
        panel.set_ylim(0, max(LEAST_RANGE, 1.08 * float(table[column].to_numpy().max())))
        percentages(panel.yaxis)
        panel.set_ylabel(label)
        panel.grid(axis="y")
    bottom.set_xlabel(f"Time [{unit}]")
    legend_above(top, 8)
    return panels.headline_of_run(_title(table), run, "Mean share of time of all ports of a role.")


def _title(table: pl.DataFrame) -> str:
    most = table.sort("port_stalled_share", "from_ps", "role").row(-1, named=True)
    if most["port_stalled_share"] == 0:
        return "No port was ever stalled"
    share, when = percent(most["port_stalled_share"]), seconds(most["from_ps"] * 1e-12)
    return f"{most['role'].capitalize()} ports are stalled most, {share} of the time from {when} on"
