"""Priority flow control: what the buffer at the end of a link does with what it holds, and what its sender hears."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .case import Link, Network, Pfc, ser
from .clock import Stage

if TYPE_CHECKING:
    from .network import Port

FRAME = 84
"""Bytes of a PAUSE on the wire."""


def delay(link: Link, back: Link, pfc: Pfc) -> int:
    """From a change in the buffer of a link until its sender acts on it."""
    return link.latency + ser(FRAME, back.bandwidth) + pfc.response


def headroom(link: Link, back: Link, pfc: Pfc, full: int) -> int:
    """Bytes that a buffer keeps for what comes after it has sent PAUSE."""
    if link.to_host is not None:
        return 0
    time = link.latency + delay(link, back, pfc) + ser(full, back.bandwidth)
    return -(-time * link.bandwidth // (8 * 10**12)) + full


@dataclass
class Buffer:
    """The input buffer of a lane, at the receiver."""

    xoff: int
    xon: int
    held: int = 0
    full: bool = False
    leaving: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Jobs of the packets that leave, by time."""


class Pauses:
    """The buffers at the end of a port's link, and what the port knows of them."""

    def __init__(self, port: "Port", network: Network, pfc: Pfc, sizes: list[int]) -> None:
        links = port.interconnect.case.fabric.links
        back = links[port.interconnect.reverse[port.number]]
        self.port, self.delay = port, delay(port.link, back, pfc)
        full = network.mtu + network.header
        self.buffers = []
        for size in sizes:
            xoff = size - headroom(port.link, back, pfc, full) if pfc.xoff is None else pfc.xoff
            self.buffers.append(Buffer(xoff, max(0, xoff - 2 * full) if pfc.xon is None else pfc.xon))
        self.since: dict[int, int] = {}

    def change(self, time: int, lane: int, size: int, job: int | None = None) -> None:
        """At `time` the bytes in a buffer change by `size`; of a packet of `job` that leaves it."""
        clock, buffer = self.port.interconnect.clock, self.buffers[lane]

        def happen() -> None:
            buffer.held += size
            if job is not None:
                buffer.leaving[time].append(job)
            clock.at(time, Stage.DECIDE, (), lambda: self.judge(lane, buffer))

        clock.at(time, Stage.CREDIT, (), happen)

    def judge(self, lane: int, buffer: Buffer) -> None:
        """After all changes of an instant: the receiver sends what has changed, and a PAUSE or a RESUME."""
        clock = self.port.interconnect.clock
        was, held = buffer.full, buffer.held
        buffer.full = held > (buffer.xon if was else buffer.xoff)
        job = min(buffer.leaving.pop(clock.now, [0]))
        key, paused = (lane, job), buffer.full if buffer.full != was else None
        clock.at(clock.now + self.delay, Stage.CREDIT, key, lambda: self.hear(lane, job, held, paused))

    def hear(self, lane: int, job: int, held: int, paused: bool | None) -> None:
        """The sender hears from the buffer."""
        now, count = self.port.interconnect.clock.now, self.port.interconnect.outcome.pauses[self.port.number, lane]
        count.peak = max(count.peak, held)
        if paused:
            self.port.settle()
            count.first = count.first if count.count else now
            count.count += 1
            self.since[lane] = now
        elif paused is not None:
            span = now - self.since.pop(lane)
            count.time, count.longest = count.time + span, max(count.longest, span)
            self.port.credit(lane, 0, job)

    def finish(self) -> None:
        """The end comes while lanes are paused."""
        for lane, since in self.since.items():
            count = self.port.interconnect.outcome.pauses[self.port.number, lane]
            span = self.port.interconnect.clock.now - since
            count.time, count.longest = count.time + span, max(count.longest, span)
