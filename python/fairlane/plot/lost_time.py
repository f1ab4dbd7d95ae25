"""Lost time by victim and aggressor as a heat map, with the queueing delay in small numbers; most lost time first."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.ticker import FuncFormatter

from fairlane.plot.heat import draw_heat, write_cell
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import INK, MUTED
from fairlane.results.culprit import LostTime, headline
from fairlane.results.run import Run
from fairlane.wording import number, percent, significant, time_unit

MOST_NUMBERS = 12  # cells carry shares and queueing delays up to this many aggressors
MOST_SHARES = 30  # and shares alone up to this many
FEW_ROWS = 4  # up to so many rows the label of the colour bar has two lines


def draw(lost: LostTime, run: Run, axes: Given = None) -> Drawn:
    """Who costs whom time."""
    rows, columns = lost.share.shape
    cell = 0.86 if columns <= MOST_NUMBERS else 0.52 if columns <= MOST_SHARES else max(0.26, 9 / columns)
    panels = Panels.of(axes, (max(9.0, 4.8 + cell * columns), max(4.5, 2.8 + cell * rows)))
    [panel] = panels.axes
    norm = Normalize(0, max(float(np.nanmax(lost.share)), 1e-6))
    label = f"lost time,{' ' if rows > FEW_ROWS else chr(10)}% of the victim's time"
    percent_of = FuncFormatter(lambda value, _: significant(100 * value))
    shares = np.ma.masked_invalid(np.maximum(lost.share, 0))
    draw_heat(panel, shares, norm, label=label, ticks=percent_of)
    panel.hlines(np.arange(1, rows) - 0.5, -0.5, columns - 0.5, color="white", linewidth=1.5)
    panel.vlines(np.arange(1, columns) - 0.5, -0.5, rows - 0.5, color="white", linewidth=1.5)
    factor, unit = time_unit(float(lost.queueing.max(initial=0)))
    if columns <= MOST_SHARES:
        _numbers(panel, lost, norm, factor)
    panel.set_xticks(range(columns), lost.aggressors, rotation=40, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(rows), lost.victims)
    panel.set_xlabel("aggressor", fontweight="bold")
    panel.set_ylabel("victim", fontweight="bold")
    small = f"Small numbers: queueing delay, {unit}. " if columns <= MOST_NUMBERS else ""
    note = f"Lost time: what an iteration takes longer than without the aggressor. {small}Light numbers: within noise."
    return panels.headline_of_run(headline(run) or "", run, note)


def _numbers(axes: Axes, lost: LostTime, norm: Normalize, factor: float) -> None:
    """The share of lost time in every cell, and the queueing delay below it if there is room."""
    timed = lost.share.shape[1] <= MOST_NUMBERS
    for row, column in np.argwhere(np.isfinite(lost.share)):
        share = float(lost.share[row, column])
        dark = float(norm(share)) > 0.5
        colour = "white" if dark else INK if lost.certain[row, column] else MUTED
        delay = float(lost.queueing[row, column])
        below = "" if not timed else number(delay / factor) if delay else "0"
        write_cell(axes, column, row, percent(share, signed=share < 0), below, colour=colour, small=not timed)
