"""Figures of an experiment: what jobs lose against isolation by workload, and what each job gains; and of progress."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairlane.plot.style import INK, MUTED, PALETTE, canvas, percentages, styled
from fairlane.reproduce.savoie2020.experiment import CONTROL, Experiment
from fairlane.reproduce.savoie2020.results import Results
from fairlane.results.text import plural

__all__ = ["draw_experiment", "draw_progress", "draw_rerouted"]

GREY = "#bdbdbd"
BOXES = 0.8
"""How much of the room of a workload its boxes take."""


class Boxes(NamedTuple):
    """One box plot for each workload."""

    label: str
    colour: str
    cells: pl.DataFrame
    column: str


def draw_experiment(
    experiment: Experiment, results: Results, path: Path, treatments: Sequence[str] = (CONTROL,)
) -> None:
    """Left: box plots of W by default (grey) and with QoS (white); right: the improvement of each cell, sorted.

    Further treatments have a colour on the left and a line on the right.
    """
    tables = {name: results.jobs(experiment.name, name) for name in treatments}
    cells = next(iter(tables.values()))
    boxes = [Boxes("Default", GREY, cells, "w_default")]
    for at, (name, table) in enumerate(tables.items()):
        boxes.append(Boxes("QoS" if name == CONTROL else name, _colour(at), table, "w_treated"))
    with styled():
        figure = canvas(13, 5)
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _boxes(left, boxes, "job" if experiment.by_job else "workload")
        for at, (name, table) in enumerate(tables.items()):
            _sorted(right, _gains(table), None if at == 0 else name, _colour(at))
        periods = results.rows[experiment.name, treatments[0]]["period"].n_unique()
        _label(figure, experiment, f"{_amount(experiment, cells, periods)}, {', '.join(treatments)}")
        figure.savefig(path)


def _amount(experiment: Experiment, cells: pl.DataFrame, periods: int) -> str:
    """How much of an experiment is shown."""

    def words(count: int, full: int, noun: str) -> str:
        return plural(count, noun) if count == full else f"{count} of {full} {noun}s"

    placements = words(cells["placement"].n_unique(), experiment.full.placements, "placement")
    return f"{placements}, {words(periods, experiment.full.periods, 'iteration')}"


def draw_rerouted(experiment: Experiment, cells: pl.DataFrame, path: Path) -> None:
    """Left: box plots of W under the other routing (grey) and with QoS (white); right: what QoS has over it, sorted."""
    routing = experiment.routing or ""
    boxes = [Boxes(f"{routing} routing", GREY, cells, "w_rerouted"), Boxes("QoS", "white", cells, "w_treated")]
    with styled():
        figure = canvas(13, 5)
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _boxes(left, boxes, "workload")
        more = cells.with_columns(improvement=pl.col("iterations") / pl.col("rerouted_iterations") - 1)
        _sorted(right, _gains(more), None, "white")
        right.set_ylabel(f"QoS over {routing} routing")
        _label(figure, experiment, f"{plural(cells['placement'].n_unique(), 'placement')}, {CONTROL}")
        figure.savefig(path)


def _label(figure: Figure, experiment: Experiment, note: str) -> None:
    figure.suptitle(f"{experiment.figure}: {experiment.title}", x=0.012, ha="left", fontsize=16, fontweight="bold")
    figure.supxlabel(note, x=0.012, ha="left", fontsize=10, color=MUTED)


def _colour(at: int) -> str:
    return "white" if at == 0 else PALETTE[(at + 1) % len(PALETTE)]


def _gains(cells: pl.DataFrame) -> list[float]:
    return cells["improvement"].drop_nulls().drop_nans().sort(descending=True).to_list()


def _boxes(axes: Axes, series: Sequence[Boxes], by: str) -> None:
    names = series[0].cells[by].unique(maintain_order=True).to_list()
    width = BOXES / len(series)
    line: dict[str, Any] = {"color": INK, "linewidth": 1.2}
    for number, (label, colour, cells, column) in enumerate(series):
        groups = [cells.filter(pl.col(by) == name)[column].drop_nulls().drop_nans().to_list() for name in names]
        drawn = axes.boxplot(
            groups,
            positions=[at + (number - (len(series) - 1) / 2) * width for at in range(len(names))],
            widths=0.85 * width,
            patch_artist=True,
            manage_ticks=False,
            medianprops={"color": INK, "linewidth": 2.2},
            whiskerprops=line,
            capprops=line,
            flierprops={"markersize": 4},
        )
        for box in drawn["boxes"]:
            box.set(facecolor=colour, edgecolor=INK)
        drawn["boxes"][0].set_label(label)
    axes.axhline(0, color=INK, linestyle="--", linewidth=1.2)
    axes.set_xticks(range(len(names)), [name.replace("_", "\n") for name in names], rotation=0 if by != "job" else 45)
    percentages(axes.yaxis, signed=True)
    axes.set_ylabel("Work against the same job alone  (W)")
    axes.grid(axis="y")
    axes.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)


def _sorted(axes: Axes, gains: Sequence[float], label: str | None, colour: str) -> None:
    """Bars for what the figure is about; a labelled line for what is beside it."""
    if label is None:
        colours = [PALETTE[0] if gain >= 0 else PALETTE[1] for gain in gains]
        axes.bar(range(len(gains)), gains, color=colours, width=0.9)
    else:
        axes.plot(range(len(gains)), gains, color=colour, marker="o", markersize=3, label=label)
        axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)
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
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("accepted configurations")
        axes.set_ylabel("mean improvement, median of placements")
        axes.grid(axis="y")
        axes.legend(frameon=False)
        figure.suptitle("Fig. 16: progress", x=0.012, ha="left", fontsize=16, fontweight="bold")
        figure.savefig(path)
