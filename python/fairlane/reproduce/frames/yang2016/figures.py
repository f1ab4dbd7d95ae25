"""Figures of Yang et al. 2016: communication patterns, and box plots of the data transfer times of ranks."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes

from fairlane.errors import ScenarioError
from fairlane.pattern import analyse, program_of
from fairlane.plot import pattern
from fairlane.plot.boxes import draw_boxes
from fairlane.plot.files import write
from fairlane.plot.style import INK, PALETTE, canvas, headline_of, styled
from fairlane.reproduce.frames.paper import Picture
from fairlane.reproduce.frames.traces import trace
from fairlane.reproduce.frames.yang2016.experiments import APPLICATIONS, LABELS, Experiment
from fairlane.reproduce.frames.yang2016.measured import Measured
from fairlane.scenario.models import Job
from fairlane.scheduler.compare import AWARE, BLIND, CONTIGUOUS, MAX_SLOWDOWN, MIN_UTILISATION

__all__ = ["draw", "draw_patterns", "draw_schedules"]

NOTE = "Boxes: quartiles and median of all ranks; whiskers: 1% and 99%; dots: ranks beyond."
GREY = "#bdbdbd"
PATTERNS: Mapping[str, tuple[str, str]] = {
    "amg": ("Fig. 2", "amg-27"),
    "crystal": ("Fig. 3", "crystal-100"),
    "multigrid": ("Fig. 4", "boxlib_mg-125"),
}
"""The figure and the trace that it shows: AMG's is small there too, for it to be readable."""


def draw_patterns(folder: Path) -> list[Picture]:
    """Who sends how much to whom, as recorded; only of traces that are there."""
    found = []
    for application, (figure, name) in PATTERNS.items():
        try:
            job = Job.model_validate({"trace": {"path": str(trace(name))}})
        except ScenarioError:
            continue
        made = analyse(program_of(job.source, 0))
        title = f"{figure}: {LABELS[application]}, {made.traffic.ranks} ranks"
        file = f"pattern-{application}.png"
        write(partial(pattern.draw, made, title), folder / file)
        found.append(Picture(file, title))
    return found


def draw(experiment: Experiment, measured: Measured, path: Path) -> bool:
    """A panel for each application; False if nothing of it is there."""
    there = [
        it
        for it in APPLICATIONS
        if any(measured.times(experiment.name, it, box) is not None for box in experiment.boxes)
    ]
    if not there:
        return False
    with styled():
        figure = canvas(4.4 * len(there), 5.2)
        for axes, application in zip(figure.subplots(1, len(there), squeeze=False)[0], there, strict=True):
            _panel(axes, experiment, measured, application)
            axes.set_ylabel("Data transfer time of a rank [ms]" if application == there[0] else "")
        scaled = f" {measured.scale.words}." if measured.scale.words else ""
        headline_of(figure, f"{experiment.figure}: {experiment.title}", f"{NOTE}{scaled}")
        figure.savefig(path)
    return True


def draw_schedules(rows: Mapping[str, Mapping[str, Any]], scaled: str, path: Path) -> None:
    """The figures that the claim about allocators is judged by, with their bands."""
    slowdown = {name: row["mean_slowdown"] for name, row in rows.items()}
    utilisation = {name: 100 * row["utilisation"] for name, row in rows.items()}
    with styled():
        figure = canvas(11, 3.6)
        left, right = figure.subplots(1, 2)
        _bars(left, slowdown, "{:.3f}", "Mean run slowdown", MAX_SLOWDOWN * slowdown[CONTIGUOUS])
        _bars(right, utilisation, "{:.1f}%", "Utilisation", MIN_UTILISATION * utilisation[BLIND])
        note = f"The line: {AWARE} is to be at most {MAX_SLOWDOWN} times {CONTIGUOUS} at the left, and at the right"
        words = f"{note} at least {MIN_UTILISATION} times {BLIND}.{f' Of {scaled}.' if scaled else ''}"
        headline_of(figure, "Section V: allocators on a job log", words)
        figure.savefig(path)


def _bars(axes: Axes, values: Mapping[str, float], written: str, title: str, bound: float) -> None:
    bars = axes.barh(list(values), list(values.values()), height=0.6, color=PALETTE[: len(values)])
    labels = [written.format(value) for value in values.values()]
    axes.bar_label(bars, labels, label_type="center", color="white", fontsize=12)
    axes.axvline(bound, color=INK, linewidth=1.4, linestyle="--")
    axes.set_xlim(0, 1.06 * max(*values.values(), bound))
    axes.invert_yaxis()
    axes.set_title(title, loc="left", fontsize=13)
    axes.set_xticks([])
    axes.spines["bottom"].set_visible(False)


def _panel(axes: Axes, experiment: Experiment, measured: Measured, application: str) -> None:
    beside = [] if experiment.grey is None else [(experiment.grey, GREY, "alone there")]
    series = [*beside, (experiment.name, PALETTE[APPLICATIONS.index(application)], "together")]
    width = 0.72 / len(series)
    for at, (name, colour, label) in enumerate(series):
        found = [measured.times(name, application, box) for box in experiment.boxes]
        there = [(place, times) for place, times in enumerate(found) if times is not None]
        places = [place + (at - (len(series) - 1) / 2) * width for place, _ in there]
        draw_boxes(axes, [times for _, times in there], [colour] * len(there), positions=places, width=0.85 * width)
        if beside:
            axes.scatter([], [], marker="s", s=80, color=colour, label=label)
    axes.set_xticks(range(len(experiment.boxes)), list(experiment.boxes))
    axes.set_xlim(-0.6, len(experiment.boxes) - 0.4)
    axes.set_ylim(bottom=0)
    axes.set_title(LABELS[application], loc="left", fontsize=13)
    axes.grid(axis="y")
    if beside:
        look: dict[str, Any] = {"ncols": 2, "handletextpad": 0.2, "columnspacing": 1.0, "borderaxespad": 0.2}
        axes.legend(frameon=False, fontsize=10, loc="lower right", bbox_to_anchor=(1, 1), **look)
