"""The table ``power`` of a scenario: what sockets draw, and their cap."""

from typing import Self

import numpy
from pydantic import Field, model_validator

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.power.model import Socket
from fairlane.seeds import Purpose, stream
from fairlane.units import POWER, Power

FARTHEST = 3.0
"""No socket is further from the mean than this many standard deviations."""
_MILLI = 1000


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
