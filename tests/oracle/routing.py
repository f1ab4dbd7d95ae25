"""Adaptive routing: the loads of links, and whether a switch may choose the link over which the engine sends a packet.

Random numbers are the engine's own, because the page does not define them: which of several least loaded links a
packet takes, and which non-minimal paths are drawn. So `rotation` is checked completely, `adaptive` but for ties,
and of the other routings that a packet takes a non-minimal path only if it costs less than the minimal one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from .case import Case, Choice
from .clock import Clock
from .graph import PathKinds, SwitchGraph
from .packets import Packet

__all__ = ["ADAPTIVE", "NON_MINIMAL", "Router"]

#: Routings with non-minimal paths.
NON_MINIMAL = ("progressive", "ugal_g", "ugal_l")
#: Routings whose choices depend on what has been routed before.
ADAPTIVE = ("adaptive", "rotation", *NON_MINIMAL)


class Loads:
    """The load of every link, as switches see it."""

    def __init__(self, case: Case) -> None:
        smallest = min(link.latency for link in case.fabric.links)
        self.window = 1 << (smallest.bit_length() - 1)
        self.changes: dict[int, list[tuple[int, int]]] = defaultdict(list)

    def change(self, link: int, time: int, size: int) -> None:
        """A packet of `size` bytes is routed to a link at this time, or, if negative, credits return to its port."""
        self.changes[link].append((time, size))

    def load(self, link: int, now: int, *, own: bool = True) -> int:
        """As of the beginning of the window of `now`; a switch's own ports with what it has routed to them since."""
        # A time at which a window begins belongs to it.
        begin = now // self.window * self.window
        settled = sum(size for time, size in self.changes[link] if time < begin)
        recent = [(time, size) for time, size in self.changes[link] if time >= begin]
        self.changes[link] = [(begin - 1, settled), *recent]
        return settled + sum(size for _, size in recent if own and size > 0)


class Router:
    """All switches, as far as they route packets."""

    def __init__(self, case: Case, clock: Clock) -> None:
        self.case, self.clock, self.loads = case, clock, Loads(case)
        self.links = case.fabric.links
        self.full = case.network.mtu + case.network.header
        self.waiting = Loads(case)
        self.switches, self.kinds = SwitchGraph(self.links), PathKinds(self.links)
        self.turns: dict[int, int] = defaultdict(int)

    def route(self, packet: Packet, hop: int) -> None:
        """A packet's head arrives at the switch that it leaves with its hop of number `hop`."""
        choice, path = self.case.fabric.choice(packet.message.lane), [one.link for one in packet.route[hop:]]
        if choice.name in ADAPTIVE:
            match choice.name:
                case "adaptive":
                    allowed = self.shortest(choice, path)
                case "rotation":
                    allowed = self.in_turn(path)
                case _:
                    allowed = self.ugal(choice, path, packet, hop)
            assert allowed, f"at {self.clock.now} ps {choice.name} takes {path}, which it does not prefer"
        self.loads.change(path[0], self.clock.now, packet.size)
        self.waiting.change(path[0], self.clock.now, self.full)

    def started(self, link: int) -> None:
        """A packet that has been routed to a link starts."""
        self.waiting.change(link, self.clock.now, -self.full)

    def shortest_links(self, path: list[int]) -> list[int]:
        """The links, in order of port, on shortest paths from the switch where a path begins to that where it ends."""
        switch, target = self.links[path[0]].from_switch, self.links[path[-1]].from_switch
        assert switch is not None
        assert target is not None
        distances = self.switches.distances(target)

        def closer(link: int) -> bool:
            far = self.links[link].to_switch
            return far is not None and distances.get(far) == distances[switch] - 1

        return sorted(link for link in self.switches.leaving[switch] if closer(link))

    def in_turn(self, path: list[int]) -> bool:
        """Whether it is the turn of a path's first link."""
        links = self.shortest_links(path)
        if len(links) < 2:
            return len(path) == 1 or links == path[:1]
        turn = self.turns[links[0]]
        self.turns[links[0]] += 1
        return path[0] == links[turn % len(links)]

    def shortest(self, choice: Choice, path: list[int]) -> bool:
        """Whether `adaptive` may take the first link of a path: of those on a shortest path the least loaded."""
        switch = self.links[path[0]].from_switch
        loads = {link: self.loads.load(link, self.clock.now) for link in self.shortest_links(path)}
        if not loads:
            return len(path) == 1
        assert switch is not None
        least = min(loads.values())
        own = choice.direct.get((switch, path[-1]), (None,))[0]
        threshold = choice.params.get("threshold", 0)
        if own is None:  # no packet of the routing that is not adaptive comes here: its port is not known
            return path[0] in loads and loads[path[0]] <= least + threshold
        if threshold and loads[own] <= least + threshold:
            return path[0] == own
        lightest = [link for link, load in loads.items() if load == least]
        if choice.params.get("ties") == "d_mod_k":
            return path[0] == min(lightest, key=lambda link: (link < own, link))
        return path[0] in lightest

    def ugal(self, choice: Choice, path: list[int], packet: Packet, hop: int) -> bool:
        """Whether a packet may be on this path: minimal, or non-minimal and cheaper."""
        revised = choice.name == "progressive"
        if (hop > 1 and not revised) or packet.decided:
            return True
        switch = self.links[path[0]].from_switch
        assert switch is not None
        minimal = list(choice.direct.get((switch, path[-1]), ()))
        if path == minimal:
            return True
        before = [one.link for one in packet.route[1:hop]]
        first = self.links[packet.route[1].link].from_switch
        assert first is not None
        if before != list(choice.direct[first, path[-1]])[: len(before)]:
            return True  # its path has been final since an earlier switch
        if choice.params.get("revise") != "minimal" and not self.kinds.together(first, switch):
            return False
        bias = int(choice.params["bias"])
        cost, limit = self.cost(choice, path, minimal=False), self.cost(choice, minimal, bias, minimal=True)
        cheaper = cost < limit or (cost == limit and choice.params.get("ties") == "random")
        if revised and path[0] == minimal[0]:
            # Both begin with the same link: it may have chosen this path here, or leave the minimal one further on.
            packet.decided = cheaper
            return True
        return cheaper

    def cost(self, choice: Choice, path: Sequence[int], bias: int = 0, *, minimal: bool) -> int:
        """What a path costs; of the load, `bias` bytes do not count."""
        now = self.clock.now
        here = (self.waiting if choice.params.get("load") == "packets" else self.loads).load(path[0], now)
        if choice.name == "ugal_g":
            return max(0, here + sum(self.loads.load(link, now, own=False) for link in path[1:]) - bias)
        switch, target = self.links[path[0]].from_switch, self.links[path[-1]].from_switch
        assert switch is not None
        assert target is not None
        own = choice.params.get("links") != "longest"
        return max(0, here - bias) * (len(path) - 1 if own else self.kinds.longest(switch, target, minimal=minimal))
