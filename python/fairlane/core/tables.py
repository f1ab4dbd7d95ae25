"""Measurements of one simulation, taken from the engine as exact integers (picoseconds, bytes, counts)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from fairlane.core.bridge import RawTable
from fairlane.core.drive import Engine
from fairlane.core.errors import RunError
from fairlane.core.wording import plural

PS = 1e-12  # seconds in a picosecond


def _no_failures() -> pl.DataFrame:
    return pl.DataFrame(schema={"job": pl.UInt32, "time": pl.UInt64, "from": pl.UInt32, "to": pl.UInt32})


def _no_marks() -> pl.DataFrame:
    times = {"time": pl.UInt64, "elapsed": pl.UInt64, "timed": pl.UInt8}
    return pl.DataFrame(schema={"job": pl.UInt32, "iteration": pl.UInt64, **times})


@dataclass(frozen=True)
class Work:
    """Progress of each rank of a simulation, and the parts of its time."""

    now: int  # simulated time, ps; until the last rank ended where all have
    ranks: pl.DataFrame  # one row per rank, in the engine's own columns
    marks: pl.DataFrame = field(default_factory=_no_marks)
    """Completed iterations: ``job``, ``iteration`` from 1, ``time``; how long the timed part of the
    slowest rank took (``elapsed``), and whether it is a part only (``timed``)."""
    later_iterations: Sequence[int] = ()
    """Times at which a job simulated alone, and on for this, completed what it lacked of two iterations, ps."""
    under_way: pl.DataFrame | None = None
    """For how long each rank has computed or been in a call at the end: ``ranks`` has what is over."""
    failures: pl.DataFrame = field(default_factory=_no_failures)
    """The jobs that failed because a packet was lost for good: ``job``, ``time``, and the hosts ``from`` and ``to``."""

    class_latency: pl.DataFrame | None = None
    """The mean latency of messages by traffic class (``class``, "" for none), ps: ``isolated``, what it is compared as;
    None without classes."""

    @classmethod
    def of(cls, engine: Engine) -> "Work":
        """Read the work that ``engine`` has done so far."""
        ranks = frame(engine.table("ranks"))
        # Where every rank has ended, the engine's time is only how far it looked for events.
        ended = ranks.height > 0 and bool((ranks["finished"] != 0).all())
        now = int(ranks.select(pl.col("finished_at").max()).item()) if ended else engine.now
        latency = frame(engine.table("class_latency")).filter(pl.col("of") == "message")
        of_class = latency.group_by("class")
        total = (pl.col("sum_high").cast(pl.Float64) * 2.0**64 + pl.col("sum_low").cast(pl.Float64)).sum()
        return cls(
            now,
            ranks,
            frame(engine.table("job_marks")),
            under_way=frame(engine.table("under_way")),
            failures=frame(engine.table("failures")),
            class_latency=of_class.agg(isolated=total / pl.col("count").sum()) if latency.height else None,
        )

    @property
    def failed(self) -> set[int]:
        """The numbers of the jobs that failed."""
        return set(self.failures["job"].to_list())


@dataclass(frozen=True, kw_only=True)
class EngineTables(Work):
    """Everything that one simulation measured, in the engine's own columns."""

    packet_hops: int  # packets times links crossed
    digest: str  # the engine's fingerprint of everything measured
    calls: pl.DataFrame  # one row per job and MPI call
    ports: pl.DataFrame  # one row per port and virtual lane
    interference: pl.DataFrame  # one row per (delayed job, delaying job)
    totals: dict[str, int]  # what the network as a whole has carried, see ``totals``
    sweeps: pl.DataFrame = field(default_factory=pl.DataFrame)  # one row per time that routes were recomputed
    pauses: pl.DataFrame = field(default_factory=pl.DataFrame)  # one row per port and lane that has been paused

    @classmethod
    def of(cls, engine: Engine) -> "EngineTables":
        """Read the tables that ``engine`` has measured so far."""
        return cls(
            **vars(Work.of(engine)),
            packet_hops=engine.packet_hops,
            digest=engine.digest(),
            calls=frame(engine.table("calls")),
            ports=frame(engine.table("ports")),
            interference=frame(engine.table("interference")),
            totals=totals(engine),
            sweeps=frame(engine.table("sweeps")),
            pauses=frame(engine.table("pauses")),
        )


