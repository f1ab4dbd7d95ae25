"""Figures of Wilke and Kenny 2020, drawn as the paper draws them: bands, boxes out to 99%, scaling, violins."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from fairlane.plot.boxes import draw_boxes
from fairlane.plot.style import INK, MUTED, PALETTE, canvas, percentages, styled
from fairlane.reproduce.frames.wilke2020.experiments import (
    EXPERIMENTS,
    NO_CONTENTION,
    NOBODY,
    STRATEGIES,
    Cell,
    Experiment,
)
from fairlane.reproduce.frames.wilke2020.measured import Floats, Measured, interval
from fairlane.results.text import time_unit

__all__ = ["draw"]

LINES = (("-", "o"), ("--", "s"), (":", "D"), ("-.", "^"))
"""Dashes and markers, for lines that lie on each other."""
WIDE = 20
"""Times are on a logarithmic axis where their medians differ by more than this factor."""

COLOURS = {
    **dict(zip(STRATEGIES, PALETTE, strict=False)),
    "no contention": "#d9d9d9",
    "no background": "#a6a6a6",
    "dragonfly-par": PALETTE[0],
    "dragonfly-min-par": PALETTE[1],
}
"""By strategy, baseline or fabric, the same in every figure."""


def draw(name: str, measured: Measured, path: Path) -> bool:
    """Draws an experiment's figure with the cells that are there; False if none is."""
    experiment = EXPERIMENTS[name]
    there = [cell for cell in experiment.cells if measured.has(cell)]
    if not there:
        return False
    with styled():
        figure = _KINDS[name](there, measured)
        title = f"{experiment.figure}: {experiment.title}"
        figure.suptitle(title, x=0.012, ha="left", fontsize=16, fontweight="bold")
        figure.supxlabel(_note(experiment, there, measured), x=0.012, ha="left", fontsize=10, color=MUTED)
        figure.savefig(path)
    return True


def _note(experiment: Experiment, there: Sequence[Cell], measured: Measured) -> str:
    scale = measured.scale
    missing = len(experiment.cells) - len(there)
    left = f"; {missing} of {len(experiment.cells)} cells were not run" if missing else ""
    return f"{scale.hosts} hosts, background jobs of {scale.ranks} ranks{left}"


def _bands(cells: Sequence[Cell], measured: Measured, label: Callable[[Cell], str], *, means: bool) -> Figure:
    """Throughput over message size: a line, and the band of all iterations or the 95% interval of the mean."""
    figure = canvas(11, 5.5)
    axes = figure.add_subplot()
    for cell, (dashes, marker) in zip(cells, LINES, strict=False):
        rates = measured.throughput(cell)
        sizes, colour = np.array(list(rates)) / 1024, COLOURS[label(cell)]
        middle = [float(one.mean() if means else np.median(one)) for one in rates.values()]
        edges = [interval(one) if means else (float(one.min()), float(one.max())) for one in rates.values()]
        low, high = np.array(edges).T / 1e9
        axes.fill_between(sizes, low, high, color=colour, alpha=0.25, linewidth=0)
        look: dict[str, Any] = {"color": colour, "linestyle": dashes, "linewidth": 2, "marker": marker, "markersize": 6}
        axes.plot(sizes, np.array(middle) / 1e9, label=label(cell).replace("_", " "), **look)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Message size [KiB]")
    axes.set_ylabel("Throughput [GB/s]")
    axes.grid(axis="y")
    axes.legend(frameon=False)
    return figure


def _ping_pong(cells: Sequence[Cell], measured: Measured) -> Figure:
    return _bands(cells, measured, lambda cell: cell.strategy, means=False)


def _two_routings(cells: Sequence[Cell], measured: Measured) -> Figure:
    return _bands(cells, measured, lambda cell: cell.fabric, means=True)


def _kind(cell: Cell) -> str:
    return {NO_CONTENTION: "no contention", NOBODY: "no background"}.get(cell.background, cell.strategy)


