"""A study in one picture: work compared with being alone, by workload, and the improvement of each job.

The form is that of the result figures of Savoie et al. 2020, section 6: on the left box plots of W = I / I_isolated - 1
by workload and treatment, on the right I_Q / I_D - 1 of every job, from the greatest to the least.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from fairlane.plot.style import GRID, INK, MUTED, PALETTE, canvas, headline_of, percentages
from fairlane.results.study import StudyResults
from fairlane.results.text import percent, plural

DEFAULT = "default"
GREYS = ("#bdbdbd", "#8c8c8c", "#dedede")
"""Default runs; treatments have colours."""
LEGEND_INCHES = 2.6
"""Room for a row of the legend."""
BOX_INCHES = 0.3


def draw(study: StudyResults) -> Figure | None:
    """W by workload, and improvement by job; None when no job can be compared."""
    work = study.work.filter(pl.col("w").is_not_null())
    if work.is_empty():
        return None
    runs = list(work.select("baseline", "treatment").unique(maintain_order=True).iter_rows())
    runs.sort(key=lambda run: run[1] != DEFAULT)
    workloads = work["workload"].unique(maintain_order=True).to_list()
    treated = work.filter(pl.col("improvement").is_not_null())
    left = max(3.6, 1.2 + BOX_INCHES * len(workloads) * (len(runs) + 1))
    figure = canvas(left + (5.2 if treated.height else 0.4), 4.9)
    grid = figure.add_gridspec(1, 2 if treated.height else 1, width_ratios=[left, 4.8] if treated.height else None)
    colours = _colours(runs)
    _boxes(figure.add_subplot(grid[0]), work, workloads, runs, colours)
    if treated.height:
        _sorted(figure.add_subplot(grid[1]), treated, [run for run in runs if run[1] != DEFAULT], colours)
    meta = study.meta
    what = f"{meta.study}: {plural(meta.points, 'point')}, {plural(work['name'].n_unique(), 'job')} at each. "
    headline_of(
        figure, _title(treated, work), what + "W and improvement compare iterations of each job's slowest rank."
    )
    return figure


def _colours(runs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    treated = [run for run in runs if run[1] != DEFAULT]
    default = [run for run in runs if run[1] == DEFAULT]
    shades = {run: GREYS[at % len(GREYS)] for at, run in enumerate(default)}
    return shades | {run: PALETTE[at % len(PALETTE)] for at, run in enumerate(treated)}


def _name(run: tuple[str, str], runs: Sequence[tuple[str, str]]) -> str:
    several = sum(other[1] == DEFAULT for other in runs) > 1
    return f"default, {run[0] or 'whole run'}" if several and run[1] == DEFAULT else run[1]


def _title(treated: pl.DataFrame, work: pl.DataFrame) -> str:
    if treated.is_empty():
        change = work.select(pl.col("w").mean()).item()
        return f"Beside others jobs do {percent(abs(change))} {'more' if change > 0 else 'less'} work, on average"
    means = treated.group_by("treatment", maintain_order=True).agg(pl.col("improvement").mean()).sort("improvement")
    name, value = means.row(-1)
    words = f"{percent(abs(value))} {'more' if value > 0 else 'less'} work than by default" if value else "no change"
    return f"{name}: {words}, on average over jobs"


def _boxes(
    axes: Axes,
    work: pl.DataFrame,
    workloads: Sequence[str],
    runs: Sequence[tuple[str, str]],
    colours: dict[tuple[str, str], str],
) -> None:
    for at, (baseline, treatment) in enumerate(runs):
        of = work.filter((pl.col("baseline") == baseline) & (pl.col("treatment") == treatment))
        groups = [of.filter(pl.col("workload") == name)["w"].to_numpy() for name in workloads]
        positions = np.arange(len(workloads)) * (len(runs) + 1) + at
        axes.boxplot(
            groups,
            positions=positions.tolist(),
            widths=0.72,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": colours[baseline, treatment], "edgecolor": INK, "linewidth": 1.0},
            medianprops={"color": INK, "linewidth": 2.0},
            whiskerprops={"color": INK, "linewidth": 1.0},
            capprops={"color": INK, "linewidth": 1.0},
            flierprops={"marker": "o", "markersize": 3, "markeredgecolor": MUTED},
            zorder=3,
        )
    axes.axhline(0, color=INK, linestyle="--", linewidth=1.4, zorder=1)
    middle = (len(runs) - 1) / 2
    axes.set_xticks([number * (len(runs) + 1) + middle for number in range(len(workloads))])
    axes.set_xticklabels([fill(name.replace("_", " "), 10) for name in workloads])
    axes.set_xlim(-1, len(workloads) * (len(runs) + 1) - 1)
    axes.set_ylabel("Work compared with alone  (W)")
    percentages(axes.yaxis, signed=True)
    axes.grid(axis="y", color=GRID)
    patches = [Patch(facecolor=colours[run], edgecolor=INK, label=_name(run, runs)) for run in runs]
    columns = max(1, int((1.2 + BOX_INCHES * len(workloads) * (len(runs) + 1)) / LEGEND_INCHES))
    axes.legend(
        handles=patches,
        frameon=False,
        fontsize=10,
        ncols=columns,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
    )


def _sorted(
    axes: Axes, treated: pl.DataFrame, runs: Sequence[tuple[str, str]], colours: dict[tuple[str, str], str]
) -> None:
    for baseline, treatment in runs:
        of = treated.filter((pl.col("baseline") == baseline) & (pl.col("treatment") == treatment))
        values = of["improvement"].sort(descending=True).to_numpy()
        x = np.arange(1, values.size + 1)
        if len(runs) == 1:
            axes.bar(x, values, width=0.8, color=colours[baseline, treatment], zorder=3)
        else:
            axes.plot(
                x, values, marker="o", markersize=3.5, linewidth=1.6, color=colours[baseline, treatment], zorder=3
            )
    axes.axhline(0, color=INK, linestyle="--", linewidth=1.2, zorder=2)
    axes.set_xlabel("Jobs, from the greatest improvement to the least")
    axes.set_ylabel("Work compared with the default run")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    percentages(axes.yaxis, signed=True)
    axes.grid(axis="y", color=GRID)
