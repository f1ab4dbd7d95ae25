"""The graph of switches: the links between them, and how far they are apart."""

from collections import defaultdict, deque
from collections.abc import Sequence

from .case import Link

__all__ = ["SwitchGraph"]


class SwitchGraph:
    """The links between switches, by the switch that they leave and by the switch that they enter."""

    def __init__(self, links: Sequence[Link]) -> None:
        self.leaving: dict[int, list[int]] = defaultdict(list)
        self._upstream: dict[int, list[int]] = defaultdict(list)
        for number, link in enumerate(links):
            if link.from_switch is not None and link.to_switch is not None:
                self.leaving[link.from_switch].append(number)
                self._upstream[link.to_switch].append(link.from_switch)
        self._distances: dict[int, dict[int, int]] = {}

    def distances(self, target: int) -> dict[int, int]:
        """The links of a shortest path to a switch, by the switch where it begins; without switches that have none."""
        if target not in self._distances:
            found, reached = {target: 0}, deque([target])
            while reached:
                near = reached.popleft()
                for far in self._upstream[near]:
                    if far not in found:
                        found[far] = found[near] + 1
                        reached.append(far)
            self._distances[target] = found
        return self._distances[target]
