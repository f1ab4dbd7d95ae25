"""Where a figure is drawn: on the panels of a new figure, or on axes that a caller gives.

Every figure is a function ``draw(data, axes=None)`` that returns the axes it has drawn on: one, or a list where it has
several panels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairlane.errors import ResultsError
from fairlane.plot.style import canvas, headline_of, what_of
from fairlane.results.run import Run

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
            words = f"the figure needs {rows * columns}: {rows} x {columns} panels, row by row"
            raise ResultsError(f"axes: {len(axes)} given; {words}")
        return cls(axes, own=False)

    @property
    def figure(self) -> Figure:
        """The figure that they are in."""
        return figure_of(self.axes)

    @property
    def drawn(self) -> Drawn:
        """What ``draw`` returns."""
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
    found = (drawn if isinstance(drawn, Axes) else drawn[0]).get_figure(root=True)
    assert found is not None, "axes that were drawn on are in a figure"
    return found
