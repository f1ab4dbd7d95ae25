"""Figures of a run on axes of the caller's; files, pages and notebooks have the charts of ``views.run``."""

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.ticker import FuncFormatter

from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import EMPTY, INK, changes, colours
from fairlane.results.culprit import HINT, headline
from fairlane.results.run import Run
from fairlane.results.views import Interference
from fairlane.views import heat
from fairlane.views.run.slowdown import notes, title
from fairlane.wording import significant

__all__ = ["interference", "slowdown"]

_HEAT = LinearSegmentedColormap.from_list("heat", list(heat.HEAT))


def slowdown(run: Run, axes: Given = None) -> Drawn | None:
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
    changes(panel.xaxis)
    panel.grid(axis="x")
    panel.tick_params(axis="y", pad=6)
    return panels.headline_of_run(title(jobs), run, " ".join(notes(run.jobs)))


def interference(run: Run, axes: Given = None) -> Drawn | None:
    """Queueing delay: rows are victims, columns aggressors; None if no packet waited, or it was not observed."""
    matrix = Interference.of(run)
    if not matrix.others.any():
        return None
    count = len(matrix.labels)
    panels = Panels.of(axes, (max(9.0, 4.8 + 0.5 * count), max(4.5, 2.8 + 0.5 * count)))
    [panel] = panels.axes
    shares = matrix.share(matrix.others)
    scale = heat.Heat.of(shares.ravel())
    norm = LogNorm(scale.low, scale.high, clip=True) if scale.log else Normalize(0, scale.high)
    cells = np.ma.masked_array(shares, np.eye(count, dtype=bool))
    panel.imshow(cells, cmap=_HEAT.with_extremes(bad=EMPTY), norm=norm, interpolation="nearest")
    panel.spines[:].set_visible(False)
    bar = panels.figure.colorbar(
        ScalarMappable(norm, _HEAT),
        ax=panel,
        shrink=0.8,
        aspect=30,
        pad=0.02,
        label="queueing delay, % of the victim's rank time",
        format=FuncFormatter(lambda value, _: significant(100 * value)),
    )
    bar.outline.set_visible(False)
    panel.set_xticks(range(count), matrix.labels, rotation=40, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(count), matrix.labels)
    panel.set(xlabel="aggressor", ylabel="victim")
    return panels.headline_of_run(headline(run) or "", run, HINT)
