"""What a socket draws, how fast it runs under a cap, how much longer that makes a computation, and jobs on sockets.

At the share ``f`` of its full frequency a busy socket draws

    P(f) = idle + e (busy - idle) f^3

because dynamic power goes with the square of the voltage times the frequency, and the voltage with the frequency
(K. Choi, R. Soma, M. Pedram, DATE 2004; X. Fan, W.-D. Weber, L. Barroso, ISCA 2007 measure the idle part). ``e`` is the
socket's own: manufacturing makes sockets draw different power at one frequency, so under one cap they run at different
speeds (B. Rountree et al., HPPAC 2012; Y. Inadomi et al., SC 2015). A cap sets the greatest ``f`` with P(f) <= cap.

A computation of which the part ``m`` waits for memory, which keeps its own clock, takes

    T(f) = T(1) (m + (1 - m) / f)

times as long (C.-H. Hsu and U. Kremer, PLDI 2003).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy
from pydantic import Field, model_validator

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.seeds import Purpose, stream
from fairlane.units import POWER, Power

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
    """How much longer a job's computations take on its sockets than at full frequency."""

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
        ranks, seen, found = Counter(self.hosts), Counter[int](), []
        for host in self.hosts:
            place, count, sockets = seen[host], ranks[host], len(self.sockets[host])
            seen[host] += 1
            first = place * sockets // count
            found.append(range(first, max(first + 1, (place + 1) * sockets // count)))
        return found

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
        """What is wrong with a cap, if something is: a socket cannot be held at idle power or below."""
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
        return [[Socket(idle, busy, 1 + self.variability * float(one)) for one in row] for row in deviations]
