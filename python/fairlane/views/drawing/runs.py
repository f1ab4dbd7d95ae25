"""Figures of a run on axes of the caller's; files, pages and notebooks have the charts of ``views.run``.

*Where a figure is drawn: on the panels of a new figure, or on axes that a caller gives.* Every figure is a function
``draw(data, axes=None)`` that returns the axes it has drawn on: one, or a list where it has several panels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from fairlane.core.errors import ResultsError
from fairlane.core.wording import significant
from fairlane.results.culprit import HINT, headline
from fairlane.results.run import Run
from fairlane.results.views import Interference
from fairlane.views import heat
from fairlane.views.drawing.style import EMPTY, INK, canvas, changes, colours, headline_of, what_of
from fairlane.views.run.slowdown import notes, title

TITLE_LETTERS_AN_INCH = 9.0  # how many letters of the title of a caller's panel fit on an inch
Given = Axes | Sequence[Axes] | None  # axes to draw on: as many as there are panels, or None for a new figure
Drawn = Axes | list[Axes]  # axes that were drawn on


@dataclass(frozen=True)
class Panels:
    """The panels of a figure, row by row."""

    axes: list[Axes]
    own: bool
    """Whether the figure is a new one; else it has the caller's layout, and no legend or note outside of the axes."""

    @classmethod
    def of(cls, given: Given, size: tuple[float, float], rows: int = 1, columns: int = 1, **options: Any) -> Self:
        """A grid of panels in a figure of this size in inches, or the axes given.

        ``options`` are those of ``Figure.subplots``. Raises ``ResultsError`` if the number of axes is not that of the
        panels.
        """
        if given is None:
            return cls(list(canvas(*size).subplots(rows, columns, squeeze=False, **options).flat), own=True)
        axes = [given] if isinstance(given, Axes) else list(given)
        if len(axes) != rows * columns:
            message = f"the figure needs {rows * columns}: {rows} x {columns} panels, row by row"
            raise ResultsError(f"axes: {len(axes)} given; {message}")
        return cls(axes, own=False)

    @property
    def figure(self) -> Figure:
        """The figure that they are in."""
        return figure_of(self.axes)

    @property
    def drawn(self) -> Drawn:
        """Return the axes and figure for ``draw``."""
        return self.axes[0] if len(self.axes) == 1 else self.axes

    def headline(self, title: str, what: str) -> Drawn:
        """Adds a title, and a note below the panels; on a caller's axes only the title. Returns what ``draw`` does."""
        if self.own:
            headline_of(self.figure, title, what)
        elif not self.axes[0].get_title("left"):
            wide = self.axes[0].get_position().width * self.figure.get_figwidth()
            lines = wrap(title, width=max(12, int(TITLE_LETTERS_AN_INCH * wide)))
            self.axes[0].set_title("\n".join(lines), loc="left", fontweight="bold")
        return self.drawn

    def headline_of_run(self, title: str, run: Run, note: str = "") -> Drawn:
        """The same for a figure of a run, which it names."""
        return self.headline(title, f"{what_of(run)} {note}")


def figure_of(drawn: Drawn | Figure) -> Figure:
    """The figure of its axes."""
    if isinstance(drawn, Figure):
        return drawn
    figure = (drawn if isinstance(drawn, Axes) else drawn[0]).get_figure(root=True)
    assert figure is not None, "axes that were drawn on are in a figure"
    return figure


_HEAT = LinearSegmentedColormap.from_list("heat", list(heat.HEAT))


def slowdown(run: Run, axes: Given = None) -> Drawn | None:
    """A bar for each job with the interval of its W, pale over few iterations; None if no job has a W."""
    jobs = run.jobs.drop_nulls("w")
    if jobs.is_empty():
        return None
    panels = Panels.of(axes, (10, 2.2 + 0.34 * jobs.height))
    [panel] = panels.axes
    colour = colours(jobs["workload"])
    places, w = np.arange(jobs.height), jobs["w"].to_numpy()
    bars = panel.barh(places, w, height=0.72, color=[colour[name] for name in jobs["workload"]], zorder=3)
    for bar, few in zip(bars, jobs["ten_iterations_ps"].is_not_null(), strict=True):
        bar.set_alpha(0.5 if few else 1.0)
    low, high = (jobs[f"w_{end}"].fill_null(jobs["w"]).to_numpy() for end in ("low", "high"))
    reach = np.maximum([w - low, high - w], 0)
    panel.errorbar(w, places, xerr=reach, fmt="none", ecolor=INK, elinewidth=1.1, capsize=2.5, zorder=5)
    panel.axvline(0, color=INK, linestyle="--", linewidth=1.2, zorder=4)
    panel.set_yticks(places, jobs["name"].to_list())
    panel.set_ylim(jobs.height - 0.4, -0.6)
    panel.set_xlabel("Throughput change against the isolated run (W)")
    changes(panel.xaxis)
    panel.grid(axis="x")
    panel.tick_params(axis="y", pad=6)
    return panels.headline_of_run(title(jobs), run, " ".join(notes(run.jobs)))


def interference(run: Run, axes: Given = None) -> Drawn | None:
    """Queueing delay: rows are victims, columns aggressors; None if no packet waited, or it was not observed."""
    matrix = Interference.of(run)
    if not matrix.others.any():
        return None
    count = len(matrix.labels)
    panels = Panels.of(axes, (max(9.0, 4.8 + 0.5 * count), max(4.5, 2.8 + 0.5 * count)))
    [panel] = panels.axes
    shares = matrix.share(matrix.others)
    scale = heat.Heat.of(shares.ravel())
    norm = LogNorm(scale.low, scale.high, clip=True) if scale.log else Normalize(0, scale.high)
    cells = np.ma.masked_array(shares, np.eye(count, dtype=bool))
    panel.imshow(cells, cmap=_HEAT.with_extremes(bad=EMPTY), norm=norm, interpolation="nearest")
    panel.spines[:].set_visible(False)
    bar = panels.figure.colorbar(
        ScalarMappable(norm, _HEAT),
        ax=panel,
        shrink=0.8,
        aspect=30,
        pad=0.02,
        label="queueing delay, % of the victim's rank time",
        format=FuncFormatter(lambda value, _: significant(100 * value)),
    )
    bar.outline.set_visible(False)
    panel.set_xticks(range(count), matrix.labels, rotation=40, ha="right", rotation_mode="anchor")
    panel.set_yticks(range(count), matrix.labels)
    panel.set(xlabel="aggressor", ylabel="victim")
    return panels.headline_of_run(headline(run) or "", run, HINT)
