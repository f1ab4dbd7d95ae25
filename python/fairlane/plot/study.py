"""A study in one picture: W by workload, and the improvement of each job.

The form is that of the result figures of Savoie et al. 2020, section 6: on the left box plots of W by workload and
treatment, on the right the improvement of every job, from the greatest to the least. Over each box
there is the mean with its interval over placements. What the study varies besides treatments is in the picture of
``study_conditions``.
"""

from collections.abc import Sequence
from functools import partial
from textwrap import fill

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from fairlane.plot.boxes import QUARTILES, draw_boxes, draw_means
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import GRID, INK, percentages
from fairlane.plot.treatments import RunKind, draw_legend, run_kinds
from fairlane.results.study import StudyResults
from fairlane.statistics import FEWEST_UNITS
from fairlane.study.conditions import varied, with_condition
from fairlane.study.replication import distinct, estimate, outer_unit, over_points
from fairlane.wording import percent, plural, with_half_width

LEGEND_INCHES = 2.6  # room for a row of the legend
BOX_INCHES = 0.3
SIGNED = partial(percent, signed=True)
MOST_WHISKERS = 100  # with more jobs than this their intervals are not drawn


def draw(study: StudyResults, axes: Given = None) -> Drawn | None:
    """W by workload, and improvement by job; None when no job can be compared, or cases without treatments are."""
    work = study.work.filter(pl.col("w").is_not_null())
    shared = (study.work.group_by("point").agg(pl.col("job").n_unique())["job"] > 1).any()
    if work.is_empty() or not (work["improvement"].count() or (shared and not varied(study.work))):
        return None
    runs = run_kinds(work)
    workloads = work["workload"].unique(maintain_order=True).to_list()
    treated = work.filter(pl.col("improvement").is_not_null())
    left = max(3.6, 1.2 + BOX_INCHES * len(workloads) * (len(runs) + 1))
    ratios = [left, 4.8] if treated.height else [left]
    size = (left + (5.2 if treated.height else 0.4), 4.9)
    panels = Panels.of(axes, size, 1, len(ratios), width_ratios=ratios)
    _boxes(panels.axes[0], work, workloads, runs)
    if treated.height:
        _sorted(panels.axes[1], treated, [run for run in runs if not run.is_default])
    meta = study.meta
    several = with_condition(study.work)[1]
    over = f" under {plural(len(several), 'condition')}, taken together" if len(several) > 1 else ""
    what = f"{meta.study}: {plural(meta.points, 'point')}, {plural(work['name'].n_unique(), 'job')} at each{over}. "
    unit = outer_unit(study.work)
    words = "W and improvement are changes of each job's throughput. Boxes: jobs at all points; diamonds: their means. "
    few = distinct(work)[unit].n_unique() < FEWEST_UNITS
    words += f"Too few {unit}s for an interval" if few else f"± and thick whiskers: 95% interval over {unit}s"
    words += "; whiskers at right: within each run." if treated["improvement_low"].count() else "."
    return panels.headline(_title(treated, work), what + words)


def _title(treated: pl.DataFrame, work: pl.DataFrame) -> str:
    if treated.is_empty():
        mean = estimate(work, "w", outer_unit(work))
        assert mean is not None, "there is a job with W"
        return f"Mean W of co-running jobs: {with_half_width(mean.value, mean.low, mean.high, SIGNED)}"
    means = over_points(treated, ["treatment"], ["improvement"]).sort("improvement")
    name, value, low, high = means.row(-1)
    change = with_half_width(value, low, high, SIGNED)
    return f"{name}: {change} throughput against the default run, mean over jobs"


def _boxes(axes: Axes, work: pl.DataFrame, workloads: Sequence[str], runs: Sequence[RunKind]) -> None:
    unit = outer_unit(work)
    for at, run in enumerate(runs):
        of = [run.rows(work).filter(pl.col("workload") == name) for name in workloads]
        groups = [rows["w"].to_numpy() for rows in of]
        positions = (np.arange(len(workloads)) * (len(runs) + 1) + at).tolist()
        draw_boxes(axes, groups, [run.colour] * len(groups), positions=positions, width=0.72, whiskers=QUARTILES)
        draw_means(axes, [estimate(rows, "w", unit) for rows in of], positions)
    axes.axhline(0, color=INK, linestyle="--", linewidth=1.4, zorder=1)
    middle = (len(runs) - 1) / 2
    axes.set_xticks([number * (len(runs) + 1) + middle for number in range(len(workloads))])
    axes.set_xticklabels([fill(name.replace("_", " "), 10) for name in workloads])
    axes.set(xlim=(-1, len(workloads) * (len(runs) + 1) - 1), ylabel="Change against the isolated run  (W)")
    percentages(axes.yaxis, signed=True)
    axes.grid(axis="y", color=GRID)
    columns = max(1, int((1.2 + BOX_INCHES * len(workloads) * (len(runs) + 1)) / LEGEND_INCHES))
    draw_legend(axes, list(runs), columns, loc="lower left", bbox_to_anchor=(0.0, 1.0))


def _sorted(axes: Axes, treated: pl.DataFrame, runs: Sequence[RunKind]) -> None:
    for run in runs:
        ordered = run.rows(treated).sort("improvement", descending=True)
        value = ordered["improvement"]
        ends = [ordered[f"improvement_{end}"].fill_null(value) for end in ("low", "high")]
        reach = np.abs(np.stack([end.to_numpy() - value.to_numpy() for end in ends]))
        x = np.arange(1, len(value) + 1)
        if len(runs) == 1:
            axes.bar(x, value, width=0.8, color=run.colour, zorder=3)
        else:
            axes.plot(x, value, marker="o", markersize=3.5, linewidth=1.6, color=run.colour, zorder=3)
        if len(value) <= MOST_WHISKERS:
            axes.errorbar(x, value, yerr=reach, fmt="none", ecolor=INK, elinewidth=0.8, zorder=4)
    axes.axhline(0, color=INK, linestyle="--", linewidth=1.2, zorder=2)
    axes.set(xlabel="Jobs, from the greatest improvement to the least", ylabel="Change against the default run")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    percentages(axes.yaxis, signed=True)
    axes.grid(axis="y", color=GRID)
