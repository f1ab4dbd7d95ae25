"""The timelines of some jobs of a run in a time range: what each rank did, put together for the writers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fairlane.core.errors import Problem, ResultsError, ScenarioError
from fairlane.core.units import DURATION
from fairlane.lab.timeline.causes import main_cause
from fairlane.lab.timeline.recorded import Recorder
from fairlane.results.run import Run, load_run
from fairlane.sim.analysis.record import View

SENDS = ("send", "isend")


@dataclass(frozen=True)
class Timelines:
    """Operations of the ranks of some jobs from ``from_ps`` to ``to_ps``. Instants are picoseconds."""

    run: Run
    view: View
    """Fabric and hosts."""
    jobs: tuple[int, ...]
    """The jobs, by number."""
    ranks: range | None
    """The ranks that are shown, of every job; None for all."""
    from_ps: int
    to_ps: int
    operations: pl.DataFrame
    """One row per operation, in order of job, rank and number; those that reach over an end of the range are cut."""
    waits: pl.DataFrame
    """One row per wait, with the ``number`` of the operation that it was in, and the job that was the main ``cause`` of
    the queueing delay of its message; null if that had none."""
    messages: pl.DataFrame
    """One row per message, with the number of the operation that sent it (``send_operation``: null for those of
    collectives), the one that ended its receive (``receive_operation``), and when (``received_by_ps``); null for what
    is not in the range."""
    request_ends: pl.DataFrame
    """One row per request that an operation ended."""
    communicators: pl.DataFrame
    """The members of communicators."""
    causes: Mapping[int, tuple[tuple[int | None, int], ...]]
    """By message, the queueing delay of its packets: the job that caused it, None if that is not known, and ps."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all jobs of the run, by number."""
        return self.view.names

    def ranks_of(self, job: int) -> range:
        """The ranks of a job that are shown."""
        count = len(self.view.hosts[job])
        return range(count) if self.ranks is None else range(min(self.ranks.start, count), min(self.ranks.stop, count))

    @property
    def size(self) -> int:
        """About how many events the timelines have: beginnings and ends of operations and of waits, messages twice."""
        shown = self.operations
        if self.ranks is not None:
            shown = shown.filter(pl.col("rank").is_in(list(self.ranks)))
        share = shown.height / max(self.operations.height, 1)
        return 2 * shown.height + round(share * (4 * self.waits.height + 2 * self.messages.height))

    def completions(self, job: int) -> list[tuple[int, int, int, int | None]]:
        """The job's iterations that were completed in the range: number, begin, end, and the time of the timed part.

        The begin is the end of the one before, but neither before the range nor more than the iteration's time before
        its end.
        """
        of_job = self.run.completions.filter(pl.col("job") == job).sort("iteration")
        timed = bool(of_job["timed"].any())
        rows, before = [], 0
        for iteration, at, elapsed in of_job.select(
            "iteration", pl.col("at_ps", "elapsed_ps").cast(pl.Int64)
        ).iter_rows():
            if self.from_ps < at <= self.to_ps:
                rows.append((iteration, max(before, self.from_ps, at - elapsed), at, elapsed if timed else None))
            before = at
        return rows


def timelines(
    folder: str | Path,
    *,
    jobs: Sequence[str] = (),
    ranks: range | None = None,
    from_ps: int = 0,
    to_ps: int | None = None,
    files: Path | None = None,
    progress: bool = False,
    allow_code: bool = False,
) -> Timelines:
    """The timelines of a run.

    The run is simulated again with a record of what ranks did; the result is the same. The record is kept in the run's
    folder, in ``analysis``.

    Args:
        folder: The run's folder.
        jobs: The names of the jobs; all without any.
        ranks: The ranks of each job that are shown; None for all.
        from_ps: The beginning of the time range.
        to_ps: The end of the time range; None for the end of the run.
        files: What paths in the scenario are relative to, if that is neither the run's folder nor the current one.
        progress: Whether to show progress on standard error.
        allow_code: Whether code that the run's scenario names may run.

    Raises ``ResultsError`` if there is no whole run in ``folder``, or it cannot be simulated again, and
    ``ScenarioError`` if there is no such job, rank or time.
    """
    run = load_run(folder)
    if run.meta.partial:
        raise ResultsError(f"{folder}: the run was interrupted before its end; only whole runs can be simulated again")
    view = View.load(Path(folder))
    numbers = _numbers(view, jobs)
    end = run.meta.simulated_ps
    last = end if to_ps is None else min(to_ps, end)
    _check_range(from_ps, last, end, to_ps)
    most = max(len(view.hosts[job]) for job in numbers)
    if ranks is not None and ranks.start >= most:
        raise ScenarioError(Problem("--ranks", "no such rank", ranks.start, f"0 to {most - 1}"))
    recorder = Recorder(run, view.names[numbers[0]], view, files, progress, allow_code)
    tables = recorder.tables(numbers, from_ps, last)
    causes = _by_message(tables["causes"])
    return Timelines(
        run,
        view,
        numbers,
        ranks,
        from_ps,
        last,
        operations=_operations(tables["operations"], from_ps, last),
        waits=_waits(tables["waits"], tables["operations"], causes),
        messages=_messages(tables),
        request_ends=tables["request_ends"],
        communicators=tables["communicators"],
        causes=causes,
    )


