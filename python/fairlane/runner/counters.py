"""What is read while a simulation runs: ports at an interval, and counters of switches after iterations.

The latter are counters as the routers of Cray's Aries have them, read whenever a job has done another iteration.

Counters are those of the receiving switch: flits that came over a link on a virtual lane, and stalls, the time in
cycles that these flits waited there until they were sent on. What a job can see are the switches at its hosts.

An iteration counts as over when half of the ranks have done it: until the last one hears of it, the others have sent
much of what belongs to the next.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairlane.engine import Engine
from fairlane.engine.tables import PS, frame
from fairlane.fabric import columns

if TYPE_CHECKING:
    from fairlane.scenario import Resolved
    from fairlane.scenario.observe import SwitchCounters

VIRTUAL_CHANNELS = 8  # virtual channels that the table has columns for, as Aries has; lanes beyond them are left out
COUNTERS = ("flits", "stalls")  # what is counted
STATISTICS = ("sum", "mean", "max")  # over all links into the visible switches

FEATURES = [
    f"{counter}_{statistic}_vc{channel}"
    for counter in COUNTERS
    for statistic in STATISTICS
    for channel in range(VIRTUAL_CHANNELS)
]
"""The columns of counters."""

LANE_COUNTERS = ("bytes", "packets", "waiting", "stalled")
PORT_COUNTERS = ("port_active", "port_stalled")

Floats = NDArray[np.float64]


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


class IterationCounters:
    """What the switches that a job sees counted, from one iteration of half of its ranks to the next."""

    def __init__(self, resolved: "Resolved", asked: "SwitchCounters") -> None:
        self._job = [job.name for job in resolved.jobs].index(asked.job)
        self._links = _visible(resolved, self._job, everywhere=asked.all_switches)
        self._units = {"flits": ("bytes", asked.flit), "stalls": ("onward_waiting", asked.cycle)}
        self._every = self.due = asked.poll_interval
        """The next multiple of the interval in which it is looked whether an iteration is over, ps."""
        self._done = 0
        self._before: dict[str, Floats] | None = None
        self._rows: list[dict[str, Any]] = []

    @property
    def done(self) -> int:
        """Iterations that half of the ranks had done when it was last looked."""
        return self._done

    def look(self, engine: Engine) -> None:
        """Reads the counters if another iteration is over."""
        self.due = (engine.now // self._every + 1) * self._every
        progress = engine.progress()[self._job]
        half = len(progress) // 2
        # Usually no rank has advanced since the last look, which is quicker to check than the median.
        if progress.count(self._done) > half or (done := sorted(progress)[half]) == self._done:
            return
        found = self._read(engine)
        before = self._before or {name: np.zeros_like(values) for name, values in found.items()}
        row: dict[str, Any] = {"iteration": done, "iterations": done - self._done, "at": engine.now}
        for name, values in found.items():
            change = values - before[name]
            for statistic in STATISTICS:
                found_now = (getattr(numbers, statistic)() for numbers in change)
                row |= {f"{name}_{statistic}_vc{lane}": float(value) for lane, value in enumerate(found_now)}
        self._rows.append(row)
        self._done, self._before = done, found

    def _read(self, engine: Engine) -> dict[str, Floats]:
        """Each counter by virtual channel and link."""
        ports = columns(engine.table("ports"))
        at = np.searchsorted(self._links, ports["link"])
        inside = (at < len(self._links)) & (ports["lane"] < VIRTUAL_CHANNELS)
        inside &= self._links[np.minimum(at, len(self._links) - 1)] == ports["link"]
        found = {}
        for name, (column, unit) in self._units.items():
            values = np.zeros((VIRTUAL_CHANNELS, len(self._links)))
            values[ports["lane"][inside], at[inside]] = ports[column][inside] / unit
            found[name] = values
        return found

    def table(self, engine: Engine) -> pl.DataFrame:
        """A row for each iteration that was seen to end, with its exact time in seconds."""
        schema = {"iteration": pl.UInt64, "iterations": pl.UInt64, "at": pl.UInt64}
        rows = pl.DataFrame(self._rows, schema={**schema, **dict.fromkeys(FEATURES, pl.Float64)})
        ranks = len(engine.progress()[self._job])
        ends = rows.join(_ends(frame(engine.table("marks")), self._job, ranks), on="iteration", how="left")
        seconds = (pl.col("end") - pl.col("end").shift(1, fill_value=0)).cast(pl.Float64) * PS
        return ends.sort("iteration").select(
            "iteration", "iterations", seconds.alias("time_s"), pl.col("at").alias("at_ps"), *FEATURES
        )


def _ends(marks: pl.DataFrame, job: int, ranks: int) -> pl.DataFrame:
    """When half of a job's ranks had done each iteration, ps; from the engine's table ``marks``."""
    return (
        marks.filter(pl.col("job") == job)
        .group_by(iteration=pl.col("iteration").cast(pl.UInt64) + 1)
        .agg(end=pl.col("time").sort().get((ranks - 1) // 2, null_on_oob=True).cast(pl.Int64))
    )


def _visible(resolved: "Resolved", job: int, *, everywhere: bool) -> NDArray[np.int64]:
    """The links that end at the switches of the job's hosts, or at any switch, ascending."""
    from fairlane.fabric import Fabric

    links = Fabric.build(resolved.tables["fabric"]).links
    ends = links["to_switch"]
    mine = np.isin(links["from_host"], np.asarray(resolved.jobs[job].hosts))
    seen = (ends >= 0) if everywhere else np.isin(ends, np.unique(ends[mine]))
    found: NDArray[np.int64] = np.sort(links["link"][seen].astype(np.int64))
    return found
