"""The throughput change of each job against its isolated run, W, with its 95% interval; few iterations are hatched."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes

from fairlane.plot.boxes import draw_strips
from fairlane.plot.legend import label_at
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import INK, bare, colours, percentages
from fairlane.results.culprit import none_slowed, slowed_down
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.notes import few, stops, sufficient
from fairlane.results.run import Run
from fairlane.wording import listed, percent, plural

MOST_BARS = 48  # with more jobs than this, a row is a workload and a dot is a job


def draw(run: Run, axes: Given = None) -> Drawn | None:
    """W of every job, grouped by workload; None when no job can be compared with itself alone."""
    order = {name: index for index, name in enumerate(run.jobs["workload"].unique(maintain_order=True))}
    jobs = run.jobs.with_columns(pl.col("workload").replace_strict(order, return_dtype=pl.UInt32).alias("group"))
    compared = jobs.filter(pl.col("w").is_not_null()).sort("group", "job")
    if compared.is_empty():
        return None
    bars = compared.height <= MOST_BARS
    rows = compared.height + 0.6 * len(order) if bars else 2.2 * len(order)
    panels = Panels.of(axes, (10, 2.2 + 0.34 * rows))
    [panel] = panels.axes
    (_bars if bars else _dots)(panel, compared)
    panel.axvline(0, color=INK, linestyle="--", linewidth=1.2, zorder=4)
    percentages(panel.xaxis, signed=True)
    panel.set_xlabel("Throughput change against the isolated run  (W)")
    bare(panel)
    return panels.headline_of_run(title(compared), run, " ".join(_notes(jobs, compared)))


def _notes(jobs: pl.DataFrame, compared: pl.DataFrame) -> Iterator[str]:
    missing = jobs.filter(pl.col("w").is_null() & pl.col("isolated_iterations").is_not_null())
    if missing.height:
        time = sufficient(missing)
        longer = f"; {FEW_ITERATIONS} take at least {time}{stops(missing)}" if time else ""
        yield f"Not shown, no iteration completed: {listed(missing['name'].to_list())}{longer}."
    hardly = few(compared)
    if hardly.height:
        fewer = f"fewer than {FEW_ITERATIONS} iterations in {plural(hardly.height, 'job')}"
        yield f"Hatched: {fewer}; {FEW_ITERATIONS} take about {sufficient(hardly)}{stops(hardly)}."


def title(compared: pl.DataFrame) -> str:
    """How many of the jobs with enough iterations are slowed down, and which one most."""
    jobs = compared.filter(pl.col("ten_iterations_ps").is_null())
    slowed = slowed_down(jobs)
    if slowed.is_empty():
        return none_slowed(compared) or "Too few iterations to tell how much jobs are slowed down"
    worst = slowed.row(0, named=True)
    change = percent(worst["w"], signed=True)
    verb = "is" if slowed.height == 1 else "are"
    of = plural(jobs.height, "job")
    of = of if jobs.height == compared.height else f"the {of} with enough iterations"
    return f"{slowed.height} of {of} {verb} slowed down, {worst['name']} most: {change}"


def _bars(axes: Axes, jobs: pl.DataFrame) -> None:
    colour = colours(jobs["workload"])
    groups = (jobs["workload"] != jobs["workload"].shift(1)).fill_null(False).cast(pl.UInt32).cum_sum()
    y = np.arange(jobs.height) + 0.6 * groups.to_numpy()
    w = jobs["w"].to_numpy()
    bars = axes.barh(y, w, height=0.72, color=[colour[name] for name in jobs["workload"]], zorder=3)
    for bar, hatched in zip(bars, jobs["ten_iterations_ps"].is_not_null(), strict=True):
        if hatched:
            bar.set(hatch="///", edgecolor="white", alpha=0.55)
    ends = [jobs[f"w_{end}"].fill_null(jobs["w"]).to_numpy() for end in ("low", "high")]
    reach = np.maximum([w - ends[0], ends[1] - w], 0)
    axes.errorbar(w, y, xerr=reach, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5, zorder=5)
    axes.set_yticks(y, jobs["name"].to_list())
    axes.set_ylim(y[-1] + 0.8, -0.8)
    for position, value, near, far in zip(y, w, *ends, strict=True):
        offset, side, end = (5, "left", far) if value > 0 else (-5, "right", near)
        label_at(axes, percent(value, signed=True), (end, position), (offset, 0), ha=side)
    low, high = min(ends[0].min(), 0.0), max(ends[1].max(), 0.0)
    span = max(high - low, 0.02)
    axes.set_xlim(low - 0.16 * span, high + (0.16 if high > 0 else 0.04) * span)
    for name in colour:
        rows = y[(jobs["workload"] == name).to_numpy()]
        look: dict[str, Any] = {"color": colour[name], "fontweight": "bold", "fontsize": None}
        label_at(axes, name, (1.0, rows.mean()), xycoords=("axes fraction", "data"), **look)


def _dots(axes: Axes, jobs: pl.DataFrame) -> None:
    colour = colours(jobs["workload"])
    groups = [jobs.filter(pl.col("workload") == name)["w"].to_numpy() for name in colour]
    draw_strips(axes, groups, list(colour.values()))
    labels = [f"{name}\n{plural(len(group), 'job')}" for name, group in zip(colour, groups, strict=True)]
    axes.set_yticks(range(len(groups)), labels)
