"""The jobs that run, each at its own pace: as the log says, or slowed down by its hosts and its neighbours."""

from collections.abc import Iterator
from dataclasses import dataclass

from fairlane.scheduler.slowdown.bench import Resident
from fairlane.scheduler.slowdown.forecast import Forecast, Neighbourhood
from fairlane.scheduler.swf import LoggedJob

__all__ = ["Pace", "Running"]

_NOTHING = 1e-6
"""Seconds of work that count as none: times are sums of many parts."""


@dataclass
class Running:
    """A job that runs."""

    number: int
    """How many jobs started before it."""
    job: LoggedJob
    """What the log says of it."""
    hosts: tuple[int, ...]
    """Where it is."""
    start: float
    """Since when, s."""
    own: float
    """How much slower its hosts make it."""
    slowdown: float
    """How much slower it is now."""
    work: float = 0.0
    """Seconds of its run time that are done."""

    @property
    def left(self) -> float:
        """How long it goes on, at its present pace, s."""
        return max(0.0, self.job.run - self.work) * self.slowdown

    @property
    def expected(self) -> float:
        """How long it goes on by its estimate, at its present pace, s."""
        return max(0.0, self.job.estimate - self.work) * self.slowdown


class Pace:
    """Advances the running jobs; without a forecast all run as the log says."""

    def __init__(self, forecast: Forecast | None) -> None:
        self._forecast = forecast
        self._there = Neighbourhood(forecast) if forecast else None
        self._now = 0.0
        self._started = 0
        self._changed = False
        self.running: list[Running] = []
        """The jobs, in the order in which they started."""

    @property
    def next_end(self) -> float:
        """When the first of them ends if nothing changes."""
        self._look()
        return self._now + min(job.left for job in self.running)

    def go_to(self, time: float) -> None:
        """Time passes."""
        self._look()
        for job in self.running:
            job.work += (time - self._now) / job.slowdown
        self._now = time

    def start(self, job: LoggedJob, hosts: tuple[int, ...]) -> None:
        """A job starts now."""
        own = 1.0
        if self._forecast is not None and self._there is not None:
            self._there.add(self._started, Resident(self._forecast.pattern(job.number), hosts))
            own = self._there.own[-1]
        self.running.append(Running(self._started, job, hosts, self._now, own, own))
        self._started += 1
        self._changed = True

    def ended(self) -> list[Running]:
        """The jobs that have done their work; they are gone then."""
        gone = [job for job in self.running if job.job.run - job.work <= _NOTHING]
        self.running = [job for job in self.running if job.job.run - job.work > _NOTHING]
        for job in gone:
            self._changed = True
            if self._there is not None:
                self._there.remove(job.number)
        return gone

    def expected(self) -> Iterator[tuple[float, tuple[int, ...]]]:
        """By the estimates: when each job ends, the first one first, and its hosts."""
        self._look()
        for job in sorted(self.running, key=lambda one: self._now + one.expected):
            yield self._now + job.expected, job.hosts

    def _look(self) -> None:
        """Who is how slow, if jobs have come or gone."""
        if self._there is not None and self._changed:
            beside = dict(zip(self._there.numbers, self._there.by_neighbours(), strict=True))
            for job in self.running:
                job.slowdown = job.own * beside[job.number]
        self._changed = False
