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
class Outcome:
    """The result: progress by (job, rank), ports by (link, lane), interference by (delayed, delaying) job.

    Latencies, in any order, are by what they are of ("message" or "packet"), job and traffic kind.
    """

    departures: list[Departure] = field(default_factory=list)
    progress: dict[tuple[int, int], Progress] = field(default_factory=lambda: defaultdict(Progress))
    ports: dict[tuple[int, int], PortCount] = field(default_factory=lambda: defaultdict(PortCount))
    links: dict[int, LinkTime] = field(default_factory=lambda: defaultdict(LinkTime))
    interference: dict[tuple[int, int], int] = field(default_factory=lambda: defaultdict(int))
    latencies: dict[tuple[str, int, str], list[int]] = field(default_factory=lambda: defaultdict(list))

    def mark(self, job: int, rank: int, now: int) -> None:
        """Counts an iteration of a rank."""
        progress = self.progress[job, rank]
        progress.first = now if progress.marks == 0 else progress.first
        progress.last = now
        progress.marks += 1

    def facts(self) -> dict[str, object]:
        """Everything, in an order of its own, without what is zero: two outcomes are the same if these are."""
        return {
            "departures": sorted(departure[:-1] for departure in self.departures),
            "progress": {rank: progress for rank, progress in self.progress.items() if progress.marks},
            "ports": {port: count for port, count in self.ports.items() if count.packets},
            "links": {link: time for link, time in self.links.items() if time.active},
            "interference": {cell: waited for cell, waited in self.interference.items() if waited},
        }

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
