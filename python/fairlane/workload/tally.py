"""Counts what a rank's script has in it: stands where a program builder would, and keeps nothing."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

__all__ = ["Enough", "Tally", "Traffic"]

_LONG = 2**19
"""Bytes above which an allreduce is taken to be done in parts."""


class Enough(Exception):
    """The script is longer than is counted."""


@dataclass
class Traffic:
    """What a rank sends and receives."""

    messages: dict[float, float] = field(default_factory=dict)
    """How many messages it sends, by their bytes."""
    received: float = 0.0
    rounds: float = 0.0
    """How often it waits for messages, one latency each."""
    iterations: float = 0.0

    @property
    def sent(self) -> float:
        """Messages that it sends."""
        return sum(self.messages.values())

    @property
    def bytes(self) -> float:
        """Bytes that it sends."""
        return sum(size * count for size, count in self.messages.items())

    def scaled(self, factor: float) -> "Traffic":
        """So many times as much, in as many iterations."""
        messages = {size: count * factor for size, count in self.messages.items()}
        return Traffic(messages, self.received * factor, self.rounds * factor, self.iterations)


class Tally:
    """A program builder that counts up to ``limit`` operations, then raises ``Enough``."""

    def __init__(self, ranks: int, limit: int) -> None:
        self.operations = 0
        self.traffic = Traffic()
        self._limit = limit
        self._ranks = {0: ranks, 1: 1}
        self._times = [1.0]

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Any other operation."""
        return lambda *_, **__: self._count()

    def _count(self, operations: int = 1) -> None:
        self.operations += operations
        if self.operations > self._limit:
            raise Enough

    def _sends(self, size: float, count: float = 1.0) -> None:
        messages = self.traffic.messages
        messages[size] = messages.get(size, 0.0) + count * self._times[-1]

    def _waits(self, rounds: float = 1.0) -> None:
        self.traffic.rounds += rounds * self._times[-1]

    def repeat(self, _: int, times: int | None) -> None:
        """A loop; one without end is counted once."""
        self._times.append(self._times[-1] * (1.0 if times is None else float(times)))

    def end(self, _: int) -> None:
        """The end of a loop."""
        self._times.pop()

    def mark_progress(self, _: int) -> None:
        """An iteration is over."""
        self._count()
        self.traffic.iterations += self._times[-1]

    def isend(self, _: int, __: int, size: int, *___: Any) -> None:
        """A message."""
        self._count()
        self._sends(size)

    def send(self, *given: Any) -> None:
        """A message that is waited for."""
        self.isend(*given)
        self._waits()

    def irecv(self, *_: Any) -> None:
        """A message that comes."""
        self._count()
        self.traffic.received += self._times[-1]

    def recv(self, *given: Any) -> None:
        """A message that is waited for."""
        self.irecv(*given)
        self._waits()

    def wait(self, *_: Any) -> None:
        """A wait."""
        self._count()
        self._waits()

    wait_all = wait_any = wait_some = wait

    def exchange(self, _: int, __: Sequence[int], targets: Sequence[int], size: int, *___: Any) -> None:
        """As many messages as there are targets, both ways, and a wait."""
        self._count(2 * len(targets) + 1)
        self._sends(size, len(targets))
        self.traffic.received += len(targets) * self._times[-1]
        self._waits()

    def rma(self, _: int, __: str, ___: int, ____: int, size: int, *_____: Any) -> None:
        """A message, and an answer."""
        self._count()
        self._sends(size)

    def comm_split(self, _: int, new: int, *__: Any) -> None:
        """Nobody knows how large the parts are; the rows of a square grid are a guess."""
        self._count()
        self._ranks[new] = max(1, round(sqrt(self._ranks[0])))

    def comm_create(self, _: int, new: int, members: Sequence[int], *__: Any) -> None:
        """A communicator of so many."""
        self._count()
        self._ranks[new] = len(members)

    def collective(self, _: int, kind: str, volume: int | list[int] = 0, comm: int = 0, *__: Any) -> None:
        """Its messages."""
        self._count()
        ranks = self._ranks.get(comm, self._ranks[0])
        block = float(volume) if isinstance(volume, int) else sum(volume) / max(1, len(volume))
        for size, count in _messages(kind, block, ranks):
            self._sends(size, count)
            self.traffic.received += count * self._times[-1]
        self._waits(float(max(1, (ranks - 1).bit_length())))

    def icollective(self, rank: int, kind: str, _: int, volume: int | list[int] = 0, comm: int = 0, *__: Any) -> None:
        """The same without waiting."""
        self.collective(rank, kind, volume, comm)


def _messages(kind: str, block: float, ranks: int) -> Iterator[tuple[float, float]]:
    """About what one rank sends in a collective: bytes of a message and how many."""
    others, steps = float(ranks - 1), float((ranks - 1).bit_length())
    if kind in ("alltoall", "allgather", "reduce_scatter"):
        yield block, others
    elif kind in ("allreduce", "barrier", "scan"):
        yield (block / ranks, 2 * others) if block > _LONG else (block, steps)
    else:  # a tree, or one to or from the root
        yield block, others / ranks
