"""The time of every iteration of a job, in the co-run and isolated (compare Smith et al. 2018, Figure 10)."""

from functools import partial
from typing import Any

import polars as pl
from matplotlib.ticker import MaxNLocator

from fairlane.analysis.result import Analysis
from fairlane.plot.legend import label_at
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import MUTED, PALETTE
from fairlane.results.views import has_timed_parts
from fairlane.wording import plural, seconds, time_unit


def draw(found: Analysis, axes: Given = None) -> Drawn | None:
    """Time over iterations; None if the job has fewer than two."""
    table = found.iterations
    if table.height < 2:
        return None
    times = table["seconds"].to_numpy()
    factor, unit = time_unit(float(times.max()))
    panels = Panels.of(axes, (12, 4.4))
    [panel] = panels.axes
    numbers = table["iteration"].to_numpy()
    plot = partial(panel.plot, linewidth=1.2, marker="o", markersize=3.5)
    if "isolated_seconds" in table.columns:
        plot(numbers, table["isolated_seconds"].to_numpy() / factor, color=PALETTE[0], label="isolated run")
    plot(numbers, times / factor, color=MUTED, label="co-run")
    span = found.chosen.span
    if span.iteration is not None:
        lasted = float(times[(table["iteration"] == span.iteration).to_numpy()][0])
        place = (span.iteration, lasted / factor)
        panel.plot(*place, marker="o", markersize=9, color=PALETTE[1])
        side = "right" if span.iteration > numbers.mean() else "left"
        bold: dict[str, Any] = {"va": "bottom", "color": PALETTE[1], "fontweight": "bold", "fontsize": None}
        label_at(panel, f"{span.name}: {span.iteration}, {seconds(lasted)}", place, (0, 10), ha=side, **bold)
    panel.legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 1.0), borderaxespad=0)
    panel.set(ylim=(0, 1.15 * float(times.max()) / factor), xlabel="Iteration", ylabel=f"Time [{unit}]")
    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.grid(axis="y")
    note = "An iteration lasts from the last rank's mark before it to the last rank's mark."
    if has_timed_parts(found.run.completions, found.job):
        note = "The timed part of each iteration, of its slowest rank."
    return panels.headline_of_run(_title(found), found.run, note)


def _title(found: Analysis) -> str:
    span = found.chosen.span
    if found.isolated is None or span.iteration is None:
        return f"{plural(found.iterations.height + 1, 'iteration')} of {found.job}"
    row = found.iterations.row(by_predicate=pl.col("iteration") == span.iteration, named=True)
    ratio = row["seconds"] / row["isolated_seconds"]
    return f"{found.job}: iteration {span.iteration} takes {ratio:.2f} times as long as in the isolated run"
