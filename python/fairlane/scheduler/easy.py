"""First come first served with EASY backfilling (Lifka 1995), over allocators that may refuse free hosts.

The job at the head of the queue starts as soon as the allocator gives it hosts. While it waits it has a reservation:
the earliest end, by the estimates, of a running job at which the allocator would give it hosts. A later job may start
before it if it is to end by then, or if the allocator would still give the head hosts then.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fairlane.placement import Communication, FabricView, Request, Strategy
from fairlane.scheduler.swf import LoggedJob
from fairlane.seeds import Purpose, stream

__all__ = ["Placed", "Schedule", "replay"]


@dataclass(frozen=True)
class Placed:
    """A job that ran."""

    job: LoggedJob
    """What the log says of it."""
    start: int
    """When it started, seconds."""
    hosts: tuple[int, ...]
    """Where."""

    @property
    def end(self) -> int:
        """When it ended."""
        return self.start + self.job.run

    @property
    def wait(self) -> int:
        """How long it waited."""
        return self.start - self.job.submit


@dataclass(frozen=True)
class Schedule:
    """What became of a log."""

    jobs: tuple[Placed, ...]
    """The jobs in the order in which they started."""
    refused: tuple[LoggedJob, ...]
    """Jobs that the allocator would give no hosts even on the empty machine."""
    fragmented: float
    """Host-seconds in which hosts were free, enough for the job at the head of the queue, but not as it wants them."""


def replay(
    jobs: Sequence[LoggedJob],
    fabric: FabricView,
    allocator: Strategy,
    *,
    seed: int = 1,
    communication: Callable[[int], Communication] | None = None,
) -> Schedule:
    """Runs the jobs, in the order in which they came. The same arguments always give the same schedule."""
    return _Machine(fabric, allocator, seed, communication).run(jobs)


@dataclass
class _Machine:
    fabric: FabricView
    allocator: Strategy
    seed: int
    communication: Callable[[int], Communication] | None
    now: int = 0
    queue: list[LoggedJob] = field(default_factory=list)
    running: list[tuple[int, int, Placed]] = field(default_factory=list)
    """A heap by end and number of start."""
    done: list[Placed] = field(default_factory=list)
    fragmented: float = 0.0

    def __post_init__(self) -> None:
        self.free = set(range(self.fabric.hosts))

    def run(self, jobs: Sequence[LoggedJob]) -> Schedule:
        refused = [job for job in jobs if self._hosts(job, set(range(self.fabric.hosts))) is None]
        without = {job.line for job in refused}
        coming = [job for job in reversed(jobs) if job.line not in without]
        while coming or self.queue:
            times = [coming[-1].submit] if coming else []
            times += [self.running[0][0]] if self.running else []
            self._go_to(min(times))
            while self.running and self.running[0][0] <= self.now:
                self.free.update(heapq.heappop(self.running)[2].hosts)
            while coming and coming[-1].submit <= self.now:
                self.queue.append(coming.pop())
            self._start_what_can()
        return Schedule(tuple(self.done), tuple(refused), self.fragmented)

    def _go_to(self, time: int) -> None:
        if self.queue and self.queue[0].hosts <= len(self.free):
            self.fragmented += len(self.free) * (time - self.now)
        self.now = time

    def _hosts(self, job: LoggedJob, free: set[int]) -> tuple[int, ...] | None:
        if job.hosts > len(free):
            return None
        pattern = self.communication
        known = (lambda: pattern(job.number)) if pattern else None
        request = Request(job.hosts, stream(self.seed, Purpose.PLACEMENT, job.number), known)
        found = self.allocator.allocate(sorted(free), request, self.fabric)
        return None if found is None else tuple(found)

    def _start_what_can(self) -> None:
        while self.queue and (hosts := self._hosts(self.queue[0], self.free)) is not None:
            self._start(self.queue.pop(0), hosts)
        if len(self.queue) < 2 or not self.free:
            return
        head = self.queue[0]
        shadow, later = self._reservation(head)
        for job in self.queue[1:]:
            hosts = self._hosts(job, self.free)
            if hosts is not None and self.now + job.estimate > shadow:
                hosts = self._beside(head, job, hosts, later)
                later -= set(hosts or ())
            if hosts is not None:
                self.queue.remove(job)
                self._start(job, hosts)

    def _beside(
        self, head: LoggedJob, job: LoggedJob, hosts: tuple[int, ...], later: set[int]
    ) -> tuple[int, ...] | None:
        """Hosts for a job that outlasts the reservation: those given, or others, if they leave enough for the head."""
        if self._hosts(head, later - set(hosts)) is not None:
            return hosts
        reserved = self._hosts(head, later)
        others = self._hosts(job, self.free - set(reserved or ()))
        return others if others is not None and self._hosts(head, later - set(others)) is not None else None

    def _reservation(self, head: LoggedJob) -> tuple[int, set[int]]:
        """When the head can start at the latest, and which hosts are free then."""
        free = set(self.free)
        for placed in sorted((entry[2] for entry in self.running), key=lambda one: one.start + one.job.estimate):
            free.update(placed.hosts)
            if self._hosts(head, free) is not None:
                return placed.start + placed.job.estimate, free
        raise AssertionError("the head fits the empty machine")

    def _start(self, job: LoggedJob, hosts: tuple[int, ...]) -> None:
        placed = Placed(job, self.now, hosts)
        self.free.difference_update(hosts)
        heapq.heappush(self.running, (placed.end, len(self.done), placed))
        self.done.append(placed)