def _numbers(view: View, jobs: Sequence[str]) -> tuple[int, ...]:
    for name in jobs:
        if name not in view.names:
            raise ScenarioError(Problem.unknown("--job", "job", name, view.names, name))
    return tuple(number for number, name in enumerate(view.names) if not jobs or name in jobs)


def _check_range(from_ps: int, last: int, end: int, to_ps: int | None) -> None:
    if from_ps >= end:
        message = "not within the run"
        raise ScenarioError(Problem("--from", message, DURATION.format(from_ps), f"less than {DURATION.format(end)}"))
    if last <= from_ps:
        message, given = "not after --from", DURATION.format(to_ps or 0)
        raise ScenarioError(Problem("--to", message, given, f"more than {DURATION.format(from_ps)}"))


def _operations(table: pl.DataFrame, from_ps: int, to_ps: int) -> pl.DataFrame:
    """The operations within the range; those that were not over at its end last until it."""
    end = pl.min_horizontal(pl.col("end_ps").fill_null(to_ps), pl.lit(to_ps))
    return table.with_columns(since_ps=pl.max_horizontal("since_ps", pl.lit(from_ps)), end_ps=end)


def _waits(
    waits: pl.DataFrame, operations: pl.DataFrame, causes: Mapping[int, Sequence[tuple[int | None, int]]]
) -> pl.DataFrame:
    """The waits with their operations: the last that had begun, as a rank does one after another."""
    begun = operations.sort("since_ps", "number").select("job", "rank", "number", "since_ps")
    joined = waits.sort("since_ps").join_asof(begun, on="since_ps", by=["job", "rank"], check_sortedness=False)
    main = {message: main_cause(sums) for message, sums in causes.items()}
    cause = pl.Series([main.get(message) for message in joined["message"]], dtype=pl.UInt32)
    return joined.with_columns(cause=cause).sort("job", "rank", "since_ps")


def _messages(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The messages with the operations that sent and received them.

    A rank's sends and their messages have the same order at every instant.
    """
    place = pl.int_range(pl.len()).over("job", "rank", "since_ps").alias("place")
    sends = tables["operations"].filter(pl.col("call").is_in(SENDS)).sort("job", "rank", "number")
    sends = sends.select(
        "job", pl.col("rank").alias("from_rank"), pl.col("since_ps").alias("sent_at_ps"), "number", place
    )
    messages = (
        tables["messages"]
        .sort("message")
        .with_columns(place=pl.int_range(pl.len()).over("job", "from_rank", "sent_at_ps", "collective"))
    )
    keys = ["job", "from_rank", "sent_at_ps", "place"]
    sent = messages.filter(~pl.col("collective")).join(sends, on=keys).select("message", send_operation="number")
    ends = (
        tables["request_ends"]
        .filter("receive")
        .drop_nulls("message")
        .unique("message", keep="first", maintain_order=True)
    )
    received = ends.select("message", receive_operation="operation", received_by_ps="at_ps")
    return (
        messages.drop("place")
        .join(sent, on="message", how="left")
        .join(received, on="message", how="left")
        .sort("message")
    )


def _by_message(causes: pl.DataFrame) -> dict[int, tuple[tuple[int | None, int], ...]]:
    sums_by_message: dict[int, list[tuple[int | None, int]]] = {}
    for message, aggressor, spent in causes.iter_rows():
        sums_by_message.setdefault(message, []).append((aggressor, spent))
    return {message: tuple(sums) for message, sums in sums_by_message.items()}


COUNTERS = (("utilisation", "%"), ("stalled", "%"), ("queue length", "packets"))
"""The counters of each port and their units."""


@dataclass(frozen=True)
class PortCounters:
    """The counters of one port."""

    name: str
    """The port's link, as ``leaf04 port 7 to spine02``."""
    points: Sequence[tuple[int, tuple[float, ...]]]
    """The beginning of each interval, ps, and the values of ``COUNTERS`` in it; at the end all are zero."""


def port_counters(timelines: Timelines, most: int) -> Iterator[PortCounters]:
    """The counters of the ports with most queueing delay in the range, at most so many, in order of the link."""
    samples = timelines.run.samples
    if samples is None or not most:
        return
    span = (pl.col("to_ps") > timelines.from_ps) & (pl.col("from_ps") < timelines.to_ps)
    table = (
        samples.filter(span)
        .group_by("link", "link_name", "from_ps", "to_ps")
        .agg(
            pl.col("port_active_share").first() * 100,
            pl.col("port_stalled_share").first() * 100,
            pl.col("mean_queue").sum(),
            pl.col("queueing_ps").sum(),
            pl.col("bytes").sum(),
        )
        .sort("link", "from_ps")
    )
    sums = table.group_by("link").agg(pl.col("queueing_ps").sum(), pl.col("bytes").sum())
    chosen = sums.sort("queueing_ps", "bytes", "link", descending=[True, True, False]).head(most)["link"].sort()
    values = ["port_active_share", "port_stalled_share", "mean_queue"]
    for link in chosen:
        points: list[tuple[int, tuple[float, ...]]] = []
        over = None
        of_link = table.filter(pl.col("link") == link)
        for since, until, *now in of_link.select("from_ps", "to_ps", *values).iter_rows():
            if over is not None and since > over:
                points.append((over, (0.0,) * len(values)))
            points.append((since, tuple(now)))
            over = until
        if over is not None:
            points.append((over, (0.0,) * len(values)))
        yield PortCounters(str(of_link["link_name"][0]), points)
