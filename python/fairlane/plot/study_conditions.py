"""A study that varies cases or parameters in one picture: time per iteration, W and improvement by condition.

Dots are jobs at single placements and seeds, bars their medians; colours are treatments. Each workload has a row of
panels. With more than ``MOST_CONDITIONS`` conditions there is one for each parameter instead, over all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairlane.plot.style import GRID, INK, PALETTE, canvas, headline_of, percentages
from fairlane.results.study import StudyResults
from fairlane.results.text import percent, plural, seconds
from fairlane.study.conditions import CONDITION, condition_of, varied, with_condition

__all__ = ["draw"]

DEFAULT, GREY = "default", "#8c8c8c"
MOST_CONDITIONS, MOST_WORKLOADS = 16, 4
RELATIVE = "relative"
"""Time per iteration over the job's median over conditions: what jobs of many workloads have in common."""
PANEL_INCHES, CONDITION_INCHES, LETTER_INCHES = 3.9, 0.34, 0.075
LABEL_LETTERS, TITLE_LETTERS = 34, 6.6
"""Letters of a line of a condition's label, and of the title per inch."""


@dataclass(frozen=True)
class _Block:
    """A row of panels: some rows of the table, by condition."""

    title: str
    rows: pl.DataFrame
    conditions: Sequence[str]


def draw(study: StudyResults) -> Figure | None:
    """The picture; None if the study varies nothing, or no job completed an iteration."""
    work, conditions = with_condition(study.work)
    if len(conditions) < 2 or not work["seconds_per_iteration"].count():
        return None
    median = pl.col("seconds_per_iteration").filter(pl.col("treatment") == DEFAULT).median().over("name")
    work = work.with_columns((pl.col("seconds_per_iteration") / median).alias(RELATIVE))
    blocks = _blocks(work, conditions)
    runs = list(work.select("baseline", "treatment").unique(maintain_order=True).iter_rows())
    runs.sort(key=lambda run: run[1] != DEFAULT)
    measures = [RELATIVE if any(block.rows["workload"].n_unique() > 1 for block in blocks) else "seconds_per_iteration"]
    measures += ["w"] if (work.group_by("point").agg(pl.col("job").n_unique())["job"] > 1).any() else []
    measures += ["improvement"] if work["improvement"].count() else []
    heights = [0.5 + CONDITION_INCHES * len(block.conditions) * max(1.0, 0.6 * len(runs)) for block in blocks]
    longest = max(min(LABEL_LETTERS, len(label)) for block in blocks for label in block.conditions)
    wide = max(8.0, 0.6 + LETTER_INCHES * longest + PANEL_INCHES * len(measures))
    title = fill(_title(work, conditions, measures), int(TITLE_LETTERS * wide))
    figure = canvas(wide, 1.9 + 0.3 * title.count("\n") + sum(heights))
    grid = figure.add_gridspec(len(blocks), len(measures), height_ratios=heights)
    for down, block in enumerate(blocks):
        for across, measure in enumerate(measures):
            axes = figure.add_subplot(grid[down, across])
            _panel(axes, block, measure, runs, labelled=across == 0)
            if across == 0 and len(blocks) > 1:
                axes.set_title(block.title, fontsize=12, fontweight="bold", loc="left")
            if down == len(blocks) - 1:
                axes.set_xlabel(_words(measure))
            if len(runs) > 1 and down == 0 and across == len(measures) - 1:
                patches = [Patch(facecolor=_colour(at), label=_name(run, runs)) for at, run in enumerate(runs)]
                axes.legend(
                    handles=patches,
                    frameon=False,
                    fontsize=10,
                    ncols=len(patches),
                    loc="lower right",
                    bbox_to_anchor=(1.0, 1.0),
                    borderaxespad=0.2,
                )
    meta = study.meta
    what = f"{meta.study}: {plural(len(conditions), 'condition')}, {plural(meta.points, 'point')}. "
    headline_of(figure, title, what + "A dot is a job at one placement and seed, a bar the median.")
    return figure


