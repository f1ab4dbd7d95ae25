"""Results of an analysis, table by table, with the parts of the time of a job's ranks."""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any

import polars as pl

from fairlane.results.run import Run
from fairlane.sim.analysis.links import FlitsAgainstWaits
from fairlane.sim.analysis.record import Record, Span, View
from fairlane.sim.analysis.walk import Walk

PARTS = ("compute", "late partner", "network", "other MPI")
"""Parts of a rank's time."""


@dataclass(frozen=True)
class Stretch:
    """One stretch of a run, looked at closely."""

    span: Span
    """Which."""
    record: Record
    """The record of it."""
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
    """Parts of each rank's time (``breakdown``)."""
    calls: pl.DataFrame
    """The MPI calls (``calls``)."""
    iterations: pl.DataFrame
    """The iterations (``record.spans``), with the same ones of the isolated run if the run has other jobs
    (``record.with_isolated``); no rows if there are fewer than two."""
    stretches: tuple[Stretch, ...]
    """The same iteration of the isolated run and the one looked at; only the latter if there is none to compare."""
    threshold_ps: int
    """Waits up to this are no delays."""
    walk: Walk | None
    """The walk from the longest wait of the chosen iteration back to its cause; None if nothing waited."""

    def plot(self, figure: str = "walk") -> Any:
        """A figure (see ``views.analysis.PICTURES``) as a chart of Altair, which notebooks show.

        Raises ``ScenarioError`` if there is no such figure, or nothing to show in it.
        """
        return resolve_name("fairlane.views.analysis:plot")(self, figure)

    def _repr_html_(self) -> str:
        html: str = resolve_name("fairlane.views.methods:html_of_analysis")(self)
        return html

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
    point_to_point = table.filter(~pl.col("collective"))
    return point_to_point if point_to_point.height else table.filter(pl.col("collective").is_not_null())


def breakdown(run: Run, job: str) -> pl.DataFrame:
    """Seconds of each rank of a job by ``PARTS``, and of all its ``communication``, which are the last three.

    Of a call that the end of the run cuts short, the waits within count and the rest does not.
    """
    second = 1e-12
    other = pl.col("communication") - pl.col("late partner") - pl.col("network")
    return (
        run.ranks.filter(pl.col("name") == job)
        .select(
            "rank",
            (pl.col("compute_ps") * second).alias("compute"),
            (pl.col("communication_ps") * second).alias("communication"),
            (pl.col("late_partner_ps") * second).alias("late partner"),
            (pl.col("network_ps") * second).alias("network"),
        )
        .with_columns(other.clip(0).alias("other MPI"))
    )


def spread(table: pl.DataFrame) -> pl.DataFrame:
    """For ``breakdown``: mean, minimum, maximum and standard deviation over ranks of each part and of communication."""
    parts = ["compute", "communication", *PARTS[1:]]
    long = table.unpivot(on=parts, variable_name="part", value_name="seconds")
    value = pl.col("seconds")
    return long.group_by("part", maintain_order=True).agg(
        value.mean().alias("mean"),
        value.min().alias("min"),
        value.max().alias("max"),
        value.std(ddof=0).alias("deviation"),
    )


def calls(run: Run, job: str) -> pl.DataFrame:
    """The MPI calls of a job, most time first: ``call``, ``count``, ``time_s`` of all ranks, ``share`` of MPI time."""
    return (
        run.calls.filter(pl.col("name") == job)
        .select("call", "count", "time_s")
        .with_columns(share=pl.when(pl.col("time_s").sum() > 0).then(pl.col("time_s") / pl.col("time_s").sum()))
        .sort("time_s", "call", descending=[True, False])
    )


def dominant_share(table: pl.DataFrame) -> float:
    """The share of MPI time that is spent in waits (for one, some or all requests) and in allreduce, for ``calls``."""
    waits = pl.col("call").str.starts_with("wait") | (pl.col("call") == "allreduce")
    return float(table.filter(waits)["share"].sum())
