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

__all__ = ["FARTHEST", "PowerTable"]

FARTHEST = 3.0
"""No socket is further from the mean than this many standard deviations."""
_MILLI = 1000


class PowerTable(Table):
    """Sockets of each host, what they draw, and how far they may go. Defaults are a 115 W Xeon of 2013."""

    sockets: int = Field(2, ge=1, le=8)
    """Sockets of each host."""
    idle: Power = 20 * _MILLI
    """What a socket draws when nothing computes on it."""
    busy: Power = 100 * _MILLI
    """What the mean socket draws when all of it computes at full frequency."""
    cap: Power | None = None
    """The most that a socket may draw, unless a job says otherwise; without it there is no cap."""
    variability: float = Field(0.05, ge=0, lt=1 / FARTHEST)
    """Standard deviation of the sockets' dynamic power at one frequency, as a share of the mean: normally distributed,
    cut off at three standard deviations."""
    seed: int = Field(0, ge=0)
    """Which machine: scenarios with the same one have the same sockets, whatever their own seed."""
    waiting: float = Field(1.0, ge=0, le=1)
    """What a rank in MPI draws of the dynamic power that it draws when it computes; 1 where the library polls."""

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
