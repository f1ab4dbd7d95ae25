"""Figures of Smith et al. 2018: run times and timesteps, waits and flits, predictions."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from fairlane.plot.panels import figure_of
from fairlane.plot.prediction import draw_predictions, telling_runs
from fairlane.plot.style import INK, MUTED, PALETTE, canvas, headline_of, styled
from fairlane.reproduce.frames.paper import Picture

if TYPE_CHECKING:
    from fairlane.reproduce.frames.smith2018.measured import Measured

__all__ = ["draw_all"]

FAST, SLOW = PALETTE[0], PALETTE[1]
MS = 1e3


def draw_all(measured: "Measured", folder: Path) -> list[Picture]:
    """Draws those that there are data for."""
    wanted: list[tuple[bool, Sequence[tuple[str, Callable[[Measured], tuple[Figure, str]]]]]] = [
        (
            not measured.missing("runs"),
            [
                ("figure-1", _run_times),
                ("figure-3", _breakdown),
                ("figure-4", _groups),
                ("figure-10", _timesteps),
                ("figure-11", _predicted),
                ("figure-12", _locally_predicted),
            ],
        ),
        (not measured.missing("traces"), [("figure-5", _waits), ("figure-9", _flits)]),
        # On a small machine no two of the job's routers may share a link.
        (measured.points().height > 0, [("figure-8", _flits_waits)]),
    ]
    found = []
    for name, draw in (figure for there, figures in wanted if there for figure in figures):
        with styled():
            figure, title = draw(measured)
            figure.savefig(folder / f"{name}.png")
        found.append(Picture(f"{name}.png", title))
    return sorted(found, key=lambda picture: int(picture.file[7:-4]))


def _run_times(measured: "Measured") -> tuple[Figure, str]:
    runs = measured.runs().sort("run")
    figure = canvas(11, 4.6)
    axes = figure.add_subplot()
    axes.scatter(runs["run"], runs["seconds"] * MS, s=36, color=FAST, zorder=3)
    axes.set_xlabel("Run")
    axes.set_ylabel("Run time [ms]")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    times = runs["seconds"].to_numpy()
    title = f"Fig. 1: the slowest of {runs.height} runs takes {times.max() / times.min():.2f} times the fastest"
    headline_of(figure, title, f"MILC, each time beside other jobs and on other hosts. {measured.scale.words}")
    return figure, title


def _breakdown(measured: "Measured") -> tuple[Figure, str]:
    runs = measured.runs().sort("seconds")
    figure = canvas(13, 5)
    left, right = figure.subplots(1, 2)
    places = np.arange(runs.height)
    for name, words, colour in (("compute", "computation", FAST), ("mpi", "communication", SLOW)):
        mean, low, high = (runs[f"{name}_{part}_s"].to_numpy() * MS for part in ("mean", "min", "max"))
        left.errorbar(
            places, mean, yerr=[mean - low, high - mean], fmt="o", markersize=4, color=colour, label=words, linewidth=1
        )
    left.set_xlabel("Runs, from the fastest to the slowest")
    left.set_ylabel("Time of a rank [ms]")
    left.set_ylim(bottom=0)
    left.grid(axis="y")
    left.legend(frameon=False, ncols=2, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)
    rest = 1 - runs["wait_share"] - runs["allreduce_share"]
    base = np.zeros(runs.height)
    for name, part, colour in (
        ("MPI_Wait", runs["wait_share"], SLOW),
        ("MPI_Allreduce", runs["allreduce_share"], FAST),
        ("other calls", rest, MUTED),
    ):
        right.bar(places, part * 100, bottom=base, width=1.0, color=colour, label=name, linewidth=0)
        base += part.to_numpy() * 100
    right.set_xlabel("Runs, from the fastest to the slowest")
    right.set_ylabel("Share of the time in MPI [%]")
    right.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)
    title = "Fig. 3: ranks compute for the same time in every run; what varies is communication"
    note = "Left: mean of the ranks, with the least and the most. Right: the calls of all ranks."
    headline_of(figure, title, f"{note} {measured.scale.words}")
    return figure, title


def _groups(measured: "Measured") -> tuple[Figure, str]:
    runs = measured.runs()
    figure = canvas(9, 4.8)
    axes = figure.add_subplot()
    axes.scatter(runs["groups"], runs["seconds"] * MS, s=36, color=FAST, alpha=0.75, zorder=3)
    axes.set_xlabel("Groups that the job spans")
    axes.set_ylabel("Run time [ms]")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    pearson = float(np.corrcoef(runs["groups"].to_numpy(), runs["seconds"].to_numpy())[0, 1])
    title = f"Fig. 4: run time and number of groups, r = {pearson:.2f}"
    headline_of(figure, title, f"{runs.height} runs. {measured.scale.words}")
    return figure, title


def _timesteps(measured: "Measured") -> tuple[Figure, str]:
    table = measured.timesteps().filter(~pl.col("warmup"))
    spread = (
        table.filter(~pl.col("extra")).group_by("run").agg(spread=pl.col("seconds").max() / pl.col("seconds").min())
    )
    run = spread.sort("spread", "run").row(-1, named=True)["run"]
    own = table.filter(run=run).sort("timestep")
    figure = canvas(10, 4.4)
    axes = figure.add_subplot()
    axes.plot(own["timestep"], own["seconds"] * MS, color=FAST, marker="o", linewidth=1.6)
    longer = own.filter("extra")
    axes.scatter(longer["timestep"], longer["seconds"] * MS, color=SLOW, s=60, zorder=4, label="computes more")
    axes.set_xlabel("Timestep")
    axes.set_ylabel("Time [ms]")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.legend(frameon=False)
    times = own.filter(~pl.col("extra"))["seconds"].to_numpy()
    title = f"Fig. 10: in run {run} the slowest timestep takes {times.max() / times.min():.2f} times the fastest"
    headline_of(figure, title, f"The run in which they differ most. {measured.scale.words}")
    return figure, title


def _predicted(measured: "Measured") -> tuple[Figure, str]:
    predictions = measured.prediction.parts.predictions
    title = "Fig. 11: timesteps, as long as the paper's, of runs that the model has not seen"
    models: Mapping[str, Mapping[str, object]] = {
        "boosting, sparse parts": {"model": "gbm", "parts": "sparse", "setting": "inductive"}
    }
    return figure_of(draw_predictions(predictions, models, telling_runs(predictions), title=title)), title


def _locally_predicted(measured: "Measured") -> tuple[Figure, str]:
    predictions = measured.prediction.local.predictions
    title = "Fig. 12: one model for all runs, and one for each of two clusters"
    models: Mapping[str, Mapping[str, object]] = {"one model": {"clusters": 1}, "two models": {"clusters": 2}}
    return figure_of(draw_predictions(predictions, models, telling_runs(predictions), title=title)), title


def _waits(measured: "Measured") -> tuple[Figure, str]:
    run, trace = max(measured.traces.items(), key=lambda item: item[1]["slowest"]["period"]["seconds"])
    figure = canvas(12, 4.6)
    axes = figure.add_subplot()
    greatest = {}
    for name, colour in (("slowest", SLOW), ("fastest", FAST)):
        waits = trace[name]["longest_waits"]
        heights = np.asarray(waits["wait_ps"]) * 1e-9
        greatest[name] = heights.max(initial=0)
        seconds = trace[name]["period"]["seconds"] * MS
        axes.scatter(waits["rank"], heights, s=3, color=colour, label=f"{name} timestep, {seconds:.2f} ms", zorder=3)
    axes.set_xlabel("Rank")
    axes.set_ylabel("Its longest MPI_Wait [ms]")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.legend(frameon=False, markerscale=3, ncols=2, loc="lower left", bbox_to_anchor=(0, 1.0), borderaxespad=0)
    slow, fast = (f"{greatest[name]:.2f} ms" for name in ("slowest", "fastest"))
    title = f"Fig. 5: waits of up to {slow}, where the fastest timestep has {fast}"
    headline_of(figure, title, f"Run {run}, without the waits inside MPI_Allreduce. {measured.scale.words}")
    return figure, title


def _flits_waits(measured: "Measured") -> tuple[Figure, str]:
    points = measured.points()
    figure = canvas(10, 5)
    axes = figure.add_subplot()
    for number, (name, rows) in enumerate(points.sort("neighbour").group_by("neighbour", maintain_order=True)):
        look: dict[str, Any] = {"s": 7, "alpha": 0.5, "linewidths": 0, "color": PALETTE[number], "zorder": 3}
        axes.scatter(rows["flits"] / 1000, rows["wait_ps"] * 1e-9, label=str(name[0]), **look)
    for bound in np.quantile(points["flits"].to_numpy(), [0.25, 0.75]):
        axes.axvline(float(bound) / 1000, color=MUTED, linewidth=1, zorder=1)
    axes.set_xlabel("Thousand flits on the link between the two routers")
    axes.set_ylabel("Receiver's wait [ms]")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.legend(frameon=False, markerscale=3)
    title = "Fig. 8: waits against flits on the pair's own link"
    note = f"{points.height} pairs, slowest timesteps of {len(measured.traces)} runs, without late partners."
    headline_of(figure, title, f"{note} Lines: quarters of the pairs by flits. {measured.scale.words}")
    return figure, title


def _flits(measured: "Measured") -> tuple[Figure, str]:
    """Boxes from the quantiles that were kept."""
    traces = measured.traces.values()
    classes = list(dict.fromkeys(kind for trace in traces for kind in trace["slowest"]["flits"]["class"]))
    figure = canvas(2.2 + 2.6 * len(classes), 5)
    panels = figure.subplots(1, len(classes), squeeze=False)[0]
    for axes, kind in zip(panels, classes, strict=True):
        boxes, colours = [], []
        for run, trace in measured.traces.items():
            for name, colour in (("fastest", FAST), ("slowest", SLOW)):
                own = pl.DataFrame(trace[name]["flits"]).filter(pl.col("class") == kind).row(0, named=True)
                keys = {"whislo": "p1", "q1": "p25", "med": "p50", "q3": "p75", "whishi": "p99"}
                label = str(run) if name == "fastest" else ""
                boxes.append({key: own[column] / 1000 for key, column in keys.items()} | {"fliers": [], "label": label})
                colours.append(colour)
        drawn = axes.bxp(boxes, showfliers=False, patch_artist=True, widths=0.7, medianprops={"color": INK})
        for box, colour in zip(drawn["boxes"], colours, strict=True):
            box.set_facecolor(colour)
        axes.set_title(kind, loc="left", fontsize=12)
        axes.set_ylim(bottom=0)
        axes.grid(axis="y")
        axes.set_xlabel("Run")
    panels[0].set_ylabel("Thousand flits on a link")
    names = {"fastest timestep": FAST, "slowest timestep": SLOW}
    handles = [Patch(color=colour, label=name) for name, colour in names.items()]
    figure.legend(handles=handles, loc="outside upper right", ncols=2, frameon=False)
    title = "Fig. 9: flits on links in fast and slow timesteps"
    headline_of(figure, title, f"All links by class; boxes: quartiles, whiskers: 1% and 99%. {measured.scale.words}")
    return figure, title
