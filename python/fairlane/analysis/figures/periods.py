"""The time of every iteration of a job, the fastest and the slowest named (Smith et al. 2018, Figure 10)."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairlane.analysis.result import Analysis
from fairlane.plot.style import MUTED, PALETTE, canvas, headline
from fairlane.results.text import seconds, time_unit


def draw(found: Analysis) -> Figure | None:
    """Time over iterations; None if the job has fewer than two."""
    table = found.periods
    if table.height < 2:
        return None
    times = table["seconds"].to_numpy()
    factor, unit = time_unit(float(times.max()))
    figure = canvas(12, 4.4)
    axes = figure.add_subplot()
    axes.plot(table["iteration"].to_numpy(), times / factor, color=MUTED, linewidth=1.2, marker="o", markersize=3.5)
    colour = {"fastest": PALETTE[0], "slowest": PALETTE[1], "only": PALETTE[1]}
    for stretch in found.stretches:
        period = stretch.period
        if period.iteration is None:
            continue
        lasted = float(times[(table["iteration"] == period.iteration).to_numpy()][0])
        place = (period.iteration, lasted / factor)
        axes.plot(*place, marker="o", markersize=9, color=colour[period.name])
        text = f"{period.name}: {period.iteration}, {seconds(lasted)}"
        above = period.name != "fastest"
        side = "right" if period.iteration > table["iteration"].to_numpy().mean() else "left"
        axes.annotate(
            text,
            place,
            xytext=(0, 10 if above else -10),
            textcoords="offset points",
            ha=side,
            va="bottom" if above else "top",
            color=colour[period.name],
            fontweight="bold",
        )
    axes.set_ylim(0, 1.15 * float(times.max()) / factor)
    axes.set_xlabel("Iteration")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel(f"Time [{unit}]")
    axes.grid(axis="y")
    note = "An iteration lasts from the last rank's mark before it to the last rank's mark."
    headline(figure, _title(found), found.run, note)
    return figure


def _title(found: Analysis) -> str:
    times = found.periods["seconds"].to_numpy()
    if found.fastest is None:
        return f"{found.periods.height} iterations of {found.job}"
    chosen = [found.fastest.period.iteration, found.slowest.period.iteration]
    fast, slow = (float(times[(found.periods["iteration"] == number).to_numpy()][0]) for number in chosen)
    return f"{found.job}: the slowest iteration takes {slow / fast:.2f} times as long as the fastest"
