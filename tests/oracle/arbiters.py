"""Arbiters: which of the ready lanes a free port serves."""

from collections.abc import Sequence
from typing import Any, Protocol


class Arbiter(Protocol):
    """Chooses lanes for one port."""

    def choose(self, ready: dict[int, int], offered: dict[int, int], now: int) -> int:
        """The lane to serve now; `ready` has the size of each ready lane's packet, `offered` its injection."""


class StrictPriority:
    """The first ready lane from the highest to the lowest; lanes that have used up their share come after others."""

    def __init__(
        self, bandwidth: int, order: Sequence[int], shares: Sequence[tuple[int, int]] = (), interval: int = 10**7
    ) -> None:
        self.order, self.interval = order, interval
        self.allowed = {lane: -(-percent * bandwidth * interval // (100 * 8 * 10**12)) for lane, percent in shares}
        self.used = dict.fromkeys(order, 0)
        self.intervals = 0

    def choose(self, ready: dict[int, int], offered: dict[int, int], now: int) -> int:  # noqa: ARG002 - no ages
        if now // self.interval > self.intervals:
            self.intervals = now // self.interval
            self.used = dict.fromkeys(self.order, 0)
        lanes = [lane for lane in self.order if lane in ready]
        lane = next(
            (lane for lane in lanes if lane not in self.allowed or self.used[lane] < self.allowed[lane]), lanes[0]
        )
        self.used[lane] += ready[lane]
        return lane


class Table:
    """Entries of (lane, budget) served in turns. At the start the first entry is current, with its full budget."""

    def __init__(self, entries: Sequence[tuple[int, int]], count_bytes: bool) -> None:
        self.entries = entries
        self.count_bytes = count_bytes
        self.current = 0
        self.left = entries[0][1] if entries else 0

    def serves(self, ready: dict[int, int]) -> bool:
        """Whether some entry could be served now."""
        return any(lane in ready and budget > 0 for lane, budget in self.entries)

    def choose(self, ready: dict[int, int], offered: dict[int, int], now: int) -> int:  # noqa: ARG002 - neither ages nor time
        if self.entries[self.current][0] not in ready or self.left <= 0:
            places = len(self.entries)
            after = ((self.current + step) % places for step in range(1, places + 1))
            self.current = next(i for i in after if self.entries[i][0] in ready and self.entries[i][1] > 0)
            self.left = self.entries[self.current][1]
        lane = self.entries[self.current][0]
        self.left -= ready[lane] if self.count_bytes else 1
        return lane


class Vlarb:
    """InfiniBand's two tables."""

    def __init__(self, high: Sequence[tuple[int, int]], low: Sequence[tuple[int, int]], high_limit: int) -> None:
        self.high = Table([(lane, 64 * weight) for lane, weight in high], count_bytes=True)
        self.low = Table([(lane, 64 * weight) for lane, weight in low], count_bytes=True)
        self.limit = None if high_limit == 255 else max(1, 4096 * high_limit)
        self.in_a_row = 0

    def choose(self, ready: dict[int, int], offered: dict[int, int], now: int) -> int:
        low_waits = self.low.serves(ready)
        spent = low_waits and self.limit is not None and self.in_a_row >= self.limit
        if self.high.serves(ready) and not spent:
            lane = self.high.choose(ready, offered, now)
            self.in_a_row = self.in_a_row + ready[lane] if low_waits else 0
        else:
            lane = self.low.choose(ready, offered, now)
            self.in_a_row = 0
        return lane


class OldestFirst:
    """The lane whose packet was injected first."""

    def choose(self, ready: dict[int, int], offered: dict[int, int], now: int) -> int:  # noqa: ARG002 - ages alone
        return min(ready, key=lambda lane: (offered[lane], lane))


def arbiter(name: str, params: dict[str, Any], bandwidth: int) -> Arbiter:
    """A new arbiter for one port, whose link has this bandwidth, bit/s."""
    if name == "vlarb":
        return Vlarb(params["vlarb_high"], params["vlarb_low"], params["high_limit"])
    if name == "weighted_round_robin":
        return Table(list(enumerate(params["weights"])), count_bytes=False)
    if name == "strict_priority":
        return StrictPriority(bandwidth, **params)
    if name == "oldest_first":
        return OldestFirst()
    raise ValueError(f"no arbiter {name!r}")
