"""Read counters while a simulation runs: ports at an interval, and counters of switches after iterations.

The latter are counters as the routers of Cray's Aries have them, read whenever a job has done another iteration.

Counters are those of the receiving switch: flits that came over a link on a virtual lane, and stalls, the time in
cycles that these flits waited there until they were sent on. What a job can see are the switches at its hosts.

An iteration counts as over when half of the ranks have done it: until the last one hears of it, the others have sent
much of what belongs to the next. Counters of the time before an iteration begins are those of windows of fixed length,
between two of the instants at which the counters are sampled.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fairlane.core.drive import Engine
from fairlane.core.tables import PS, frame, marks, timed
from fairlane.model.fabric.graph import columns

if TYPE_CHECKING:
    from fairlane.model.scenario import Resolved
    from fairlane.model.scenario.observe import SwitchCounters

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
    """Counters of every port and lane from one multiple of ``interval`` to the next."""

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


class _Switches:
    """The counters of the links into the switches that a job sees."""

    def __init__(self, resolved: "Resolved", job: int, asked: "SwitchCounters") -> None:
        self._links = _visible(resolved, job, everywhere=asked.all_switches)
        self._units = {"flits": ("bytes", asked.flit), "stalls": ("onward_waiting", asked.cycle)}

    def read(self, engine: Engine) -> dict[str, Floats]:
        """Each counter by virtual channel, as far as there are lanes, and link."""
        ports = columns(engine.table("ports"))
        at = np.searchsorted(self._links, ports["link"])
        inside = (at < len(self._links)) & (ports["lane"] < VIRTUAL_CHANNELS)
        inside &= self._links[np.minimum(at, len(self._links) - 1)] == ports["link"]
        lanes = min(VIRTUAL_CHANNELS, 1 + int(ports["lane"].max(initial=0)))
        found = {}
        for name, (column, unit) in self._units.items():
            values = np.zeros((lanes, len(self._links)))
            values[ports["lane"][inside], at[inside]] = ports[column][inside] / unit
            found[name] = values
        return found


def _features(before: Mapping[str, Floats] | None, now: Mapping[str, Floats]) -> dict[str, float]:
    """The columns of counters from one reading, or the beginning, to another."""
    row = dict.fromkeys(FEATURES, 0.0)
    for name, values in now.items():
        change = values if before is None else values - before[name]
        for statistic in STATISTICS:
            found = (getattr(numbers, statistic)() for numbers in change)
            row |= {f"{name}_{statistic}_vc{lane}": float(value) for lane, value in enumerate(found)}
    return row


@dataclass(frozen=True)
class _Sample:
    """A reading: the number of its multiple of the step, when it was made, ps, and the counters."""

    number: int
    at: int
    counters: dict[str, Floats] | None
    """None at the beginning, where all are zero."""


class _Windows:
    """Readings at multiples of a step, as many as windows of these lengths, ps, need."""

    def __init__(self, lengths: list[int], step: int) -> None:
        self._lengths, self._step = lengths, step
        # An iteration is seen to be over after another sample may have been made.
        self._samples = deque([_Sample(0, 0, None)], maxlen=max(lengths) // step + 2)
        self.due = step
        """The next multiple of the step, ps."""

    def look(self, engine: Engine, switches: _Switches) -> None:
        """Reads the counters if a multiple of the step is reached."""
        number = engine.now // self._step
        self.due = (number + 1) * self._step
        if number > self._samples[-1].number:
            self._samples.append(_Sample(number, engine.now, switches.read(engine)))

    def until(self, instant: int) -> Iterator[dict[str, Any]]:
        """A row for each window that ends with the last sample up to an instant, ps; none for what was not sampled."""
        ends = [sample for sample in self._samples if sample.at <= instant]
        for length in self._lengths if ends else ():
            begins = [sample for sample in self._samples if sample.number == ends[-1].number - length // self._step]
            if begins and ends[-1].counters is not None:
                span = {"window_ps": length, "from_ps": begins[0].at, "to_ps": ends[-1].at}
                yield span | _features(begins[0].counters, ends[-1].counters)


class IterationCounters:
    """Counters of the switches that a job sees, from one iteration of half of its ranks to the next."""

    def __init__(self, resolved: "Resolved", asked: "SwitchCounters") -> None:
        self._job = [job.name for job in resolved.jobs].index(asked.job)
        self._start = resolved.jobs[self._job].start
        self._switches = _Switches(resolved, self._job, asked)
        self._sampled = _Windows(asked.windows, asked.window_step) if asked.windows else None
        self._every = self._next = asked.poll_interval
        self._done = self._looked = 0
        self._before: dict[str, Floats] | None = None
        self._rows: list[dict[str, Any]] = []
        self._preceding: list[dict[str, Any]] = []
        self._windows: list[dict[str, Any]] = []

    @property
    def done(self) -> int:
        """Iterations that half of the ranks had done when it was last looked."""
        return self._done

    @property
    def due(self) -> int:
        """Return the time of the next look for the end of an iteration, or of the next sample for windows, ps."""
        return min(self._next, self._sampled.due) if self._sampled else self._next

    def look(self, engine: Engine) -> None:
        """Reads the counters if another iteration is over, or they are to be sampled."""
        self._next = (engine.now // self._every + 1) * self._every
        if self._sampled:
            self._sampled.look(engine, self._switches)
        progress = engine.progress()[self._job]
        half = len(progress) // 2
        # Usually no rank has advanced since the last look, which is quicker to check than the median.
        if progress.count(self._done) <= half and (done := sorted(progress)[half]) != self._done:
            self._over(engine, done)
        self._looked = engine.now

    def _over(self, engine: Engine, done: int) -> None:
        """An iteration, or several, are over since the last look."""
        found = self._switches.read(engine)
        row = {"iteration": done, "iterations": done - self._done, "at": engine.now}
        self._rows.append(row | _features(self._before, found))
        self._windows += [{"iteration": done, **window} for window in self._preceding]
        # The iteration was not over at the last look: what was sampled up to then was before the next one began.
        self._preceding = list(self._sampled.until(self._looked)) if self._sampled else []
        self._done, self._before = done, found

    def table(self, engine: Engine) -> pl.DataFrame:
        """A row for each iteration that was seen to end, with its exact time in seconds.

        With a timed part that is the time of the slowest rank's, null before all ranks have marked the iteration.
        """
        schema = {"iteration": pl.UInt64, "iterations": pl.UInt64, "at": pl.UInt64}
        rows = pl.DataFrame(self._rows, schema={**schema, **dict.fromkeys(FEATURES, pl.Float64)})
        ranks = len(engine.progress()[self._job])
        marked = marks(engine).filter(pl.col("job") == self._job)
        clock = _elapsed(marked, ranks) if timed(engine, self._job) else _ends(marked, ranks, self._start)
        times = rows.join(clock, on="iteration", how="left").sort("iteration")
        seconds = (pl.col("clock") - pl.col("clock").shift(1, fill_value=0)).cast(pl.Float64) * PS
        return times.select("iteration", "iterations", seconds.alias("time_s"), pl.col("at").alias("at_ps"), *FEATURES)

    def windows(self) -> pl.DataFrame | None:
        """A row for each of these iterations and window that ends before it begins; None if none was asked for.

        A window ends with the last sample that was made before the iteration began. It is left out if it would begin
        before the simulation.
        """
        keys = dict.fromkeys(("iteration", "window_ps", "from_ps", "to_ps"), pl.UInt64)
        schema = {**keys, **dict.fromkeys(FEATURES, pl.Float64)}
        return pl.DataFrame(self._windows, schema=schema) if self._sampled else None


def _ends(marked: pl.DataFrame, ranks: int, start: int) -> pl.DataFrame:
    """Return the times at which half of a job's ranks had done each iteration, ps from its ``start`` (``clock``)."""
    half = pl.col("at").sort().get((ranks - 1) // 2, null_on_oob=True).cast(pl.Int64)
    return marked.group_by(pl.col("iteration").cast(pl.UInt64)).agg(clock=half - start)


def _elapsed(marked: pl.DataFrame, ranks: int) -> pl.DataFrame:
    """The sum of the timed parts up to each iteration that all ranks of a job have done, ps; as ``_ends``."""
    times = marked.group_by(pl.col("iteration").cast(pl.UInt64)).agg(pl.len(), pl.col("elapsed").max().cast(pl.Int64))
    return times.filter(pl.col("len") == ranks).sort("iteration").select("iteration", clock=pl.col("elapsed").cum_sum())


def _visible(resolved: "Resolved", job: int, *, everywhere: bool) -> NDArray[np.int64]:
    """The links that end at the switches of the job's hosts, or at any switch, ascending."""
    links = resolved.fabric.links
    ends = links["to_switch"]
    mine = np.isin(links["from_host"], np.asarray(resolved.jobs[job].hosts))
    seen = (ends >= 0) if everywhere else np.isin(ends, np.unique(ends[mine]))
    found: NDArray[np.int64] = np.sort(links["link"][seen].astype(np.int64))
    return found
