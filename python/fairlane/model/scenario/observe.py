"""The tables ``observe``, ``until`` and ``faults``: what is measured besides, when a run ends, what breaks in it."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fairlane.core.errors import Problem
from fairlane.core.units import DURATION, Duration, Size, Written
from fairlane.inputs.parameters import Parameterised
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table


class Record(Table):
    """A job of which every message and wait is recorded, and the time range."""

    job: str
    """Its name."""
    start: Duration = 0
    """Beginning of the time range."""
    stop: Annotated[Duration, Field(gt=0)] | None = None
    """End of the time range; default: the end of the run."""

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.stop is not None and self.stop <= self.start:
            raise Problems(Problem("stop", "not after the start", self.stop, DURATION.format(self.start)))
        return self


class SwitchCounters(Table):
    """Counters of flits and stalls at the receiving switches, read after every iteration of a job."""

    job: str
    """Its name."""
    all_switches: bool = False
    """Whether the counters of all switches are read, or only of those that the job's hosts are attached to."""
    flit: Size = Field(default=32, gt=0)
    """Bytes of a flit."""
    cycle: Duration = Field(default=1250, gt=0)
    """A cycle of the switches' clock, in which stalls are counted; 800 MHz by default."""
    poll_interval: Duration = Field(default=10_000_000, gt=0)
    """Interval at which the end of an iteration is detected: counters are read at most this much later."""
    windows: list[Annotated[Duration, Field(gt=0)]] = Field(default_factory=list)
    """Lengths of windows before each iteration begins, for the table ``counters_before``; multiples of
    ``window_step``."""
    window_step: Duration = Field(default=100_000_000, gt=0)
    """Counters are sampled at its multiples for ``windows``, which end at most this much before the iteration."""

    @model_validator(mode="after")
    def _whole_steps(self) -> Self:
        wrong = [(at, length) for at, length in enumerate(self.windows) if length % self.window_step]
        if wrong:
            allowed = f"multiples of window_step = {DURATION.format(self.window_step)}"
            words = "not a multiple of the step"
            raise Problems(
                *(Problem(f"windows[{at}]", words, DURATION.format(window), allowed) for at, window in wrong)
            )
        return self


class Observe(Table):
    """Observations of a run."""

    counters: bool = True
    """Counters of ports and lanes, and the interference matrix; switched off only to measure their cost."""
    interference_by_port: bool = False
    """The interference matrix of every port, in addition to the total."""
    departures: bool = False
    """Every transmission of a packet by a port, for the table ``departures``: large."""
    leave_one_out: bool = False
    """Whether `fairlane run` also simulates all jobs without each of them, for the table ``lost_time``: the time that
    each job loses because of each other job. All jobs of the table `background` are left out together."""
    input_queueing: bool = False
    """Queueing delay by incoming link and lane, at the switch where the link ends, as Cray's Aries measures it."""
    record: Record | None = None
    """A job's messages and waits, and all departures, in a time range, for the tables ``messages``, ``waits`` and
    ``departures``."""
    interval: Annotated[Duration, Field(gt=0)] | None = None
    """Sampling interval of the port counters, for the table ``samples``; without it they are read at the end only."""
    iterations: list[str] = Field(default_factory=list)
    """Names of jobs for which the table ``iterations`` has every iteration of every rank."""

    switch_counters: Annotated[
        Written[SwitchCounters | None],
        BeforeValidator(lambda given: {"job": given} if isinstance(given, str) else given),
    ] = None
    """A job, by its name or in a table: flit and stall counters of switches are read after each of its iterations, for
    the table ``counters``."""

    @model_validator(mode="after")
    def _has_counters(self) -> Self:
        wanted = {"interval": self.interval is not None, "input_queueing": self.input_queueing}
        wanted["switch_counters"] = self.switch_counters is not None
        wrong = [key for key, asked in wanted.items() if asked and not self.counters]
        if wrong:
            words = "needs counters"
            raise Problems(*(Problem(key, words, allowed="only with counters = true") for key in wrong))
        return self


GROWTH = 1.25
"""Factor between the instants at which precision is checked."""
CHECKS = 24
"""At how many instants it is checked at most, the last one ``at_most``."""


def _share(given: Any) -> Any:
    """A number, or a text as ``1%``."""
    if not isinstance(given, str):
        return given
    try:
        return float(given.strip().removesuffix("%")) / (100 if given.strip().endswith("%") else 1)
    except ValueError:
        raise Problems(Problem("", "not a share", given, 'a share, as "1%" or 0.01')) from None


Share = Annotated[float, BeforeValidator(_share, json_schema_input_type=float | str), Field(gt=0, lt=1)]
"""A share between 0 and 1, also in percent."""


class Until(Table):
    """End of a run: as soon as the 95% interval of every job is narrow enough; in place of ``duration``.

    It is checked at instants that do not depend on the machine.
    """

    precision: Share
    """Greatest half of every job's interval: of ``w`` a change of throughput, as ``"1%"``, of
    ``time_per_iteration`` a share of it."""
    of: Literal["w", "time_per_iteration"] = "w"
    """Quantity that has to be precise."""
    at_most: Duration = Field(gt=0)
    """Simulated time after which the run ends whatever its precision."""

    @property
    def instants(self) -> list[int]:
        """Return the times of checks of precision, ps: each 1.25 times the one before, up to ``at_most``."""
        return sorted({max(1, round(self.at_most / GROWTH**back)) for back in range(CHECKS)})


class Fault(Parameterised):
    """Something that goes wrong with the fabric for a time: a kind with parameters (see ``fairlane list faults``)."""

    of_table = "fault"
    name_key = "kind"
    kind: str
    """Name of the fault."""
    at: Duration = Field(default=0, ge=0)
    """Its beginning."""
    until: Duration | None = Field(default=None, gt=0)
    """Its end; by default that of the run."""

    @property
    def spec(self) -> dict[str, Any]:
        """The fault as the simulator takes it."""
        return {"fault": {"name": self.kind, "params": self.parameters}, "at": self.at, "until": self.until}

    @model_validator(mode="after")
    def _ends_later(self) -> Self:
        if self.until is not None and self.until <= self.at:
            raise Problems(
                Problem("until", "is not after at", DURATION.format(self.until), f"after {DURATION.format(self.at)}")
            )
        return self
