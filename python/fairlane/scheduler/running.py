"""The running jobs, each at its own speed: as in the log, or slowed down by its hosts and its neighbours."""

from collections.abc import Iterator
from dataclasses import dataclass

from fairlane.scheduler.slowdown.bench import Resident
from fairlane.scheduler.slowdown.forecast import Forecast, Neighbourhood
from fairlane.scheduler.swf import LoggedJob

_NOTHING = 1e-6
"""Remaining seconds of work that count as none: times are sums with rounding errors."""


@dataclass
class Running:
    """A running job: its line of the log, its hosts, its start (s), its slowdown by its hosts and the present one."""

    number: int
    """How many jobs started before it."""
    job: LoggedJob
    hosts: tuple[int, ...]
    start: float
    own: float
    slowdown: float
    work: float = 0.0
    """Seconds of its run time that are done."""

    @property
    def left(self) -> float:
        """Remaining run time at its present speed, s."""
        return max(0.0, self.job.run - self.work) * self.slowdown

    @property
    def expected(self) -> float:
        """Remaining time by its estimate, at its present speed, s."""
        return max(0.0, self.job.estimate - self.work) * self.slowdown


class Pace:
    """Advances the running jobs; without a forecast their run times are those of the log."""

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
        """The earliest end if no job starts."""
        self._update()
        return self._now + min(job.left for job in self.running)

    def go_to(self, time: float) -> None:
        """Advances all jobs to a time."""
        self._update()
        for job in self.running:
            job.work += (time - self._now) / job.slowdown
        self._now = time

    def start(self, job: LoggedJob, hosts: tuple[int, ...]) -> None:
        """Starts a job now."""
        own = 1.0
        if self._forecast is not None and self._there is not None:
            self._there.add(self._started, Resident(self._forecast.pattern(job.number), hosts))
            own = self._there.own[-1]
        self.running.append(Running(self._started, job, hosts, self._now, own, own))
        self._started += 1
        self._changed = True

    def ended(self) -> list[Running]:
        """Removes and returns the jobs that have done their work."""
        gone = [job for job in self.running if job.job.run - job.work <= _NOTHING]
        self.running = [job for job in self.running if job.job.run - job.work > _NOTHING]
        for job in gone:
            self._changed = True
            if self._there is not None:
                self._there.remove(job.number)
        return gone

    def expected(self) -> Iterator[tuple[float, tuple[int, ...]]]:
        """End of each job by its estimate, in ascending order, and its hosts."""
        self._update()
        for job in sorted(self.running, key=lambda one: self._now + one.expected):
            yield self._now + job.expected, job.hosts

    def _update(self) -> None:
        """Updates the slowdowns if jobs have started or ended."""
        if self._there is not None and self._changed:
            by_neighbours = dict(zip(self._there.numbers, self._there.by_neighbours(), strict=True))
            for job in self.running:
                job.slowdown = job.own * by_neighbours[job.number]
        self._changed = False