def _blocks(work: pl.DataFrame, conditions: Sequence[str]) -> list[_Block]:
    """By workload, if there are few; by parameter, if there are many conditions."""
    if len(conditions) > MOST_CONDITIONS:
        return [_by_parameter(work, name) for name in varied(work)]
    workloads = work["workload"].unique(maintain_order=True).to_list()
    if len(workloads) > MOST_WORKLOADS:
        return [_Block("all workloads", work, conditions)]
    return [_Block(name.replace("_", " "), work.filter(pl.col("workload") == name), conditions) for name in workloads]


def _by_parameter(work: pl.DataFrame, name: str) -> _Block:
    label = pl.Series(CONDITION, [condition_of({name: value}) for value in work[name].to_list()], pl.String)
    return _Block(name, work.with_columns(label), label.unique(maintain_order=True).to_list())


def _panel(axes: Axes, block: _Block, measure: str, runs: Sequence[tuple[str, str]], *, labelled: bool) -> None:
    height = 0.8 / len(runs)
    for at, (baseline, treatment) in enumerate(runs):
        of = block.rows.filter((pl.col("baseline") == baseline) & (pl.col("treatment") == treatment))
        for place, condition in enumerate(block.conditions):
            values = of.filter(pl.col(CONDITION) == condition)[measure].drop_nulls().to_numpy()
            if not values.size:
                continue
            y = place + (at - (len(runs) - 1) / 2) * height
            axes.scatter(values, np.full(values.size, y), s=30, color=_colour(at), alpha=0.6, linewidths=0, zorder=3)
            middle = float(np.median(values))
            axes.plot([middle, middle], [y - 0.42 * height, y + 0.42 * height], color=INK, linewidth=2.4, zorder=4)
    axes.set_ylim(len(block.conditions) - 0.4, -0.6)
    labels = [fill(label, LABEL_LETTERS) if labelled else "" for label in block.conditions]
    axes.set_yticks(range(len(block.conditions)), labels, fontsize=10)
    axes.grid(axis="x", color=GRID)
    if measure == "seconds_per_iteration":
        axes.margins(x=0.08)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value) if value else "0"))
        return
    axes.axvline(1 if measure == RELATIVE else 0, color=INK, linestyle="--", linewidth=1.2, zorder=1)
    if measure != RELATIVE:
        axes.xaxis.set_major_locator(MaxNLocator(5))
        percentages(axes.xaxis, signed=True)


def _words(measure: str) -> str:
    return {
        "seconds_per_iteration": "Time per iteration",
        RELATIVE: "Time per iteration over the job's median",
        "w": "Change against the isolated run  (W)",
        "improvement": "Change against the default run",
    }[measure]


def _title(work: pl.DataFrame, conditions: Sequence[str], measures: Sequence[str]) -> str:
    """What differs most between conditions, in the default runs."""
    measure = "w" if "w" in measures else measures[0]
    default = work.filter(pl.col("treatment") == DEFAULT)
    medians = default.group_by(CONDITION, maintain_order=True).agg(pl.col(measure).median()).drop_nulls()
    if medians.is_empty():
        return f"{plural(len(conditions), 'condition')} compared"
    ordered = medians.sort(measure)
    (low, least), (high, most) = ordered.row(0), ordered.row(-1)
    if measure == "w":
        shown = percent(least, signed=True), percent(most, signed=True)
        return f"Median W from {shown[0]} ({low}) to {shown[1]} ({high})"
    if measure == RELATIVE:
        return f"Iterations take {most / least:.2f} times as long with {high} as with {low}"
    return f"Median time per iteration from {seconds(least)} ({low}) to {seconds(most)} ({high})"


def _colour(at: int) -> str:
    return GREY if at == 0 else PALETTE[(at - 1) % len(PALETTE)]


def _name(run: tuple[str, str], runs: Sequence[tuple[str, str]]) -> str:
    several = sum(other[1] == DEFAULT for other in runs) > 1
    return f"default, {run[0] or 'whole run'}" if several and run[1] == DEFAULT else run[1]
