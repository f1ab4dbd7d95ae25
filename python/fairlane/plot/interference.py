"""The interference matrix as a heat map: rows are victims, columns aggressors, a grey column is a job's own packets."""

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.ticker import FuncFormatter

from fairlane.plot import lost_time
from fairlane.plot.heat import draw_heat, write_cell
from fairlane.plot.panels import Drawn, Given, Panels
from fairlane.plot.style import INK
from fairlane.results.culprit import HINT, LostTime, headline
from fairlane.results.run import Run
from fairlane.results.views import Interference
from fairlane.views.scales import DECADES, FEW_LARGE
from fairlane.wording import number, percent, significant

Floats = npt.NDArray[np.float64]

MOST_NUMBERS = 12  # cells carry percentages and times up to this many rows
MOST_PERCENTAGES = 30  # and percentages alone up to this many
MOST_JOBS = 60  # with more jobs than this, rows and columns are workloads
FEW_ROWS = 4  # up to so many rows the label of the colour bar has two lines
GAP = 0.5  # space between the matrix and the grey column, in cells

GREYS = LinearSegmentedColormap.from_list("own", ["#f5f5f5", "#9c9c9c"])


def draw(run: Run, axes: Given = None) -> Drawn | None:
    """Who delays whom; None when the run did not observe it or no packet waited."""
    if lost := LostTime.of(run):
        return lost_time.draw(lost, run, axes)
    between_jobs = run.jobs.height <= MOST_JOBS
    matrix = Interference.of(run, by="job" if between_jobs else "workload")
    if not (matrix.others.any() or matrix.own.any()):
        return None
    count = len(matrix.labels)
    cell = 0.86 if count <= MOST_NUMBERS else 0.52 if count <= MOST_PERCENTAGES else max(0.26, 9 / count)
    panels = Panels.of(axes, (max(9.0, 4.8 + cell * (count + 1.5)), max(4.5, 2.8 + cell * count)))
    [panel] = panels.axes
    shares = matrix.share(matrix.others)
    off = np.eye(count, dtype=bool) if between_jobs else np.zeros((count, count), dtype=bool)
    norm = _norm(shares)
    percent_of = FuncFormatter(lambda value, _: significant(100 * value))
    between = " " if count > FEW_ROWS else "\n"
    label = f"queueing delay,{between}% of the victim's rank time"
    draw_heat(panel, np.ma.masked_array(shares, off), norm, label=label, ticks=percent_of)
    _grid(panel, count)
    own = matrix.share(matrix.own)
    beside = (count - 0.5 + GAP, count + 0.5 + GAP, count - 0.5, -0.5)
    panel.imshow(own[:, np.newaxis], cmap=GREYS, norm=_norm(own), extent=beside)
    if count <= MOST_PERCENTAGES:
        _numbers(panel, matrix, shares, off, norm)
    _label(panel, matrix.labels)
    return panels.headline_of_run(headline(run) or "", run, _note(matrix))


def _norm(shares: Floats) -> Normalize:
    """Linear from zero, or logarithmic over three decades where a few cells would make all others look the same."""
    positive = shares[shares > 0]
    if not positive.size:
        return Normalize(0, 1)
    high = float(positive.max())
    if high > FEW_LARGE * float(np.median(positive)):
        return LogNorm(high * 10.0**-DECADES, high, clip=True)
    return Normalize(0, high)


def _grid(axes: Axes, count: int) -> None:
    """White lines between the cells, and room for the grey column."""
    axes.set_xlim(-0.5, count + 0.5 + GAP)
    width = 1.5 if count <= MOST_NUMBERS else 0.6
    axes.hlines(np.arange(1, count) - 0.5, -0.5, count - 0.5, color="white", linewidth=width)
    axes.vlines(np.arange(1, count) - 0.5, -0.5, count - 0.5, color="white", linewidth=width)


def _numbers(axes: Axes, matrix: Interference, shares: Floats, off: npt.NDArray[np.bool_], norm: Normalize) -> None:
    """The percentage in every cell, and the time below it if there is room."""
    factor, _ = matrix.unit()
    own = matrix.share(matrix.own)
    timed = len(matrix.labels) <= MOST_NUMBERS
    for row in range(len(matrix.labels)):
        for column in np.flatnonzero(~off[row]):
            share = shares[row, column]
            colour = "white" if float(norm(share)) > 0.5 else INK
            _write(axes, float(column), row, share, matrix.others[row, column] / factor if timed else None, colour)
        _write(axes, len(matrix.labels) + GAP, row, own[row], matrix.own[row] / factor if timed else None, INK)


def _write(axes: Axes, x: float, y: float, share: float, value: float | None, colour: str) -> None:
    """The share of a cell, and the time below it if there is room."""
    if share == 0:
        write_cell(axes, x, y, "0", small=value is None)
    elif value is None:
        write_cell(axes, x, y, percent(share).removesuffix("%"), colour=colour, small=True)
    else:
        write_cell(axes, x, y, percent(share), number(value), colour=colour)


def _label(axes: Axes, labels: list[str]) -> None:
    count = len(labels)
    size, slant = (11, 40) if count <= 24 else (10, 60)
    ticks = [*range(count), count + GAP]
    axes.set_xticks(ticks, [*labels, "itself"], rotation=slant, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(count), labels)
    axes.tick_params(labelsize=size)
    axes.set_xlabel("aggressor", fontweight="bold")
    axes.set_ylabel("victim", fontweight="bold")


def _note(matrix: Interference) -> str:
    _, unit = matrix.unit()
    count = len(matrix.labels)
    small = f"Small numbers: queueing delay, {unit}. "
    if count > MOST_NUMBERS:
        where = "Queueing delays in seconds" if count <= MOST_PERCENTAGES else "Numbers"
        small = f"{where}: table interference of the run. "
        small = f"Numbers: percent. {small}" if count <= MOST_PERCENTAGES else small
    time = "Rank time: ranks × simulated time; packets queue concurrently, so there can be more than 100%. "
    return f"{small}{time}Grey: delay caused by the job's own packets. {HINT}"
