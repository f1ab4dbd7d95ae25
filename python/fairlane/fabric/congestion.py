"""Roots of congestion trees: the links that are busy themselves, to which ports that stall upstream lead.

A port that stalls has packets and no credits, because the switch at its end cannot send on what it has received. So the
cause is downstream: the walk goes from each stalled port to the outputs of that switch at which most packets wait, and
on from those that stall themselves. It ends at links that transmit nearly all the time that they have packets: the
roots. Links that are saturated without a stalled port upstream, as those of hosts that send more than their adapter
takes, are roots, too. For which output a stalled port's packets wait is not measured; the walk takes all those with at
least half as much as the output with most.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

STALLED = 0.05
"""A port stalls if it does for this share of the time."""
BUSY = 0.5
"""A root at which stalled ports end transmits for at least this share of the time."""
SATURATED = 0.7
"""A link without stalled ports upstream is a root if it transmits for at least this share."""
SIMILAR = 0.5
"""The walk goes on to outputs with this share of the largest queue of a switch."""


@dataclass(frozen=True)
class Port:
    """What the port that sends over a link measured."""

    link: int
    """The link's number."""
    start: str
    end: str
    """The host or switch at each end."""
    active_share: float
    """The share of the time in which it transmits."""
    stalled_share: float
    """The share in which it has packets and no credits."""
    queue: float
    """How much waits at it, in any unit."""

    @property
    def stalls(self) -> bool:
        """Whether it is held up by what is downstream."""
        return self.stalled_share >= STALLED


def trees(ports: Iterable[Port]) -> dict[int, list[int]]:
    """The roots by link number, each with the stalled ports that lead to it."""
    every = list(ports)
    outputs: dict[str, list[Port]] = defaultdict(list)
    for port in every:
        outputs[port.start].append(port)
    found: dict[int, list[int]] = {
        port.link: [] for port in every if port.active_share >= SATURATED and not port.stalls
    }
    for port in filter(lambda port: port.stalls, every):
        for root in _downstream(port, outputs):
            found.setdefault(root, []).append(port.link)
    return found


def _downstream(stalled: Port, outputs: dict[str, list[Port]]) -> list[int]:
    """The roots to which a stalled port leads."""
    roots: list[int] = []
    seen, open_ = {stalled.link}, [stalled]
    while open_:
        port = open_.pop()
        others = [one for one in outputs[port.end] if one.end != port.start]
        most = max((one.queue for one in others), default=0.0)
        for one in others:
            if one.link in seen or not most or one.queue < SIMILAR * most:
                continue
            seen.add(one.link)
            if one.stalls:
                open_.append(one)
            elif one.active_share >= BUSY:
                roots.append(one.link)
    return roots


@dataclass(frozen=True)
class Root:
    """The root of a congestion tree."""

    link: str
    """The link's name, as ``leaf4 port 7 to spine2``."""
    active_share: float
    """The share of the time in which it transmits."""
    bandwidth_bps: int
    """Bits per second."""
    usual_bps: int
    """The bandwidth of most of its peers."""
    upstream: int
    """How many stalled ports lead to it."""
    jobs: tuple[str, ...]
    """The jobs that use it, where that is known."""

    @property
    def slow(self) -> bool:
        """Whether it is slower than most of its peers."""
        return self.bandwidth_bps < self.usual_bps
