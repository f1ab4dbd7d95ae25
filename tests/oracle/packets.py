"""Messages and packets."""

from collections.abc import Callable
from dataclasses import dataclass, field

from .case import Hop


@dataclass
class Message:
    """A message on its way; at each delivery `delivered` is told whether the packet is the first, and the last."""

    job: int
    kind: str
    number: int
    lane: int
    route: list[Hop]
    payloads: list[int]
    delivered: Callable[[bool, bool], None]
    destination: int
    ranks: tuple[int, int]
    arrived: int = 0


@dataclass
class Packet:
    """A packet: which of its message, how many hops it has made, since when it waits there, when it was offered."""

    message: Message
    index: int
    size: int
    hop: int = 0
    joined: int = 0
    offered: int = 0
    route: list[Hop] = field(default_factory=list)
    tail: int = 0
    """When its tail is at the input port of an input-queued switch."""
    waited: int = 0
    """How long it was in the queue of the input port of the switch where it is."""
    decided: bool = False
    """It may be on a non-minimal path that begins like the minimal one."""
