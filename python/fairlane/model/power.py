"""Power of sockets: speed under a cap, relative duration of computations, energy of jobs.

At the share ``f`` of its full frequency a busy socket draws

    P(f) = idle + e (busy - idle) f^3

because dynamic power goes with the square of the voltage times the frequency, and the voltage with the frequency
(K. Choi, R. Soma, M. Pedram, DATE 2004; X. Fan, W.-D. Weber, L. Barroso, ISCA 2007 measure the idle part). ``e`` is the
socket's own: manufacturing makes sockets draw different power at one frequency, so under one cap they run at different
speeds (B. Rountree et al., HPPAC 2012; Y. Inadomi et al., SC 2015). A cap sets the greatest ``f`` with P(f) <= cap.

A computation of which the part ``m`` waits for memory, which keeps its own clock, takes

    T(f) = T(1) (m + (1 - m) / f)

times as long (C.-H. Hsu and U. Kremer, PLDI 2003).

A socket draws its idle power as long as its job runs, and while a rank computes the rank's part of the dynamic power at
its frequency; in MPI the share ``waiting`` of that.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy
from pydantic import Field, model_validator

from fairlane.core.errors import Problem
from fairlane.core.seeds import Purpose, stream
from fairlane.core.units import POWER, Power
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table

if TYPE_CHECKING:
    import polars as pl

__all__ = ["JobPower", "Pace", "PowerTable", "Socket", "by_job", "job_power", "power", "stretch"]

FARTHEST = 3.0
"""No socket is further from the mean than this many standard deviations."""
_MILLI = 1000


@dataclass(frozen=True)
class Socket:
    """One socket: powers in watts."""

    idle: float
    """Power when nothing computes, W."""
    busy: float
    """Power of the mean socket when all its cores compute at full frequency, W."""
    factor: float = 1.0
    """``e``: its dynamic power over the mean socket's at the same frequency; more is worse."""

    def dynamic(self, frequency: float) -> float:
        """Dynamic power at this relative frequency, W."""
        return self.factor * (self.busy - self.idle) * frequency**3

    def frequency(self, cap: float | None) -> float:
        """The relative frequency under a cap; exactly 1 without a cap, or if the cap is not reached."""
        if cap is None or self.idle + self.dynamic(1.0) <= cap:
            return 1.0
        return float(((cap - self.idle) / self.dynamic(1.0)) ** (1 / 3))


def stretch(frequency: float, memory_bound: float) -> float:
    """Relative duration of a computation at this relative frequency; exactly 1 at full frequency."""
    return 1.0 if frequency == 1.0 else memory_bound + (1.0 - memory_bound) / frequency


@dataclass(frozen=True)
class Pace:
    """Factors of a job's computations on its sockets against full frequency."""

    frequencies: tuple[float, ...]
    """Relative frequency of each rank."""
    memory_bound: float
    """The memory-bound share of computations that do not specify it."""

    def stretched(self, rank: int, picoseconds: int, memory_bound: float | None = None) -> int:
        """The time of a computation; unchanged, to the picosecond, at full frequency."""
        frequency = self.frequencies[rank]
        if frequency == 1.0:
            return picoseconds
        part = self.memory_bound if memory_bound is None else memory_bound
        return round(picoseconds * stretch(frequency, part))

    def factors(self) -> list[float]:
        """Relative duration of a computation at the default memory-bound share, by rank."""
        return [stretch(frequency, self.memory_bound) for frequency in self.frequencies]


