"""Figures of Patki et al. 2016: run time by condition, a column for each application."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairlane.plot.style import PALETTE, canvas, headline_of, styled
from fairlane.reproduce.frames.paper import Picture
from fairlane.reproduce.frames.patki2016.experiments import LABELS, PLACEMENTS, RAILS, Cell, share_of

if TYPE_CHECKING:
    from fairlane.reproduce.frames.patki2016.measured import Measured

__all__ = ["draw_power", "draw_rails"]

ROWS: Mapping[str, str] = {"both": "both adapters", "0": "only adapter 0", "1": "only adapter 1"}


def draw_rails(measured: "Measured", path: Path) -> Picture | None:
    """Fig. 1: rows by adapters, bandwidth moving to the application along x."""
    ticks = {(level, beside): f"{share_of(level, beside):.0%}" for level, beside in measured.scale.balances}

    def panel(axes: Axes, application: str, rails: str) -> None:
        times = measured.times("rails", lambda cell: (cell.application, cell.rails) == (application, rails))
        seeds = sorted({cell.seed for cell in times})
        for seed in seeds:
            own = {(cell.level, cell.beside): time for cell, time in times.items() if cell.seed == seed}
            places = [at for at, balance in enumerate(ticks) if balance in own]
            heights = [own[balance] for balance in ticks if balance in own]
            look = {"color": PALETTE[seed - 1], "marker": "o", "markersize": 5, "linewidth": 1.4}
            axes.plot(places, heights, label=f"placement {seed}", **look)  # type: ignore[arg-type]
        most = max(times.values(), default=1.0) / min(times.values(), default=1.0)
        axes.text(0.97, 0.9, f"{most:.1f}x", transform=axes.transAxes, ha="right", fontsize=12, fontweight="bold")

    title = "Fig. 1: one adapter or both, while bandwidth moves to the application"
    note = (
        "Run time beside an all-to-all against the application's share of a link that both want; in each panel the "
        f"greatest run time over the least, of all placements. 115 W, random placements. {measured.scale.words}"
    )
    return _draw(measured, "rails", path, (title, note), (list(RAILS), ROWS), list(ticks.values()), panel)


def draw_power(measured: "Measured", path: Path) -> Picture | None:
    """Fig. 2: rows by power cap, service levels along x, a line for each placement."""
    levels = measured.scale.levels
    ticks: list[tuple[int | None, int]] = [(None, 3), *((0, level) for level in levels)]

    def panel(axes: Axes, application: str, cap: str) -> None:
        times = measured.times("power", lambda cell: (cell.application, str(cell.cap)) == (application, cap))
        for number, placement in enumerate(PLACEMENTS):
            own: dict[int, list[float]] = {}
            for cell, time in times.items():
                if cell.placement == placement and (cell.beside, cell.level) in ticks:
                    own.setdefault(ticks.index((cell.beside, cell.level)), []).append(time)
            places, means = sorted(own), [sum(own[at]) / len(own[at]) for at in sorted(own)]
            look = {"color": PALETTE[number], "marker": "osD"[number], "markersize": 6, "linewidth": 1.4, "alpha": 0.85}
            axes.plot(places, means, label=placement, **look)  # type: ignore[arg-type]
            least, most = [min(own[at]) for at in places], [max(own[at]) for at in places]
            axes.vlines(places, least, most, color=PALETTE[number], linewidth=2.4, alpha=0.35)

    rows = {str(cap): f"{cap} W a socket" for cap in measured.scale.caps}
    title = "Fig. 2: power caps, service levels and placements, adapter 0"
    note = (
        "Run time, alone (where the service level makes no difference) and at service levels beside an all-to-all at "
        f"level 0; means over seeds, and their range. {measured.scale.words}"
    )
    words = ["alone", *(f"level {level}" for level in levels)]
    return _draw(measured, "power", path, (title, note), (list(rows), rows), words, panel)


def _draw(
    measured: "Measured",
    experiment: str,
    path: Path,
    text: tuple[str, str],
    rows: tuple[Sequence[str], Mapping[str, str]],
    ticks: Sequence[str],
    panel: Callable[[Axes, str, str], None],
) -> Picture | None:
    """A grid of panels; None if nothing is there."""
    there = list(dict.fromkeys(cell.application for cell in _cells(measured, experiment)))
    if not there:
        return None
    with styled():
        figure = canvas(3.1 * len(there) + 0.6, 2.6 * len(rows[0]) + 1.2)
        grid = figure.subplots(len(rows[0]), len(there), squeeze=False, sharex=True, sharey="col")
        for across, application in enumerate(there):
            for down, row in enumerate(rows[0]):
                axes = grid[down][across]
                panel(axes, application, row)
                axes.set_xticks(range(len(ticks)), ticks)
                axes.set_xlim(-0.4, len(ticks) - 0.6)
                axes.grid(axis="y")
                axes.set_ylabel(f"{rows[1][row]}\nrun time [ms]" if not across else "")
            # Panels of a column share their scale, which all of them have to be drawn for.
            grid[0][across].set_ylim(0, 1.15 * max(axes.dataLim.y1 for axes in grid[:, across]))
            grid[0][across].set_title(LABELS[application], loc="left", fontsize=13)
        _legend(figure, grid[0][0])
        headline_of(figure, *text)
        figure.savefig(path)
    return Picture(path.name, text[0])


def _cells(measured: "Measured", experiment: str) -> list[Cell]:
    return list(measured.times(experiment, lambda _: True))


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False)