def totals(engine: Engine) -> dict[str, int]:
    """Return the totals of the network: packet-hops, messages, and packets of congestion control."""
    return frame(engine.table("totals")).row(0, named=True)


def marks(engine: Engine) -> pl.DataFrame:
    """Return each rank's marks of iterations (from 1), where they are kept: job, rank, iteration, at, elapsed (ps)."""
    table = frame(engine.table("marks"))
    return table.select("job", "rank", pl.col("iteration") + 1, pl.col("time").alias("at"), "elapsed")


def timed(engine: Engine, job: int) -> bool:
    """Whether the iterations of a job have a timed part."""
    return bool((frame(engine.table("job_marks")).filter(pl.col("job") == job)["timed"] != 0).any())


RECORD = ("messages", "waits", "departures")  # the engine's tables of single messages and packets


def frame(raw: RawTable) -> pl.DataFrame:
    """An engine's table as a data frame."""
    return pl.DataFrame({name: _column(dtype, data) for name, (dtype, data) in raw.items()})


def _column(dtype: str, data: bytes) -> pl.Series:
    if dtype == "json":
        return pl.Series(json.loads(data), dtype=pl.String)
    return pl.Series(np.frombuffer(data, dtype=np.dtype(dtype)))


STANDSTILL = 500  # iterations of one rank without any of another of its job: the other waits forever


def job_finished(job: int) -> Callable[[Engine], bool]:
    """A condition: every rank of the job with this number has come to the end of its program."""

    def finished(engine: Engine) -> bool:
        ranks = frame(engine.table("ranks")).filter(pl.col("job") == job)
        return bool((ranks["finished"] != 0).all())

    return finished


@dataclass
class Iterations:
    """A condition: every rank of every job has done more than ``count`` iterations.

    Checking it raises ``RunError`` if a rank stands still while another of its job goes on, or if no job has completed
    an iteration in ``patience`` checks.
    """

    jobs: Sequence[str]
    """The names of the jobs."""
    count: int
    patience: int | None = None
    """Checks without progress after which it is given up; None for no limit."""
    _slowest: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By job: iterations of its slowest rank, and of its fastest when the slowest had just done them."""
    _quiet: int = 0

    def __call__(self, engine: Engine) -> bool:
        """Whether it holds. Raises ``RunError`` if it never will."""
        progress = engine.progress()
        advanced = [job for job, ranks in enumerate(progress) if self._advanced(job, ranks)]
        self._quiet = 0 if advanced else self._quiet + 1
        if self.patience is not None and self._quiet > self.patience:
            job = min(range(len(progress)), key=lambda job: min(progress[job]))
            done = plural(min(progress[job]), "iteration")
            raise RunError(f"job {self.jobs[job]} stands still after {done}", slug="stuck")
        return all(min(ranks) > self.count for ranks in progress)

    def _advanced(self, job: int, ranks: list[int]) -> bool:
        done, fastest = min(ranks), max(ranks)
        before, fastest_then = self._slowest.setdefault(job, (0, 0))
        if done > before:
            self._slowest[job] = (done, fastest)
            return True
        if fastest - fastest_then > STANDSTILL:
            slow, fast = ranks.index(done), ranks.index(fastest)
            message = f"rank {slow} stands still after {plural(done, 'iteration')} while rank {fast} goes on"
            raise RunError(f"job {self.jobs[job]}, {message}: does it wait for what never comes?", slug="stuck")
        return False
