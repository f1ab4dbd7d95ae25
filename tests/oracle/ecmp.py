"""ECMP: the path of a flow, by a hash at each switch over the links on shortest paths."""

from collections.abc import Sequence

from .case import Hop, Link
from .graph import SwitchGraph

MASK = 0xFFFF_FFFF


def scatter(word: int) -> int:
    """The hash function: mixes the 32 bits of a word."""
    word = (word ^ word >> 16) * 0x7FEB_352D & MASK
    word = (word ^ word >> 15) * 0x846C_A68B & MASK
    return word ^ word >> 16


class Ecmp:
    """The paths of flows on a fabric whose hosts have one adapter each."""

    def __init__(self, links: Sequence[Link], seed: int) -> None:
        self.links, self.seed, self.switches = links, seed, SwitchGraph(links)

    def path(self, source: int, to: int, job: int, lane: int) -> list[int]:
        """The links of a flow: all packets of a job from one host to another on one virtual lane."""
        flow = scatter(scatter(scatter(source) ^ to) ^ (job << 8 | lane))
        ends = {link.from_host: number for number, link in enumerate(self.links) if link.from_host is not None}
        last = next(number for number, link in enumerate(self.links) if link.to_host == to)
        target = self.links[last].from_switch
        assert target is not None
        far, path = self.switches.distances(target), [ends[source]]
        while (at := self.links[path[-1]].to_switch) != target:
            assert at is not None
            choices = [
                number for number in self.switches.leaving[at] if far[self.links[number].to_switch or 0] < far[at]
            ]
            word = scatter(flow ^ scatter(at * 0x9E37_79B9 & MASK ^ self.seed))
            path.append(choices[word * len(choices) >> 32])
        return [*path, last]

    def hops(self, source: int, to: int, job: int, lane: int) -> list[Hop]:
        """The same in a tree, where one virtual channel is enough."""
        return [Hop(link) for link in self.path(source, to, job, lane)]
