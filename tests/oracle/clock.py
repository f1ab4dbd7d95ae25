"""Time: one heap of things to do.

What happens at one instant has an order. First, ports take in credits, then packets; then hosts handle deliveries,
then transfers through memory, then ranks that are due; last, ports decide. What a host's event causes at the same
instant comes in a further round, after everything of the round before.
"""

import heapq
from collections.abc import Callable
from enum import IntEnum


class Stage(IntEnum):
    """The order of things at one instant."""

    CREDIT = 0
    JOIN = 1
    DELIVERY = 2
    MEMORY = 3
    RANK = 4
    DECIDE = 5


class Clock:
    """Does things in order of time, round, stage, key, and of being asked for."""

    LAST_ROUND = 10**9

    def __init__(self) -> None:
        self.now = 0
        self._round = 0
        self._asked = 0
        self._heap: list[tuple[int, int, Stage, tuple[int, ...], int, Callable[[], None]]] = []

    def at(self, time: int, stage: Stage, key: tuple[int, ...], action: Callable[[], None]) -> None:
        """Asks for `action` at `time`; `key` orders what shares time and stage."""
        turn = self._round + 1 if time == self.now else 0
        if stage is Stage.DECIDE:
            turn = self.LAST_ROUND
        self._asked += 1
        heapq.heappush(self._heap, (time, turn, stage, key, self._asked, action))

    def run(self) -> None:
        """Goes on until there is nothing left to do."""
        while self._heap:
            self.now, self._round, _, _, _, action = heapq.heappop(self._heap)
            action()
