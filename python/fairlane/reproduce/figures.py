"""Figures of an experiment: what jobs lose against isolation by workload, and what each job gains; and of progress."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairlane.plot.style import INK, MUTED, PALETTE, canvas, percentages, styled
from fairlane.reproduce.experiment import CONTROL, Experiment
from fairlane.reproduce.results import Results

__all__ = ["draw_experiment", "draw_progress"]

GREY = "#bdbdbd"


def draw_experiment(experiment: Experiment, results: Results, path: Path, treatment: str = CONTROL) -> None:
    """Left: box plots of W by default (grey) and with QoS (white); right: the improvement of each cell, sorted."""
    cells = results.jobs(experiment.name, treatment)
    with styled():
        figure = canvas(13, 5)
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _boxes(left, cells, "job" if experiment.by_job else "workload")
        _sorted(right, cells["improvement"].drop_nulls().drop_nans().sort(descending=True).to_list())
        figure.suptitle(f"{experiment.figure}: {experiment.title}", x=0.012, ha="left", fontsize=16, fontweight="bold")
        note = f"{cells['placement'].n_unique()} placements, {treatment}"
        figure.supxlabel(note, x=0.012, ha="left", fontsize=10, color=MUTED)
        figure.savefig(path)


def _boxes(axes: Axes, cells: pl.DataFrame, by: str) -> None:
    names = cells[by].unique(maintain_order=True).to_list()
    for offset, column, colour in ((-0.2, "w_default", GREY), (0.2, "w_treated", "white")):
        groups = [cells.filter(pl.col(by) == name)[column].drop_nulls().drop_nans().to_list() for name in names]
        line: dict[str, Any] = {"color": INK, "linewidth": 1.2}
        drawn = axes.boxplot(
            groups,
            positions=[at + offset for at in range(len(names))],
            widths=0.34,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": INK, "linewidth": 2.2},
            whiskerprops=line,
            capprops=line,
            flierprops={"markersize": 4},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, edgecolor=INK)
        drawn["boxes"][0].set_label("Default" if colour == GREY else "QoS")
    axes.axhline(0, color=INK, linestyle="--", linewidth=1.2)
    axes.set_xticks(range(len(names)), [name.replace("_", "\n") for name in names], rotation=0 if by != "job" else 45)
    percentages(axes.yaxis, signed=True)
    axes.set_ylabel("Work against the same job alone  (W)")
    axes.grid(axis="y")
    axes.legend(frameon=False, loc="lower left")


def _sorted(axes: Axes, gains: Sequence[float]) -> None:
    colours = [PALETTE[0] if gain >= 0 else PALETTE[1] for gain in gains]
    axes.bar(range(len(gains)), gains, color=colours, width=0.9)
    axes.axhline(0, color=INK, linewidth=1.0)
    axes.set_xticks([])
    axes.set_xlabel("jobs on placements, sorted")
    axes.set_ylabel("Improvement over default")
    percentages(axes.yaxis, signed=True)
    axes.grid(axis="y")


def draw_progress(results: Results, experiments: Sequence[str], path: Path) -> None:
    """The median over placements of the mean improvement, against the number of accepted configurations."""
    with styled():
        figure: Figure = canvas(9, 5)
        axes = figure.add_subplot()
        for experiment, colour in zip(experiments, PALETTE, strict=False):
            steps = results.progress(experiment).group_by("adopted").agg(pl.col("improvement").median()).sort("adopted")
            axes.plot(steps["adopted"], steps["improvement"], marker="o", color=colour, label=experiment)
        axes.axhline(0, color=INK, linestyle="--", linewidth=1.2)
        percentages(axes.yaxis, signed=True)
        axes.set_xlabel("accepted configurations")
        axes.set_ylabel("mean improvement, median of placements")
        axes.grid(axis="y")
        axes.legend(frameon=False)
        figure.suptitle("Fig. 16: progress", x=0.012, ha="left", fontsize=16, fontweight="bold")
        figure.savefig(path)
