"""What comes out: every departure, the marks of every rank, the port counters, the interference matrix."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple


class Departure(NamedTuple):
    """A packet started on a link. `packet` is its index in its message, `size` its bytes on the wire.

    `message` is a name for the message, which each simulator chooses as it likes.
    """

    time: int
    link: int
    lane: int
    job: int
    packet: int
    size: int
    message: int


@dataclass
class PortCount:
    """Counters of one lane of one port; times in picoseconds."""

    size: int = 0
    packets: int = 0
    waiting: int = 0
    stalled: int = 0
    longest: int = 0


@dataclass
class LinkTime:
    """How long a link carried packets, and how long it was idle although packets waited at its port."""

    active: int = 0
    stalled: int = 0


@dataclass
class Progress:
    """The marks of one rank: how many, and when the first and the last were."""

    marks: int = 0
    first: int = 0
    last: int = 0


@dataclass
class Iteration:
    """An iteration of a job: ranks that have yet to mark it, when the last did, and how long the slowest was timed."""

    missing: int
    at: int = 0
    elapsed: int = 0


KEPT = 4096
"""Iterations of a job that are all kept."""


@dataclass
class PauseCount:
    """Pauses of a lane: how many, how long, when the first, and the most bytes in the buffer."""

    count: int = 0
    time: int = 0
    longest: int = 0
    first: int = 0
    peak: int = 0


@dataclass
class Outcome:
    """The result: progress by (job, rank), ports by (link, lane), interference by (delayed, delaying) job.

    Iterations are by job and number. Latencies, in any order, are by what they are of ("message" or "packet"), job and
    traffic kind.
    """

    departures: list[Departure] = field(default_factory=list)
    progress: dict[tuple[int, int], Progress] = field(default_factory=lambda: defaultdict(Progress))
    iterations: dict[tuple[int, int], Iteration] = field(default_factory=dict)
    ports: dict[tuple[int, int], PortCount] = field(default_factory=lambda: defaultdict(PortCount))
    links: dict[int, LinkTime] = field(default_factory=lambda: defaultdict(LinkTime))
    interference: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    pauses: dict[tuple[int, int], PauseCount] = field(default_factory=lambda: defaultdict(PauseCount))
    latencies: dict[tuple[str, int, str], list[int]] = field(default_factory=lambda: defaultdict(list))

    def mark(self, job: int, rank: int, now: int, elapsed: int, ranks: int) -> None:
        """Counts an iteration of one of the job's ranks."""
        progress = self.progress[job, rank]
        progress.first = now if progress.marks == 0 else progress.first
        progress.last = now
        progress.marks += 1
        whole = self.iterations.setdefault((job, progress.marks), Iteration(ranks))
        whole.missing, whole.at, whole.elapsed = whole.missing - 1, max(whole.at, now), max(whole.elapsed, elapsed)

    def facts(self) -> dict[str, object]:
        """Everything, in an order of its own, without what is zero: two outcomes are the same if these are."""
        return {
            "departures": sorted(departure[:-1] for departure in self.departures),
            "progress": {rank: progress for rank, progress in self.progress.items() if progress.marks},
            "iterations": self._complete(),
            "ports": {port: count for port, count in self.ports.items() if count.packets},
            "links": {link: time for link, time in self.links.items() if time.active},
            "pauses": {lane: count for lane, count in self.pauses.items() if count.count},
            "interference": {cell: waited for cell, waited in self.interference.items() if waited},
        }

    def _complete(self) -> dict[tuple[int, int], tuple[int, int]]:
        """When jobs completed their iterations, and how long these were timed; of jobs of which all are kept."""
        complete = {key: (it.at, it.elapsed) for key, it in self.iterations.items() if not it.missing}
        long = {job for job, number in complete if number > KEPT}
        return {(job, number): times for (job, number), times in complete.items() if job not in long}

    def latency_facts(self) -> dict[tuple[str, int, str], tuple[int, int, int, int]]:
        """Count, sum, least and greatest of the latencies."""
        return {key: (len(them), sum(them), min(them), max(them)) for key, them in self.latencies.items()}

    def on(self, link: int) -> list[Departure]:
        """The departures on one link, in order of time."""
        return sorted(departure for departure in self.departures if departure.link == link)

    def mean_waiting(self, link: int) -> float:
        """Mean picoseconds that the packets of a link waited at its port."""
        counts = [count for (number, _), count in self.ports.items() if number == link]
        return sum(count.waiting for count in counts) / sum(count.packets for count in counts)
