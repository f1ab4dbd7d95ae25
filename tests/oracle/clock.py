"""Time: one heap of things to do.

What happens at one instant has an order. First, ports take in credits; then switches with adaptive routing route the
packets whose heads arrive; then ports take in packets; then each host does what is due there, always the first of it:
deliveries, then transfers through memory and combinations, then phases of non-blocking collectives, then ranks; then
messages join the NICs' queues; then input-queued switches match inputs with outputs; last, ports decide. What one of
these causes at the same instant takes its place in the same order.
"""

import heapq
from collections.abc import Callable
from enum import IntEnum


class Stage(IntEnum):
    """The order of things at one instant."""

    CHANGE = -1
    CREDIT = 0
    ROUTE = 1
    JOIN = 2
    DELIVERY = 3
    MEMORY = 4
    PROGRESS = 5
    RANK = 6
    HAND_OVER = 7
    ALLOCATE = 8
    DECIDE = 9


class Clock:
    """Does things in order of time, stage, key, and of being asked for."""

    def __init__(self) -> None:
        self.now = 0
        self._asked = 0
        self._heap: list[tuple[int, Stage, tuple[int, ...], int, Callable[[], None]]] = []

    def at(self, time: int, stage: Stage, key: tuple[int, ...], action: Callable[[], None]) -> None:
        """Asks for `action` at `time`; `key` orders what shares time and stage."""
        self._asked += 1
        heapq.heappush(self._heap, (time, stage, key, self._asked, action))

    def run(self, end: int | None = None) -> None:
        """Goes on until there is nothing left to do, or only from ``end`` on."""
        while self._heap and (end is None or self._heap[0][0] < end):
            self.now, _, _, _, action = heapq.heappop(self._heap)
            action()
        if end is not None and self._heap:
            self.now = end
