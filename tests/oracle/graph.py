"""The graph of switches: the links between them, and how far they are apart."""

from collections import defaultdict, deque
from collections.abc import Sequence

from .case import Link

__all__ = ["PathKinds", "SwitchGraph"]


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


class PathKinds:
    """The longest paths in a fabric of groups: minimal or not, within a group or from one to another."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._local = SwitchGraph([link for link in links if not link.between_groups])
        ends = {end for link in links for end in (link.from_switch, link.to_switch) if end is not None}
        leaves = {link.to_switch for link in links if link.from_host is not None and link.to_switch is not None}
        gateways = {link.from_switch for link in links if link.between_groups and link.from_switch is not None}
        leave, enter = self._apart(leaves, gateways), self._apart(gateways, leaves)
        self._longest = {
            (False, True): self._apart(leaves, leaves),
            (False, False): self._apart(leaves, ends) + self._apart(ends, leaves),
            (True, True): leave + 1 + enter,
            (True, False): leave + 1 + self._apart(gateways, gateways) + 1 + enter,
        }

    def _apart(self, sources: set[int], targets: set[int]) -> int:
        """The greatest distance within a group."""
        by_target = [self._local.distances(target) for target in targets]
        return max((apart[source] for apart in by_target for source in sources if source in apart), default=0)

    def together(self, one: int, other: int) -> bool:
        """Whether two switches are in one group."""
        return one in self._local.distances(other)

    def longest(self, source: int, target: int, *, minimal: bool) -> int:
        """Links between switches on the longest path of the kind of those from one switch to another."""
        return self._longest[not self.together(source, target), minimal]
