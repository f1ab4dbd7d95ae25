"""What is looked at while a simulation runs: the ports from time to time, and when ranks mark iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from fairlane.results.measured import Engine, frame

Counts = npt.NDArray[np.uint64]

LANE_COUNTERS = ("bytes", "packets", "waiting", "stalled")
PORT_COUNTERS = ("port_active", "port_stalled")


class Watcher(Protocol):
    """Looks at a simulation when it has reached an instant."""

    @property
    def due(self) -> int:
        """The next instant to look at, ps."""

    def look(self, engine: Engine) -> None:
        """Looks at the simulation as it is; afterwards ``due`` is later than its time."""


class PortSampler:
    """What every port and lane did from one multiple of ``interval`` to the next."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._before: pl.DataFrame | None = None
        self._from = 0
        self._parts: list[pl.DataFrame] = []
        self.due = interval
        """The next multiple of the interval, ps."""

    def look(self, engine: Engine) -> None:
        """Keeps what has changed since the last look."""
        now, ports = engine.now, frame(engine.table("ports"))
        self.due = (now // self._interval + 1) * self._interval
        if now > self._from:
            self._parts.append(self._change(ports, now))
            self._before, self._from = ports, now

    def _change(self, ports: pl.DataFrame, now: int) -> pl.DataFrame:
        """The differences, without rows in which nothing happened."""
        keys, counters = ["link", "lane"], [*LANE_COUNTERS, *PORT_COUNTERS]
        change = ports.select(*keys, *counters)
        if self._before is not None:
            change = change.with_columns([change[name] - self._before[name] for name in counters])
        lane = pl.any_horizontal(pl.col(name) > 0 for name in LANE_COUNTERS)
        # The end of a packet that started before: the port was active, and none of its lanes has anything new.
        port = (pl.col("lane") == 0) & pl.any_horizontal(pl.col(name) > 0 for name in PORT_COUNTERS)
        span = (pl.lit(self._from, pl.UInt64).alias("from_ps"), pl.lit(now, pl.UInt64).alias("to_ps"))
        return change.filter(lane | port).select(*span, pl.all())

    def table(self) -> pl.DataFrame | None:
        """All differences in the engine's own columns, with ``from_ps`` and ``to_ps``; None before the first look."""
        return pl.concat(self._parts) if self._parts else None


FIRST_STEP = 10**6
"""Time between looks for marks before any iteration is known, ps."""
LEAST_STEP = 10**5
"""Least time between looks for marks, ps: about the window in which an engine stops."""


class MarkSampler:
    """When the ranks of some jobs mark their iterations.

    The engine keeps the exact instant of a rank's last mark. Looks are a quarter of the fastest iteration apart, so
    that one mark hardly ever hides another; a mark that was hidden is not in the table.
    """

    def __init__(self, jobs: Sequence[int], begin: int = 0) -> None:
        """Of the jobs of these numbers; nothing is looked for before ``begin``, ps."""
        self._jobs = list(jobs)
        self._fastest = 4 * FIRST_STEP
        self._seen: Counts | None = None
        self._last: Counts | None = None
        self._parts: list[pl.DataFrame] = []
        self.due = begin + FIRST_STEP
        """When to look again, ps."""

    def look(self, engine: Engine) -> None:
        """Keeps the marks that are new."""
        ranks = frame(engine.table("ranks")).filter(pl.col("job").is_in(self._jobs))
        counts, marks = ranks["iterations"].to_numpy(), ranks["last_mark"].to_numpy()
        seen = np.zeros_like(counts) if self._seen is None else self._seen
        last = np.zeros_like(marks) if self._last is None else self._last
        new = counts > seen
        if new.any():
            self._parts.append(
                ranks.filter(pl.Series(new)).select(
                    "job", "rank", pl.col("iterations").alias("iteration"), pl.col("last_mark").alias("at")
                )
            )
            self._pace(counts - seen, marks - last, new & (seen > 0))
        self._seen, self._last = counts, marks
        self.due = engine.now + max(LEAST_STEP, self._fastest // 4)

    def _pace(self, marked: Counts, spans: Counts, known: npt.NDArray[np.bool_]) -> None:
        """Learns how fast iterations are: those since the last look, of ranks that had marked one before."""
        if known.any():
            fastest = int((spans[known] // marked[known]).min())
            self._fastest = fastest if self._fastest == 4 * FIRST_STEP else min(self._fastest, fastest)

    def table(self) -> pl.DataFrame | None:
        """One row per rank and mark: job, rank, iteration (from 1), at (ps); None without any."""
        return pl.concat(self._parts) if self._parts else None
