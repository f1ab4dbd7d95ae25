"""A study that varies cases or parameters in one picture: time per iteration, W and improvement by condition.

Dots are jobs at single placements and seeds; bars are their means with 95% intervals; colours are treatments. Each
workload has a row of panels. With more than ``MOST_CONDITIONS`` conditions there is one for each parameter instead,
over all others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill

import polars as pl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairlane.plot.boxes import draw_dots
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import GRID, INK, MUTED, percentages
from fairlane.plot.treatments import DEFAULT, RunKind, draw_legend, run_kinds
from fairlane.results.milestones import FEW_ITERATIONS
from fairlane.results.study import StudyResults
from fairlane.statistics import Estimate
from fairlane.study.conditions import CONDITION, condition_of, timeless, varied, with_condition
from fairlane.study.replication import estimate, outer_unit
from fairlane.wording import percent, plural, seconds

MOST_CONDITIONS, MOST_WORKLOADS = 16, 4
SECONDS = "seconds_per_iteration"
RELATIVE = "relative"
"""Time per iteration over the job's median in default runs: what jobs of many workloads have in common."""
TIMED = "timed"  # whether a job has a time per iteration anywhere: some workloads have no iterations
PANEL_INCHES, CONDITION_INCHES, LETTER_INCHES = 3.9, 0.34, 0.075
LABEL_LETTERS, TITLE_LETTERS = 34, 6.6  # letters of a line of a condition's label, and of the title per inch


@dataclass(frozen=True)
class _Block:
    """A row of panels: some rows of the table, by condition."""

    title: str
    rows: pl.DataFrame
    conditions: Sequence[str]


def draw(study: StudyResults, axes: Given = None) -> Drawn | None:
    """The picture; None if the study varies nothing, or no job completed an iteration."""
    work, conditions = with_condition(study.work)
    if len(conditions) < 2 or not work[SECONDS].count():
        return None
    median = pl.col(SECONDS).filter(pl.col("treatment") == DEFAULT).median().over("name")
    timed = pl.col(SECONDS).count().over("name") > 0
    relative = [(pl.col(f"{SECONDS}{end}") / median).alias(f"{RELATIVE}{end}") for end in ("", "_low", "_high")]
    work = work.with_columns(*relative, timed.alias(TIMED))
    blocks = _blocks(work, conditions)
    runs = run_kinds(work)
    measures = [RELATIVE if any(block.rows["workload"].n_unique() > 1 for block in blocks) else SECONDS]
    measures += ["w"] if (work.group_by("point").agg(pl.col("job").n_unique())["job"] > 1).any() else []
    measures += ["improvement"] if work["improvement"].count() else []
    heights = [0.5 + CONDITION_INCHES * len(block.conditions) * max(1.0, 0.6 * len(runs)) for block in blocks]
    longest = max(min(LABEL_LETTERS, len(label)) for block in blocks for label in block.conditions)
    wide = max(8.0, 0.6 + LETTER_INCHES * longest + PANEL_INCHES * len(measures))
    title = fill(_title(work, conditions, measures), int(TITLE_LETTERS * wide))
    size = (wide, 1.9 + 0.3 * title.count("\n") + sum(heights))
    panels = Panels.of(axes, size, len(blocks), len(measures), height_ratios=heights)
    for number, panel in enumerate(panels.axes):
        block, measure = blocks[number // len(measures)], measures[number % len(measures)]
        _panel(panel, block, measure, runs, labelled=measure == measures[0])
        if measure == measures[0] and len(blocks) > 1:
            panel.set_title(block.title, fontsize=12, fontweight="bold", loc="left")
        if block is blocks[-1]:
            panel.set_xlabel(_words(measure))
    if len(runs) > 1:
        place = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0)}
        last = panels.axes[len(measures) - 1]
        draw_legend(last, runs, len(runs), **place).set_in_layout(False)  # it may be wider than its panel
        last.set_title(" ", fontsize=14)  # room for it
    meta = study.meta
    what = f"{meta.study}: {plural(len(conditions), 'condition')}, {plural(meta.points, 'point')}. "
    hollow = (
        work.filter(pl.col("w").is_not_null() & pl.col("ten_iterations_ps").is_not_null()).height and "w" in measures
    )
    bars = f"a bar the mean, with its 95% interval over {outer_unit(work)}s"
    notes = [
        f"{what}A dot is a job at one placement and seed; {bars}.",
        f"Hollow: W over fewer than {FEW_ITERATIONS} iterations, not reliable." if hollow else None,
        timeless(work),
    ]
    return panels.headline(title, " ".join(filter(None, notes)))


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


