"""The table ``observe``: what is measured besides what every run keeps."""

from typing import Annotated, Self

from pydantic import BeforeValidator, Field, model_validator

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.units import DURATION, Duration, Size

__all__ = ["CountersAt", "Observe", "Record"]


class Record(Table):
    """A job of which every message and wait is kept, and a stretch of time."""

    job: str
    """Its name."""
    start: Duration = 0
    """From when on."""
    stop: Annotated[Duration, Field(gt=0)] | None = None
    """Until when; without it to the end."""

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        if self.stop is not None and self.stop <= self.start:
            raise Problems(Problem("stop", "not after the start", self.stop, DURATION.format(self.start)))
        return self


class CountersAt(Table):
    """Counters of flits and stalls at the receiving switches, read after every iteration of a job."""

    job: str
    """Its name."""
    all_switches: bool = False
    """Whether all switches are seen, and not only those at the job's hosts."""
    flit: Size = Field(32, gt=0)
    """Bytes of a flit."""
    cycle: Duration = Field(1250, gt=0)
    """A cycle of the switches' clock, in which stalls are counted; 800 MHz by default."""
    every: Duration = Field(10_000_000, gt=0)
    """How often it is looked whether an iteration is over: counters are late by less than this."""


class Observe(Table):
    """What is measured."""

    counters: bool = True
    """Counters of ports and lanes, and who delayed whom; switched off only to measure what they cost."""
    interference_by_port: bool = False
    """Who delayed whom at every port, besides in all."""
    departures: bool = False
    """Every packet's departure from every port, for the table ``departures``: large."""
    onward_waiting: bool = False
    """By link and lane, how long the packets that came over it wait at the switch behind it."""
    record: Record | None = None
    """A job's messages and waits, and all departures, in a stretch of time, for tables ``messages``, ``waits`` and
    ``departures``."""
    interval: Annotated[Duration, Field(gt=0)] | None = None
    """How often the counters of ports are looked at, for the table ``samples``; without it only at the end."""
    iterations: list[str] = Field(default_factory=list)
    """Names of jobs for which the table ``iterations`` has every iteration of every rank."""

    counters_at: Annotated[
        CountersAt | None, BeforeValidator(lambda given: {"job": given} if isinstance(given, str) else given)
    ] = None
    """A job, by its name or in a table, after each of whose iterations flits and stalls are read for the table
    ``counters``."""

    @model_validator(mode="after")
    def _something_to_look_at(self) -> Self:
        wanted = {"interval": self.interval is not None, "onward_waiting": self.onward_waiting}
        wanted["counters_at"] = self.counters_at is not None
        wrong = [key for key, asked in wanted.items() if asked and not self.counters]
        if wrong:
            words = "there are no counters to look at"
            raise Problems(*(Problem(key, words, allowed="only with counters = true") for key in wrong))
        return self
