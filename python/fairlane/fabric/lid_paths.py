"""Follows the local identifiers (LIDs) of adapters through forwarding tables, each to the port at which it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairlane.fabric.identities import endpoint_lids, endpoints_of, numbered, places
from fairlane.fabric.wiring import Wiring
from fairlane.wording import plural, some

Entries = Mapping[str, Mapping[int, int]]
"""By switch the port for each LID; 0 and absent LIDs lead nowhere."""
_SHOWN = 3  # LIDs that a message names
_End = tuple[str, int] | str  # a port of a host, or what happens in its place


@dataclass(frozen=True)
class Misled:
    """A LID that some switch with hosts leads to another place than the port that owns it."""

    lid: int
    is_first: bool
    """Whether it is the first LID of its port, which routes of the simulator go to."""
    owner: str
    """The adapter and port that own it."""
    end: str
    """Where it ends."""

    def __str__(self) -> str:
        return f"LID {self.lid} of {self.owner} {self.end}"


def misled(wiring: Wiring, entries: Entries) -> list[Misled]:
    """The LIDs of adapters that do not end at their port from every switch with hosts that has an entry for them."""
    owners, endpoints = endpoint_lids(wiring), endpoints_of(wiring)
    nodes = places(wiring.nodes, wiring)
    firsts = {port.lid for _, port in nodes.values()}
    paths = _Paths(wiring, entries)

    def named(place: tuple[str, int]) -> str:
        node, port = nodes[place]
        return f"{node.description or node.owner} port {port.number}"

    found = []
    for lid, endpoint in sorted(owners.items()):
        place = endpoints[endpoint]
        wrong = next((end for end in paths.ends(lid) if end != place), None)
        if wrong is not None:
            end = wrong if isinstance(wrong, str) else f"ends at {named(wrong)}"
            found.append(Misled(lid, lid in firsts, named(place), end))
    return found


def summary(found: Sequence[Misled], total: int) -> str:
    """One sentence on LIDs that are led elsewhere, of ``total``."""
    words = f"{len(found)} of {plural(total, 'LID')} of adapters {'is' if len(found) == 1 else 'are'} led elsewhere"
    return f"{words}: {some(map(str, found), _SHOWN)}"


class _Paths:
    """The paths of LIDs from all switches with hosts."""

    def __init__(self, wiring: Wiring, entries: Entries) -> None:
        self._entries, self._hosts = entries, set(wiring.hosts)
        self._far: dict[tuple[str, int], tuple[str, int]] = {}
        for one, other in numbered(wiring):
            self._far[one], self._far[other] = other, one
        self._leaves = dict.fromkeys(end[0] for end, far in self._far.items() if far[0] in self._hosts)

    def ends(self, lid: int) -> list[_End]:
        """Where the LID ends from each switch with hosts that has an entry for it."""
        known: dict[str, _End] = {}
        return [self._follow(leaf, lid, known) for leaf in self._leaves if self._entries.get(leaf, {}).get(lid)]

    def _follow(self, at: str, lid: int, known: dict[str, _End]) -> _End:
        passed: dict[str, None] = {}
        while at not in known:
            if at in passed:
                known[at] = f"goes in a circle over {at}"
                break
            passed[at] = None
            port = self._entries.get(at, {}).get(lid, 0)
            far = self._far.get((at, port))
            if far is not None and far[0] not in self._hosts:
                at = far[0]
            elif far is not None:
                known[at] = far
            else:
                known[at] = f"leads to port {port} of {at}, which has no cable" if port else f"has no entry at {at}"
        known.update(dict.fromkeys(passed, known[at]))
        return known[at]
