"""The common base of all results: tables, SQL over them, figures, a folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from fairlane.results.query import ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


class Results:
    """The base of ``Run``, ``StudyResults``, ``Saturation`` and others."""

    TABLES: ClassVar[Sequence[str]]
    """The names of the tables: attributes here, files in the folder, views in a query."""
    ON_DEMAND: ClassVar[Sequence[str]] = ()
    """The names of optional tables."""
    folder: Path | None
    """Where they are stored; None while they are only in memory."""

    def tables(self) -> dict[str, pl.DataFrame]:
        """Every table by name."""
        found = {name: getattr(self, name) for name in (*self.TABLES, *self.ON_DEMAND)}
        return {name: table for name, table in found.items() if table is not None}

    def query(self, sql: str) -> pl.DataFrame:
        """Answers ``sql``, one SELECT (or DESCRIBE, SHOW, EXPLAIN) over the tables.

        Raises ``ResultsError`` if the query is wrong, with the tables and the nearest column.
        """
        return ask(self.tables(), sql)

    def plot(self, figure: str | None = None, ax: Axes | Sequence[Axes] | None = None) -> Any:
        """Draws a figure, by default the first that there are data for, as a notebook shows it.

        Names are those of ``fairlane list figures``, or that of a plug-in. Runs, load sweeps and other results that
        have a view (``fairlane.views.kinds.KINDS``) are charts of Altair. Others are drawn by Matplotlib: the axes are
        returned, a list if several; ``ax`` are axes to draw on, as many as the figure has panels (of a run for
        ``slowdown`` and ``interference``); without them there is a new figure.

        Raises ``ScenarioError`` if there is no such figure, or nothing to show in it, and
        ``ResultsError`` for more or fewer axes than panels.
        """
        from fairlane.views.kinds import has_picture, plot

        if ax is None and has_picture(self, figure):
            return plot(self, figure)
        from fairlane.plot import show

        return show(self, figure, ax)

    def draw(self) -> list[Path]:
        """Draws every figure that there are data for into the folder, and returns their paths.

        Raises ``ResultsError`` if there is no folder, or it cannot be written.
        """
        from fairlane.views.kinds import draw

        return draw([self])

    def _repr_html_(self) -> str | None:
        from fairlane.views.kinds import has_picture, html_of

        return html_of(self) if has_picture(self) else None

    def headline(self) -> str:
        """A one-line description."""
        raise NotImplementedError

    def __repr__(self) -> str:
        where = f" in {self.folder}" if self.folder else ""
        return f"<{type(self).__name__}: {self.headline()}{where}>"
