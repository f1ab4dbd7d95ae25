"""First come first served with EASY backfilling (Lifka 1995), over allocators that may refuse free hosts.

The job at the head of the queue starts as soon as the allocator gives it hosts. While it waits it has a reservation:
the earliest end, by the estimates, of a running job at which the allocator would give it hosts. A later job may start
before it if it is expected to end by then, or if the allocator would still give the head hosts then; the first
``DEPTH`` are considered.

With a forecast of slowdowns jobs take longer than in the log: at every instant a job's speed depends on its hosts and
its present neighbours. The scheduler expects the rest of a running job's estimate to go on at its present speed, and a
waiting job to take its estimate.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from fairlane.core.seeds import Purpose, stream
from fairlane.learn.scheduler.log import LoggedJob, Placed, Schedule
from fairlane.learn.scheduler.slowdown.forecast import Forecast, Neighbourhood
from fairlane.model.placement import Communication, FabricView, PlacementPolicy, Request
from fairlane.study.shipped.slowdowns import Resident

DEPTH = 500
"""Waiting jobs after the head that are considered for backfilling: schedulers limit it for long queues."""

_NOTHING = 1e-6
"""Remaining seconds of work that count as none: times are sums with rounding errors."""


def replay(
    jobs: Sequence[LoggedJob],
    fabric: FabricView,
    allocator: PlacementPolicy,
    *,
    seed: int = 1,
    communication: Callable[[int], Communication] | None = None,
    forecast: Forecast | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Schedule:
    """Runs the jobs in the order of submission. The same arguments always give the same schedule.

    The allocator gives jobs their hosts; if it asks, ``communication`` gives it the pattern of a job by its number.
    ``forecast`` predicts slowdowns; without it run times are those of the log. ``progress`` is called with the number
    of jobs that have ended or were refused.
    """
    return _Machine(fabric, allocator, seed, communication, Pace(forecast), progress).run(jobs)


def refusals(
    jobs: Sequence[LoggedJob],
    fabric: FabricView,
    allocator: PlacementPolicy,
    *,
    seed: int = 1,
    communication: Callable[[int], Communication] | None = None,
) -> list[LoggedJob]:
    """The jobs that the allocator refuses even on the empty machine."""
    return _Machine(fabric, allocator, seed, communication, Pace(None)).refusals(jobs)


@dataclass
class Running:
    """A running job: its line of the log, its hosts, its start (s), its slowdown by its hosts and the present one."""

    number: int
    """Number of jobs that started before it."""
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
        slowdown = 1.0
        if self._forecast is not None and self._there is not None:
            self._there.add(self._started, Resident(self._forecast.pattern(job.number), hosts))
            slowdown = self._there.own[-1]
        self.running.append(Running(self._started, job, hosts, self._now, slowdown, slowdown))
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
        for job in sorted(self.running, key=lambda running: self._now + running.expected):
            yield self._now + job.expected, job.hosts

    def _update(self) -> None:
        """Updates the slowdowns if jobs have started or ended."""
        if self._there is not None and self._changed:
            by_neighbours = dict(zip(self._there.numbers, self._there.by_neighbours(), strict=True))
            for job in self.running:
                job.slowdown = job.own * by_neighbours[job.number]
        self._changed = False


@dataclass
class _Machine:
    fabric: FabricView
    allocator: PlacementPolicy
    seed: int
    communication: Callable[[int], Communication] | None
    pace: Pace
    progress: Callable[[int], None] = lambda _: None
    now: float = 0
    queue: list[LoggedJob] = field(default_factory=list)
    done: list[tuple[int, Placed]] = field(default_factory=list)
    """Jobs that have ended, with the number of their start."""
    fragmented: float = 0.0
    patterns: dict[int, Communication] = field(default_factory=dict)
    """By number of the job."""
    hopeless: set[tuple[int, Communication | None]] = field(default_factory=set)
    """Requests that the allocator refused with the hosts that are free now, or more."""

    def __post_init__(self) -> None:
        self.free = set(range(self.fabric.hosts))

    def run(self, jobs: Sequence[LoggedJob]) -> Schedule:
        refused = self.refusals(jobs)
        without = {job.line for job in refused}
        coming = [job for job in reversed(jobs) if job.line not in without]
        while coming or self.queue or self.pace.running:
            times: list[float] = [coming[-1].submit] if coming else []
            times += [self.pace.next_end] if self.pace.running else []
            self._go_to(min(times))
            for running in self.pace.ended():
                self._end(running)
            while coming and coming[-1].submit <= self.now:
                self.queue.append(coming.pop())
            self._start_what_can()
            self.progress(len(self.done) + len(refused))
        placed = tuple(running for _, running in sorted(self.done, key=lambda row: row[0]))
        return Schedule(placed, tuple(refused), self.fragmented)

    def refusals(self, jobs: Sequence[LoggedJob]) -> list[LoggedJob]:
        takes: dict[tuple[int, Communication | None], bool] = {}
        for job in jobs:
            key = (job.hosts, self._pattern(job))
            if key not in takes:
                takes[key] = self._hosts(job, self.free) is not None
        return [job for job in jobs if not takes[job.hosts, self._pattern(job)]]

    def _go_to(self, time: float) -> None:
        if self.queue and self.queue[0].hosts <= len(self.free):
            self.fragmented += len(self.free) * (time - self.now)
        self.now = time
        self.pace.go_to(time)

    def _end(self, job: Running) -> None:
        self.free.update(job.hosts)
        self.hopeless.clear()
        self.done.append((job.number, Placed(job.job, job.start, self.now, job.hosts, job.own)))

    def _pattern(self, job: LoggedJob) -> Communication | None:
        if self.communication and job.number not in self.patterns:
            self.patterns[job.number] = self.communication(job.number)
        return self.patterns.get(job.number)

    def _now(self, job: LoggedJob) -> tuple[int, ...] | None:
        """Hosts for a job among those that are free now."""
        key = (job.hosts, self._pattern(job))
        if key in self.hopeless:
            return None
        hosts = self._hosts(job, self.free)
        if hosts is None:
            self.hopeless.add(key)
        return hosts

    def _hosts(self, job: LoggedJob, free: set[int]) -> tuple[int, ...] | None:
        if job.hosts > len(free):
            return None
        pattern = self._pattern(job)
        known = (lambda: pattern) if pattern else None
        request = Request(job.hosts, stream(self.seed, Purpose.PLACEMENT, job.number), known)
        hosts = self.allocator.allocate(sorted(free), request, self.fabric)
        return None if hosts is None else tuple(hosts)

    def _start_what_can(self) -> None:
        while self.queue and (hosts := self._now(self.queue[0])) is not None:
            self._start(self.queue.pop(0), hosts)
        if len(self.queue) < 2 or not self.free:
            return
        head = self.queue[0]
        shadow, later = self._reservation(head)
        would_delay: set[tuple[int, Communication | None]] = set()
        waiting = [head]
        for job in self.queue[1 : DEPTH + 1]:
            if job.hosts > len(self.free):
                waiting.append(job)
                continue
            outlasts, key = self.now + job.estimate > shadow, (job.hosts, self._pattern(job))
            hosts = None if outlasts and key in would_delay else self._now(job)
            if hosts is not None and outlasts:
                hosts = self._without_delaying(head, job, hosts, later)
                later -= set(hosts or ())
                if hosts is None:
                    would_delay.add(key)
            if hosts is None:
                waiting.append(job)
            else:
                self._start(job, hosts)
        self.queue = waiting + self.queue[DEPTH + 1 :]

    def _without_delaying(
        self, head: LoggedJob, job: LoggedJob, hosts: tuple[int, ...], later: set[int]
    ) -> tuple[int, ...] | None:
        """Hosts for a job that outlasts the reservation: those given, or others, if they leave enough for the head."""
        if self._hosts(head, later - set(hosts)) is not None:
            return hosts
        reserved = self._hosts(head, later)
        others = self._hosts(job, self.free - set(reserved or ()))
        return others if others is not None and self._hosts(head, later - set(others)) is not None else None

    def _reservation(self, head: LoggedJob) -> tuple[float, set[int]]:
        """The latest start of the head, and the hosts that are free then."""
        free = set(self.free)
        for end, ended in groupby(self.pace.expected(), key=lambda row: row[0]):
            free.update(host for _, hosts in ended for host in hosts)
            if self._hosts(head, free) is not None:
                return end, free
        raise AssertionError("the head fits the empty machine")

    def _start(self, job: LoggedJob, hosts: tuple[int, ...]) -> None:
        self.free.difference_update(hosts)
        self.pace.start(job, hosts)
