"""Ranks, and what they have started."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from .case import Recv, Send


@dataclass(eq=False, kw_only=True)
class Request:
    """What a rank has started. When it is complete, `then` goes on if it is given, else a rank that waits for it."""

    rank: "Rank"
    complete: bool = False
    then: Callable[[], None] | None = None


@dataclass(eq=False, kw_only=True)
class Receiving(Request):
    """A receive that was posted."""

    op: Recv


@dataclass(frozen=True)
class Exchange:
    """Messages that belong together, as those of a rendezvous: they use one pair of adapters."""

    origin: "Rank"
    target: "Rank"
    turn: int
    """How many the origin began before it."""


@dataclass(eq=False, kw_only=True)
class Sending(Request):
    """A send that was started, and how far its first message (eager payload or request) and its matching are."""

    op: Send
    rendezvous: bool
    called: int
    arrived: bool = False
    delivered: bool = False
    receive: Receiving | None = None
    exchange: Exchange | None = None

    def suits(self, receive: Receiving) -> bool:
        """Whether a receive may take this message."""
        same = receive.op.context == self.op.context
        return same and receive.op.source in (None, self.rank.number) and receive.op.tag in (None, self.op.tag)


@dataclass(eq=False)
class Rank:
    """A rank, and the lists in which it looks for matches."""

    job: int
    number: int
    host: int
    # What communicators and windows are called.
    names: dict[Hashable, str] = field(default_factory=lambda: {"world": "world"})
    requests: dict[int, Request] = field(default_factory=dict)
    awaited: list[Request] = field(default_factory=list)
    # By sender and context, in order of sending.
    incoming: dict[tuple[int, Hashable], list[Sending]] = field(default_factory=dict)
    posted: list[Receiving] = field(default_factory=list)  # receives without a message
    unexpected: list[Sending] = field(default_factory=list)  # messages without a receive
    life: Iterator[int | None] = field(default_factory=lambda: iter(()))
    finished: bool = False
    timed_since: int = 0
    burst_since: int = 0
    bursts: int = 0  # how often it has asked whether one is over
    burst_over: bool = False
    begun: int = 0  # exchanges with other hosts
    leaving: int = 0  # until when its link out of its memory is busy, where it has one
    entering: int = 0  # the same of its link in
