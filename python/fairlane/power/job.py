"""The sockets that a job's ranks run on, how fast they run, and what that does to a rank's computations."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fairlane.power.model import Socket, stretch

__all__ = ["JobPower", "Pace"]


@dataclass(frozen=True)
class Pace:
    """How much longer a job's computations take on its sockets than at full frequency."""

    frequencies: tuple[float, ...]
    """By rank: the share of the full frequency."""
    memory_bound: float
    """The part of a computation that waits for memory, where the computation itself does not say."""

    def stretched(self, rank: int, picoseconds: int, memory_bound: float | None = None) -> int:
        """The time of a computation; unchanged, to the picosecond, at full frequency."""
        frequency = self.frequencies[rank]
        if frequency == 1.0:
            return picoseconds
        part = self.memory_bound if memory_bound is None else memory_bound
        return round(picoseconds * stretch(frequency, part))

    def factors(self) -> list[float]:
        """By rank: how many times as long a computation takes that does not say how memory-bound it is."""
        return [stretch(frequency, self.memory_bound) for frequency in self.frequencies]


@dataclass(frozen=True)
class JobPower:
    """The sockets of a job's hosts. Each rank has an equal part of its host's sockets, in order of rank."""

    cap: float | None
    """The most that a socket may draw, W; None for no cap."""
    waiting: float
    """What a rank in MPI draws of the dynamic power that it draws when it computes."""
    hosts: tuple[int, ...]
    """The host of each rank."""
    sockets: dict[int, list[Socket]]
    """The sockets of each of its hosts."""

    def places(self) -> list[range]:
        """The sockets of each rank: those of its host that it has a part of."""
        ranks, seen, found = Counter(self.hosts), Counter[int](), []
        for host in self.hosts:
            place, count, sockets = seen[host], ranks[host], len(self.sockets[host])
            seen[host] += 1
            first = place * sockets // count
            found.append(range(first, max(first + 1, (place + 1) * sockets // count)))
        return found

    def frequencies(self) -> tuple[float, ...]:
        """By rank, the share of the full frequency: that of its slowest socket."""
        slowest = []
        for host, places in zip(self.hosts, self.places(), strict=True):
            slowest.append(min(self.sockets[host][socket].frequency(self.cap) for socket in places))
        return tuple(slowest)

    def capped(self) -> bool:
        """Whether the cap holds any of its sockets back."""
        return any(frequency < 1.0 for frequency in self.frequencies())


def job_power(cap: int | None, waiting: float, hosts: Sequence[int], machine: Sequence[list[Socket]]) -> JobPower:
    """A job on these hosts of a machine, under a cap in milliwatts."""
    return JobPower(None if cap is None else cap / 1000, waiting, tuple(hosts), {at: machine[at] for at in set(hosts)})