def _panel(axes: Axes, block: _Block, measure: str, runs: Sequence[RunKind], *, labelled: bool) -> None:
    height = 0.8 / len(runs)
    unit = outer_unit(block.rows)
    for at, run in enumerate(runs):
        of = run.rows(block.rows)
        for place, condition in enumerate(block.conditions):
            found = of.filter(pl.col(CONDITION) == condition)
            y = place + (at - (len(runs) - 1) / 2) * height
            _dots(axes, found, measure, y, run.colour)
            middle = _mean(found, measure, unit)
            if middle is None:
                continue
            axes.plot([middle.value] * 2, [y - 0.42 * height, y + 0.42 * height], color=INK, linewidth=2.4, zorder=4)
            if middle.low is not None and middle.high is not None:
                axes.plot([middle.low, middle.high], [y, y], color=INK, linewidth=1.2, zorder=4)
    axes.set_ylim(len(block.conditions) - 0.4, -0.6)
    labels = [fill(label, LABEL_LETTERS) if labelled else "" for label in block.conditions]
    axes.set_yticks(range(len(block.conditions)), labels, fontsize=10)
    axes.grid(axis="x", color=GRID)
    if not block.rows[measure].count():
        words = "no W" if measure == "w" else "no job has two iterations"
        axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center", color=MUTED)
        axes.set_xticks([])
        return
    if measure == SECONDS:
        axes.margins(x=0.08)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value) if value else "0"))
        return
    axes.axvline(1 if measure == RELATIVE else 0, color=INK, linestyle="--", linewidth=1.2, zorder=1)
    if measure != RELATIVE:
        axes.xaxis.set_major_locator(MaxNLocator(5))
        percentages(axes.xaxis, signed=True)


def _dots(axes: Axes, rows: pl.DataFrame, measure: str, y: float, colour: str) -> None:
    """A dot for each row that has a value; hollow where W compares too few iterations."""
    weak = pl.col("ten_iterations_ps").is_not_null() if measure == "w" else pl.lit(value=False)
    for hollow, chosen in ((False, rows.filter(~weak)), (True, rows.filter(weak))):
        values = chosen[measure].drop_nulls().to_numpy()
        draw_dots(axes, values, y, colour, size=30, alpha=0.6, hollow=hollow)


def _mean(rows: pl.DataFrame, measure: str, unit: str) -> Estimate | None:
    """The mean of a condition over replicates; of times None if a run was too slow to have one."""
    times = measure in (SECONDS, RELATIVE)
    return estimate(rows.filter(pl.col(TIMED)) if times else rows, measure, unit, complete=times)


def _words(measure: str) -> str:
    return {
        SECONDS: "Time per iteration",
        RELATIVE: "Time per iteration over the job's median",
        "w": "Change against the isolated run  (W)",
        "improvement": "Change against the default run",
    }[measure]


def _title(work: pl.DataFrame, conditions: Sequence[str], measures: Sequence[str]) -> str:
    """What differs most between conditions, in the default runs."""
    measure = "w" if "w" in measures else measures[0]
    default = work.filter(pl.col("treatment") == DEFAULT)
    compared = default.filter(pl.col("w").is_not_null())
    if measure == "w" and compared.filter(pl.col("ten_iterations_ps").is_not_null()).height > compared.height / 2:
        return f"{plural(len(conditions), 'condition')} compared, with too few iterations for a reliable W"
    unit = outer_unit(work)
    groups = default.group_by(CONDITION, maintain_order=True)
    means = [(mean.value, name) for (name,), of in groups if (mean := _mean(of, measure, unit))]
    if not means:
        return f"{plural(len(conditions), 'condition')} compared"
    (least, low), (most, high) = min(means), max(means)
    if measure == "w":
        shown = percent(least, signed=True), percent(most, signed=True)
        return f"Mean W from {shown[0]} ({low}) to {shown[1]} ({high})"
    if measure == RELATIVE:
        return f"Iterations take {most / least:.2f} times as long with {high} as with {low}"
    return f"Mean time per iteration from {seconds(least)} ({low}) to {seconds(most)} ({high})"