@dataclass(frozen=True)
class JobPower:
    """The sockets of a job's hosts. Each rank has an equal part of its host's sockets, in order of rank."""

    cap: float | None
    """Power cap of a socket, W; None for no cap."""
    waiting: float
    """Dynamic power of a rank in an MPI call, relative to computing."""
    hosts: tuple[int, ...]
    """The host of each rank."""
    sockets: dict[int, list[Socket]]
    """The sockets of each of its hosts."""

    def places(self) -> list[range]:
        """The sockets of each rank, as numbers within its host."""
        ranks, seen, sockets_of_ranks = Counter(self.hosts), Counter[int](), []
        for host in self.hosts:
            place, count, sockets = seen[host], ranks[host], len(self.sockets[host])
            seen[host] += 1
            first = place * sockets // count
            sockets_of_ranks.append(range(first, max(first + 1, (place + 1) * sockets // count)))
        return sockets_of_ranks

    def frequencies(self) -> tuple[float, ...]:
        """Relative frequency of each rank: that of its slowest socket."""
        return tuple(
            min(self.sockets[host][socket].frequency(self.cap) for socket in places)
            for host, places in zip(self.hosts, self.places(), strict=True)
        )

    def capped(self) -> bool:
        """Whether the cap slows any of its ranks down."""
        return any(frequency < 1.0 for frequency in self.frequencies())


def job_power(cap: int | None, waiting: float, hosts: Sequence[int], machine: Sequence[list[Socket]]) -> JobPower:
    """A job on these hosts of a machine, under a cap in milliwatts."""
    return JobPower(None if cap is None else cap / 1000, waiting, tuple(hosts), {at: machine[at] for at in set(hosts)})


class PowerTable(Table):
    """Sockets of each host, their power and their cap. The defaults describe a 115 W Xeon of 2013."""

    sockets: int = Field(default=2, ge=1, le=8)
    """Number of sockets of each host."""
    idle: Power = 20 * _MILLI
    """Power of a socket on which nothing computes."""
    busy: Power = 100 * _MILLI
    """Power of the mean socket when all its cores compute at full frequency."""
    cap: Power | None = None
    """Power cap of a socket; a job's ``power_cap`` overrides it. Default: no cap."""
    variability: float = Field(default=0.05, ge=0, lt=1 / FARTHEST)
    """Standard deviation of the sockets' dynamic power at one frequency, as a share of the mean. The distribution is
    normal, truncated at three standard deviations."""
    seed: int = Field(default=0, ge=0)
    """Seed of the sockets' variability: scenarios with the same value have the same sockets."""
    waiting: float = Field(default=1.0, ge=0, le=1)
    """Dynamic power of a rank in an MPI call, relative to computing; 1 if the MPI library polls."""

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.busy <= self.idle:
            raise Problems(Problem("busy", "not above idle power", POWER.format(self.busy), POWER.format(self.idle)))
        problem = self.problem_with(self.cap)
        if problem:
            raise Problems(problem.under("cap"))
        return self

    def problem_with(self, cap: int | None) -> Problem | None:
        """Return the fault of a cap, if there is one: a socket cannot be held at idle power or below."""
        if cap is None or cap > self.idle:
            return None
        idle = POWER.format(self.idle)
        return Problem("", f"a socket draws {idle} when idle, so no cap can be as low", POWER.format(cap), f"> {idle}")

    def draw(self, hosts: int) -> list[list[Socket]]:
        """The sockets of every host of the machine."""
        rng = stream(self.seed, Purpose.SOCKETS)
        deviations = rng.standard_normal((hosts, self.sockets))
        far = numpy.abs(deviations) > FARTHEST
        while far.any():
            deviations[far] = rng.standard_normal(int(far.sum()))
            far = numpy.abs(deviations) > FARTHEST
        idle, busy = self.idle / _MILLI, self.busy / _MILLI
        return [
            [Socket(idle, busy, 1 + self.variability * float(deviation)) for deviation in row] for row in deviations
        ]


def power(
    names: Sequence[str],
    jobs: Sequence[JobPower],
    ranks: "pl.DataFrame",
    now: int,
    stays: Sequence[tuple[int, int | None]] | None = None,
) -> "pl.DataFrame":
    """One row for each job and socket of its hosts, after ``now`` picoseconds.

    ``ranks`` has, in picoseconds, ``compute`` and ``communication`` of each ``job`` and ``rank``. ``stays`` has the
    times at which each job starts and, if it departs, stops.
    """
    import polars as pl

    rows: list[tuple[object, ...]] = []
    for number, (name, job) in enumerate(zip(names, jobs, strict=True)):
        of_job = ranks.filter(pl.col("job") == number).sort("rank")
        start, stop = stays[number] if stays else (0, None)
        span = max(0, (now if stop is None else min(now, stop)) - start)
        rows += _rows(name, job, of_job["compute"].to_list(), of_job["communication"].to_list(), span)
    whole = {"host": pl.UInt32, "socket": pl.UInt8, "ranks": pl.UInt32}
    real = ("dynamic_power_factor", "cap_w", "frequency_share", "busy_s", "time_s", "energy_j", "mean_w")
    return pl.DataFrame(rows, schema={"name": pl.String, **whole, **dict.fromkeys(real, pl.Float64)}, orient="row")


def _rows(
    name: str, job: JobPower, compute: list[int], communication: list[int], span: int
) -> list[tuple[object, ...]]:
    residents: dict[tuple[int, int], list[int]] = {}
    for rank, (host, places) in enumerate(zip(job.hosts, job.places(), strict=True)):
        for place in places:
            residents.setdefault((host, place), []).append(rank)
    frequencies, seconds = job.frequencies(), span * 1e-12
    rows: list[tuple[object, ...]] = []
    for host in sorted(job.sockets):
        for number, socket in enumerate(job.sockets[host]):
            residents_here = residents.get((host, number), [])
            # A rank on several sockets runs all of them at the speed of the slowest.
            drawn = [socket.dynamic(frequencies[rank]) / len(residents_here) for rank in residents_here]
            busy = [(compute[rank] + job.waiting * communication[rank]) * 1e-12 for rank in residents_here]
            energy = socket.idle * seconds + sum(part * time for part, time in zip(drawn, busy, strict=True))
            frequency = min((frequencies[rank] for rank in residents_here), default=socket.frequency(job.cap))
            mean_busy = sum(busy) / len(busy) if busy else 0.0
            watts = energy / seconds if seconds else None
            facts = (len(residents_here), socket.factor, job.cap, frequency, mean_busy)
            rows.append((name, host, number, *facts, seconds, energy, watts))
    return rows


def by_job(table: "pl.DataFrame") -> "pl.DataFrame":
    """One row per job: hosts, cap of a socket, frequencies, mean power of a host, energy of all its hosts."""
    import polars as pl

    return table.group_by("name", maintain_order=True).agg(
        pl.col("host").n_unique().alias("hosts"),
        pl.col("cap_w").first(),
        pl.col("frequency_share").min().alias("least_frequency"),
        pl.col("frequency_share").mean().alias("mean_frequency"),
        (pl.col("mean_w").sum() / pl.col("host").n_unique()).alias("host_w"),
        pl.col("energy_j").sum(),
    )
