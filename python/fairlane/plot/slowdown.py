"""W of each job on axes of the caller's; files, pages and notebooks have the chart of ``views.run.slowdown``."""

import numpy as np

from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import INK, bare, colours, percentages
from fairlane.results.run import Run
from fairlane.views.run.slowdown import notes, title


def draw(run: Run, axes: Given = None) -> Drawn | None:
    """A bar for each job with the interval of its W, pale over few iterations; None if no job has a W."""
    jobs = run.jobs.drop_nulls("w")
    if jobs.is_empty():
        return None
    panels = Panels.of(axes, (10, 2.2 + 0.34 * jobs.height))
    [panel] = panels.axes
    colour = colours(jobs["workload"])
    places, w = np.arange(jobs.height), jobs["w"].to_numpy()
    bars = panel.barh(places, w, height=0.72, color=[colour[name] for name in jobs["workload"]], zorder=3)
    for bar, few in zip(bars, jobs["ten_iterations_ps"].is_not_null(), strict=True):
        bar.set_alpha(0.5 if few else 1.0)
    low, high = (jobs[f"w_{end}"].fill_null(jobs["w"]).to_numpy() for end in ("low", "high"))
    reach = np.maximum([w - low, high - w], 0)
    panel.errorbar(w, places, xerr=reach, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5, zorder=5)
    panel.axvline(0, color=INK, linestyle="--", linewidth=1.2, zorder=4)
    panel.set_yticks(places, jobs["name"].to_list())
    panel.set_ylim(jobs.height - 0.4, -0.6)
    panel.set_xlabel("Throughput change against the isolated run (W)")
    percentages(panel.xaxis, signed=True)
    bare(panel)
    return panels.headline_of_run(title(jobs), run, " ".join(notes(run.jobs)))