def _boxes(cells: Sequence[Cell], measured: Measured) -> Figure:
    """A panel for each background: fabrics side by side, each with the baselines and the strategies."""
    backgrounds = list(dict.fromkeys(cell.background for cell in cells if _kind(cell) == cell.strategy))
    figure = canvas(13, 1.2 + 3.8 * max(1, len(backgrounds)))
    panels = figure.subplots(max(1, len(backgrounds)), 1, squeeze=False)[:, 0]
    for axes, background in zip(panels, backgrounds or [NOBODY], strict=True):
        shown = [cell for cell in cells if cell.background in (background, NOBODY, NO_CONTENTION)]
        _groups(axes, shown, measured, lambda cell: cell.fabric)
        axes.set_title(f"beside {background}", loc="left", fontsize=12)
    return figure


def _scaling(cells: Sequence[Cell], measured: Measured) -> Figure:
    """A panel for each fabric: sizes of the foreground side by side, each with the strategies."""
    fabrics = list(dict.fromkeys(cell.fabric for cell in cells))
    figure = canvas(13, 1.2 + 3.8 * len(fabrics))
    for axes, fabric in zip(figure.subplots(len(fabrics), 1, squeeze=False)[:, 0], fabrics, strict=True):
        shown = [cell for cell in cells if cell.fabric == fabric]
        _groups(axes, shown, measured, lambda cell: f"{cell.size * measured.scale.ranks} ranks")
        axes.set_title(fabric, loc="left", fontsize=12)
    return figure


def _groups(axes: Axes, cells: Sequence[Cell], measured: Measured, group: Callable[[Cell], str]) -> None:
    """Boxes of iteration times, in groups with a place for each kind."""
    groups = list(dict.fromkeys(group(cell) for cell in cells))
    kinds = [kind for kind in COLOURS if kind in {_kind(cell) for cell in cells}]
    times = {cell: measured.times(cell) for cell in cells}
    factor, unit = time_unit(max(float(np.quantile(one, 0.99)) for one in times.values()))
    width = 0.84 / len(kinds)
    for at, kind in enumerate(kinds):
        mine = [cell for cell in cells if _kind(cell) == kind]
        places = [groups.index(group(cell)) + (at - (len(kinds) - 1) / 2) * width for cell in mine]
        values: list[Floats] = [times[cell] / factor for cell in mine]
        draw_boxes(axes, values, [COLOURS[kind]] * len(mine), positions=places, width=0.8 * width)
        axes.scatter([], [], marker="s", s=80, color=COLOURS[kind], label=kind.replace("_", " "))
    axes.set_xticks(range(len(groups)), groups)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    medians = [float(np.median(one)) for one in times.values()]
    if max(medians) > WIDE * min(medians):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    else:
        axes.set_ylim(bottom=0)
    axes.set_ylabel(f"Time per iteration [{unit}]")
    axes.grid(axis="y")
    axes.legend(frameon=False, ncols=6, fontsize=9, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)


def _violins(cells: Sequence[Cell], measured: Measured) -> Figure:
    """A panel for each state of a port: its share of time, a violin of all ports for each fabric."""
    figure = canvas(13, 5)
    for axes, state in zip(figure.subplots(1, 3), ("active", "idle", "stalled"), strict=True):
        shares = [_state(cell, measured, state) for cell in cells]
        drawn: Mapping[str, Any] = axes.violinplot(shares, showextrema=True, showmedians=True, widths=0.8)
        for body, colour in zip(drawn["bodies"], PALETTE, strict=False):
            body.set(facecolor=colour, alpha=0.75)
        for part in ("cmins", "cmaxes", "cbars", "cmedians"):
            drawn[part].set(color=INK, linewidth=1.2)
        axes.set_xticks(range(1, len(cells) + 1), [cell.fabric.replace("-", "\n") for cell in cells])
        axes.set_title(state, loc="left", fontsize=12)
        percentages(axes.yaxis)
        axes.grid(axis="y")
    return figure


def _state(cell: Cell, measured: Measured, state: str) -> Floats:
    """The share of time of every port in a state."""
    if state != "idle":
        return measured.share(cell, f"port_{state}_share")
    return 1.0 - measured.share(cell, "port_active_share") - measured.share(cell, "port_stalled_share")


_KINDS: Mapping[str, Callable[[Sequence[Cell], Measured], Figure]] = {
    "pingpong": _ping_pong,
    "pingpong.min-par": _two_routings,
    "halo3d": _boxes,
    "halo3d.scaling": _scaling,
    "fft": _boxes,
    "fft.scaling": _scaling,
    "allreduce": _boxes,
    "sweep3d": _boxes,
    "port-counters": _violins,
}
"""How each experiment is drawn."""
