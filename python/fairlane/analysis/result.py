"""What an analysis found, table by table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.analysis.flits import FlitsAgainstWaits
from fairlane.analysis.record import Record, Span
from fairlane.analysis.view import View
from fairlane.analysis.walk import Walk
from fairlane.results.run import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Stretch:
    """One stretch of a run, looked at closely."""

    span: Span
    """Which."""
    record: Record
    """What was recorded in it."""
    delays: pl.DataFrame
    """Its waits (``delays.wait_delays``)."""
    messages: pl.DataFrame
    """Its messages (``delays.message_delays``)."""
    pairs: pl.DataFrame
    """The first exchange of each ordered pair of ranks, collectives left out (``delays.first_exchange``)."""
    flits: pl.DataFrame
    """The flits of all jobs on every link (``flits.link_flits``)."""
    against: FlitsAgainstWaits
    """Waits against flits on the pair's own link."""


@dataclass(frozen=True)
class Analysis:
    """Everything that ``analyze`` finds out about one job of a run."""

    run: Run
    """The run."""
    job: str
    """The job."""
    view: View
    """Fabric and hosts."""
    breakdown: pl.DataFrame
    """Where each rank's time went (``breakdown.breakdown``)."""
    calls: pl.DataFrame
    """The MPI calls (``breakdown.calls``)."""
    iterations: pl.DataFrame
    """The iterations (``record.spans``), beside the same ones of the isolated run if the run has other jobs
    (``record.with_isolated``); no rows if there are fewer than two."""
    stretches: tuple[Stretch, ...]
    """The same iteration of the isolated run and the one looked at; only the latter if there is none to compare."""
    threshold_ps: int
    """Waits up to this are no delays."""
    walk: Walk | None
    """From the longest wait of the iteration looked at back to its cause; None if nothing waited."""

    def plot(self, figure: str = "breakdown", ax: Axes | Sequence[Axes] | None = None) -> Any:
        """Draws a figure (see ``plot.analysis.FIGURES``) and returns its axes: one, or a list of several panels.

        ``ax`` are axes to draw on, as many as the figure has panels; without them there is a new figure, which
        notebooks show. Raises ``ScenarioError`` if there is no such figure, or nothing to show in it.
        """
        from fairlane.plot.analysis import show

        return show(self, figure, ax)

    @property
    def chosen(self) -> Stretch:
        """The stretch that delays are looked for in: the most delayed iteration."""
        return self.stretches[-1]

    @property
    def isolated(self) -> Stretch | None:
        """The same stretch of the isolated run; None if there is none to compare with."""
        return self.stretches[0] if len(self.stretches) > 1 else None

    @property
    def point_to_point(self) -> pl.DataFrame:
        """The chosen stretch's waits on point-to-point messages; on those of collectives if there are no others."""
        return apart_from_collectives(self.chosen.delays)


def apart_from_collectives(table: pl.DataFrame) -> pl.DataFrame:
    """The rows that are not of collectives; all if there are no others."""
    found = table.filter(~pl.col("collective"))
    return found if found.height else table.filter(pl.col("collective").is_not_null())
