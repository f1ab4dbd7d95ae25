"""Records that are analysed: one job in a stretch of time, which stretches, and the fabric and hosts of the run.

Iterations of a program differ: one may solve what another only smooths. So each is compared with the same iteration of
the isolated run, and never with another.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import polars as pl

from fairlane.core.errors import ResultsError
from fairlane.core.tables import PS, frame
from fairlane.inputs.files import MOST_STORED, parse_json, read_bytes
from fairlane.model.fabric.view import Fabric
from fairlane.results.derive import links
from fairlane.results.run import RESOLVED, file_of_run
from fairlane.results.views import iteration_times


@dataclass(frozen=True)
class Span:
    """A stretch of a run."""

    name: str
    """Its name: "fastest", "slowest", "whole run"."""
    iteration: int | None
    """The iteration, from 1; None if it is not one."""
    from_ps: int
    """Time at which the first rank was in it, ps."""
    to_ps: int
    """Until when the last rank was done with it."""
    seconds: float
    """Its length, s: from when the last rank was done with the one before; of a timed part, its time."""
    round: int | None = None
    """Number of the round within the iteration, from 1, if it is one."""


@dataclass(frozen=True)
class Record:
    """The tables of a record; instants are picoseconds, signed here so that they can be subtracted.

    The record is of a ``job``, by name and ``number`` in the run, in the stretch ``from_ps`` to ``to_ps``.
    """

    job: str
    number: int
    from_ps: int
    to_ps: int
    messages: pl.DataFrame
    """One row per message between two ranks of the job."""
    waits: pl.DataFrame
    """One row per time that a rank of the job was blocked."""
    departures: pl.DataFrame
    """One row per packet, of any job, and link that it left over."""

    @classmethod
    def of(
        cls,
        job: str,
        number: int,
        span: tuple[int, int],
        *,
        messages: pl.DataFrame,
        waits: pl.DataFrame,
        departures: pl.DataFrame,
    ) -> Self:
        """The record with its tables as the simulator writes them."""
        instants = pl.col("sent_at_ps", "posted_at_ps", "received_at_ps", "acknowledged_at_ps")
        identifier = pl.col("message").cast(pl.UInt64)
        left = departures.select(
            pl.col("time_ps", "queueing_ps", "bytes").cast(pl.Int64),
            pl.col("link", "job", "token", "packet").cast(pl.UInt32),
            pl.col("lane", "stage").cast(pl.UInt8),
        )
        return cls(
            job,
            number,
            *span,
            messages.with_columns(instants.cast(pl.Int64), pl.col("bytes").cast(pl.Int64), identifier),
            waits.with_columns(pl.col("since_ps", "end_ps", "partner_at_ps").cast(pl.Int64), identifier),
            left,
        )

    def cut(self, from_ps: int, to_ps: int) -> Self:
        """Return the record of a shorter stretch within this one."""
        ended = pl.coalesce("acknowledged_at_ps", pl.when("eager").then("received_at_ps"), pl.lit(to_ps))
        return type(self)(
            self.job,
            self.number,
            from_ps,
            to_ps,
            self.messages.filter(pl.col("sent_at_ps") < to_ps, ended >= from_ps),
            self.waits.filter(pl.col("end_ps").is_between(from_ps, to_ps, closed="left")),
            self.departures.filter(pl.col("time_ps").is_between(from_ps, to_ps, closed="left")),
        )


def spans(iterations: pl.DataFrame, *, timed: bool) -> pl.DataFrame:
    """Return begin and length of each iteration of a job: ``iteration``, ``from_ps``, ``to_ps``, ``seconds``.

    ``seconds`` is its time as in ``iteration_times``; ``timed`` says whether the job's iterations have timed parts. An
    iteration, or its timed part, begins when the first rank begins it and ends when the last rank has marked it. The
    first iteration is left out, as are those that not all ranks have marked. ``iterations`` are the rows of one job of
    a run's table of this name.
    """
    at, took = pl.col("at_ps").cast(pl.Int64), (pl.col("time_s") / PS).round().cast(pl.Int64)
    marked = (
        iterations.group_by("name", "job", pl.col("iteration").cast(pl.Int64))
        .agg(pl.len().alias("ranks"), at.max(), elapsed_ps=took.max(), from_ps=(at - took).min())
        .filter(pl.col("ranks") == iterations["rank"].n_unique())
        .with_columns(timed=timed)
    )
    times = iteration_times(marked).drop_nulls("time_s")
    return times.select("iteration", "from_ps", to_ps="at_ps", seconds="time_s")


def rounds(record: Record) -> pl.DataFrame:
    """The rounds of a record, from the end of one collective to the end of the next, with the columns of ``spans``.

    A round lasts from when the last rank has everything of a collective until the last rank has everything of the next;
    ``from_ps`` is when the first rank has everything of the one before. ``iteration`` counts the rounds, from 1. Only
    collectives with point-to-point messages before them count, so there may be no round.
    """
    ordered = record.messages.filter(pl.col("sent_at_ps") >= record.from_ps).sort("from_rank", "sent_at_ps", "message")
    opens = pl.col("collective") & ~pl.col("collective").shift(1).over("from_rank").fill_null(value=True)
    numbered = ordered.with_columns(iteration=opens.cast(pl.Int64).cum_sum().over("from_rank"))
    received = pl.col("received_at_ps")
    ends = (
        numbered.filter("collective")
        .group_by("iteration", "to_rank")
        .agg(received.max(), received.null_count().alias("missing"))
        .group_by("iteration")
        .agg(
            pl.len().alias("ranks"),
            pl.col("missing").sum(),
            received.min().alias("first"),
            received.max().alias("last"),
        )
        .filter(pl.col("iteration") > 0, pl.col("ranks") == ordered["from_rank"].n_unique(), pl.col("missing") == 0)
        .sort("iteration")
    )
    first, last = (pl.col(name).shift(1).fill_null(record.from_ps) for name in ("first", "last"))
    end = pl.col("last") + 1  # the wait for the last message ends with it
    return ends.select("iteration", from_ps=first, to_ps=end, seconds=(pl.col("last") - last) * PS)


def extremes(spans: pl.DataFrame) -> list[Span]:
    """The fastest and the slowest of some ``spans``, the first among equals; only the one if there is only one."""
    if spans.is_empty():
        return []
    order = spans.sort("seconds", "iteration")
    slowest = order.filter(pl.col("seconds") == pl.col("seconds").max()).row(0, named=True)
    if order.height == 1:
        return [Span("only", **slowest)]
    return [Span("fastest", **order.row(0, named=True)), Span("slowest", **slowest)]


def with_isolated(table: pl.DataFrame, isolated: pl.DataFrame) -> pl.DataFrame:
    """Spans with those of the same iterations, or rounds, of the isolated run: ``isolated_seconds`` etc., may be null.

    ``added_seconds`` is how much longer each takes.
    """
    same = isolated.select("iteration", pl.col("from_ps", "to_ps", "seconds").name.prefix("isolated_"))
    joined = table.join(same, on="iteration", how="left", maintain_order="left")
    return joined.with_columns(added_seconds=pl.col("seconds") - pl.col("isolated_seconds"))


def most_delayed(table: pl.DataFrame) -> list[Span]:
    """Of ``with_isolated``, the span to which most time was added: the isolated run's and the run's own, or none."""
    both = table.drop_nulls("added_seconds").sort("added_seconds", "iteration", descending=[True, False])
    ends = ("from_ps", "to_ps", "seconds")
    return [
        Span(name, row["iteration"], *(row[f"{prefix}{end}"] for end in ends))
        for row in both.head(1).iter_rows(named=True)
        for name, prefix in (("isolated run", "isolated_"), ("most delayed", ""))
    ]


@dataclass(frozen=True)
class View:
    """The fabric of a run and the places of its jobs."""

    fabric: Fabric
    links: pl.DataFrame
    """Its links, as in the table ``ports`` of a run."""
    names: tuple[str, ...]
    """The jobs' names, by number."""
    hosts: tuple[tuple[int, ...], ...]
    """The host of each rank, by job."""

    @classmethod
    def of(cls, fabric: Mapping[str, Any], names: Sequence[str], hosts: Sequence[Sequence[int]]) -> Self:
        """The view of a fabric as a resolved scenario describes it, with its jobs."""
        built = Fabric.build(fabric)
        return cls(
            built,
            links(frame(built.link_rows()), built.classes),
            tuple(names),
            tuple(tuple(of_job) for of_job in hosts),
        )

    def host_names(self, job: str) -> list[str]:
        """The name of the host of each rank of a job."""
        names = self.fabric.host_names
        return [names[host] for host in self.hosts[self.names.index(job)]]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The view of a run by its folder. Raises ``ResultsError`` without what the scenario was resolved to."""
        spec, path = spec_of(folder), folder / RESOLVED
        try:
            jobs = spec["jobs"]
            view = cls.of(spec["fabric"], [job["name"] for job in jobs], [job["hosts"] for job in jobs])
        except (ValueError, KeyError, TypeError) as error:
            raise ResultsError(f"{path}: is not what a run leaves there: {error}") from error
        wrong = [host for hosts in view.hosts for host in hosts if not 0 <= host < view.fabric.hosts]
        if wrong:
            message = f"host {wrong[0]} of a fabric with {view.fabric.hosts} hosts"
            raise ResultsError(f"{path}: is not what a run leaves there: {message}")
        return view


def spec_of(folder: Path) -> dict[str, Any]:
    """The resolved scenario of a run's folder. Raises ``ResultsError``."""
    path = folder / RESOLVED
    if not path.is_file():
        message = "is missing; without it nothing is known of the fabric and of the jobs' hosts"
        raise ResultsError(f"{path}: {message}")
    listed = file_of_run(folder, RESOLVED)
    try:
        spec = parse_json(read_bytes(listed, MOST_STORED))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path}: is not what a run leaves there: {error}") from error
    for key, kind in {"fabric": dict, "jobs": list, "observe": dict}.items():
        if not isinstance(spec, dict) or not isinstance(spec.get(key), kind):
            raise ResultsError(f"{path}: is not what a run leaves there: {key!r} is missing")
    return dict(spec)
