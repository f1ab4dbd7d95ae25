"""What is looked at while a simulation runs: the ports from time to time."""

from __future__ import annotations

import polars as pl

from fairlane.engine.drive import Engine
from fairlane.engine.measured import frame

LANE_COUNTERS = ("bytes", "packets", "waiting", "stalled")
PORT_COUNTERS = ("port_active", "port_stalled")


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
